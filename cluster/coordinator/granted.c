/* granted.c: granted leases: the deadlines of the locks that this node has answered. Trust in a
 * granted lease ends when either clock says so (Time), and for good (section 2, Extend). One that
 * has ended counts as absent, so no timer is needed: a sweep drops it when it meets it. */
#include "coordinator.h"

/* Each new granted lease sweeps so many others, so at most half of them have ended. */
#define SWEPT_A_GRANTED 2

/* ---- what is packed ---- */

#define TIME_MAX ((UINT64_C(1) << GRANTED_TIME_BITS) - 1)
#define ASKER_LOW_BITS 19

static uint64_t units_of(int64_t clock) {
	const uint64_t units = clock > 0 ? (uint64_t)clock >> GRANTED_UNIT_BITS : 0;
	return units < TIME_MAX ? units : TIME_MAX;
}

struct instant granted_deadline(const struct granted *b) {
	return (struct instant){ (int64_t)((uint64_t)b->boot << GRANTED_UNIT_BITS),
		(int64_t)((uint64_t)b->raw << GRANTED_UNIT_BITS) };
}

/* Connections have numbers that count up, and names of requests are random. So no two connections
 * are alike, and what is cut of a name goes into the rest. */
static uint64_t asker_cut(uint64_t asker) {
	return (asker ^ asker >> GRANTED_ASKER_BITS) & ((UINT64_C(1) << GRANTED_ASKER_BITS) - 1);
}

uint64_t granted_answered(const struct granted *b) {
	return (uint64_t)b->asker_high << ASKER_LOW_BITS | b->asker_low;
}

void granted_put_asker(struct granted *b, uint64_t asker) {
	const uint64_t cut = asker_cut(asker);
	b->asker_low = cut & 0x7ffff;
	b->asker_high = cut >> ASKER_LOW_BITS & 0x3ffff;
}

/* ---- finding ---- */

/* One lock_id may be used for two keys. Keyed hashes of 96 bits, which nobody can aim at, stand for
 * both, so that neither is kept. */
struct both {
	uint64_t hash;
	uint32_t check;
};

static struct both hash_both(const struct core *core, uint64_t key_hash, struct id128 lock_id) {
	uint64_t w[2];
	memcpy(w, lock_id.b, sizeof w);
	return (struct both){ hash_lock_id(core, lock_id) ^ key_hash,
		(uint32_t)(hash_fold(w[0] + core->hash_key.k1, w[1] - core->hash_key.k0) >> 32) };
}

static struct granted *find(const struct core *core, struct both both) {
	const struct flat *all = &core->coordinator.granted_leases;
	for (struct flat_entry *e = flat_first(all, both.hash); e; e = flat_next(all, e)) {
		struct granted *b = CONTAINER_OF(e, struct granted, entry);
		if (b->check == both.check) {
			return b;
		}
	}
	return NULL;
}

struct granted *granted_find(struct core *core, uint64_t key_hash, struct id128 lock_id) {
	struct granted *b = find(core, hash_both(core, key_hash, lock_id));
	return b && !instant_distrusted(core->now, granted_deadline(b)) ? b : NULL;
}

/* A caller on another connection may meanwhile have bound the lock to a connection of another node,
 * or to that node itself. The lock may have ended with it while this node had no link and heard
 * nothing (section 2, Extend). */
struct granted *granted_of(struct core *core, uint64_t key_hash, struct id128 lock_id,
	uint64_t asker) {
	struct granted *b = granted_find(core, key_hash, lock_id);
	const uint64_t cut = asker_cut(asker);
	return b && cut && granted_answered(b) == cut ? b : NULL;
}

/* ---- permit numbers ---- */

static struct granted_numbers *find_numbers(const struct core *core, const struct granted *b) {
	const struct flat *all = &core->coordinator.granted_numbers;
	for (struct flat_entry *e = b->numbered ? flat_first(all, b->entry.hash) : NULL; e;
		e = flat_next(all, e)) {
		struct granted_numbers *n = CONTAINER_OF(e, struct granted_numbers, entry);
		if (n->check == b->check) {
			return n;
		}
	}
	return NULL;
}

struct permits granted_numbers(const struct core *core, const struct granted *b) {
	const struct granted_numbers *n = find_numbers(core, b);
	return n ? (struct permits){ { n->words[0], n->words[1] } }
		: (struct permits){ { 0, 0 } };
}

/* False: there is no memory. */
static bool put_numbers(struct core *core, struct granted *b, struct permits numbers) {
	struct granted_numbers *n = find_numbers(core, b);
	if (n == NULL) {
		struct flat_entry *e =
			flat_add(&core->coordinator.granted_numbers, b->entry.hash);
		if (e == NULL) {
			return false;
		}
		n = CONTAINER_OF(e, struct granted_numbers, entry);
		n->check = b->check;
		b->numbered = true;
	}
	n->words[0] = numbers.w[0];
	n->words[1] = numbers.w[1];
	return true;
}

/* ---- keeping and dropping ---- */

static void drop(struct core *core, struct granted *b) {
	if (b->numbered) {
		flat_remove(&core->coordinator.granted_numbers, &find_numbers(core, b)->entry);
	}
	flat_remove(&core->coordinator.granted_leases, &b->entry);
}

/* Where one is dropped, another one takes its place, and is looked at next. */
void granted_sweep(struct core *core, uint32_t most) {
	struct flat *all = &core->coordinator.granted_leases;
	const uint32_t looks = most < all->count ? most : all->count;
	for (uint32_t i = 0; i < looks && all->count > 0; i++) {
		if (core->coordinator.granted_next >= all->count) {
			core->coordinator.granted_next = 0;
		}
		struct granted *b = CONTAINER_OF(flat_at(all, core->coordinator.granted_next),
			struct granted, entry);
		if (instant_distrusted(core->now, granted_deadline(b))) {
			drop(core, b);
		} else {
			core->coordinator.granted_next++;
		}
	}
}

/* Without memory the lease is not kept. Then this node only knows less than it might, and answers
 * `unsure` sooner. */
static void put(struct core *core, struct granted *b, struct instant deadline, uint64_t asker,
	struct permits numbers) {
	const bool numbered = b && (b->numbered || !permits_none(numbers));
	if (numbered && !put_numbers(core, b, numbers)) {
		drop(core, b);
		b = NULL;
	}
	if (b == NULL) {
		COUNT(core, no_memory);
		return;
	}
	b->boot = units_of(deadline.boot) & TIME_MAX;
	b->raw = units_of(deadline.raw) & TIME_MAX;
	granted_put_asker(b, asker);
}

void granted_set(struct core *core, uint64_t key_hash, struct id128 lock_id,
	struct instant deadline, uint64_t asker, struct permits numbers) {
	struct flat *all = &core->coordinator.granted_leases;
	const struct both both = hash_both(core, key_hash, lock_id);
	struct granted *b = find(core, both);
	if (b == NULL) {
		granted_sweep(core, SWEPT_A_GRANTED);
		struct flat_entry *e = all->count < core->limits.keys
			? flat_add(all, both.hash) : NULL;
		b = e ? CONTAINER_OF(e, struct granted, entry) : NULL;
	}
	if (b) {
		b->check = both.check;
	}
	put(core, b, deadline, asker, numbers);
}

void granted_renew(struct core *core, uint64_t key_hash, struct id128 lock_id,
	struct instant deadline, uint64_t asker, struct permits numbers) {
	struct granted *b = granted_find(core, key_hash, lock_id);
	if (b) {
		put(core, b, deadline, asker, numbers);
	}
}

void granted_shorten(struct core *core, uint64_t key_hash, struct id128 lock_id,
	struct instant deadline) {
	struct granted *b = granted_find(core, key_hash, lock_id);
	if (b) {
		const uint64_t boot = units_of(deadline.boot), raw = units_of(deadline.raw);
		b->boot = (boot < b->boot ? boot : b->boot) & TIME_MAX;
		b->raw = (raw < b->raw ? raw : b->raw) & TIME_MAX;
	}
}

void granted_drop(struct core *core, uint64_t key_hash, struct id128 lock_id) {
	struct granted *b = find(core, hash_both(core, key_hash, lock_id));
	if (b) {
		drop(core, b);
	}
}

void granted_init(struct core *core) {
	flat_init(&core->coordinator.granted_leases, &core->alloc, sizeof(struct granted));
	flat_init(&core->coordinator.granted_numbers, &core->alloc, sizeof(struct granted_numbers));
}

void granted_done(struct core *core) {
	flat_done(&core->coordinator.granted_leases);
	flat_done(&core->coordinator.granted_numbers);
}
