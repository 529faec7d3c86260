/* binding_master.c: the masters' side of locks that end with a node (section 2, Release on
 * disconnect). A lock is bound to one start of a node: its identity and boot. When the other side
 * closes the link, because its process is gone or because it gave the link up, the lock's record
 * ends here after the grace time as if its lease were over, unless the same start of the node comes
 * back. A link that this master gave up itself says nothing about the other side. */
#include "master.h"

/* Limits the starts of nodes that are kept here. */
#define NODES_BOUND_MAX (2 * NODES_MAX)

/* Describes a lock that is bound to one start of a node. */
struct bound_lock {
	struct list of_holder;

	/* The map finds it by its lock_id. */
	struct map_node node;
	struct holder *holder;
	struct id128 lock_id;

	/* Says when the record here was to end, as of the last time it was examined. This entry
	 * ends with the record. */
	struct instant until;
	span_ns grace;

	/* The holder's `generation` when it last said that the lock is bound. */
	uint32_t generation;
	uint16_t size;
	uint8_t key[];
};

/* Describes one start of a node, to which locks are bound. */
struct holder {
	struct timer timer;
	/* Among all holders; and among those whose records are being examined. */
	struct list link, due;
	struct list records;
	/* How many records there are, and how many of them are still to be examined. */
	uint32_t count, left;
	struct id128 id;
	uint64_t boot;
	bool closed;

	/* Says when the link was closed. */
	struct instant since;

	/* No record has a shorter grace time; and the same of those that have been examined. */
	span_ns grace, grace_examined;

	/* The number of its links and of the epochs. What was bound before the latest of them is
	 * stale. */
	uint32_t generation;
};

static struct holder *find_holder(struct core *core, struct id128 id, uint64_t boot) {
	for (struct list *n = list_first(&core->master.holders); n;
		n = list_after(&core->master.holders, n)) {
		struct holder *h = CONTAINER_OF(n, struct holder, link);
		if (h->boot == boot && id128_equal(h->id, id)) {
			return h;
		}
	}
	return NULL;
}

static struct bound_lock *find_record(const struct core *core, struct id128 lock_id) {
	for (struct map_node *n = map_first(&core->master.bound_locks, hash_lock_id(core, lock_id));
		n; n = map_next(n)) {
		struct bound_lock *b = CONTAINER_OF(n, struct bound_lock, node);
		if (id128_equal(b->lock_id, lock_id)) {
			return b;
		}
	}
	return NULL;
}

static void free_record(struct core *core, struct bound_lock *b) {
	list_remove(&b->of_holder);
	b->holder->count--;
	map_remove(&core->master.bound_locks, &b->node);
	alloc_free(&core->alloc, b, sizeof *b + b->size);
}

static void free_holder(struct core *core, struct holder *h) {
	struct list *n;
	while ((n = list_first(&h->records)) != NULL) {
		free_record(core, CONTAINER_OF(n, struct bound_lock, of_holder));
	}
	timer_stop(core, &h->timer);
	list_remove(&h->link);
	list_remove(&h->due);
	core->master.holder_count--;
	alloc_free(&core->alloc, h, sizeof *h);
}

void binding_master_done(struct core *core) {
	struct list *n;
	while (core->master.holder_count > 0 && (n = list_first(&core->master.holders)) != NULL) {
		free_holder(core, CONTAINER_OF(n, struct holder, link));
	}
}

/* Sets the timer to the first end of a bound record. While the holder is not known to be gone, the
 * timer only serves to drop the entries whose leases are over. A node that does not vote at the
 * moment looks again soon, because the table it will vote with is still being built. */
static void arm(struct core *core, struct holder *h) {
	if (!h->closed) {
		timer_at(core, &h->timer, TIMER_HOLDER,
			instant_add(core->now, core->config.max_lease));
		return;
	}
	const span_ns longest = span_grow(core->config.max_lease, 2 * core->config.drift_ppm),
		first = h->grace < longest ? h->grace : longest;
	struct instant at = instant_add(h->since, first);
	bool waits = instant_expired(core->now, at);
	timer_at(core, &h->timer, TIMER_HOLDER,
		waits ? instant_add(core->now, core->config.request_timeout / 4) : at);
}

/* ---- binding ---- */

static struct holder *make_holder(struct core *core, uint32_t from) {
	const struct peer *p = &core->peers[from];
	struct holder *h = find_holder(core, p->link_id, p->boot);
	if (h || core->master.holder_count >= NODES_BOUND_MAX) {
		return h;
	}
	h = alloc_new(&core->alloc, sizeof *h);
	if (h) {
		h->id = p->link_id;
		h->boot = p->boot;
		h->grace = h->grace_examined = INT64_MAX;
		list_init(&h->records);
		list_append(&core->master.holders, &h->link);
		core->master.holder_count++;
		arm(core, h);
	}
	return h;
}

/* The lock is bound to the node that said so last. */
static void move_record(struct bound_lock *b, struct holder *h) {
	if (b->holder) {
		list_remove(&b->of_holder);
		b->holder->count--;
	}
	list_append(&h->records, &b->of_holder);
	h->count++;
	b->holder = h;
}

static enum status bind(struct core *core, uint32_t from, const struct message *m,
	struct message *answer) {
	struct key *key = table_find(core, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r == NULL) {
		answer->left_us = lacked_us(core, m->lock_id);
		return STATUS_ABSENT;
	}
	/* The holder must not trust the record for any longer than this. */
	answer->left_us = (uint64_t)(instant_left_short(core->now, r->end) / SPAN_US);
	struct bound_lock *b = find_record(core, m->lock_id);
	struct holder *h = make_holder(core, from);
	if (b == NULL && h && core->master.bound_locks.count < core->limits.keys) {
		b = alloc_new(&core->alloc, sizeof *b + m->key.size);
		if (b) {
			b->lock_id = m->lock_id;
			b->size = (uint16_t)m->key.size;
			memcpy(b->key, m->key.data, m->key.size);
			map_insert(&core->master.bound_locks, &b->node,
				hash_lock_id(core, m->lock_id));
		}
	}
	if (b == NULL || h == NULL) {
		COUNT(core, full);
		return STATUS_FULL;
	}
	move_record(b, h);
	b->grace = span_from_us(m->left_us);
	h->grace = b->grace < h->grace ? b->grace : h->grace;
	h->grace_examined = b->grace < h->grace_examined ? b->grace : h->grace_examined;
	b->until = r->end;
	b->generation = h->generation;
	r->freed = false;
	record_counted_on(core, key, r);
	COUNT(core, binding_made);
	return STATUS_OK;
}

static void settle_holder(struct core *core, struct holder *h) {
	if (list_empty(&h->records)) {
		free_holder(core, h);
	}
}

/* Tells whether the lock is bound to this start of the node. */
static bool bound_to(const struct bound_lock *b, const struct peer *p) {
	return id128_equal(b->holder->id, p->link_id) && b->holder->boot == p->boot;
}

/* Treats the record like an expired lease, not like a release: it is not added to the tombstones
 * (R3), so that a node that is still alive can restore it by an extension where it was dropped. */
static bool end_record(struct core *core, struct slice name, struct id128 lock_id) {
	struct key *key = table_find(core, name);
	struct record *r = key ? key_record(key, lock_id) : NULL;
	if (r == NULL || r->freed) {
		return false;
	}
	COUNT(core, binding_ended);
	record_lose(core, key, r);
	return true;
}

/* The node no longer trusts the lock, and has told its holder. If somebody goes on with the lock
 * through another node, the binding to this node has ended already. */
static void lost_there(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_RELEASE_ANSWER, .round = m->round,
		.status = rule_votes(core) };
	const struct bound_lock *b = core->master.holder_count > 0
		? find_record(core, m->lock_id) : NULL;
	if (answer.status == STATUS_OK && b && bound_to(b, &core->peers[from])) {
		binding_master_released(core, m->lock_id);
		answer.flags = end_record(core, m->key, m->lock_id) ? FLAG_HAD : 0;
	}
	out_send(core, from, &answer);
}

void binding_master_asked(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_BINDING_ANSWER, .round = m->round };
	if (m->flags & FLAG_NOW) {
		lost_there(core, from, m);
		return;
	}
	if (m->flags & FLAG_RELEASED) {
		binding_master_released(core, m->lock_id);
		return;
	}
	answer.status = rule_votes(core);
	if (answer.status == STATUS_OK) {
		answer.status = bind(core, from, m, &answer);
	}
	out_send(core, from, &answer);
}

/* The record is gone, or is no longer bound. */
void binding_master_released(struct core *core, struct id128 lock_id) {
	struct bound_lock *b = core->master.holder_count > 0 ? find_record(core, lock_id) : NULL;
	if (b) {
		struct holder *h = b->holder;
		free_record(core, b);
		settle_holder(core, h);
	}
}

/* A node goes on with the lock and relies on this master. If that is another node, or another start
 * of the holder, the record must not end with the node that it was bound to. Even the same node may
 * have given the binding up while this master could not hear it, if it has not confirmed the
 * binding since. */
void binding_master_accepted(struct core *core, const struct record *r, uint32_t from) {
	struct bound_lock *b = find_record(core, r->lock_id);
	if (b && (b->generation != b->holder->generation || !bound_to(b, &core->peers[from]))) {
		binding_master_released(core, r->lock_id);
	} else if (b) {
		b->until = r->end;
	}
}

/* A copy of the record carries this mark. A node that gets its copy from a master where the record
 * is not bound must keep the record for everybody that relies on that master, so the record there
 * does not end with a node before that node says again that the lock is bound. */
bool binding_master_bound(const struct core *core, struct id128 lock_id) {
	return core->master.holder_count > 0 && find_record(core, lock_id) != NULL;
}

static void make_stale(struct holder *h) {
	h->generation++;
}

/* `stays`: this node was a master of the previous epoch, too, and has missed none. Otherwise the
 * nodes that have bound locks did not rely on it in between, and tell it anew. */
void binding_master_epoch(struct core *core, bool stays) {
	if (!stays) {
		binding_master_done(core);
		return;
	}
	for (struct list *n = core->master.holder_count > 0
			? list_first(&core->master.holders) : NULL;
		n; n = list_after(&core->master.holders, n)) {
		make_stale(CONTAINER_OF(n, struct holder, link));
	}
}

/* ---- the node's link ---- */

static void close_holder(struct core *core, struct holder *h) {
	if (!h->closed) {
		h->closed = true;
		h->since = core->now;
		arm(core, h);
	}
}

void binding_master_peer_up(struct core *core, uint32_t peer) {
	const struct peer *p = &core->peers[peer];
	for (struct list *n = list_first(&core->master.holders), *next; n; n = next) {
		next = list_after(&core->master.holders, n);
		struct holder *h = CONTAINER_OF(n, struct holder, link);
		if (!id128_equal(h->id, p->link_id)) {
			continue;
		}
		if (h->boot == p->boot) {
			h->closed = false;
			/* The node may have given up some of its bindings meanwhile. It repeats
			 * those that it still has. */
			make_stale(h);
			arm(core, h);
		} else {
			/* The node has started anew, so its earlier start no longer exists. */
			close_holder(core, h);
		}
	}
}

/* `closed`: the other side closed the link. */
void binding_master_peer_lost(struct core *core, uint32_t peer, bool closed) {
	const struct peer *p = &core->peers[peer];
	struct holder *h = p->up && core->master.holder_count > 0
		? find_holder(core, p->link_id, p->boot) : NULL;
	if (h && closed) {
		close_holder(core, h);
	}
}

/* ---- the end of a record ---- */

/* Tells whether the record has ended, by its lease or otherwise. A node that does not vote at the
 * moment goes by what it saw last. */
static bool over(struct core *core, struct bound_lock *b) {
	const struct key *key = core_votes(core)
		? table_find(core, slice_of(b->key, b->size)) : NULL;
	const struct record *r = key ? key_record(key, b->lock_id) : NULL;
	b->until = r ? r->end : b->until;
	return instant_expired(core->now, b->until) || (core_votes(core) && r == NULL);
}

/* Examines the first record, which goes behind the others if it stays. */
static void examine(struct core *core, struct holder *h) {
	struct bound_lock *b = CONTAINER_OF(list_first(&h->records), struct bound_lock, of_holder);
	h->left--;
	bool ends = h->closed && core_votes(core) &&
		instant_expired(core->now, instant_add(h->since, b->grace));
	if (ends) {
		(void)end_record(core, slice_of(b->key, b->size), b->lock_id);
	}
	if (ends || over(core, b)) {
		free_record(core, b);
		return;
	}
	move_record(b, h);
	h->grace_examined = b->grace < h->grace_examined ? b->grace : h->grace_examined;
}

void binding_master_go_on(struct core *core) {
	struct list *n;
	while (turn_pieces(core)->bound > 0 &&
		(n = list_first(&core->master.holders_due)) != NULL) {
		struct holder *h = CONTAINER_OF(n, struct holder, due);
		while (turn_pieces(core)->bound > 0 && h->left > 0 && h->count > 0) {
			turn_pieces(core)->bound--;
			examine(core, h);
		}
		if (h->count == 0) {
			free_holder(core, h);
		} else if (h->left == 0) {
			list_remove(&h->due);
			h->grace = h->grace_examined;
			arm(core, h);
		}
	}
	pending_left(core, PENDING_BOUND, !list_empty(&core->master.holders_due));
}

/* All records are examined, in pieces, because there may be very many. Those that are bound
 * meanwhile stand behind the others. */
void binding_master_timer(struct core *core, struct timer *t) {
	struct holder *h = CONTAINER_OF(t, struct holder, timer);
	h->left = h->count;
	h->grace_examined = INT64_MAX;
	if (!list_linked(&h->due)) {
		list_append(&core->master.holders_due, &h->due);
		pending_add(core, PENDING_BOUND);
	}
	binding_master_go_on(core);
}
