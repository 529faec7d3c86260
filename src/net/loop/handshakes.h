/* handshakes.h: the turns of TLS handshakes. A step of a handshake costs a good part of a millisecond of signing and verifying. So
 * the connections whose next step has arrived wait in a queue, and each turn of the event loop takes one of them: whatever else has
 * become ready meanwhile goes between, and the requests of clients may take as long as the step took in addition to their own time: so a
 * flood of handshakes gets half of the thread at most while requests wait. */
#ifndef PAWL_NET_HANDSHAKES_H
#define PAWL_NET_HANDSHAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "list.h"

struct event;
struct event_base;

/* What a handshake that this node accepted may bring in all: certificates take a few thousand bytes. */
#define HANDSHAKE_BYTES_MAX (32u << 10)
/* So many that wait for their turn are enough: more connections are not accepted until there are fewer (listener_pace). */
#define HANDSHAKES_WAITING_MAX 32

struct handshake { /* part of a connection; zeroed: it does not wait */
	struct list in;
	void (*step)(void *ctx); /* may free the connection */
	void *ctx;
};

struct handshakes {
	struct event *turn;
	struct list first, others; /* that wait, oldest first */
	uint32_t waiting;
	/* How long the latest step took, until it is taken. */
	span_ns owed;
};

int handshakes_init(struct handshakes *h, struct event_base *base); /* 0 or PAWL_ENOMEM */
void handshakes_done(struct handshakes *h); /* accepts zeroed memory */

/* Calls step() once, in a later turn of the loop. `first`: before all others. One that waits already keeps its place. */
void handshakes_wait(struct handshakes *h, struct handshake *handshake, bool first);
void handshakes_leave(struct handshakes *h, struct handshake *handshake); /* also of one that does not wait */
span_ns handshakes_take_owed(struct handshakes *h);

#endif
