/* connection.h: one connection to one address, plain or with TLS, that never blocks. It moves bytes
 * in and out through bounded buffers.
 *
 *   closed --open--> connecting --> handshake (TLS only) --> up --> closed (by the owner,
 *   who is told why)
 */
#ifndef PAWL_CLIENT_CONNECTION_H
#define PAWL_CLIENT_CONNECTION_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>

#include "buffer.h"
#include "endpoint.h"
#include "tls_filter.h"

#define CONNECTION_PROBLEM_MAX 640

enum connection_state {
	CONNECTION_CLOSED,
	CONNECTION_CONNECTING,
	CONNECTION_HANDSHAKE,
	CONNECTION_UP
};

/* The loop alone calls these functions. After the owner has closed the connection, none of them is
 * called any more, except `leave`. */
struct connection_owner {
	/* `enter` and `leave` are called around all others. The connection lives until `leave`. */
	void (*enter)(void *ctx);
	void (*leave)(void *ctx);
	void (*up)(void *ctx);

	/* More bytes are in `in`: consume them. */
	void (*data)(void *ctx);

	/* Everything that waited to be written has been written. */
	void (*room)(void *ctx);

	/* Close the connection now. connection->problem says why. */
	void (*down)(void *ctx, int error);
	void *ctx;
};

struct connection {
	/* Borrowed. */
	struct event_base *base;
	struct connection_owner owner;
	enum connection_state state;
	int fd;
	/* The loop waits for input, or for room to write; and the connection is over TLS. */
	bool read_armed, write_armed, encrypts;

	/* How often it was opened. The owner may close it and open it anew in one of its
	 * functions. */
	unsigned opened;

	/* The other side has ended the connection, in order or by a reset. */
	bool ended;

	/* The network has ended the connection: the system has given it up. */
	bool broken;
	struct event reading, writing;
	struct tls_filter filter;

	/* Plain bytes that arrived. */
	struct buffer in;

	/* Plain bytes to send: append to them, then call connection_flush. */
	struct buffer out;

	/* Encrypted bytes to send. */
	struct buffer net;
	char problem[CONNECTION_PROBLEM_MAX];
};

void connection_init(struct connection *c, const struct allocator *alloc, struct event_base *base,
	struct connection_owner owner);
void connection_done(struct connection *c);

/* Opens a connection. `tls` is NULL for a plain connection; `host` is the name that the certificate
 * must carry. Returns 0, and `up` or `down` follows; or an error, and `problem` says why. */
int connection_open(struct connection *c, const struct endpoint_address *address, SSL_CTX *tls,
	const char *host);
void connection_close(struct connection *c);
/* Closes like connection_close, but leaves the socket open and silent. Returns the socket, which
 * the caller owns. */
int connection_leave_open(struct connection *c);

/* Writes what is in `out` at once as far as the socket takes it, and the rest later. Returns 0, or
 * an error after which the caller must close the connection. */
int connection_flush(struct connection *c);
/* Returns how many bytes wait to be written. */
static inline size_t connection_backlog(const struct connection *c) {
	return c->out.size + c->net.size;
}
/* Reads what is there now, without waiting for the loop. `data` and `down` are called as usual. */
void connection_read_now(struct connection *c);

#endif
