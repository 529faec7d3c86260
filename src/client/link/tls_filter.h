/* tls_filter.h: TLS 1.3 as a filter between plain and encrypted bytes. It knows no socket, so that
 * plain and TLS connections share one path for reading and writing, and no write raises SIGPIPE. */
#ifndef PAWL_CLIENT_TLS_FILTER_H
#define PAWL_CLIENT_TLS_FILTER_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "buffer.h"

/* Makes a context from the files; give both `cert_file` and `key_file`, or neither. Returns 0,
 * PAWL_ETLS with a sentence in *out_problem (thread-local storage), or PAWL_ENOMEM. Free it with
 * tls_filter_context_free. */
int tls_filter_context_new(const char *ca_file, const char *cert_file, const char *key_file,
	SSL_CTX **out, const char **out_problem);
void tls_filter_context_free(SSL_CTX *context);

struct tls_filter {
	SSL *ssl;
	/* Owned by ssl. */
	BIO *from_net, *to_net;
	/* The handshake is done. */
	bool ready;
	/* The other side has said that nothing will follow. */
	bool closed;

	/* The first byte that came; 0 before that. Below it: whose certificate the node has shown,
	 * and for which hosts it is, if it was not accepted. */
	uint8_t first;
	char shown[256];

	/* The name or address that the certificate must carry, shortened. */
	char wanted[128];
};

/* `host` is the name or address that the node's certificate must carry. Returns 0 or
 * PAWL_ENOMEM. */
int tls_filter_init(struct tls_filter *f, SSL_CTX *context, const char *host);
void tls_filter_done(struct tls_filter *f);

/* Takes encrypted bytes from the network, and appends what it can decrypt to `plain`. A first call
 * without bytes starts the handshake. Returns 0, PAWL_ETLS, PAWL_ENOMEM or PAWL_ETOOLARGE. */
int tls_filter_take(struct tls_filter *f, struct slice encrypted, struct buffer *plain);
/* Encrypts bytes; call this only once the filter is ready. Returns 0 or PAWL_ETLS. */
int tls_filter_give(struct tls_filter *f, struct slice plain);
/* Moves the bytes that are to go to the network to `out`. Returns 0, PAWL_ENOMEM or
 * PAWL_ETOOLARGE. */
int tls_filter_drain(struct tls_filter *f, struct buffer *out);

/* Returns a phrase that says why the last call returned PAWL_ETLS, in thread-local storage. */
const char *tls_filter_problem(const struct tls_filter *f);

#endif
