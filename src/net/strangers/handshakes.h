/* handshakes.h: gives the TLS handshakes of a loop their turns. A step of a handshake spends a good
 * part of a millisecond on signing and verifying. So the connections whose next step is due wait in
 * a queue, and each turn of the event loop takes one of them. Everything else that has become ready
 * meanwhile is served in between, and after each step the requests of clients may take as long as
 * the step took, in addition to their own time. So a flood of handshakes gets at most half of the
 * thread while requests wait.
 */
#ifndef PAWL_NET_HANDSHAKES_H
#define PAWL_NET_HANDSHAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "list.h"

struct event;
struct event_base;

/* How many bytes the other side may send in a handshake that this node accepted. Certificates take
 * a few thousand bytes. */
#define HANDSHAKE_BYTES_MAX (32u << 10)
/* As long as this many handshakes wait for their turn, no more connections are accepted
 * (listener_pace). */
#define HANDSHAKES_WAITING_MAX 32

/* The handshake of one connection, of which it is a part. While it is zeroed, it does not wait. */
struct handshake {
	/* Link in `urgent` or `others`, while the handshake waits for its turn. */
	struct list in;
	/* Makes the next step. It may free the connection. */
	void (*step)(void *ctx);
	void *ctx;
};

/* The queue of the handshakes of one loop. */
struct handshakes {
	/* Goes off when the next handshake has its turn. */
	struct event *turn;
	/* The handshakes that wait, the oldest first. */
	struct list urgent, others;
	/* How many wait in both lists. */
	uint32_t waiting;
	/* How long the latest step took; 0 once it has been taken (handshakes_take_owed). */
	span_ns owed;
};

/* Returns 0 or PAWL_ENOMEM. */
int handshakes_init(struct handshakes *h, struct event_base *base);
/* Accepts zeroed memory. */
void handshakes_done(struct handshakes *h);

/* Calls step() once, in a later turn of the loop. With `urgent`, the handshake goes before all that
 * lack it. A handshake that waits already keeps its place. */
void handshakes_wait(struct handshakes *h, struct handshake *handshake, bool urgent);
/* Also accepts a handshake that does not wait. */
void handshakes_leave(struct handshakes *h, struct handshake *handshake);
/* Returns how long the latest step took, and sets that time to 0. */
static inline span_ns handshakes_take_owed(struct handshakes *h) {
	span_ns owed = h->owed;
	h->owed = 0;
	return owed;
}

#endif
