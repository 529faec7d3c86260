/* net_loop.c: makes and frees what all connections of one loop share. */
#include "net_loop.h"

#include "pawl/error.h"

int net_loop_init(struct net_loop *loop, struct event_base *base, const struct allocator *alloc) {
	*loop = (struct net_loop){ .base = base, .alloc = alloc };
	loop->scratch = alloc_new(alloc, NET_SCRATCH_BYTES);
	loop->plain = alloc_new(alloc, NET_SCRATCH_BYTES);
	if (handshakes_init(&loop->handshakes, base) != 0 || !loop->scratch || !loop->plain) {
		net_loop_done(loop);
		return PAWL_ENOMEM;
	}
	return 0;
}

void net_loop_done(struct net_loop *loop) {
	handshakes_done(&loop->handshakes);
	if (loop->alloc) {
		alloc_free(loop->alloc, loop->scratch, NET_SCRATCH_BYTES);
		alloc_free(loop->alloc, loop->plain, NET_SCRATCH_BYTES);
	}
	*loop = (struct net_loop){ 0 };
}
