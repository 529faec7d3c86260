/* stream_impl.h: inside a stream: what its parts share. */
#ifndef PAWL_NET_STREAM_IMPL_H
#define PAWL_NET_STREAM_IMPL_H

#include <event2/event.h>

#include "stream.h"

#define STREAM_KEEP_BYTES (256u * 1024) /* larger buffers are given back when they are empty */

enum stream_state {
	STREAM_OPENING,
	STREAM_SHAKING, /* connected; the TLS handshake */
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
	size_t out_done; /* of `out`, how much is on its way */
	size_t in_done;  /* of `in`, how much the owner has taken while it is held */
	size_t read_max;
	uint64_t received, sent; /* bytes so far */
	unsigned busy;   /* handlers under way: freed after the last */
	struct instant closing; /* when stream_close was called */
	unsigned dropped;       /* reads since then */
	size_t pause_above;
	bool accepted, first; /* the other side connected: its handshake takes turns with others; before those that are not `first` */
	bool doomed, shut, closed_there;
	bool starved; /* there is no room for what it would read */
	bool paused; /* the other side does not read what we write */
	bool held;   /* by the owner */
	bool parked; /* held, and more has arrived: the socket is not looked at */
	int ended;   /* why nothing more comes; told when the input is released */
	size_t shaken; /* bytes that the handshake has brought */
	struct handshake turn;
};

/* stream_out.c */
int stream_push(struct stream *s); /* writes until there is nothing left or the kernel takes no more: 0 or a PAWL_E... */
void stream_listen(struct stream *s); /* looks for input again, unless it must not */

#endif
