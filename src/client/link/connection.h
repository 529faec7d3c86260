/* connection.h: one connection to one address, plain or with TLS, without blocking. Bytes in, bytes out, in bounded buffers.
 *
 *   closed --open--> connecting --> handshake (TLS only) --> up --> closed (by the owner, who is told why)
 */
#ifndef PAWL_CLIENT_CONNECTION_H
#define PAWL_CLIENT_CONNECTION_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>

#include "buffer.h"
#include "endpoint.h"
#include "tls_filter.h"

#define CONNECTION_PROBLEM_MAX 184

enum connection_state { CONNECTION_CLOSED, CONNECTION_CONNECTING, CONNECTION_HANDSHAKE, CONNECTION_UP };

/* Called from the loop only. None of them is followed by another one after the owner has closed the connection. */
struct connection_owner {
	void (*enter)(void *ctx); /* around all others: the connection lives until `leave` */
	void (*leave)(void *ctx);
	void (*up)(void *ctx);
	void (*data)(void *ctx);            /* more bytes are in `in`: consume them */
	void (*room)(void *ctx);            /* what waited to be written is written */
	void (*down)(void *ctx, int error); /* the connection is to be closed now; connection->problem says why */
	void *ctx;
};

struct connection {
	struct event_base *base; /* borrowed */
	struct connection_owner owner;
	enum connection_state state;
	int fd;
	bool read_armed, write_armed, encrypts;
	bool ended;  /* by the other side: in order, or by a reset */
	bool broken; /* by the network: the system has given it up */
	struct event reading, writing;
	struct tls_filter filter;
	struct buffer in;  /* plain bytes that arrived */
	struct buffer out; /* plain bytes to send: append, then connection_flush */
	struct buffer net; /* encrypted bytes to send */
	char problem[CONNECTION_PROBLEM_MAX];
};

void connection_init(struct connection *c, const struct allocator *alloc, struct event_base *base, struct connection_owner owner);
void connection_done(struct connection *c);

/* tls: NULL for a plain one; host: whom the certificate must name. 0 (up or down follows), or an error with `problem` set. */
int connection_open(struct connection *c, const struct endpoint_address *address, SSL_CTX *tls, const char *host);
void connection_close(struct connection *c);
/* As connection_close, but the connection stays open and silent: its socket is the caller's. */
int connection_leave_open(struct connection *c);

/* Writes what is in `out` in one go, the rest when the socket takes it. 0, or an error: close the connection. */
int connection_flush(struct connection *c);
/* What waits to be written, in bytes. */
static inline size_t connection_backlog(const struct connection *c) {
	return c->out.size + c->net.size;
}
/* Reads what is there now, without waiting for the loop; `data` and `down` are called as ever. */
void connection_read_now(struct connection *c);

#endif
