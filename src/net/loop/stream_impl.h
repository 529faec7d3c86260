/* stream_impl.h: what the parts of a stream share; nobody else includes this. */
#ifndef PAWL_NET_STREAM_IMPL_H
#define PAWL_NET_STREAM_IMPL_H

#include <event2/event.h>

#include "stream.h"

/* Buffers larger than this are given back when they are empty. */
#define STREAM_KEEP_BYTES (256u * 1024)

enum stream_state {
	STREAM_OPENING,
	/* The connection exists; the TLS handshake is under way. */
	STREAM_SHAKING,
	STREAM_OPEN,
	STREAM_CLOSING,
	STREAM_OVER
};

struct stream {
	struct net_loop *loop;
	const struct allocator *alloc;
	const struct stream_handlers *handlers;
	void *ctx;
	enum stream_state state;
	int fd;
	struct event *readable, *writable;
	struct tls_engine *tls;

	struct buffer in, out;
	/* How many bytes of `out` are already on their way. */
	size_t out_done;
	/* How many bytes of `in` the owner has taken while the input is held. */
	size_t in_done;
	/* How many bytes are read from the socket in one turn of the loop. */
	size_t read_max;
	/* How many bytes have been received and sent so far. */
	uint64_t received, sent;
	/* When something was last received. */
	struct instant heard;
	/* When late messages of TLS were last forgiven, or there were none. */
	struct instant forgiven;
	/* The number of handlers under way; the stream is freed after the last of them. */
	unsigned busy;

	/* When stream_close was called. */
	struct instant closing;
	/* The number of reads since then. */
	unsigned dropped;
	/* Reading pauses while more bytes than this are unsent; 0 means that it never does. */
	size_t pause_above;

	/* `accepted`: the other side connected, so the handshake takes turns with others. `urgent`:
	 * its turn is before the turns of those without this flag. */
	bool accepted, urgent;
	/* `doomed`: the stream is to be freed as soon as no handler is under way. `shut`: nothing
	 * more is sent. `closed_there`: the other side ended the connection. */
	bool doomed, shut, closed_there;
	/* There is no room for what would be read. */
	bool starved;
	/* Reading pauses because the other side does not read what we write. */
	bool paused;

	/* The owner holds the input. */
	bool held;
	/* More has arrived, and the owner said that it is not to be read now. */
	bool late;
	/* The input is held or late and more has arrived, so that the socket is no longer watched
	 * for input. */
	bool unwatched;
	/* Why nothing more comes, or 0. The owner is told when the input is released. */
	int ended;
	/* How many bytes the handshake has received. */
	size_t shaken;

	/* The place of the handshake among those that wait for their turn. */
	struct handshake turn;
};

/* Watches the socket for input again, unless something forbids it (stream_out.c). */
void stream_listen(struct stream *s);

#endif
