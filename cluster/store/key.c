/* key.c: what stands on one key: its name, its records and promises, and what few keys have. What
 * knows of tables and rules is in the other files, which stand on this one. */
#include "store.h"

struct slice key_name(const struct key *key) {
	return slice_of(key->name, key->size);
}

struct key_more *table_more(struct core *core, struct key *key) {
	struct key_more *more = key_more(key);
	if (more == NULL) {
		more = alloc_new(&core->alloc, sizeof *more);
		if (more == NULL) {
			COUNT(core, no_memory);
			return NULL;
		}
		more->name = key_name(key);
		more->key = key;
		more->promises = key_promises(key);
		for (uint32_t i = 0; i < WAITS_KINDS; i++) {
			list_init(&more->waits[i]);
		}
		key->rare = (uintptr_t)more | KEY_HAS_MORE;
	}
	return more;
}

struct record *key_record_behind(const struct key *key, struct id128 lock_id) {
	struct record *r = key->held;
	if (key_index(key)) {
		return index_record(key_index(key), lock_id);
	}
	while ((r = r->next) != NULL && !id128_equal(r->lock_id, lock_id)) {
	}
	return r;
}

uint32_t key_count(const struct key *key, uint32_t most) {
	if (key_index(key)) {
		return key_index(key)->count < most ? key_index(key)->count : most;
	}
	uint32_t count = 0;
	for (const struct record *r = key->held; r && count < most; r = r->next) {
		count++;
	}
	return count;
}

struct promise *key_promise_behind(struct promise *p, struct id128 lock_id) {
	while ((p = p->next) != NULL && !id128_equal(p->lock_id, lock_id)) {
	}
	return p;
}

struct promise *key_promised_other(const struct key *key, struct id128 lock_id) {
	struct promise *p = key_promises(key);
	while (p && id128_equal(p->lock_id, lock_id)) {
		p = p->next;
	}
	return p;
}
