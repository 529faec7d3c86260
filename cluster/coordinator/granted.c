/* granted.c: granted leases: the deadlines of the locks that this node has answered. Trust in a
 * granted lease ends when either clock says so (Time), and for good (section 2, Extend). One that
 * has ended counts as absent, so no timer is needed: a sweep drops it when it meets it. */
#include "coordinator.h"

/* Each new granted lease sweeps so many others, so at most half of them have ended. */
#define SWEPT_A_GRANTED 2
/* Each beat sweeps at most so many. */
#define SWEPT_A_BEAT 1024

/* ---- what is packed ---- */

static uint64_t units_of(int64_t clock) {
	return clock > 0 ? (uint64_t)clock >> GRANTED_UNIT_BITS : 0;
}

static int64_t clock_of(uint16_t high, uint32_t low) {
	return (int64_t)(((uint64_t)high << 32 | low) << GRANTED_UNIT_BITS);
}

struct instant granted_deadline(const struct granted *b) {
	return (struct instant){ clock_of(b->boot_high, b->boot_low),
		clock_of(b->raw_high, b->raw_low) };
}

static void put_deadline(struct granted *b, struct instant deadline) {
	const uint64_t boot = units_of(deadline.boot), raw = units_of(deadline.raw);
	b->boot_high = (uint16_t)(boot >> 32);
	b->boot_low = (uint32_t)boot;
	b->raw_high = (uint16_t)(raw >> 32);
	b->raw_low = (uint32_t)raw;
}

static uint64_t second_word(struct id128 lock_id) {
	uint64_t w;
	memcpy(&w, lock_id.b + sizeof w, sizeof w);
	return w;
}

/* ---- finding ---- */

/* One lock_id may be used for two keys. The keyed hash of both stands for the key, which is not
 * kept, and for the first word of the lock_id. */
static uint64_t hash_both(const struct core *core, uint64_t key_hash, struct id128 lock_id) {
	return hash_lock_id(core, lock_id) ^ key_hash;
}

static struct granted *find(const struct core *core, uint64_t hash, struct id128 lock_id) {
	const uint64_t lock = second_word(lock_id);
	const struct flat *all = &core->coordinator.granted_leases;
	for (struct flat_entry *e = flat_first(all, hash); e; e = flat_next(all, e)) {
		struct granted *b = CONTAINER_OF(e, struct granted, entry);
		if (b->lock == lock) {
			return b;
		}
	}
	return NULL;
}

struct granted *granted_find(struct core *core, uint64_t key_hash, struct id128 lock_id) {
	struct granted *b = find(core, hash_both(core, key_hash, lock_id), lock_id);
	return b && !instant_distrusted(core->now, granted_deadline(b)) ? b : NULL;
}

/* A caller on another connection may meanwhile have bound the lock to a connection of another node,
 * or to that node itself. The lock may have ended with it while this node had no link and heard
 * nothing (section 2, Extend). */
struct granted *granted_of(struct core *core, uint64_t key_hash, struct id128 lock_id,
	uint64_t asker) {
	struct granted *b = granted_find(core, key_hash, lock_id);
	return b && asker && b->asker == (asker & GRANTED_ASKER) ? b : NULL;
}

/* ---- permit numbers ---- */

static struct granted_numbers *find_numbers(const struct core *core, const struct granted *b) {
	const struct flat *all = &core->coordinator.granted_numbers;
	for (struct flat_entry *e = b->numbered ? flat_first(all, b->entry.hash) : NULL; e;
		e = flat_next(all, e)) {
		struct granted_numbers *n = CONTAINER_OF(e, struct granted_numbers, entry);
		if (n->lock == b->lock) {
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
	if (n == NULL && permits_none(numbers)) {
		return true;
	}
	if (n == NULL) {
		struct flat_entry *e =
			flat_add(&core->coordinator.granted_numbers, b->entry.hash);
		if (e == NULL) {
			return false;
		}
		n = CONTAINER_OF(e, struct granted_numbers, entry);
		n->lock = b->lock;
		b->numbered = true;
	}
	n->words[0] = numbers.w[0];
	n->words[1] = numbers.w[1];
	return true;
}

/* ---- keeping and dropping ---- */

static void drop(struct core *core, struct granted *b) {
	struct granted_numbers *n = find_numbers(core, b);
	if (n) {
		flat_remove(&core->coordinator.granted_numbers, &n->entry);
	}
	flat_remove(&core->coordinator.granted_leases, &b->entry);
}

/* Where one is dropped, another one takes its place, and is looked at next. */
static void sweep(struct core *core, uint32_t most) {
	struct flat *all = &core->coordinator.granted_leases;
	for (uint32_t i = 0; i < most && all->count > 0; i++) {
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

void granted_beat(struct core *core) {
	const uint32_t count = core->coordinator.granted_leases.count;
	sweep(core, count < SWEPT_A_BEAT ? count : SWEPT_A_BEAT);
}

static struct granted *add(struct core *core, uint64_t hash, struct id128 lock_id) {
	sweep(core, SWEPT_A_GRANTED);
	struct flat_entry *e = core->coordinator.granted_leases.count < core->limits.keys
		? flat_add(&core->coordinator.granted_leases, hash) : NULL;
	struct granted *b = e ? CONTAINER_OF(e, struct granted, entry) : NULL;
	if (b) {
		b->lock = second_word(lock_id);
	}
	return b;
}

/* Without memory the lease is not kept. Then this node only knows less than it might, and answers
 * `unsure` sooner. */
static void put(struct core *core, struct granted *b, struct instant deadline, uint64_t asker,
	struct permits numbers) {
	if (b && !put_numbers(core, b, numbers)) {
		drop(core, b);
		b = NULL;
	}
	if (b == NULL) {
		COUNT(core, no_memory);
		return;
	}
	put_deadline(b, deadline);
	b->asker = asker & GRANTED_ASKER;
}

void granted_set(struct core *core, uint64_t key_hash, struct id128 lock_id,
	struct instant deadline, uint64_t asker, struct permits numbers) {
	const uint64_t hash = hash_both(core, key_hash, lock_id);
	struct granted *b = find(core, hash, lock_id);
	put(core, b ? b : add(core, hash, lock_id), deadline, asker, numbers);
}

void granted_renew(struct core *core, uint64_t key_hash, struct id128 lock_id,
	struct instant deadline, uint64_t asker, struct permits numbers) {
	struct granted *b = granted_find(core, key_hash, lock_id);
	if (b) {
		put(core, b, deadline, asker, numbers);
	}
}

void granted_drop(struct core *core, uint64_t key_hash, struct id128 lock_id) {
	struct granted *b = find(core, hash_both(core, key_hash, lock_id), lock_id);
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
