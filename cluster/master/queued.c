/* queued.c: requests that stand in an order and are found by their key and lock_id. Both take
 * logarithmic time, because an ordinary client may have tens of thousands of requests, with
 * whatever priorities it likes. */
#include "master.h"

/* Section 10, Order: the higher priority comes first, and among equal priorities the earlier
 * ticket. Tickets are compared by their stamps; where two homes gave the same stamp, by the node
 * that drew the ticket and its sequence number there. */
static int compare(const struct core *core, const struct place *a, const struct place *b) {
	if (a->priority != b->priority) {
		return a->priority > b->priority ? -1 : 1;
	}
	if (a->ticket.clock != b->ticket.clock) {
		/* A ticket without a stamp (0) comes after all tickets that have one. */
		return a->ticket.clock - 1 < b->ticket.clock - 1 ? -1 : 1;
	}
	if (a->peer != b->peer) {
		return id128_compare(core->peers[a->peer].node.id, core->peers[b->peer].node.id);
	}
	return a->ticket.seq < b->ticket.seq ? -1 : a->ticket.seq > b->ticket.seq;
}

bool queue_before(const struct core *core, const struct place *a, const struct place *b) {
	return compare(core, a, b) < 0;
}

struct place queued_place(const struct queued *q) {
	return (struct place){ q->terms.priority, q->ticket, q->peer };
}

static const struct queued *of_node(const struct tree_node *n) {
	return CONTAINER_OF(n, const struct queued, order);
}

/* Requests are ordered even if a coordinator draws the same ticket twice. */
static bool before(const void *core, const struct tree_node *a, const struct tree_node *b) {
	const struct place first = queued_place(of_node(a)), second = queued_place(of_node(b));
	const int c = compare(core, &first, &second);
	return c != 0 ? c < 0 : id128_compare(of_node(a)->lock_id, of_node(b)->lock_id) < 0;
}

static uint64_t hash(const struct core *core, const struct key *key, struct id128 lock_id) {
	return hash_fold(hash_lock_id(core, lock_id) ^ key->node.hash,
		UINT64_C(0x9e3779b97f4a7c15));
}

void queued_enter(struct core *core, struct map *map, struct tree_node **order, struct queued *q) {
	map_insert(map, &q->by_lock, hash(core, q->key, q->lock_id));
	tree_insert(order, &q->order, before, core);
}

void queued_leave(struct core *core, struct map *map, struct tree_node **order, struct queued *q) {
	map_remove(map, &q->by_lock);
	tree_remove(order, &q->order, before, core);
}

void queued_move(struct core *core, struct tree_node **from, struct tree_node **to,
	struct queued *q) {
	tree_remove(from, &q->order, before, core);
	tree_insert(to, &q->order, before, core);
}

struct queued *queued_first(struct tree_node *order) {
	struct tree_node *n = tree_first(order);
	return n ? CONTAINER_OF(n, struct queued, order) : NULL;
}

struct queued *queued_after(const struct core *core, struct tree_node *order,
	const struct queued *q) {
	struct tree_node *n = tree_after(order, &q->order, before, core);
	return n ? CONTAINER_OF(n, struct queued, order) : NULL;
}

bool queued_sooner(const struct core *core, const struct queued *a, const struct queued *b) {
	return before(core, &a->order, &b->order);
}

/* Returns the first node, from `n` on, of this key and lock_id. */
static struct queued *match(struct map_node *n, const struct key *key, struct id128 lock_id) {
	for (; n; n = map_next(n)) {
		struct queued *q = CONTAINER_OF(n, struct queued, by_lock);
		if (q->key == key && id128_equal(q->lock_id, lock_id)) {
			return q;
		}
	}
	return NULL;
}

struct queued *queued_of_lock(const struct core *core, const struct map *map, const struct key *key,
	struct id128 lock_id) {
	return match(map_first(map, hash(core, key, lock_id)), key, lock_id);
}

struct queued *queued_of_lock_next(const struct queued *q) {
	return match(map_next(&q->by_lock), q->key, q->lock_id);
}

struct queued *queued_find(const struct core *core, const struct map *map, const struct key *key,
	uint32_t peer, struct id128 lock_id) {
	struct queued *q = queued_of_lock(core, map, key, lock_id);
	while (q && q->peer != peer) {
		q = queued_of_lock_next(q);
	}
	return q;
}

/* ---- entries by their owners ---- */

/* The order of key_more.owners. `probe`: the node that stands for the owner's first entry, and has
 * no entry itself. */
struct owner_order {
	const struct core *core;
	struct slice owner;
	const struct tree_node *probe;
};

static struct slice owner_of(const struct owner_order *o, const struct tree_node *n) {
	const struct waiter *w = CONTAINER_OF(n, const struct waiter, by_owner);
	return n == o->probe ? o->owner : slice_of(w->bytes, w->owner_size);
}

static bool owner_before(const void *ctx, const struct tree_node *a, const struct tree_node *b) {
	const struct owner_order *o = ctx;
	const int c = slice_compare(owner_of(o, a), owner_of(o, b));
	if (c != 0 || a == o->probe || b == o->probe) {
		return c != 0 ? c < 0 : b != o->probe;
	}
	return queued_sooner(o->core, &CONTAINER_OF(a, const struct waiter, by_owner)->q,
		&CONTAINER_OF(b, const struct waiter, by_owner)->q);
}

void queued_owner_enter(const struct core *core, struct waiter *w) {
	const struct owner_order o = { .core = core };
	tree_insert(&key_more(w->q.key)->owners, &w->by_owner, owner_before, &o);
}

void queued_owner_leave(const struct core *core, struct waiter *w) {
	const struct owner_order o = { .core = core };
	tree_remove(&key_more(w->q.key)->owners, &w->by_owner, owner_before, &o);
}

struct waiter *queued_owner_next(const struct core *core, const struct key_more *more,
	struct slice owner, const struct waiter *behind) {
	const struct tree_node probe = { NULL, NULL };
	const struct owner_order o = { core, owner, behind ? NULL : &probe };
	struct tree_node *n = behind
		? tree_after(more->owners, &behind->by_owner, owner_before, &o)
		: tree_from(more->owners, &probe, owner_before, &o);
	struct waiter *w = n ? CONTAINER_OF(n, struct waiter, by_owner) : NULL;
	return w && slice_equal(slice_of(w->bytes, w->owner_size), owner) ? w : NULL;
}

/* ---- keys that somebody waits for ---- */

static bool names_before(const void *ctx, const struct tree_node *a, const struct tree_node *b) {
	(void)ctx;
	return slice_compare(CONTAINER_OF(a, const struct key_more, by_name)->name,
		CONTAINER_OF(b, const struct key_more, by_name)->name) < 0;
}

struct key *queue_next_key(const struct core *core, struct slice name, bool itself) {
	const struct key_more probe = { .name = name };
	struct tree_node *n = itself
		? tree_from(core->master.queues.keys, &probe.by_name, names_before, NULL)
		: tree_after(core->master.queues.keys, &probe.by_name, names_before, NULL);
	return n ? CONTAINER_OF(n, struct key_more, by_name)->key : NULL;
}

void queued_key_enter(struct core *core, struct key_more *more) {
	tree_insert(&core->master.queues.keys, &more->by_name, names_before, NULL);
}

void queued_key_leave(struct core *core, struct key_more *more) {
	tree_remove(&core->master.queues.keys, &more->by_name, names_before, NULL);
}
