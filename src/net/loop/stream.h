/* stream.h: one connection, plain or TLS, on an event loop. The owner gets the bytes that arrive
 * together with the time at which they were known to be here. What the owner writes is collected,
 * and leaves with one write when it is flushed.
 *
 *   OPENING -----------> OPEN -----------> CLOSING (the last bytes leave, nothing is read any more)
 *   (connect, handshake)   |                  |
 *        +-----------------+------------------+----> closed() once, unless the owner freed it first
 *
 * An owner that serves many streams in turn holds the input of a stream (stream_hold) and takes
 * from it when the stream's turn has come. While the input is held nothing is read, so that the
 * other side has to wait in the end; nor is the owner told of the end of the connection.
 */
#ifndef PAWL_NET_STREAM_H
#define PAWL_NET_STREAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "address.h"
#include "buffer.h"
#include "clock.h"
#include "net_loop.h"
#include "tls_engine.h"

struct stream;

/* What the owner of a stream is told. All handlers are called from the loop, never from within a
 * call of the owner. Each of them may free the stream. */
struct stream_handlers {
	/* The stream is connected, and the handshake is done. */
	void (*ready)(void *ctx);
	/* Bytes have arrived. Returns how many of them the owner takes; the others come again
	 * together with later bytes. `now` was read after the last of them was received. If it
	 * returns a negative PAWL_E..., the connection is over, and closed() is called with that
	 * error. NULL: the input is held (stream_hold), and received() says that it is there. */
	ssize_t (*data)(void *ctx, struct slice bytes, struct instant now);
	/* The connection is over. An `error` of 0 means that the other side closed it in order.
	 * Afterwards the stream is good for stream_free only. `why` may be NULL. */
	void (*closed)(void *ctx, int error, const char *why);
	/* What a flush had to leave behind has left now. May be NULL. */
	void (*drained)(void *ctx);
	/* Returns how many bytes of an open stream may be read now; 0 means nothing until
	 * stream_feed. `kept` is the buffer for input that is not taken at once; it doubles its
	 * size when it is full. NULL means that any amount may be read. */
	size_t (*room)(void *ctx, const struct buffer *kept);
	/* False: what has arrived on the open connection is not to be read now. The owner calls
	 * stream_read_late when its turn has come. NULL: it is read at once. */
	bool (*turn)(void *ctx);
	/* Something was read on the open connection, even if no bytes have come of it. `now` was
	 * read after the last byte was received. May be NULL. */
	void (*received)(void *ctx, struct instant now);
	/* The socket of the open connection takes bytes again, and the owner calls stream_flush
	 * when it has time to write. NULL: what is left is written at once. */
	void (*writable)(void *ctx);
};

/* What stream_new needs to know. */
struct stream_options {
	/* Borrowed. */
	struct net_loop *loop;
	/* Borrowed. Memory for the connection comes from here; NULL means the loop's allocator. */
	const struct allocator *alloc;
	/* Non-blocking, connecting or connected. The stream takes the socket over even when
	 * stream_new fails. */
	int take_fd;
	/* NULL means a plain connection. */
	SSL_CTX *tls;
	/* The handshake of a server takes turns with others (handshakes.h). */
	enum tls_role role;
	/* The handshake has its turn before those without this flag. */
	bool urgent;
	/* How many bytes incomplete input and unsent output may grow to. */
	size_t in_max, out_max;
	/* How many bytes are read from the socket in one turn of the loop; 0 means
	 * NET_SCRATCH_BYTES. */
	size_t read_max;
	/* If more bytes than this are unsent, nothing is read until all have left; 0 means that the
	 * stream always reads. */
	size_t pause_above;
	/* Borrowed and static. */
	const struct stream_handlers *handlers;
	void *ctx;
};

/* Returns 0 or PAWL_ENOMEM. */
int stream_new(const struct stream_options *options, struct stream **out);
/* Closes at once. Accepts NULL. It is allowed in every handler. */
void stream_free(struct stream *s);

/* To write, append to this buffer and then flush. Bytes that the kernel does not take stay here,
 * and leave as soon as it does. */
struct buffer *stream_out(struct stream *s);
/* Returns how many bytes have not left yet. */
size_t stream_backlog(const struct stream *s);
/* Writes until nothing is left or the kernel takes no more, unless the stream is not connected yet,
 * or is over. Returns 0, or why the connection is broken. In the latter case the owner frees the
 * stream, and closed() is not called. */
int stream_flush(struct stream *s);

/* May be called from within data() or later. Input that was not taken stays, nothing more is read,
 * and data() is not called until stream_release. */
void stream_hold(struct stream *s);

bool stream_is_held(const struct stream *s);

/* Returns the held input that has not been taken. The bytes stay where they are. */
struct slice stream_input(const struct stream *s);
/* Takes the first `size` bytes of the held input. */
void stream_take(struct stream *s, size_t size);
/* Goes on reading. Input that was not taken comes again together with later bytes. */
void stream_release(struct stream *s);
/* There is room for input again. */
void stream_feed(struct stream *s);
/* Reads what has arrived, for an owner whose turn() said not now. Between stream_enter and
 * stream_leave. */
void stream_read_late(struct stream *s);
/* Sets how many bytes are read from the socket in one turn of the loop, at most
 * NET_SCRATCH_BYTES. */
void stream_set_read_max(struct stream *s, size_t bytes);
/* Returns whether more than pause_above bytes were unsent, and some still are. */
bool stream_is_paused(const struct stream *s);

/* Between these two calls, stream_free does not free anything yet. They are for an owner that works
 * on what stream_input points to. */
void stream_enter(struct stream *s);
void stream_leave(struct stream *s);

/* Gives back the memory that the buffers of an idle connection keep for the next large message. */
void stream_tidy(struct stream *s);
/* Nothing more is read or written, what has not left is dropped, and no handler is called any more.
 * Gives back at most `most` bytes of the memory of large buffers, and returns how many; 0 means
 * that there are no more of them. The owner calls it until then, and frees the stream. */
size_t stream_shed(struct stream *s, size_t most);
/* Returns how many bytes the buffers of TLS take above what every connection needs. The allocator
 * does not see them. */
size_t stream_tls_bytes(const struct stream *s);

/* Flushes, and closes when the last byte has left, or after a second. What arrives meanwhile is
 * dropped. */
void stream_close(struct stream *s);

/* Returns whether the next step of the handshake is due and other handshakes are before it. */
bool stream_waits_for_turn(const struct stream *s);
/* Returns NULL for a plain connection. */
SSL *stream_ssl(const struct stream *s);
/* What has gone over the network so far. */
struct stream_counts {
	/* Bytes, with what TLS adds. */
	uint64_t received, sent;
	/* Records of TLS that have been read, as tls_engine_records counts them; 0 without TLS. */
	uint64_t records;
};
struct stream_counts stream_counts(const struct stream *s);
/* Returns whether the stream is connected, the handshake is done, and it has not been closed. */
bool stream_is_open(const struct stream *s);
/* Returns whether the other side ended the connection, in order (of TCP or of TLS) or by a reset,
 * and not the network or this side. */
bool stream_closed_there(const struct stream *s);

/* Writes the address at which the other side has reached us, as address_print does; an empty text
 * for a Unix socket. */
void stream_reached_at(const struct stream *s, char out[ADDRESS_TEXT_BYTES]);

#endif
