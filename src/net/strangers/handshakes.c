/* handshakes.c: the queue of TLS handshakes, of which each turn of the loop takes one. */
#include "handshakes.h"

#include <event2/event.h>

#include "pawl/error.h"
#include "time_source.h"

/* Sets a timer that is due at once. Unlike an event that is made active, it lets the loop look at
 * the sockets first. */
static void handshakes_next_turn(struct handshakes *h) {
	static const struct timeval at_once = { 0, 0 };
	if (h->waiting > 0) {
		event_add(h->turn, &at_once);
	}
}

static void handshakes_on_turn(evutil_socket_t fd, short what, void *ctx) {
	struct handshakes *h = ctx;
	(void)fd;
	(void)what;
	struct list *next = list_first(&h->urgent);
	next = next ? next : list_first(&h->others);
	if (next) {
		struct handshake *handshake = CONTAINER_OF(next, struct handshake, in);
		handshakes_leave(h, handshake);
		handshakes_next_turn(h);
		struct instant begun = time_source_now();
		handshake->step(handshake->ctx);
		h->owed = instant_elapsed_short(time_source_now(), begun);
	}
}

void handshakes_wait(struct handshakes *h, struct handshake *handshake, bool urgent) {
	if (!list_linked(&handshake->in)) {
		list_append(urgent ? &h->urgent : &h->others, &handshake->in);
		h->waiting++;
		handshakes_next_turn(h);
	}
}

void handshakes_leave(struct handshakes *h, struct handshake *handshake) {
	if (list_linked(&handshake->in)) {
		list_remove(&handshake->in);
		h->waiting--;
	}
}

int handshakes_init(struct handshakes *h, struct event_base *base) {
	*h = (struct handshakes){ .turn = event_new(base, -1, 0, handshakes_on_turn, h) };
	list_init(&h->urgent);
	list_init(&h->others);
	return h->turn ? 0 : PAWL_ENOMEM;
}

void handshakes_done(struct handshakes *h) {
	if (h->turn) {
		event_free(h->turn);
	}
	*h = (struct handshakes){ 0 };
}
