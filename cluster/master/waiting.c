/* waiting.c: the requests that wait for a key: the entries of its queue, where this node is its
 * home (section 5), and those that are parked here. How they enter and leave, and who comes before
 * whom; nothing is decided here. */
#include "master.h"

/* More queues of a greater length than this are not told apart. */
#define LENGTHS_MAX 65536

int queue_init(struct core *core) {
	struct master_state *m = &core->master;
	m->lengths_size = core->limits.waiters_per_key < LENGTHS_MAX
		? core->limits.waiters_per_key + 1 : LENGTHS_MAX;
	m->lengths = alloc_new(&core->alloc, m->lengths_size * sizeof *m->lengths);
	return m->lengths ? 0 : PAWL_ENOMEM;
}

void queue_done(struct core *core) {
	struct master_state *m = &core->master;
	alloc_free(&core->alloc, m->lengths, m->lengths_size * sizeof *m->lengths);
}

/* ---- entries ---- */

static struct tree_node **part_of(const struct waiter *w) {
	return &key_more(w->q.key)->queue[(w->turn ? PART_TURN : 0) | (w->waits ? PART_WAITS : 0)];
}

/* The largest number of lost entries in a row that are passed over at once. The entry behind them
 * is returned like any other, even if it is lost, too. */
#define LOST_PASSED 64

struct waiter *queue_next(const struct core *core, const struct key_more *more,
	const struct queued *behind, uint32_t parts) {
	struct queued *first = NULL;
	for (uint32_t part = 0; part < QUEUE_PARTS; part++) {
		struct queued *q = !(parts >> part & 1) ? NULL
			: behind ? queued_after(core, more->queue[part], behind)
			: queued_first(more->queue[part]);
		for (int passed = 0; q && waiter_lost(core, waiter_of(q)) && passed < LOST_PASSED;
			passed++) {
			q = queued_after(core, more->queue[part], q);
		}
		first = q && (first == NULL || queued_sooner(core, q, first)) ? q : first;
	}
	return waiter_of(first);
}

/* A queue that had `before` entries has `after` from now on, which is one more or one less. */
static void length_changed(struct core *core, uint32_t before, uint32_t after) {
	struct master_state *m = &core->master;
	const uint32_t last = m->lengths_size - 1;
	before = before < last ? before : last;
	after = after < last ? after : last;
	m->lengths[before]--;
	m->lengths[after]++;
	if (after > m->longest || (before == m->longest && m->lengths[before] == 0)) {
		m->longest = after;
	}
}

void queue_entry_enter(struct core *core, struct waiter *w) {
	struct key_more *more = key_more(w->q.key);
	if (more->waiters++ == 0) {
		queued_key_enter(core, more);
	}
	length_changed(core, more->waiters - 1, more->waiters);
	core->master.waiter_count++;
	queued_enter(core, &core->master.queues.waiters, part_of(w), &w->q);
	queued_owner_enter(core, w);
	list_append(&core->peers[w->q.peer].waiters, &w->q.by_peer);
}

void queue_entry_free(struct core *core, struct waiter *w) {
	struct key_more *more = key_more(w->q.key);
	if (more->next_try == w) {
		more->next_try = queue_next(core, more, &w->q, PARTS_TRIES);
	}
	queued_leave(core, &core->master.queues.waiters, part_of(w), &w->q);
	queued_owner_leave(core, w);
	list_remove(&w->q.by_peer);
	core->master.waiter_count--;
	more->turns -= w->turn;
	if (--more->waiters == 0) {
		list_remove(&more->moved);
		list_remove(&more->refusing);
		queued_key_leave(core, more);
	}
	length_changed(core, more->waiters + 1, more->waiters);
	alloc_free(&core->alloc, w, sizeof *w + w->owner_size + w->identity_size + w->label_size);
}

void queue_mark_turn(struct core *core, struct waiter *w) {
	if (!w->turn) {
		struct tree_node **from = part_of(w);
		w->turn = true;
		key_more(w->q.key)->turns++;
		queued_move(core, from, part_of(w), &w->q);
	}
}

struct waiter *queue_first_other(const struct core *core, const struct key_more *more,
	struct id128 lock_id, uint32_t parts) {
	struct waiter *w = queue_next(core, more, NULL, parts);
	/* Each coordinator has at most one entry for a lock_id. */
	while (w && id128_equal(w->q.lock_id, lock_id)) {
		w = queue_next(core, more, &w->q, parts);
	}
	return w;
}

bool queue_drop_lost(struct core *core, struct key_more *more) {
	for (uint32_t part = 0; part < QUEUE_PARTS; part++) {
		struct waiter *w;
		while ((w = waiter_of(queued_first(more->queue[part]))) != NULL &&
			waiter_lost(core, w)) {
			if (turn_pieces(core)->lost == 0) {
				return false;
			}
			turn_pieces(core)->lost--;
			COUNT(core, waiter_dropped);
			queue_entry_free(core, w);
		}
	}
	return true;
}

struct waiter *queue_find(const struct core *core, const struct key *key, uint32_t peer,
	struct id128 lock_id) {
	return key_more(key)
		? waiter_of(queued_find(core, &core->master.queues.waiters, key, peer, lock_id))
		: NULL;
}

struct waiter *queue_named(const struct core *core, const struct key *key, struct slice owner,
	struct id128 but) {
	const struct key_more *more = key_more(key);
	struct waiter *w = more ? queued_owner_next(core, more, owner, NULL) : NULL;
	for (int passed = 0; w && passed < LOST_PASSED; passed++) {
		if (!waiter_lost(core, w) && !id128_equal(w->q.lock_id, but)) {
			return w;
		}
		w = queued_owner_next(core, more, owner, w);
	}
	return NULL;
}

/* ---- parked requests ---- */

/* Section 10, Order: parked requests stand in the same order as the home's queue. */
void queue_parked_enter(struct core *core, struct parked *k) {
	struct key_more *more = key_more(k->q.key);
	if (more->parked_count++ == 0) {
		more->parked_peer = k->q.peer;
	}
	more->parked_others += k->q.peer != more->parked_peer;
	queued_enter(core, &core->master.queues.parked, &key_more(k->q.key)->parked, &k->q);
}

void queue_parked_leave(struct core *core, struct parked *k) {
	key_more(k->q.key)->parked_count--;
	key_more(k->q.key)->parked_others -= k->q.peer != key_more(k->q.key)->parked_peer;
	queued_leave(core, &core->master.queues.parked, &key_more(k->q.key)->parked, &k->q);
}

void queue_parked_free(struct core *core, struct parked *k) {
	queue_parked_leave(core, k);
	list_remove(&k->q.by_peer);
	alloc_free(&core->alloc, k, sizeof *k);
}

struct parked *queue_parked_next(const struct core *core, const struct key *key,
	const struct parked *behind) {
	if (key_more(key) == NULL) {
		return NULL;
	}
	return parked_of(behind ? queued_after(core, key_more(key)->parked, &behind->q)
		: queued_first(key_more(key)->parked));
}

bool queue_parked_alone(const struct key *key, uint32_t peer) {
	const struct key_more *more = key_more(key);
	return more == NULL || more->parked_count == 0 ||
		(more->parked_peer == peer && more->parked_others == 0);
}

struct parked *queue_parked_find(const struct core *core, const struct key *key, uint32_t peer,
	struct id128 lock_id) {
	return key_more(key)
		? parked_of(queued_find(core, &core->master.queues.parked, key, peer, lock_id))
		: NULL;
}

bool queue_parked(const struct core *core, const struct key *key, const struct queued *entry) {
	return queue_parked_find(core, key, entry->peer, entry->lock_id) != NULL;
}

bool queue_parked_withdrawn(struct core *core, struct key *key, uint32_t from,
	const struct message *m) {
	struct parked *k = queue_parked_find(core, key, from, m->lock_id);
	if (k == NULL || k->q.attempt != m->attempt) {
		return false;
	}
	queue_parked_free(core, k);
	return true;
}

bool queue_parked_ahead(const struct key *key, struct id128 lock_id) {
	const struct queued *first = key_more(key) ? queued_first(key_more(key)->parked) : NULL;
	return first && !id128_equal(first->lock_id, lock_id);
}

bool queue_ahead(const struct core *core, const struct key *key, const struct message *m) {
	const struct key_more *more = key_more(key);
	if (more == NULL || queue_first_other(core, more, m->lock_id, PARTS_NO_TURN)) {
		return more != NULL;
	}
	const struct waiter *w = queue_first_other(core, more, m->lock_id, PARTS_TURN);
	/* Section 5, Together: a shared lock takes nothing from those that have their turns, and a
	 * permit nothing from those that have numbers. Few entries have a turn. */
	while (w && m->terms.of != MODE_EXCLUSIVE && !terms_exclude(&w->q.terms, &m->terms) &&
		(m->terms.of == MODE_SHARED || key_promise(key, w->q.lock_id))) {
		w = queue_next(core, more, &w->q, PARTS_TURN);
	}
	return w != NULL;
}

bool queue_parked_before(const struct core *core, const struct key *key, struct id128 lock_id,
	const struct place *place) {
	if (!queue_parked_ahead(key, lock_id)) {
		return false;
	}
	const struct place ahead = queued_place(queued_first(key_more(key)->parked));
	return queue_before(core, &ahead, place);
}
