/* granted.c: granted leases: the deadlines of the locks that this node has answered. Trust in a
 * granted lease ends when either clock says so (Time), and for good (section 2, Extend). One that
 * has ended counts as absent, so no timer is needed: its memory comes back when a sweep meets
 * it. */
#include "coordinator.h"

/* Each new granted lease sweeps this many buckets. The table has about as many buckets as granted
 * leases, so at most half of its entries have ended. */
#define BUCKETS_A_GRANTED 1
/* Each beat sweeps at most this many buckets. */
#define BUCKETS_A_BEAT 1024

_Static_assert(sizeof(struct granted) <= 56, "one for each lease");

/* One lock_id may be used for two keys. The keyed hash of both stands for the key, which is not
 * kept. */
static uint64_t hash_both(const struct core *core, struct slice key, struct id128 lock_id) {
	return hash_lock_id(core, lock_id) ^ table_hash(core, key);
}

static struct granted *find(struct core *core, struct slice key, struct id128 lock_id) {
	for (struct map_node *n =
			map_first(&core->coordinator.granted_leases, hash_both(core, key, lock_id));
		n; n = map_next(n)) {
		struct granted *b = CONTAINER_OF(n, struct granted, node);
		if (id128_equal(b->lock_id, lock_id)) {
			return b;
		}
	}
	return NULL;
}

struct granted *granted_find(struct core *core, struct slice key, struct id128 lock_id) {
	struct granted *b = find(core, key, lock_id);
	return b && !instant_distrusted(core->now, b->deadline) ? b : NULL;
}

/* A caller on another connection may meanwhile have bound the lock to a connection of another node,
 * or to that node itself. The lock may have ended with it while this node had no link and heard
 * nothing (section 2, Extend). */
struct granted *granted_of(struct core *core, struct slice key, struct id128 lock_id,
	uint64_t asker) {
	struct granted *b = granted_find(core, key, lock_id);
	return b && asker && b->asker == (asker & GRANTED_ASKER) ? b : NULL;
}

static size_t granted_size(bool numbered) {
	return sizeof(struct granted) + (numbered ? sizeof(struct permits) : 0);
}

struct permits granted_numbers(const struct granted *b) {
	return b->numbered ? b->numbers[0] : (struct permits){ { 0, 0 } };
}

static void granted_free(struct core *core, struct granted *b) {
	map_remove(&core->coordinator.granted_leases, &b->node);
	core->coordinator.granted_count--;
	alloc_free(&core->alloc, b, granted_size(b->numbered));
}

/* While the table shrinks, granted leases move to other buckets. They are met there in the next
 * round. */
static void sweep(struct core *core, size_t buckets) {
	for (size_t i = 0; i < buckets && core->coordinator.granted_count > 0; i++) {
		core->coordinator.granted_bucket = core->coordinator.granted_bucket + 1 <
				core->coordinator.granted_leases.bucket_count
			? core->coordinator.granted_bucket + 1 : 0;
		for (struct map_node *n = map_bucket(&core->coordinator.granted_leases,
				core->coordinator.granted_bucket), *next;
			n; n = next) {
			struct granted *b = CONTAINER_OF(n, struct granted, node);
			next = map_next_in_bucket(n);
			if (instant_distrusted(core->now, b->deadline)) {
				granted_free(core, b);
			}
		}
	}
}

void granted_beat(struct core *core) {
	sweep(core, core->coordinator.granted_leases.bucket_count < BUCKETS_A_BEAT
		? core->coordinator.granted_leases.bucket_count : BUCKETS_A_BEAT);
}

/* Without memory the lease is not kept. Then this node only knows less than it might, and answers
 * `unsure` sooner. */
void granted_set(struct core *core, struct slice key, struct id128 lock_id, struct instant deadline,
	uint64_t asker, struct permits numbers) {
	const bool numbered = !permits_none(numbers);
	struct granted *b = find(core, key, lock_id);
	/* The same lock_id was used for another key as well. */
	if (b && !b->numbered && numbered) {
		granted_free(core, b);
		b = NULL;
	}
	if (b == NULL) {
		sweep(core, BUCKETS_A_GRANTED);
		b = core->coordinator.granted_count < core->limits.keys
			? alloc_new(&core->alloc, granted_size(numbered)) : NULL;
		if (b == NULL) {
			COUNT(core, no_memory);
			return;
		}
		b->lock_id = lock_id;
		b->numbered = numbered;
		map_insert(&core->coordinator.granted_leases, &b->node,
			hash_both(core, key, lock_id));
		core->coordinator.granted_count++;
	}
	b->deadline = deadline;
	b->asker = asker & GRANTED_ASKER;
	if (b->numbered) {
		b->numbers[0] = numbers;
	}
}

void granted_drop(struct core *core, struct slice key, struct id128 lock_id) {
	struct granted *b = find(core, key, lock_id);
	if (b) {
		granted_free(core, b);
	}
}

static void granted_drained(void *core, struct map_node *node) {
	granted_free(core, CONTAINER_OF(node, struct granted, node));
}

void granted_done(struct core *core) {
	map_drain(&core->coordinator.granted_leases, granted_drained, core);
}
