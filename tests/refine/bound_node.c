/* bound_node.c: until when a node may trust a lock that ends with it (section 2, Release on
 * disconnect). */
#include <string.h>

#include "bound.h"

struct b_lock *bound_find(struct b_node *n, struct id128 lock_id) {
	for (uint32_t i = 0; i < n->count; i++) {
		if (id128_equal(n->locks[i].lock_id, lock_id)) {
			return &n->locks[i];
		}
	}
	return NULL;
}

void bound_begins(struct b_node *n, struct slice key, struct id128 lock_id, span_ns grace) {
	if (bound_find(n, lock_id) || n->count == B_LOCKS || key.size > sizeof n->locks->key) {
		return;
	}
	struct b_lock *l = &n->locks[n->count++];
	*l = (struct b_lock){ .lock_id = lock_id, .key_size = key.size, .grace = grace,
		.before = INSTANT_FOREVER };
	memcpy(l->key, key.data, key.size);
}

void bound_masters(struct b_lock *l, const struct m_node *node, const uint64_t *ids) {
	l->masters = node->masters;
	l->quorum = node->quorum;
	l->self = node->masters;
	for (uint32_t i = 0; i < node->masters; i++) {
		l->master[i].id = ids[i];
		l->self = ids[i] == node->self ? i : l->self;
	}
}

void bound_ends(struct b_node *n, struct id128 lock_id) {
	struct b_lock *l = bound_find(n, lock_id);
	if (l) {
		*l = n->locks[--n->count];
	}
}

/* ---- what is known ---- */

/* The master was told, and its link has been lost for the grace time, less twice the drift, unless
 * its own side has closed it. */
static struct instant gone_at(const struct b_lock *l, const struct b_master *m, uint32_t drift) {
	return instant_add(m->since, span_shrink(l->grace, 2 * drift));
}

static bool may_drop(const struct b_master *m) {
	return m->told && m->away && !m->closed;
}

static bool gone(const struct b_lock *l, const struct b_master *m, struct instant at,
	uint32_t drift) {
	return m->dropped || (may_drop(m) && instant_distrusted(at, gone_at(l, m, drift)));
}

static struct instant lasts(const struct b_lock *l, uint32_t i) {
	return i == l->self ? l->own_end
		: l->master[i].has ? l->master[i].until : (struct instant){ 0, 0 };
}

static uint32_t keeping(const struct b_lock *l, struct instant at, uint32_t drift) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->masters; i++) {
		n += !gone(l, &l->master[i], at, drift) && !l->master[i].closed &&
			!instant_distrusted(at, lasts(l, i));
	}
	return n;
}

static bool lacks(const struct b_lock *l, uint32_t i) {
	return i != l->self && l->master[i].absent;
}

/* More than n - q masters had no record at one moment, and q have answered in this epoch. What the
 * node itself lacks counts from the moment on. */
static bool nobody_holds(const struct b_lock *l, const struct m_node *node, bool own) {
	uint32_t answered = 0, most = 0;
	for (uint32_t i = 0; i < l->masters; i++) {
		uint32_t at_once = 0;
		answered += i == l->self ? node->votes : l->master[i].heard;
		for (uint32_t k = 0; lacks(l, i) && k < l->masters; k++) {
			at_once += (k == l->self && own) || (lacks(l, k) &&
				instant_expired(l->master[i].lacks_from, l->master[k].lacks_from) &&
				instant_expired(l->master[k].lacks_to, l->master[i].lacks_from));
		}
		most = at_once > most ? at_once : most;
	}
	return answered >= l->quorum && most > l->masters - l->quorum;
}

static bool lost_at(const struct b_lock *l, struct instant at, uint32_t drift) {
	bool dropped = instant_distrusted(at, l->before);
	for (uint32_t i = 0; i < l->masters; i++) {
		dropped = dropped || gone(l, &l->master[i], at, drift);
	}
	return dropped && keeping(l, at, drift) < l->quorum;
}

static void sooner(const struct b_lock *l, struct instant t, const struct m_node *node,
	struct instant *end) {
	if (t.boot < end->boot && t.boot >= node->now.boot && lost_at(l, t, node->drift_ppm)) {
		*end = t;
	}
}

static struct instant ends_at(const struct b_lock *l, const struct m_node *node) {
	if (lost_at(l, node->now, node->drift_ppm) || nobody_holds(l, node, false)) {
		return (struct instant){ 0, 0 };
	}
	struct instant end = INSTANT_FOREVER;
	sooner(l, l->before, node, &end);
	for (uint32_t i = 0; i < l->masters; i++) {
		if (may_drop(&l->master[i])) {
			sooner(l, gone_at(l, &l->master[i], node->drift_ppm), node, &end);
		}
		sooner(l, lasts(l, i), node, &end);
	}
	return end;
}

/* ---- what happens ---- */

void bound_asks(struct b_lock *l, uint32_t master, struct instant now) {
	struct b_master *m = &l->master[master];
	m->told = true;
	m->asked = m->open++ == 0 ? now : m->asked;
}

void bound_hears(struct b_lock *l, uint32_t master, const struct message *m,
	const struct m_node *node) {
	struct b_master *b = &l->master[master];
	b->heard = m->status == STATUS_OK || m->status == STATUS_ABSENT;
	if (m->status == STATUS_OK) {
		const struct instant until = instant_add(b->asked,
			span_shrink(span_from_us(m->left_us), 2 * node->drift_ppm));
		b->until = b->has && !b->away ? instant_later(b->until, until) : until;
		b->has = true;
		b->away = b->closed = b->dropped = b->absent = false;
	} else if (m->status == STATUS_ABSENT) {
		b->dropped = b->dropped || b->has || b->away;
		b->absent = true;
		b->lacks_from = instant_add(node->now,
			-span_shrink(span_from_us(m->left_us), node->drift_ppm));
		b->lacks_to = b->asked;
	}
	b->open -= b->open > 0;
}

void bound_extended(struct b_lock *l, uint32_t master, struct instant sent, uint64_t lease_us,
	const struct m_node *node) {
	struct b_master *m = &l->master[master];
	if (m->has) {
		/* Microseconds are rounded down in messages. */
		m->until = instant_later(m->until, instant_add(sent,
			span_shrink(span_from_us(lease_us + 1), node->drift_ppm)));
		m->absent = false;
	}
}

void bound_link(struct b_lock *l, uint32_t master, bool linked, struct instant since, bool closed) {
	struct b_master *m = &l->master[master];
	if (m->linked && !linked) {
		m->open = 0;
		/* Of two losses without an answer between them the worse one counts. */
		if (m->told && (!m->away || (m->closed && !closed))) {
			m->away = true;
			m->closed = closed;
			m->since = since;
		}
	}
	m->linked = linked;
}

/* Returns from when on a master of this epoch may drop the record. */
static struct instant drops_from(const struct b_lock *l, const struct m_node *node) {
	struct instant first = ends_at(l, node);
	first = l->before.boot < first.boot ? l->before : first;
	for (uint32_t i = 0; i < l->masters; i++) {
		struct b_master m = l->master[i];
		m.since = m.away ? m.since : node->now;
		const struct instant at = gone_at(l, &m, node->drift_ppm);
		if (m.told && !gone(l, &l->master[i], node->now, node->drift_ppm) &&
			at.boot < first.boot) {
			first = at;
		}
	}
	return first;
}

void bound_epoch(struct b_lock *l, const struct m_node *node, const uint64_t *ids) {
	bool same = l->masters == node->masters;
	for (uint32_t i = 0; same && i < l->masters; i++) {
		same = l->master[i].id == ids[i];
	}
	struct b_lock b = *l;
	if (!same) {
		/* The node does not vote at this moment, so its own record does not count. */
		struct b_lock others = *l;
		others.own_end = (struct instant){ 0, 0 };
		b.was_lost = bound_lost(&others, node) == NULL;
		b.before = drops_from(l, node);
		memset(b.master, 0, sizeof b.master);
		bound_masters(&b, node, ids);
		for (uint32_t i = 0; i < b.masters; i++) {
			for (uint32_t k = 0; k < l->masters; k++) {
				const struct b_master *m = &l->master[k];
				if (m->id == ids[i] && !gone(l, m, node->now, node->drift_ppm)) {
					b.master[i] = *m;
					b.master[i].has = b.master[i].absent = false;
				}
			}
		}
	}
	for (uint32_t i = 0; i < b.masters; i++) {
		b.master[i].open = 0;
		b.master[i].heard = false;
	}
	*l = b;
}

void bound_settles(struct b_lock *l, const struct m_node *node) {
	if (keeping(l, node->now, node->drift_ppm) >= l->quorum) {
		l->before = INSTANT_FOREVER;
	}
}

/* ---- judging ---- */

const char *bound_trusted(const struct b_lock *l, const struct m_node *node, struct instant until) {
	const struct instant end = ends_at(l, node);
	return l->left_out || until.boot <= end.boot ? NULL
		: "a bound lock is trusted only while q masters keep it, or none may drop it";
}

const char *bound_lost(const struct b_lock *l, const struct m_node *node) {
	/* The node may say so earlier by as much as its timer may be late: an eighth at most. */
	const struct instant late = instant_add(node->now, l->grace / 8 + SPAN_US);
	return l->left_out || l->was_lost || lost_at(l, late, node->drift_ppm) ||
		nobody_holds(l, node, true) ? NULL
		: "a bound lock is lost when a master is gone, and fewer than q keep it";
}
