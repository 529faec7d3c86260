/* tls_engine.h: one TLS 1.3 connection as bytes in, bytes out. No sockets: the stream reads and writes, so that what leaves
 * in one turn of the loop is one write, and what arrives is stamped after it was received. */
#ifndef PAWL_NET_TLS_ENGINE_H
#define PAWL_NET_TLS_ENGINE_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "slice.h"

struct tls_engine;

enum tls_role { TLS_CLIENT, TLS_SERVER };

struct tls_engine *tls_engine_new(SSL_CTX *context, enum tls_role role); /* NULL: no memory; holds a reference to the context */
void tls_engine_free(struct tls_engine *e);

/* Bytes as they came from the socket, and the handshake as far as they carry it. 0, PAWL_ENOMEM or PAWL_ETLS. */
int tls_engine_feed(struct tls_engine *e, struct slice bytes);
bool tls_engine_ready(const struct tls_engine *e); /* the handshake is done */

/* Decrypts what was fed: > 0 bytes, 0 when more must be fed first, PAWL_ECLOSED after the other side's close, PAWL_ETLS. */
int tls_engine_read(struct tls_engine *e, uint8_t *out, size_t size);
/* Encrypts all of it, once the handshake is done. 0 or PAWL_ETLS. */
int tls_engine_write(struct tls_engine *e, struct slice bytes);

/* What must go to the socket, handshake included; tell how much of it went. Valid until the next call. */
struct slice tls_engine_outgoing(const struct tls_engine *e);
void tls_engine_sent(struct tls_engine *e, size_t size);

size_t tls_engine_bytes(const struct tls_engine *e); /* what the buffers of both directions take */
void tls_engine_tidy(struct tls_engine *e, size_t keep); /* gives back those that are empty if they take more than that */

void tls_engine_close(struct tls_engine *e);             /* queues close_notify */
const char *tls_engine_why(const struct tls_engine *e);  /* after PAWL_ETLS: a phrase for the log; valid until tls_engine_free */
SSL *tls_engine_ssl(const struct tls_engine *e);         /* to read the peer's certificate */

#endif
