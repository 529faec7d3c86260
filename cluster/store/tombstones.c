/* tombstones.c: what has ended lately and must not come back: lock_ids that were released (R3) or
 * barred by a break, locks that ended with a connection of their holder (section 2), and what
 * failed requests rolled back (section 11). The tombstones are in a ring of bounded size that loses
 * its oldest. Nobody believes in a lock that has ended and comes back, so forgetting costs time and
 * not safety. */
#include "store.h"

int tombstone_init(struct core *core) {
	core->store.tombstones_size = core->limits.released;
	core->store.tombstones = alloc_new(&core->alloc,
		core->store.tombstones_size * sizeof *core->store.tombstones);
	if (core->store.tombstones == NULL) {
		return PAWL_ENOMEM;
	}
	return map_init(&core->store.tombstones_map, &core->alloc);
}

void tombstone_done(struct core *core) {
	if (core->store.tombstones) {
		map_done(&core->store.tombstones_map);
		alloc_free(&core->alloc, core->store.tombstones,
			core->store.tombstones_size * sizeof *core->store.tombstones);
	}
}

struct tombstone *tombstone_find(const struct core *core, struct id128 lock_id) {
	for (struct map_node *n =
			map_first(&core->store.tombstones_map, hash_lock_id(core, lock_id));
		n; n = map_next(n)) {
		struct tombstone *r = CONTAINER_OF(n, struct tombstone, node);
		if (id128_equal(r->lock_id, lock_id)) {
			return r;
		}
	}
	return NULL;
}

static struct tombstone *find_or_add(struct core *core, struct id128 lock_id) {
	struct tombstone *r = tombstone_find(core, lock_id);
	if (r) {
		return r;
	}
	r = &core->store.tombstones[core->store.tombstones_next];
	core->store.tombstones_next =
		(core->store.tombstones_next + 1) % core->store.tombstones_size;
	if (r->used) {
		map_remove(&core->store.tombstones_map, &r->node);
	}
	*r = (struct tombstone){ .used = true, .lock_id = lock_id };
	map_insert(&core->store.tombstones_map, &r->node, hash_lock_id(core, lock_id));
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

/* The record rests on several names from then on. An extension that is taken back leaves the name
 * before it, which is remembered as long as there is room. */
uint64_t name_extended(struct core *core, uint64_t name, uint64_t by) {
	if (name == by) {
		return name;
	}
	if (name == 0 || name_of_extension(name) || !name_of_extension(by)) {
		return 0;
	}
	core->store.extended[core->store.extended_next++ % EXTENDED_MAX] =
		(struct extended){ .name = name, .by = by };
	return by;
}

uint64_t name_before(const struct core *core, uint64_t by) {
	for (uint32_t i = 0; i < EXTENDED_MAX; i++) {
		if (core->store.extended[i].by == by) {
			return core->store.extended[i].name;
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
