/* sent_again.c: requests that wait through several coordinators, because a client whose node is
 * silent sends its request again through another one (section 5, Sent again). */
#include "master.h"

static struct waiter *waiter_of(struct queued *q) {
	return q ? CONTAINER_OF(q, struct waiter, q) : NULL;
}

/* Section 5, Sent again: tells whether two entries for one lock_id are the same request. A lock_id
 * is no secret, so that the identity has to be the same, too. */
static bool same_request(const struct waiter *a, const struct waiter *b) {
	const struct terms *x = &a->q.terms, *y = &b->q.terms;
	return slice_equal(waiter_identity(a), waiter_identity(b)) && x->of == y->of &&
		x->count == y->count && x->priority == y->priority;
}

struct waiter *queue_twin(const struct core *core, const struct waiter *w,
	const struct waiter *behind) {
	struct queued *q = behind ? queued_of_lock_next(&behind->q)
		: queued_of_lock(core, &core->master.queues.waiters, w->q.key, w->q.lock_id);
	while (q && (q->peer == w->q.peer || waiter_lost(core, waiter_of(q)) ||
		!same_request(w, waiter_of(q)))) {
		q = queued_of_lock_next(q);
	}
	return waiter_of(q);
}

/* Section 5: the home stamps a request that arrives for the first time, above all stamps that the
 * home has seen. A request that comes from another home keeps its stamp, and one that is sent again
 * through another coordinator has the stamp that it has there, if that is earlier. Returns whether
 * the request has a turn there. */
bool queue_stamp(struct core *core, struct waiter *w) {
	bool turn = false;
	uint64_t *clock = &w->q.ticket.clock;
	for (struct waiter *twin = queue_twin(core, w, NULL); twin;
		twin = queue_twin(core, w, twin)) {
		if (!twin->returned) {
			*clock = *clock && *clock < twin->q.ticket.clock ? *clock
				: twin->q.ticket.clock;
			turn = turn || twin->turn;
		}
	}
	clock_raise(core, *clock ? *clock : core->clock + 1);
	*clock = *clock ? *clock : core->clock;
	return turn;
}

/* Section 5, Sent again: a request whose turn is returned goes behind the others, wherever else it
 * still waits. */
void queue_note_returned(struct core *core, const struct waiter *w) {
	for (struct waiter *twin = w->turn ? queue_twin(core, w, NULL) : NULL; twin;
		twin = queue_twin(core, w, twin)) {
		twin->returned = true;
	}
}
