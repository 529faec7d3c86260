/* moved.c: entries that come from another home (section 5, Moving). Their coordinators find out by
 * themselves that the other home is gone, or silent, and do not enter them in the order of their
 * stamps. */
#include "master.h"

/* Keys that are given their turn in one piece. */
#define MOVED_PIECE 256

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

void queue_moved_timer(struct core *core) {
	struct queues *queues = &core->master.queues;
	struct list *n;
	for (uint32_t i = 0; (n = list_first(&queues->moved)) != NULL; i++) {
		struct key_more *more = CONTAINER_OF(n, struct key_more, moved);
		if (i == MOVED_PIECE || !instant_expired(core->now, more->turn_at)) {
			/* A timer whose time has passed would fire again in this step. */
			timer_at(core, &queues->moved_timer, TIMER_MOVED,
				i == MOVED_PIECE ? instant_add(core->now, 1) : more->turn_at);
			return;
		}
		struct key *key = more->key;
		list_remove(n);
		queue_give_turn(core, key);
		table_settle(core, key);
	}
}

bool queue_waits_ahead(const struct core *core, const struct key_more *more, uint32_t from,
	const struct message *m) {
	const struct place own = { m->terms.priority, m->ticket, from };
	const struct waiter *w = queue_first_other(core, more, m->lock_id, PARTS_WAITS);
	const struct place first = w ? queued_place(&w->q) : own;
	return w && (m->ticket.clock == 0 || queue_before(core, &first, &own));
}
