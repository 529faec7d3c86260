/* told.c: what those who watch were told lately (section 3, Watching): the highest tokens of each
 * key, in a small cache of the latest keys, and locks that came and went without this master. The
 * highest token that was forgotten counts for every key that is not in the cache. */
#include "changes.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
/* The cache has TOLD_SETS sets of TOLD_WAYS keys each. */
#define TOLD_SETS 512u
#define TOLD_WAYS 4u

/* The highest tokens that were told of a key. */
struct told {
	/* The key's number (key_number); the highest token of all its locks; and the highest one of
	 * its exclusive locks. */
	uint64_t key, any, exclusive;
	/* The lock that `any` is the token of: the first word of its lock_id. */
	uint64_t lock;
};

bool told_init(struct core *core) {
	core->changes.told = alloc_new(&core->alloc,
		TOLD_SETS * TOLD_WAYS * sizeof *core->changes.told);
	return core->changes.told != NULL;
}

void told_done(struct core *core) {
	alloc_free(&core->alloc, core->changes.told,
		TOLD_SETS * TOLD_WAYS * sizeof *core->changes.told);
}

static struct told *told_set(const struct core *core, uint64_t key) {
	return &core->changes.told[key % TOLD_SETS * TOLD_WAYS];
}

static struct told *told_find(const struct core *core, uint64_t key) {
	struct told *set = told_set(core, key);
	for (uint32_t i = 0; i < TOLD_WAYS; i++) {
		if (set[i].key == key && set[i].any) {
			return &set[i];
		}
	}
	return NULL;
}

static struct told told_of(const struct core *core, uint64_t key) {
	const struct told *at = told_find(core, key);
	return at ? *at : (struct told){ .any = core->changes.told_before,
		.exclusive = core->changes.told_before };
}

/* Makes room for a key: the one of its set whose tokens are lowest is forgotten. */
static struct told *told_add(struct core *core, uint64_t key) {
	struct told *set = told_set(core, key), *at = &set[0];
	for (uint32_t i = 1; i < TOLD_WAYS; i++) {
		at = set[i].any < at->any ? &set[i] : at;
	}
	core->changes.told_before = at->any > core->changes.told_before
		? at->any : core->changes.told_before;
	*at = (struct told){ .key = key, .any = core->changes.told_before,
		.exclusive = core->changes.told_before };
	return at;
}

static void told_raise(struct core *core, uint64_t key, const struct record *r) {
	struct told *at = told_find(core, key);
	at = at ? at : told_add(core, key);
	at->lock = r->token >= at->any ? id128_word(r->lock_id) : at->lock;
	at->any = r->token > at->any ? r->token : at->any;
	at->exclusive = r->of == MODE_EXCLUSIVE && r->token > at->exclusive
		? r->token : at->exclusive;
}

/* A permit of a semaphore counts as a key of its own here, because one holder after the other has
 * it. */
static uint64_t told_permit(uint64_t key, uint32_t number) {
	return key ^ (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static __attribute__((noinline)) void told_permits(struct core *core, uint64_t key,
	const struct record *r) {
	struct permits set = record_set(r);
	while (!permits_none(set)) {
		told_raise(core, told_permit(key, permits_take_first(&set)), r);
	}
}

void told_record(struct core *core, uint64_t key, const struct record *r) {
	told_raise(core, key, r);
	if (terms_of_numbers(r->of)) {
		told_permits(core, key, r);
	}
}

/* Of two commits with the same token at most one was granted. */
static bool told_rival(const struct told *told, const struct record *r) {
	return r->token == told->any && told->lock && told->lock != id128_word(r->lock_id) &&
		(r->of == MODE_EXCLUSIVE || told->any == told->exclusive);
}

static __attribute__((noinline)) bool permits_late(const struct core *core, uint64_t key,
	const struct record *r) {
	struct permits set = record_set(r);
	bool newer = false;
	while (!newer && !permits_none(set)) {
		const uint64_t permit = told_permit(key, permits_take_first(&set));
		newer = r->token < told_of(core, permit).any;
	}
	return newer;
}

/* The tokens of those who share a key have no order. */
bool told_late(const struct core *core, uint64_t key, const struct record *r) {
	const struct told told = told_of(core, key);
	return r->token < (r->of == MODE_EXCLUSIVE ? told.any : told.exclusive) ||
		told_rival(&told, r) || (terms_of_numbers(r->of) && permits_late(core, key, r));
}

/* The lock may come by a repair, or its commit may be sent again, after it was told of. When it is
 * had at a second try it has a greater token. */
bool told_already(const struct core *core, const struct message *m) {
	for (uint32_t i = 0; i < COUNT_OF(core->changes.told_lately); i++) {
		if (core->changes.told_lately[i].lock == id128_word(m->lock_id) &&
			m->token <= core->changes.told_lately[i].token) {
			return true;
		}
	}
	const struct told *at = told_find(core, key_number_of(core, m->key));
	return at && at->any == m->token && at->lock == id128_word(m->lock_id);
}

void told_without(struct core *core, const struct record *r) {
	const uint32_t at = core->changes.told_lately_next++ % COUNT_OF(core->changes.told_lately);
	core->changes.told_lately[at] = (struct told_once){ id128_word(r->lock_id), r->token };
}
