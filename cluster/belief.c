/* belief.c: the deadlines of the locks that this node has answered: a belief ends when either clock says so (Time), and
 * for good (section 2, Extend). */
#include "state.h"

static struct belief *find(struct core *core, struct id128 lock_id) {
	for (struct map_node *n = map_first(&core->beliefs, hash_lock_id(core, lock_id)); n; n = map_next(n)) {
		struct belief *b = CONTAINER_OF(n, struct belief, node);
		if (id128_equal(b->lock_id, lock_id)) {
			return b;
		}
	}
	return NULL;
}

struct belief *belief_find(struct core *core, struct id128 lock_id) {
	struct belief *b = find(core, lock_id);
	return b && !instant_distrusted(core->now, b->deadline) ? b : NULL;
}

/* Not kept for want of memory: then this node only knows less than it might, and answers `unsure` sooner. */
void belief_set(struct core *core, struct id128 lock_id, struct instant deadline, uint64_t token) {
	struct belief *b = find(core, lock_id);
	if (b == NULL) {
		b = core->belief_count < core->limits.keys ? alloc_new(&core->alloc, sizeof *b) : NULL;
		if (b == NULL) {
			COUNT(core, no_memory);
			return;
		}
		b->lock_id = lock_id;
		map_insert(&core->beliefs, &b->node, hash_lock_id(core, lock_id));
		core->belief_count++;
	}
	b->deadline = deadline;
	b->token = token > b->token ? token : b->token;
	if (!wheel_armed(&b->timer.wheel)) {
		timer_at(core, &b->timer, TIMER_BELIEF, deadline);
	}
}

static void belief_free(struct core *core, struct belief *b) {
	timer_stop(core, &b->timer);
	map_remove(&core->beliefs, &b->node);
	core->belief_count--;
	alloc_free(&core->alloc, b, sizeof *b);
}

void belief_drop(struct core *core, struct id128 lock_id) {
	struct belief *b = find(core, lock_id);
	if (b) {
		belief_free(core, b);
	}
}

void belief_timer(struct core *core, struct belief *b) {
	if (instant_distrusted(core->now, b->deadline)) {
		belief_free(core, b);
	} else {
		timer_at(core, &b->timer, TIMER_BELIEF, b->deadline);
	}
}

void belief_done(struct core *core) {
	if (core->beliefs.segments == NULL) {
		return;
	}
	map_walk_begin(&core->beliefs); /* no shrinking meanwhile */
	for (size_t i = 0; i < core->beliefs.bucket_count; i++) {
		struct map_node *n;
		while ((n = map_bucket(&core->beliefs, i)) != NULL) {
			belief_free(core, CONTAINER_OF(n, struct belief, node));
		}
	}
	map_walk_end(&core->beliefs);
}
