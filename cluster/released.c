/* released.c: the lock_ids that were released of late (R3), or barred from extension by a break. A ring of bounded size that
 * loses its oldest: a lease that was released and comes back is believed by nobody, so forgetting costs time, not safety. */
#include "state.h"

int released_init(struct core *core) {
	core->ring_size = core->limits.released;
	core->ring = alloc_new(&core->alloc, core->ring_size * sizeof *core->ring);
	if (core->ring == NULL) {
		return PAWL_ENOMEM;
	}
	return map_init(&core->ring_map, &core->alloc);
}

void released_done(struct core *core) {
	if (core->ring) {
		map_done(&core->ring_map);
		alloc_free(&core->alloc, core->ring, core->ring_size * sizeof *core->ring);
	}
}

struct released *released_find(const struct core *core, struct id128 lock_id) {
	for (struct map_node *n = map_first(&core->ring_map, hash_lock_id(core, lock_id)); n; n = map_next(n)) {
		struct released *r = CONTAINER_OF(n, struct released, node);
		if (id128_equal(r->lock_id, lock_id)) {
			return r;
		}
	}
	return NULL;
}

void released_add(struct core *core, struct id128 lock_id, bool barred_only) {
	struct released *r = released_find(core, lock_id);
	if (r) {
		r->barred_only = r->barred_only && barred_only;
		return;
	}
	r = &core->ring[core->ring_next];
	core->ring_next = (core->ring_next + 1) % core->ring_size;
	if (r->used) {
		map_remove(&core->ring_map, &r->node);
	}
	r->used = true;
	r->lock_id = lock_id;
	r->barred_only = barred_only;
	map_insert(&core->ring_map, &r->node, hash_lock_id(core, lock_id));
}

bool released_has(const struct core *core, struct id128 lock_id) {
	const struct released *r = released_find(core, lock_id);
	return r && !r->barred_only;
}

/* ---- what was given back of late (section 11): not among the released, because the lock_id may be asked for again ---- */

void given_back_add(struct core *core, struct id128 lock_id, uint64_t token) {
	core->given_back[core->given_back_next] = (struct given_back){ lock_id, token };
	core->given_back_next = (core->given_back_next + 1) % GIVEN_BACK_MAX;
}

bool given_back_has(const struct core *core, struct id128 lock_id, uint64_t token) {
	for (uint32_t i = 0; i < GIVEN_BACK_MAX; i++) {
		const struct given_back *g = &core->given_back[i];
		if (id128_equal(g->lock_id, lock_id) && token <= g->token) {
			return true;
		}
	}
	return false;
}
