/* tombstones.c: what has ended lately and must not come back: lock_ids that were released (R3) or
 * barred by a break, locks that ended with a connection of their holder (section 2), and what
 * failed requests rolled back (section 11). The tombstones are in a ring of bounded size that loses
 * its oldest. Nobody believes in a lock that has ended and comes back, so forgetting costs time and
 * not safety. */
#include "store.h"

/* ---- the index ---- */

/* Each message looks up lock_ids that mostly have no tombstone, and the ring is larger than the
 * caches. So the index is one flat table: a lookup begins at the slot of the lock_id's hash, and
 * goes on to the next one until it meets an empty slot, which is there soon, because at least half
 * of the slots are empty. A slot has the number of a place in the ring, from 1, and in its other
 * bits a part of the hash: nearly always they tell without a look at the ring that it is another
 * lock_id. */

static uint32_t *slot_at(const struct core *core, size_t i) {
	return &core->store.tombstones_index[i & (core->store.tombstones_slots - 1)];
}

static uint32_t slot_place(const struct core *core, uint32_t slot) {
	return slot & (uint32_t)(((uint64_t)1 << core->store.tombstones_bits) - 1);
}

/* Returns what stands in the slot of a place. */
static uint32_t slot_of(const struct core *core, uint64_t hash, uint32_t place) {
	return (uint32_t)(hash >> 32 << core->store.tombstones_bits) | place;
}

static struct tombstone *in_place(const struct core *core, uint32_t place) {
	return &core->store.tombstones[place - 1];
}

static void index_add(struct core *core, uint64_t hash, uint32_t place) {
	size_t i = (size_t)hash;
	while (*slot_at(core, i) != 0) {
		i++;
	}
	*slot_at(core, i) = slot_of(core, hash, place);
}

/* Empties the slot of a place. A lookup ends at the first empty slot, so those behind it, up to the
 * next empty one, move into the gap if their lookups begin at or before it. */
static void index_remove(struct core *core, uint64_t hash, uint32_t place) {
	const size_t mask = core->store.tombstones_slots - 1;
	size_t gap = (size_t)hash & mask;
	while (slot_place(core, *slot_at(core, gap)) != place) {
		CHECK(*slot_at(core, gap) != 0);
		gap++;
	}
	for (size_t i = gap + 1; *slot_at(core, i) != 0; i++) {
		const uint32_t slot = *slot_at(core, i);
		const size_t begin = (size_t)hash_lock_id(core,
			in_place(core, slot_place(core, slot))->lock_id);
		if (((i - begin) & mask) >= ((i - gap) & mask)) {
			*slot_at(core, gap) = slot;
			gap = i;
		}
	}
	*slot_at(core, gap) = 0;
}

/* ---- the ring ---- */

int tombstone_init(struct core *core) {
	const uint32_t size = core->store.tombstones_size = core->limits.released;
	size_t slots = 2;
	core->store.tombstones_bits = 1;
	while (slots < 2 * (size_t)size) {
		slots *= 2;
		core->store.tombstones_bits++;
	}
	core->store.tombstones_slots = slots;
	core->store.tombstones = alloc_new(&core->alloc, size * sizeof *core->store.tombstones);
	core->store.tombstones_index =
		alloc_new(&core->alloc, slots * sizeof *core->store.tombstones_index);
	return core->store.tombstones && core->store.tombstones_index ? 0 : PAWL_ENOMEM;
}

void tombstone_done(struct core *core) {
	alloc_free(&core->alloc, core->store.tombstones,
		core->store.tombstones_size * sizeof *core->store.tombstones);
	alloc_free(&core->alloc, core->store.tombstones_index,
		core->store.tombstones_slots * sizeof *core->store.tombstones_index);
}

struct tombstone *tombstone_find_hashed(const struct core *core, struct id128 lock_id,
	uint64_t hash) {
	const uint32_t part = slot_of(core, hash, 0);
	uint32_t slot;
	for (size_t i = (size_t)hash; (slot = *slot_at(core, i)) != 0; i++) {
		const uint32_t place = slot_place(core, slot);
		if (slot - place == part && id128_equal(in_place(core, place)->lock_id, lock_id)) {
			return in_place(core, place);
		}
	}
	return NULL;
}

static struct tombstone *find_or_add(struct core *core, struct id128 lock_id) {
	const uint64_t hash = hash_lock_id(core, lock_id);
	struct tombstone *r = tombstone_find_hashed(core, lock_id, hash);
	if (r) {
		return r;
	}
	const uint32_t place = core->store.tombstones_next + 1;
	core->store.tombstones_next = place % core->store.tombstones_size;
	r = in_place(core, place);
	if (r->used) {
		index_remove(core, hash_lock_id(core, r->lock_id), place);
	}
	*r = (struct tombstone){ .used = true, .lock_id = lock_id };
	index_add(core, hash, place);
	return r;
}

void tombstone_add(struct core *core, struct id128 lock_id, bool barred_only) {
	struct tombstone *r = find_or_add(core, lock_id);
	r->released = r->released || !barred_only;
	r->barred = r->barred || barred_only;
}

bool tombstone_released(const struct core *core, struct id128 lock_id) {
	const struct tombstone *r = tombstone_find(core, lock_id);
	return r && r->released;
}

void tombstone_end_binding(struct core *core, struct id128 lock_id, uint32_t binding) {
	struct tombstone *r = find_or_add(core, lock_id);
	r->binding = binding > r->binding ? binding : r->binding;
}

bool tombstone_connection_ended(const struct core *core, struct id128 lock_id, uint32_t binding) {
	const struct tombstone *r = binding ? tombstone_find(core, lock_id) : NULL;
	return r && binding <= r->binding;
}

/* The names of one request for one lock_id differ in their last digit (to this base) alone, and a
 * later try has a greater one. The digit 0 marks the name of an extension, which no request has. */
#define NAME_TRIES 16

uint64_t name_draw(struct core *core) {
	return (prng_next(&core->prng) & ~(uint64_t)(NAME_TRIES - 1)) | 1;
}

uint64_t name_next(struct core *core, uint64_t name) {
	return name == 0 || name % NAME_TRIES == NAME_TRIES - 1 ? name_draw(core) : name + 1;
}

uint64_t name_draw_extension(struct core *core) {
	return prng_next(&core->prng) & ~(uint64_t)(NAME_TRIES - 1);
}

bool name_of_extension(uint64_t name) {
	return name != 0 && name % NAME_TRIES == 0;
}

static void remember_before(struct core *core, uint64_t name, uint64_t by) {
	core->store.extended[core->store.extended_next++ % EXTENDED_MAX] =
		(struct extended){ .name = name, .by = by };
}

void name_made(struct core *core, uint64_t by) {
	if (name_of_extension(by)) {
		remember_before(core, by, by);
	}
}

/* The record rests on several names from then on. An extension that is taken back leaves the name
 * before it, which is remembered as long as there is room. */
uint64_t name_extended(struct core *core, uint64_t name, uint64_t by) {
	if (name == by) {
		return name;
	}
	if (name == 0 || name_of_extension(name) || !name_of_extension(by)) {
		return 0;
	}
	remember_before(core, name, by);
	return by;
}

/* An extension may be asked for twice, and find another record the second time. So the latest place
 * that names it counts. */
uint64_t name_before(const struct core *core, uint64_t by) {
	for (uint32_t i = 1; i <= EXTENDED_MAX; i++) {
		const struct extended *e =
			&core->store.extended[(core->store.extended_next - i) % EXTENDED_MAX];
		if (e->by == by) {
			return e->name;
		}
	}
	return 0;
}

static bool name_covers(uint64_t rolled_back, uint64_t name) {
	return name / NAME_TRIES == rolled_back / NAME_TRIES && name <= rolled_back;
}

/* The same lock_id may be granted through another node, so the token counts for learning alone.
 * What rests on the name alone is nobody's, wherever it is. */
void rolled_back_add(struct core *core, struct id128 lock_id, uint64_t token, uint64_t name) {
	struct tombstone *r = find_or_add(core, lock_id);
	r->rolled_back = token > r->rolled_back ? token : r->rolled_back;
	r->name = name && !name_covers(r->name, name) ? name : r->name;
}

bool rolled_back_named(const struct core *core, struct id128 lock_id, uint64_t name) {
	const struct tombstone *r = name ? tombstone_find(core, lock_id) : NULL;
	/* What a request rolled back before it tried again is rolled back, too (section 11). */
	return r && name_covers(r->name, name);
}

bool rolled_back_has(const struct core *core, struct id128 lock_id, uint64_t token, uint64_t name) {
	const struct tombstone *r = tombstone_find(core, lock_id);
	return r && (token <= r->rolled_back || rolled_back_named(core, lock_id, name));
}

/* ---- in snapshots and side files ---- */

const struct tombstone *tombstone_at(const struct core *core, uint32_t next, uint32_t i) {
	return &core->store.tombstones[(next + i) % core->store.tombstones_size];
}

void tombstone_describe(const struct tombstone *r, struct slice key, struct message *m) {
	*m = (struct message){ .kind = MESSAGE_SNAPSHOT_RELEASED, .key = key, .lock_id = r->lock_id,
		.name = r->name, .token = r->rolled_back, .number = r->binding,
		.flags = (r->released ? FLAG_RELEASED : 0) | (r->barred ? FLAG_BARRED : 0) };
}

void tombstone_take(struct core *core, const struct message *m) {
	if (m->flags & (FLAG_RELEASED | FLAG_BARRED)) {
		tombstone_add(core, m->lock_id, !(m->flags & FLAG_RELEASED));
	}
	if (m->number) {
		tombstone_end_binding(core, m->lock_id,
			m->number < UINT32_MAX ? (uint32_t)m->number : UINT32_MAX);
	}
	if (m->token || m->name) {
		rolled_back_add(core, m->lock_id, m->token, m->name);
	}
}
