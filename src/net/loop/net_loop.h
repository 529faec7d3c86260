/* net_loop.h: what all connections of one event loop share. */
#ifndef PAWL_NET_NET_LOOP_H
#define PAWL_NET_NET_LOOP_H

#include <stdint.h>

#include "alloc.h"
#include "handshakes.h"

struct event_base;

/* The size of each of the two buffers of a loop, in bytes. */
#define NET_SCRATCH_BYTES (256 * 1024)

/* What all connections of one event loop share. Each connection reads into `scratch`, so that it
 * needs memory of its own only for incomplete input. `scratch` and `plain` are in use only within
 * one callback of the loop. */
struct net_loop {
	/* Borrowed. */
	struct event_base *base;
	/* Borrowed. */
	const struct allocator *alloc;
	/* Bytes as they were read, and the same bytes decrypted. */
	uint8_t *scratch, *plain;
	/* The number of the present turn, counted by peers_go_on. */
	uint64_t turn;
	/* The handshakes of the connections that this node accepted. */
	struct handshakes handshakes;
};

/* Returns 0 or PAWL_ENOMEM. The loop must not be moved in memory until net_loop_done. */
int net_loop_init(struct net_loop *loop, struct event_base *base, const struct allocator *alloc);
/* Accepts zeroed memory. All connections of the loop must be gone. */
void net_loop_done(struct net_loop *loop);

#endif
