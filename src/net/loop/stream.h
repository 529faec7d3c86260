/* stream.h: one connection, plain or TLS, on an event loop. What arrives is handed over with the time at which it was known to
 * be here; what is written is collected and leaves with one write when it is flushed.
 *
 *   OPENING -----------> OPEN -----------> CLOSING (the last words leave, nothing is read any more)
 *   (connect, handshake)   |                  |
 *        +-----------------+------------------+----> closed() once, unless the owner freed it first
 *
 * An owner that serves many streams in turn holds the input of one (stream_hold) and takes from it when its turn has come.
 * While it is held nothing is read, so the other side waits in the end; and the end of the connection is not told either.
 */
#ifndef PAWL_NET_STREAM_H
#define PAWL_NET_STREAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "buffer.h"
#include "clock.h"
#include "net_loop.h"
#include "tls_engine.h"

struct stream;

/* All are called from the loop, never from within a call of the owner; each may free the stream. */
struct stream_handlers {
	void (*ready)(void *ctx); /* connected, and the handshake is done */
	/* Bytes, and how many of them are taken; the others come again together with more. `now` was read after the last of
	 * them was received. Negative (PAWL_E...): the connection is over, closed() is called with it. */
	ssize_t (*data)(void *ctx, struct slice bytes, struct instant now);
	/* 0: the other side closed in order. Afterwards the stream is only good for stream_free. `why` may be NULL. */
	void (*closed)(void *ctx, int error, const char *why);
	void (*drained)(void *ctx); /* what had stayed when it was flushed has left now; may be NULL */
	/* How much may be read now, once it is open; 0: nothing until stream_feed. `kept`: the buffer for what is not taken at once, which doubles
	 * when it is full. NULL: anything. */
	size_t (*room)(void *ctx, const struct buffer *kept);
};

struct stream_options {
	struct net_loop *loop; /* borrowed */
	const struct allocator *alloc; /* borrowed; what the connection takes. NULL: the loop's */
	int take_fd;           /* non-blocking, connecting or connected; taken also on failure */
	SSL_CTX *tls;          /* NULL: plain */
	enum tls_role role;     /* as a server its handshake takes turns with others (handshakes.h) */
	bool first;             /* ... and has its turn before those without this */
	size_t in_max, out_max; /* incomplete input, unsent output; what they may grow to */
	size_t read_max;        /* bytes taken from the socket in one turn of the loop; 0: NET_SCRATCH_BYTES */
	size_t pause_above;     /* more unsent than this: nothing is read until it has left; 0: always read */
	const struct stream_handlers *handlers; /* borrowed, static */
	void *ctx;
};

int stream_new(const struct stream_options *options, struct stream **out); /* 0 or PAWL_ENOMEM */
void stream_free(struct stream *s); /* closes at once; accepts NULL; allowed in every handler */

/* To write: append here, then flush. Bytes that the kernel does not take stay and leave when it does. */
struct buffer *stream_out(struct stream *s);
size_t stream_backlog(const struct stream *s); /* how many bytes have not left yet */
/* 0, or why the connection is broken: the owner frees it, closed() is not called. */
int stream_flush(struct stream *s);

/* From within data(), or later: what was not taken stays, nothing more is read, and data() is not called until stream_release. */
void stream_hold(struct stream *s);
bool stream_is_held(const struct stream *s);
struct slice stream_input(const struct stream *s); /* while it is held: what has not been taken; stays where it is */
void stream_take(struct stream *s, size_t size);   /* the first bytes of it are done with */
void stream_release(struct stream *s);             /* reads on; what was not taken comes again together with more */
void stream_feed(struct stream *s); /* there is room again */
bool stream_is_paused(const struct stream *s);     /* more than pause_above had not left, and has not yet */
/* Between these two stream_free frees nothing yet: for an owner that works on what stream_input points to. */
void stream_enter(struct stream *s);
void stream_leave(struct stream *s);

/* For a connection on which nothing happens: gives back what its buffers keep for the next large message. */
void stream_tidy(struct stream *s);
size_t stream_tls_bytes(const struct stream *s); /* what the buffers of TLS take, which the allocator does not see, above what every connection needs */

/* Flushes, and closes when the last byte has left, or after a second. What arrives meanwhile is dropped. */
void stream_close(struct stream *s);

bool stream_waits_for_turn(const struct stream *s); /* the next step of the handshake has arrived, others are before it */
SSL *stream_ssl(const struct stream *s); /* NULL: plain */
/* What went over the network so far, with what TLS adds. */
void stream_bytes(const struct stream *s, uint64_t *out_received, uint64_t *out_sent);
bool stream_is_open(const struct stream *s);
/* What ended it: the other side closed the connection, in order (of TCP or TLS) or by a reset, and neither the network nor this
 * side did. */
bool stream_closed_there(const struct stream *s);

#endif
