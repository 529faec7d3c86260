/* group_request.c: a request for several keys, which is checked, copied and put in the order of its
 * keys (section 11). */
#include "acquire.h"

/* Tells whether something is wrong with one lock of the request. *field says what it is. */
static bool lock_wrong(const struct core_lock *l, const char **field, int *error) {
	struct terms t = { .of = l->of, .count = l->count };
	*error = l->key.size > KEY_MAX ? PAWL_ETOOLARGE : PAWL_EBADREQUEST;
	*field = l->key.size == 0 || l->key.size > KEY_MAX ? "key"
		: id128_zero(l->lock_id) ? "lock_id"
		: "permits";
	return l->key.size == 0 || l->key.size > KEY_MAX || id128_zero(l->lock_id) ||
		!terms_valid(&t) || (terms_semaphore(&t) && t.count == 0);
}

int group_check(const struct core_request *r, const char **field, uint32_t *which) {
	*field = "locks";
	*which = 0;
	if (r->lock_count == 0 || r->lock_count > CORE_LOCKS_MAX) {
		return PAWL_EBADREQUEST;
	}
	for (uint32_t i = 0; i < r->lock_count; i++) {
		int error;
		*which = i;
		if (lock_wrong(&r->locks[i], field, &error)) {
			return error;
		}
		for (uint32_t j = 0; j < i; j++) {
			/* A lock_id that is released, barred or trusted for one key would be so for
			 * both. */
			bool id_twice = id128_equal(r->locks[i].lock_id, r->locks[j].lock_id);
			if (id_twice || slice_equal(r->locks[i].key, r->locks[j].key)) {
				/* The same key twice would wait for itself. */
				*field = id_twice ? "lock_id" : "locks";
				return PAWL_EBADREQUEST;
			}
		}
	}
	return PAWL_OK;
}

static void sort(struct group *group) {
	for (uint32_t i = 1; i < group->count; i++) {
		struct member m = group->members[i];
		uint32_t at = i;
		for (; at > 0 && slice_compare(group->members[at - 1].key, m.key) > 0; at--) {
			group->members[at] = group->members[at - 1];
		}
		group->members[at] = m;
	}
}

bool group_new(struct core *core, struct op *op, const struct core_request *r) {
	size_t size = sizeof(struct group) + r->lock_count * sizeof(struct member);
	for (uint32_t i = 0; i < r->lock_count; i++) {
		size += r->locks[i].key.size;
	}
	struct group *group = alloc_new(&core->alloc, size);
	if (group == NULL) {
		return false;
	}
	group->op = op;
	group->size = size;
	group->count = r->lock_count;
	uint8_t *at = (uint8_t *)&group->members[group->count];
	for (uint32_t i = 0; i < group->count; i++) {
		const struct core_lock *l = &r->locks[i];
		memcpy(at, l->key.data, l->key.size);
		group->members[i] = (struct member){ .key = slice_of(at, l->key.size),
			.lock_id = l->lock_id, .name = name_draw(core), .of = l->of,
			.count = l->count, .place = i };
		at += l->key.size;
	}
	sort(group);
	op_group(op) = group;
	return true;
}

void group_free(struct core *core, struct op *op) {
	if (op_group(op)) {
		list_remove(&op_group(op)->ready);
		alloc_free(&core->alloc, op_group(op), op_group(op)->size);
	}
}

/* Tells whether this is the same request once more: all its keys with the same lock_ids. */
bool group_same(const struct op *op, const struct core_request *r) {
	const struct group *group = op_group(op);
	bool same = group->count == r->lock_count;
	for (uint32_t i = 0; same && i < group->count; i++) {
		const struct member *m = &group->members[i];
		same = slice_equal(m->key, r->locks[m->place].key) &&
			id128_equal(m->lock_id, r->locks[m->place].lock_id);
	}
	return same;
}
