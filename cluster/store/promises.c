/* promises.c: the promises of a key. Several of them stand together where none of them excludes
 * another (section 5, Together). Their number is bounded, so a walk over them is short. */
#include "store.h"

static void put_first(struct key *key, struct promise *first) {
	struct key_more *more = key_more(key);
	if (more) {
		more->promises = first;
	} else {
		key->rare = (uintptr_t)first;
	}
}

struct promise *key_make_promise(struct core *core, struct key *key, struct id128 lock_id) {
	struct promise *p = alloc_new(&core->alloc, sizeof *p);
	if (p == NULL) {
		COUNT(core, no_memory);
		return NULL;
	}
	core->counts[COUNT_promise_together] += key_promises(key) != NULL;
	p->key = key;
	p->lock_id = lock_id;
	p->noted = core->clock;
	p->next = key_promises(key);
	put_first(key, p);
	core->store.promise_count++;
	return p;
}

uint64_t promise_noted(const struct core *core, const struct promise *p, struct permits set) {
	if (p && permits_none(set)) {
		return p->noted;
	}
	return p == NULL || permits_meet(p->touched, set) ? core->clock
		: permits_meet(p->again, set) ? p->noted_again
		: p->noted;
}

uint64_t promise_note(const struct core *core, struct promise *p) {
	if (!permits_none(p->touched)) {
		p->noted_again = core->clock;
		p->again = permits_or(p->again, p->touched);
		p->touched = (struct permits){ { 0, 0 } };
	}
	return permits_none(p->again) ? p->noted : p->noted_again;
}

void key_drop_promise(struct core *core, struct key *key, struct promise *p) {
	struct promise *first = key_promises(key), **at = &first;
	while (*at != p) {
		at = &(*at)->next;
	}
	*at = p->next;
	put_first(key, first);
	list_remove(&p->by_peer);
	alloc_free(&core->alloc, p, sizeof *p);
	core->store.promise_count--;
}

/* ---- permit numbers ---- */

struct permits key_reserved(const struct key *key, struct id128 lock_id) {
	struct permits reserved = { { 0, 0 } };
	for (const struct promise *p = key_promises(key); p; p = p->next) {
		if (!id128_equal(p->lock_id, lock_id)) {
			reserved = permits_or(reserved, p->terms.set);
		}
	}
	return reserved;
}

/* Returns the numbers of a semaphore of `of` that are free if records have these. `room` is what
 * key_taken says. */
static struct permits free_of(uint32_t of, struct permits taken, bool room) {
	return room ? permits_but(permits_all(of), taken) : (struct permits){ { 0, 0 } };
}

uint32_t key_permits_free(const struct key *key, struct id128 lock_id, uint32_t of,
	uint32_t *out_promised) {
	*out_promised = 0;
	for (const struct promise *p = key_promises(key); p; p = p->next) {
		*out_promised += id128_equal(p->lock_id, lock_id) ? 0 : p->terms.count;
	}
	bool room;
	const struct permits taken = key_taken(key, lock_id, of, &room);
	return permits_count(free_of(of, taken, room));
}

bool key_permits_left(const struct key *key, struct id128 lock_id, const struct terms *terms) {
	uint32_t promised;
	return key_permits_free(key, lock_id, terms->of, &promised) >= promised + terms->count;
}

struct permits promise_reserve(const struct key *key, struct promise *p) {
	bool room;
	const struct permits taken = key_taken(key, p->lock_id, p->terms.of, &room);
	p->terms.set = (struct permits){ { 0, 0 } };
	if (p->reserves) {
		(void)permits_lowest(permits_but(free_of(p->terms.of, taken, room),
			key_reserved(key, p->lock_id)), p->terms.count, &p->terms.set);
	}
	return taken;
}
