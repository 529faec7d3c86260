/* hot.c: the keys of the live table that stand out. A walk over the table (figures.c) finds the
 * longest queues and the oldest holders; grants are counted as they come (figures_changed.c). */
#include "node.h"
#include "sketch.h"

/* How long a slot of the grants is. The present one is not whole, so the slots are the last 50 to
 * 60 seconds. */
#define SLOT (10 * SPAN_S)

/* Keys that stand out, by a number. */
struct hot_list {
	/* How many places are used. */
	uint32_t count;
	/* The places, the greatest number first. */
	uint8_t order[HOT_KEYS_MAX];
	struct hot_place {
		/* What the key is measured by (enum hot_kind). */
		int64_t number;
		/* The sizes of `key` and `owner` in bytes. */
		uint16_t key_size, owner_size;
		/* The bytes of the key and of the owner. */
		uint8_t key[KEY_MAX], owner[OWNER_MAX];
	} places[HOT_KEYS_MAX];
};

/* What a walk over the live table has found of HOT_QUEUES and HOT_HELD. The number of HOT_HELD is
 * the time at which the lock was acquired, in nanoseconds of CLOCK_BOOTTIME, negated. */
struct hot_found {
	struct hot_list lists[2];
};

void hot_want(struct core *core) {
	struct oldest *o = &core->node.oldest;
	struct changes_state *c = &core->changes;
	o->finding = alloc_new(&core->alloc, sizeof *o->finding);
	o->hot = alloc_new(&core->alloc, sizeof *o->hot);
	c->granted = alloc_new(&core->alloc, sizeof *c->granted);
	c->lost_last = alloc_new(&core->alloc, sizeof *c->lost_last);
	if (!o->finding || !o->hot || !c->granted || !c->lost_last) {
		hot_done(core);
		return;
	}
	o->turn = instant_add(core->now, SLOT);
}

void hot_done(struct core *core) {
	struct oldest *o = &core->node.oldest;
	alloc_free(&core->alloc, o->finding, sizeof *o->finding);
	alloc_free(&core->alloc, o->hot, sizeof *o->hot);
	alloc_free(&core->alloc, core->changes.granted, sizeof *core->changes.granted);
	alloc_free(&core->alloc, core->changes.lost_last, sizeof *core->changes.lost_last);
	o->finding = o->hot = NULL;
	core->changes.granted = NULL;
	core->changes.lost_last = NULL;
}

void hot_beat(struct core *core) {
	struct oldest *o = &core->node.oldest;
	/* After a long pause everything is forgotten. */
	for (uint32_t i = 0; i < SKETCH_SLOTS && core->changes.granted
		&& instant_expired(core->now, o->turn); i++) {
		sketch_turn(core->changes.granted);
		o->turn = instant_add(i + 1 < SKETCH_SLOTS ? o->turn : core->now, SLOT);
	}
}

/* Notes a key, unless as many have greater numbers. */
static void list_note(struct hot_list *l, int64_t number, const struct key *key,
	struct slice owner) {
	const bool full = l->count == HOT_KEYS_MAX;
	if (full && number <= l->places[l->order[HOT_KEYS_MAX - 1]].number) {
		return;
	}
	const uint8_t place = full ? l->order[HOT_KEYS_MAX - 1] : (uint8_t)l->count++;
	struct hot_place *p = &l->places[place];
	uint32_t at = l->count - 1;
	for (; at > 0 && l->places[l->order[at - 1]].number < number; at--) {
		l->order[at] = l->order[at - 1];
	}
	l->order[at] = place;
	p->number = number;
	p->key_size = key->size;
	memcpy(p->key, key->name, key->size);
	p->owner_size = (uint16_t)owner.size;
	if (owner.size > 0) {
		memcpy(p->owner, owner.data, owner.size);
	}
}

void hot_met(struct core *core, const struct key *key) {
	struct hot_found *finding = core->node.oldest.finding;
	if (!finding) {
		return;
	}
	if (key_more(key) && key_more(key)->waiters > 0) {
		list_note(&finding->lists[HOT_QUEUES], key_more(key)->waiters, key,
			slice_of(NULL, 0));
	}
	const struct record *oldest = NULL;
	span_ns age = 0;
	for (const struct record *r = key->held; r; r = r->next) {
		const span_ns of = record_age(r, core->now);
		if (!r->closed && !record_keeps_closed(r) && (!oldest || of > age)) {
			oldest = r;
			age = of;
		}
	}
	if (oldest) {
		list_note(&finding->lists[HOT_HELD], age - core->now.boot, key,
			record_owner(oldest));
	}
}

void hot_walked(struct core *core) {
	struct oldest *o = &core->node.oldest;
	struct hot_found *before = o->hot;
	o->hot = o->finding;
	o->finding = before;
	for (uint32_t i = 0; before && i < sizeof before->lists / sizeof *before->lists; i++) {
		before->lists[i].count = 0;
	}
}

/* ---- reading ---- */

/* Puts an entry among those that there are, unless there are as many greater ones. */
static uint32_t insert(struct hot_key out[HOT_KEYS_MAX], uint32_t count,
	const struct hot_key *one) {
	uint32_t at = count < HOT_KEYS_MAX ? count++ : HOT_KEYS_MAX;
	for (; at > 0 && out[at - 1].number < one->number; at--) {
		if (at < HOT_KEYS_MAX) {
			out[at] = out[at - 1];
		}
	}
	if (at < HOT_KEYS_MAX) {
		out[at] = *one;
	}
	return count;
}

static uint32_t granted(const struct core *core, struct slice prefix,
	struct hot_key out[HOT_KEYS_MAX]) {
	uint32_t count = 0;
	for (uint32_t i = 0; core->changes.granted && i < SKETCH_KEYS; i++) {
		struct hot_key one = { .number = 0 };
		one.number = sketch_count(core->changes.granted, i, &one.key);
		if (one.number > 0 && slice_has_prefix(one.key, prefix)) {
			count = insert(out, count, &one);
		}
	}
	return count;
}

bool core_lost(const struct core *core, uint32_t back, struct lost_lease *out) {
	const struct lost_ring *ring = core->changes.lost_last;
	if (!ring || back >= LOST_LEASES_MAX || back >= ring->count) {
		return false;
	}
	const struct lost_place *p = &ring->places[(ring->count - 1 - back) % LOST_LEASES_MAX];
	*out = (struct lost_lease){ .at = p->at, .cause = (enum figure_lost)p->cause,
		.token = p->token, .key = slice_of(p->key, p->key_size),
		.owner = slice_of(p->owner, p->owner_size) };
	return true;
}

uint32_t core_hot(const struct core *core, struct instant now, enum hot_kind kind,
	struct slice prefix, struct hot_key out[HOT_KEYS_MAX]) {
	const struct hot_found *hot = core->node.oldest.hot;
	uint32_t count = 0;
	if (kind == HOT_GRANTED) {
		return granted(core, prefix, out);
	}
	const struct hot_list *l = hot ? &hot->lists[kind] : NULL;
	for (uint32_t i = 0; l && i < l->count; i++) {
		const struct hot_place *p = &l->places[l->order[i]];
		struct hot_key one = { .key = slice_of(p->key, p->key_size),
			.owner = slice_of(p->owner, p->owner_size) };
		const int64_t held = now.boot + p->number;
		one.number = kind == HOT_QUEUES ? (uint64_t)p->number
			: held > 0 ? (uint64_t)held : 0;
		if (slice_has_prefix(one.key, prefix)) {
			out[count++] = one;
		}
	}
	return count;
}
