/* bound_master.c: which locks a master has bound to which start of a node, and when their records
 * may end (section 2, Release on disconnect). */
#include "bound.h"

static struct b_record *record_of(struct b_table *t, struct id128 lock_id) {
	for (uint32_t i = 0; i < t->count; i++) {
		if (id128_equal(t->records[i].lock_id, lock_id)) {
			return &t->records[i];
		}
	}
	return NULL;
}

static struct b_holder *holder_of(struct b_table *t, uint64_t id, uint64_t boot) {
	for (uint32_t i = 0; i < B_HOLDERS; i++) {
		if (t->holders[i].used && t->holders[i].id == id && t->holders[i].boot == boot) {
			return &t->holders[i];
		}
	}
	return NULL;
}

/* Returns a place that no record refers to. */
static struct b_holder *holder_new(struct b_table *t) {
	bool used[B_HOLDERS] = { false };
	for (uint32_t i = 0; i < t->count; i++) {
		used[t->records[i].holder] = true;
	}
	for (uint32_t i = 0; i < B_HOLDERS; i++) {
		if (!used[i]) {
			return &t->holders[i];
		}
	}
	return NULL;
}

void bound_makes(struct b_table *t, struct id128 lock_id, uint64_t id, uint64_t boot,
	span_ns grace) {
	struct b_holder *h = holder_of(t, id, boot);
	bound_unmakes(t, lock_id);
	if (h == NULL && (h = holder_new(t)) != NULL) {
		*h = (struct b_holder){ .id = id, .boot = boot, .used = true };
	}
	if (h == NULL || t->count == B_RECORDS) {
		t->more = true;
		return;
	}
	t->records[t->count++] = (struct b_record){ .lock_id = lock_id,
		.holder = (uint32_t)(h - t->holders), .told = h->told, .grace = grace };
}

void bound_unmakes(struct b_table *t, struct id128 lock_id) {
	struct b_record *r = record_of(t, lock_id);
	if (r) {
		*r = t->records[--t->count];
	}
}

void bound_accepts(struct b_table *t, struct id128 lock_id, uint64_t id, uint64_t boot) {
	const struct b_record *r = record_of(t, lock_id);
	const struct b_holder *h = r ? &t->holders[r->holder] : NULL;
	if (h && (h->id != id || h->boot != boot || r->told != h->told)) {
		bound_unmakes(t, lock_id);
	}
}

void bound_up(struct b_table *t, uint64_t id, uint64_t boot, struct instant now) {
	for (uint32_t i = 0; i < B_HOLDERS; i++) {
		struct b_holder *h = &t->holders[i];
		if (h->used && h->id == id && h->boot == boot) {
			h->closed = false;
			h->told++;
		} else if (h->used && h->id == id) {
			/* Its earlier start is over. */
			bound_closed(t, id, h->boot, now);
		}
	}
}

void bound_closed(struct b_table *t, uint64_t id, uint64_t boot, struct instant now) {
	struct b_holder *h = holder_of(t, id, boot);
	if (h && !h->closed) {
		h->closed = true;
		h->since = now;
	}
}

void bound_next(struct b_table *t, bool stays) {
	t->count = stays ? t->count : 0;
	for (uint32_t i = 0; i < B_HOLDERS; i++) {
		t->holders[i].told++;
	}
}

bool bound_is(const struct b_table *t, struct id128 lock_id, uint64_t id, uint64_t boot) {
	for (uint32_t i = 0; i < t->count; i++) {
		const struct b_record *r = &t->records[i];
		const struct b_holder *h = &t->holders[r->holder];
		if (id128_equal(r->lock_id, lock_id)) {
			return id == 0 || (h->id == id && h->boot == boot);
		}
	}
	return t->more;
}

const char *bound_may_end(const struct b_table *t, uint32_t ended, struct instant now) {
	uint32_t may = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct b_holder *h = &t->holders[t->records[i].holder];
		may += h->closed &&
			instant_expired(now, instant_add(h->since, t->records[i].grace));
	}
	return ended <= may || t->more ? NULL
		: "a bound record ends when its node has closed the link for the grace time";
}
