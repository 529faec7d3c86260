/* tls_filter.h: TLS 1.3 as a filter between bytes and bytes. It knows no socket, so that one path reads and writes for plain and TLS
 * connections, and no write raises SIGPIPE. */
#ifndef PAWL_CLIENT_TLS_FILTER_H
#define PAWL_CLIENT_TLS_FILTER_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "buffer.h"

/* 0, PAWL_ETLS with a sentence in *out_problem (thread-local storage), or PAWL_ENOMEM. cert and key: both or neither. */
int tls_filter_context_new(const char *ca_file, const char *cert_file, const char *key_file, SSL_CTX **out,
	const char **out_problem);
void tls_filter_context_free(SSL_CTX *context);

struct tls_filter {
	SSL *ssl;
	BIO *from_net, *to_net; /* owned by ssl */
	bool ready;             /* the handshake is done */
	bool closed;            /* the other side has said that nothing will follow */
};

/* `host`: the name or address that the node's certificate must carry. 0 or PAWL_ENOMEM. */
int tls_filter_init(struct tls_filter *f, SSL_CTX *context, const char *host);
void tls_filter_done(struct tls_filter *f);

/* Takes encrypted bytes from the net (a first call with none starts the handshake), and appends what it can decrypt to `plain`.
 * 0, PAWL_ETLS, PAWL_ENOMEM or PAWL_ETOOLARGE. */
int tls_filter_take(struct tls_filter *f, struct slice encrypted, struct buffer *plain);
/* Encrypts bytes, once ready. 0 or PAWL_ETLS. */
int tls_filter_give(struct tls_filter *f, struct slice plain);
/* Moves what is to go to the net to `out`. 0, PAWL_ENOMEM or PAWL_ETOOLARGE. */
int tls_filter_drain(struct tls_filter *f, struct buffer *out);

/* Why the last PAWL_ETLS: a phrase, thread-local storage. */
const char *tls_filter_problem(const struct tls_filter *f);

#endif
