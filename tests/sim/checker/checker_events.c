/* checker_events.c: what a node tells its watchers: for each lock_id that it is there, then that it
 * is gone. In the end what it has told is what it has. */
#include <inttypes.h>

#include "checker_impl.h"

static bool here(const struct checker *c, uint32_t node, const struct lock_state *lock) {
	char key[16];
	uint64_t token, noted;
	return sim_node_core(c->sim, node) && core_peek(sim_node_core(c->sim, node),
		sim_name_key(key, lock->key), lock->id, &token, &noted);
}

/* Events may have been missed: watchers look again, and until the next event of a lock_id nothing
 * is known about it. */
void checker_events_look_again(struct checker *c, uint32_t node) {
	for (size_t i = 0; i < c->lock_count; i++) {
		c->locks[i].unsure |= 1u << node;
	}
}

static void tell(struct checker *c, uint32_t node, const struct core_watch_event *watch_event,
	bool there) {
	uint32_t number = sim_name_lock_number(watch_event->lock_id);
	if (number >= c->lock_count) {
		return;
	}
	struct lock_state *lock = &c->locks[number];
	bool told = lock->told >> node & 1, sure = !(lock->unsure >> node & 1);
	if (sure && told == there) {
		checker_violation(c, "watch events", lock->key,
			"n%" PRIu32 " tells that L%" PRIu32 " is %s, and has told so before",
			node + 1, number, there ? "acquired" : "gone");
	}
	lock->unsure &= ~(1u << node);
	lock->told = there ? lock->told | 1u << node : lock->told & ~(1u << node);
}

void checker_watch_event(struct checker *c, uint32_t node,
	const struct core_watch_event *watch_event) {
	uint64_t incarnation = sim_node_incarnation(c->sim, node);
	if (c->told_by[node] != incarnation) {
		c->told_by[node] = incarnation;
		/* Its table may have begun with what a side file brought. */
		checker_events_look_again(c, node);
		c->told[node].no_room_seen = 0;
	}
	if (!c->options.watches_change) {
		/* What a replica tells is compared with what is told at its master, and there
		 * somebody has to watch all the time. */
		checker_told(c, node, watch_event);
	}
	switch (watch_event->kind) {
	case WATCH_EVENT_ACQUIRED:
		tell(c, node, watch_event, true);
		break;
	case WATCH_EVENT_LOST:
		tell(c, node, watch_event, false);
		/* The end of its delay may be told, too. */
		if (watch_event->terms.delay > 0 &&
			sim_name_lock_number(watch_event->lock_id) < c->lock_count) {
			c->locks[sim_name_lock_number(watch_event->lock_id)].unsure |= 1u << node;
		}
		break;
	case WATCH_EVENT_RELEASED: case WATCH_EVENT_EXPIRED:
		tell(c, node, watch_event, false);
		break;
	case WATCH_EVENT_UPDATED: case WATCH_EVENT_DOWNGRADED: case WATCH_EVENT_ASKED:
		break;
	case WATCH_EVENT_MISSED:
		/* If events of one key were missed, something else may have come and gone, and what
		 * was told of what is here stays right. */
		if (watch_event->key.size == 0) {
			checker_events_look_again(c, node);
		}
		break;
	}
}

/* A node that is no longer in the cluster has nothing to tell. */
static bool speaks(const struct checker *c, uint32_t node) {
	struct core_status status;
	if (c->told_by[node] != sim_node_incarnation(c->sim, node) ||
		!sim_node_core(c->sim, node)) {
		return false;
	}
	core_status(sim_node_core(c->sim, node), sim_node_clock(c->sim, node), &status);
	return status.state == CORE_VOTING || status.state == CORE_FOLLOWING;
}

static bool follows(const struct checker *c, uint32_t node) {
	struct core_status status;
	core_status(sim_node_core(c->sim, node), sim_node_clock(c->sim, node), &status);
	return status.state == CORE_FOLLOWING;
}

/* Call this when all earlier leases are over. Returns whether everything that a node has, and
 * nothing else, has been told. */
static bool agrees(const struct checker *c, uint32_t *node, uint32_t *lock, bool replicas) {
	for (*node = 0; *node < sim_nodes(c->sim); ++*node) {
		bool tells = speaks(c, *node) && (replicas || !follows(c, *node));
		for (*lock = 0; tells && *lock < c->lock_count; ++*lock) {
			const struct lock_state *l = &c->locks[*lock];
			if (here(c, *node, l) != (l->told >> *node & 1) &&
				!(l->unsure >> *node & 1)) {
				return false;
			}
		}
	}
	return true;
}

bool checker_events_of_masters_agree(void *checker) {
	uint32_t node, lock;
	return agrees(checker, &node, &lock, false);
}

bool checker_events_agree(void *checker) {
	uint32_t node, lock;
	return agrees(checker, &node, &lock, true);
}

void checker_events_settled(struct checker *c, bool replicas) {
	uint32_t node, lock;
	if (!c->options.watches_change) {
		checker_told_settled(c);
	}
	if (!agrees(c, &node, &lock, replicas)) {
		checker_violation(c, "watch events", c->locks[lock].key,
			"n%" PRIu32 " %s L%" PRIu32 ", and has not told so", node + 1,
			here(c, node, &c->locks[lock]) ? "has" : "does not have", lock);
	}
}
