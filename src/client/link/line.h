/* line.h: one connection to one address, plain or with TLS, without blocking. Bytes in, bytes out, in bounded buffers.
 *
 *   closed --open--> connecting --> handshake (TLS only) --> up --> closed (by the owner, who is told why)
 */
#ifndef PAWL_CLIENT_LINE_H
#define PAWL_CLIENT_LINE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>

#include "buffer.h"
#include "endpoint.h"
#include "tls_filter.h"

#define LINE_PROBLEM_MAX 184

enum line_state { LINE_CLOSED, LINE_CONNECTING, LINE_HANDSHAKE, LINE_UP };

/* Called from the loop only. None of them is followed by another one after the owner has closed the line. */
struct line_owner {
	void (*enter)(void *ctx); /* around all others: the line lives until `leave` */
	void (*leave)(void *ctx);
	void (*up)(void *ctx);
	void (*data)(void *ctx);            /* more bytes are in `in`: consume them */
	void (*room)(void *ctx);            /* what waited to be written is written */
	void (*down)(void *ctx, int error); /* the line is to be closed now; line->problem says why */
	void *ctx;
};

struct line {
	struct event_base *base; /* borrowed */
	struct line_owner owner;
	enum line_state state;
	int fd;
	bool read_armed, write_armed, encrypts;
	bool ended;  /* by the other side: in order, or by a reset */
	bool broken; /* by the network: the system has given it up */
	struct event reading, writing;
	struct tls_filter filter;
	struct buffer in;  /* plain bytes that arrived */
	struct buffer out; /* plain bytes to send: append, then line_flush */
	struct buffer net; /* encrypted bytes to send */
	char problem[LINE_PROBLEM_MAX];
};

void line_init(struct line *l, const struct allocator *alloc, struct event_base *base, struct line_owner owner);
void line_done(struct line *l);

/* tls: NULL for a plain one; host: whom the certificate must name. 0 (up or down follows), or an error with `problem` set. */
int line_open(struct line *l, const struct endpoint_address *address, SSL_CTX *tls, const char *host);
void line_close(struct line *l);
/* As line_close, but the connection stays open and silent: its socket is the caller's. */
int line_leave_open(struct line *l);

/* Writes what is in `out` in one go, the rest when the socket takes it. 0, or an error: close the line. */
int line_flush(struct line *l);
/* What waits to be written, in bytes. */
static inline size_t line_backlog(const struct line *l) {
	return l->out.size + l->net.size;
}
/* Reads what is there now, without waiting for the loop; `data` and `down` are called as ever. */
void line_read_now(struct line *l);

#endif
