/* moved.c: entries for requests that have waited elsewhere: those that come from another home
 * (section 5, Moving), and those that came through several coordinators, because a client whose
 * node is silent sends its request again through another one (section 5, Sent again).
 *
 * The coordinators of those that come from another home find out by themselves that it is gone, or
 * silent, and do not enter them in the order of their stamps. */
#include "master.h"

void queue_moved_enter(struct core *core, struct waiter *w) {
	struct key_more *more = key_more(w->q.key);
	if (!w->moved || more->turns > 0 || list_linked(&more->moved)) {
		return;
	}
	COUNT(core, turn_moved);
	more->turn_at = instant_add(core->now, SPAN_MS + peers_pause_most(core, 0));
	if (list_empty(&core->master.queues.moved)) {
		timer_at(core, &core->master.queues.moved_timer, TIMER_MOVED, more->turn_at);
	}
	list_append(&core->master.queues.moved, &more->moved);
}

bool queue_moved_waits(const struct core *core, const struct key_more *more,
	const struct waiter *out) {
	return list_linked(&more->moved) && out == NULL &&
		!instant_expired(core->now, more->turn_at);
}

bool queue_moved_ahead(const struct core *core, const struct key_more *more,
	const struct waiter *out, const struct waiter *w) {
	return w->moved && queued_sooner(core, &w->q, &out->q) && more->turns < PROMISES_A_KEY;
}

bool queue_waits_ahead(const struct core *core, const struct key_more *more, uint32_t from,
	const struct message *m) {
	const struct place own = { m->terms.priority, m->ticket, from };
	const struct waiter *w = queue_first_other(core, more, m->lock_id, PARTS_WAITS);
	const struct place first = w ? queued_place(&w->q) : own;
	return w && (m->ticket.clock == 0 || queue_before(core, &first, &own));
}

/* ---- sent again ---- */

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
