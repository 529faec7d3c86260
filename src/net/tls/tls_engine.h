/* tls_engine.h: one TLS 1.3 connection as a filter between bytes and bytes, without a socket. The
 * stream reads and writes, so that what leaves in one turn of the loop is one write, and what
 * arrives gets its time after it was received.
 */
#ifndef PAWL_NET_TLS_ENGINE_H
#define PAWL_NET_TLS_ENGINE_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "slice.h"

struct tls_engine;

/* How many messages of the handshake the other side may send after it, until some of them are
 * forgiven. Each of them is a key update, in which both sides derive new keys, or a session
 * ticket. */
#define TLS_LATE_MAX 32u

/* The end of the connection that this process is. */
enum tls_role { TLS_CLIENT, TLS_SERVER };

/* Returns NULL if there is no memory. The engine holds a reference to the context. */
struct tls_engine *tls_engine_new(SSL_CTX *context, enum tls_role role);
void tls_engine_free(struct tls_engine *e);

/* Takes bytes as they came from the socket, and continues the handshake as far as they allow.
 * Returns 0, PAWL_ENOMEM or PAWL_ETLS. */
int tls_engine_feed(struct tls_engine *e, struct slice bytes);
/* Returns whether the handshake is done. */
bool tls_engine_ready(const struct tls_engine *e);

/* Decrypts what was fed. Returns a number of bytes; 0 if more must be fed first; PAWL_ECLOSED after
 * the other side has closed; or PAWL_ETLS, also after more than TLS_LATE_MAX late messages. */
int tls_engine_read(struct tls_engine *e, uint8_t *out, size_t size);
/* Returns how many records have been read so far. A late message counts as 17, because it takes as
 * long as these. */
uint64_t tls_engine_records(const struct tls_engine *e);
/* Returns how many late messages are not forgiven. */
unsigned tls_engine_late(const struct tls_engine *e);
/* Forgives that many late messages, or all. */
void tls_engine_forgive(struct tls_engine *e, uint64_t count);
/* Encrypts all of `bytes`, once the handshake is done. Returns 0 or PAWL_ETLS. */
int tls_engine_write(struct tls_engine *e, struct slice bytes);

/* Returns what must go to the socket, including the handshake. It is valid until the next call. Say
 * with tls_engine_sent how much of it has gone. */
struct slice tls_engine_outgoing(const struct tls_engine *e);
/* That many of the outgoing bytes have gone to the socket. */
void tls_engine_sent(struct tls_engine *e, size_t size);

/* Returns how many bytes the buffers of both directions take. */
size_t tls_engine_bytes(const struct tls_engine *e);
/* Gives back the buffers that are empty, if both together take more than `keep` bytes. */
void tls_engine_tidy(struct tls_engine *e, size_t keep);

/* Appends close_notify to what must go to the socket. */
void tls_engine_close(struct tls_engine *e);
/* After PAWL_ETLS, returns a phrase for the log. It is valid until tls_engine_free. */
const char *tls_engine_why(const struct tls_engine *e);
/* For reading the certificate of the other side. */
SSL *tls_engine_ssl(const struct tls_engine *e);

#endif
