/* net_loop.h: what all connections of one event loop share. */
#ifndef PAWL_NET_NET_LOOP_H
#define PAWL_NET_NET_LOOP_H

#include <stdint.h>

#include "alloc.h"
#include "handshakes.h"

struct event_base;

#define NET_SCRATCH_BYTES (256 * 1024)

/* `scratch` takes what one read brings, so that a connection owns memory only for what is incomplete. It is in use only
 * within one callback of the loop. */
struct net_loop {
	struct event_base *base;       /* borrowed */
	const struct allocator *alloc; /* borrowed */
	uint8_t *scratch, *plain;      /* as read; as decrypted */
	struct handshakes handshakes;  /* of connections that were accepted */
};

/* The loop must stay where it is until net_loop_done. */
int net_loop_init(struct net_loop *loop, struct event_base *base, const struct allocator *alloc); /* 0 or PAWL_ENOMEM */
void net_loop_done(struct net_loop *loop);

#endif
