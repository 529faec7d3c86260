/* binding_master.c: the masters' side of locks that end with a node (section 2, Release on disconnect). What a node has bound is kept by
 * its identity and start. When the other side closes the link, because its process is gone or because it gave the link up, the records
 * end here after the grace time, as if their lease were over, unless the same start of the node comes back. A link that this master gave
 * up itself says nothing about the other side.
 */
#include "master.h"

#define NODES_BOUND_MAX (2 * NODES_MAX)

struct bound_locks { /* a record of this node */
	struct list of_holder;
	struct map_node node; /* by lock_id */
	struct holder *holder;
	struct id128 lock_id;
	struct instant until; /* the record here was to last so long when it was last looked at; this ends with it */
	span_ns grace;
	bool stale; /* the node has a new link here, or there is a new epoch, and it has not said since then that the lock is bound */
	uint16_t size;
	uint8_t key[];
};

struct holder { /* one start of a node */
	struct timer timer;
	struct list link, records;
	struct id128 id;
	uint64_t boot;
	bool closed;
	struct instant since; /* closed */
};

static struct holder *find_holder(struct core *core, struct id128 id, uint64_t boot) {
	for (struct list *n = list_first(&core->master.holders); n; n = list_after(&core->master.holders, n)) {
		struct holder *h = CONTAINER_OF(n, struct holder, link);
		if (h->boot == boot && id128_equal(h->id, id)) {
			return h;
		}
	}
	return NULL;
}

static struct bound_locks *find_record(const struct core *core, struct id128 lock_id) {
	for (struct map_node *n = map_first(&core->master.bound_locks, hash_lock_id(core, lock_id)); n; n = map_next(n)) {
		struct bound_locks *b = CONTAINER_OF(n, struct bound_locks, node);
		if (id128_equal(b->lock_id, lock_id)) {
			return b;
		}
	}
	return NULL;
}

static void free_record(struct core *core, struct bound_locks *b) {
	list_remove(&b->of_holder);
	map_remove(&core->master.bound_locks, &b->node);
	alloc_free(&core->alloc, b, sizeof *b + b->size);
}

static void free_holder(struct core *core, struct holder *h) {
	struct list *n;
	while ((n = list_first(&h->records)) != NULL) {
		free_record(core, CONTAINER_OF(n, struct bound_locks, of_holder));
	}
	timer_stop(core, &h->timer);
	list_remove(&h->link);
	core->master.holder_count--;
	alloc_free(&core->alloc, h, sizeof *h);
}

void binding_master_done(struct core *core) {
	struct list *n;
	while (core->master.holder_count > 0 && (n = list_first(&core->master.holders)) != NULL) {
		free_holder(core, CONTAINER_OF(n, struct holder, link));
	}
}

/* Its first record ends; or, while nobody says that it is gone, those are looked for now and then that are over by their leases. Who does not
 * vote just now looks again soon: what it will vote with is elsewhere yet. */
static void arm(struct core *core, struct holder *h) {
	if (!h->closed) {
		timer_at(core, &h->timer, TIMER_HOLDER, instant_add(core->now, core->config.max_lease));
		return;
	}
	span_ns first = span_grow(core->config.max_lease, 2 * core->config.drift_ppm);
	for (struct list *n = list_first(&h->records); n; n = list_after(&h->records, n)) {
		const struct bound_locks *b = CONTAINER_OF(n, struct bound_locks, of_holder);
		first = b->grace < first ? b->grace : first;
	}
	struct instant at = instant_add(h->since, first);
	bool waits = instant_expired(core->now, at);
	timer_at(core, &h->timer, TIMER_HOLDER, waits ? instant_add(core->now, core->config.request_timeout / 4) : at);
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
		list_init(&h->records);
		list_append(&core->master.holders, &h->link);
		core->master.holder_count++;
		arm(core, h);
	}
	return h;
}

static enum status bind(struct core *core, uint32_t from, const struct message *m, struct message *answer) {
	const struct key *key = table_find(core, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r == NULL) {
		answer->left_us = lacked_us(core, m->lock_id);
		return STATUS_ABSENT;
	}
	answer->left_us = (uint64_t)(instant_left_short(core->now, r->end) / SPAN_US); /* the other one is to trust in no more */
	struct bound_locks *b = find_record(core, m->lock_id);
	struct holder *h = make_holder(core, from);
	if (b == NULL && h && core->master.bound_locks.count < core->limits.keys) {
		b = alloc_new(&core->alloc, sizeof *b + m->key.size);
		if (b) {
			b->lock_id = m->lock_id;
			b->size = (uint16_t)m->key.size;
			memcpy(b->key, m->key.data, m->key.size);
			map_insert(&core->master.bound_locks, &b->node, hash_lock_id(core, m->lock_id));
		}
	}
	if (b == NULL || h == NULL) {
		COUNT(core, full);
		return STATUS_FULL;
	}
	list_remove(&b->of_holder);
	list_append(&h->records, &b->of_holder); /* the last node that says so holds it */
	b->holder = h;
	b->grace = span_from_us(m->left_us);
	b->until = r->end;
	b->stale = r->freed = false;
	COUNT(core, binding_made);
	return STATUS_OK;
}

static void settle_holder(struct core *core, struct holder *h) {
	if (list_empty(&h->records)) {
		free_holder(core, h);
	}
}

/* To this start of the node. */
static bool bound_to(const struct bound_locks *b, const struct peer *p) {
	return id128_equal(b->holder->id, p->link_id) && b->holder->boot == p->boot;
}

/* As by its lease: no R3, so that a node that is still there may extend it back to life where it was dropped. */
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

/* The node trusts in it no more, and has said so to its holder. Whoever goes on with it through another node has ended the bond. */
static void lost_there(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_RELEASE_ANSWER, .round = m->round, .status = rule_votes(core) };
	const struct bound_locks *b = core->master.holder_count > 0 ? find_record(core, m->lock_id) : NULL;
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

/* The record is gone, or is bound no more. */
void binding_master_released(struct core *core, struct id128 lock_id) {
	struct bound_locks *b = core->master.holder_count > 0 ? find_record(core, lock_id) : NULL;
	if (b) {
		struct holder *h = b->holder;
		free_record(core, b);
		settle_holder(core, h);
	}
}

/* Somebody goes on with the lock through another node, or through another start of this one, and counts on this master: it does not end with
 * the one that it was bound to. That one may have given the bond up while this master could not hear it; so may this node, where it has not
 * said since then that it has not. */
void binding_master_accepted(struct core *core, const struct record *r, uint32_t from) {
	struct bound_locks *b = core->master.holder_count > 0 ? find_record(core, r->lock_id) : NULL;
	if (b && (b->stale || !bound_to(b, &core->peers[from]))) {
		binding_master_released(core, r->lock_id);
	} else if (b) {
		b->until = r->end;
	}
}

/* A copy of the record tells so: who gets it from a master where it is not bound counts for whoever that one counts for. */
bool binding_master_bound(const struct core *core, struct id128 lock_id) {
	return core->master.holder_count > 0 && find_record(core, lock_id) != NULL;
}

static void make_stale(struct holder *h) {
	for (struct list *n = list_first(&h->records); n; n = list_after(&h->records, n)) {
		CONTAINER_OF(n, struct bound_locks, of_holder)->stale = true;
	}
}

/* `stays`: this node was a master of the epoch before, too, and has missed none: else the node to which a lock is bound has not counted on it
 * in between, and tells it anew. */
void binding_master_epoch(struct core *core, bool stays) {
	if (!stays) {
		binding_master_done(core);
		return;
	}
	for (struct list *n = core->master.holder_count > 0 ? list_first(&core->master.holders) : NULL; n; n = list_after(&core->master.holders,
			n)) {
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
			make_stale(h); /* it may have given some up meanwhile; what it has not, it tells again */
			arm(core, h);
		} else {
			close_holder(core, h); /* the node has started anew: what it was before is no more */
		}
	}
}

/* `closed`: by the other side. */
void binding_master_peer_lost(struct core *core, uint32_t peer, bool closed) {
	const struct peer *p = &core->peers[peer];
	struct holder *h = p->up && core->master.holder_count > 0 ? find_holder(core, p->link_id, p->boot) : NULL;
	if (h && closed) {
		close_holder(core, h);
	}
}

/* ---- the end of a record ---- */

/* The record has ended, by its lease or otherwise. Who does not vote just now goes by what it saw last. */
static bool over(struct core *core, struct bound_locks *b) {
	const struct key *key = core_votes(core) ? table_find(core, slice_of(b->key, b->size)) : NULL;
	const struct record *r = key ? key_record(key, b->lock_id) : NULL;
	b->until = r ? r->end : b->until;
	return instant_expired(core->now, b->until) || (core_votes(core) && r == NULL);
}

void binding_master_timer(struct core *core, struct timer *t) {
	struct holder *h = CONTAINER_OF(t, struct holder, timer);
	for (struct list *n = list_first(&h->records), *next; n; n = next) {
		next = list_after(&h->records, n);
		struct bound_locks *b = CONTAINER_OF(n, struct bound_locks, of_holder);
		bool ends = h->closed && core_votes(core) && instant_expired(core->now, instant_add(h->since, b->grace));
		if (ends) {
			(void)end_record(core, slice_of(b->key, b->size), b->lock_id);
		}
		if (ends || over(core, b)) {
			free_record(core, b);
		}
	}
	if (list_empty(&h->records)) {
		free_holder(core, h);
	} else {
		arm(core, h);
	}
}
