/* seal.h: TLS 1.3 as a filter between bytes and bytes: it knows no socket, so one path reads and writes for plain and sealed
 * connections, and no write raises SIGPIPE. */
#ifndef PAWL_CLIENT_SEAL_H
#define PAWL_CLIENT_SEAL_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "buffer.h"

/* 0, PAWL_ETLS with a sentence in *out_problem (thread-local storage), or PAWL_ENOMEM. cert and key: both or neither. */
int seal_context_new(const char *ca_file, const char *cert_file, const char *key_file, SSL_CTX **out,
	const char **out_problem);
void seal_context_free(SSL_CTX *context);

struct seal {
	SSL *ssl;
	BIO *from_net, *to_net; /* owned by ssl */
	bool ready;             /* the handshake is done */
	bool closed;            /* the other side has said that nothing will follow */
};

/* `host`: the name or address that the node's certificate must carry. 0 or PAWL_ENOMEM. */
int seal_init(struct seal *s, SSL_CTX *context, const char *host);
void seal_done(struct seal *s);

/* Sealed bytes from the net in (a first call with none starts the handshake); what can be opened is appended to `plain`.
 * 0, PAWL_ETLS, PAWL_ENOMEM or PAWL_ETOOLARGE. */
int seal_take(struct seal *s, struct slice sealed, struct buffer *plain);
/* Seals bytes, once ready. 0 or PAWL_ETLS. */
int seal_give(struct seal *s, struct slice plain);
/* Moves what is to go to the net to `out`. 0, PAWL_ENOMEM or PAWL_ETOOLARGE. */
int seal_drain(struct seal *s, struct buffer *out);

/* Why the last PAWL_ETLS: a phrase, thread-local storage. */
const char *seal_problem(const struct seal *s);

#endif
