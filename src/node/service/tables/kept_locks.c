/* kept_locks.c: the locks that the node itself extends. */
#include "kept_locks.h"

#include "list.h"
#include "pawl/error.h"

/* How many times a lock is extended during one lease. So some may fail before it ends. */
#define EXTENSIONS_A_LEASE 6
/* The holder is told of the loss this part of its lease before somebody else may have the lock. */
#define TOLD_BEFORE_PART 12

int kept_locks_init(struct kept_locks *k, const struct allocator *alloc) {
	k->alloc = alloc;
	k->due = NULL;
	return map_init(&k->by_lock, alloc);
}

/* Two locks may be due at the same moment. */
static bool kept_locks_before(const void *ctx, const struct tree_node *a,
	const struct tree_node *b) {
	const struct kept_lock *x = CONTAINER_OF(a, const struct kept_lock, due_node);
	const struct kept_lock *y = CONTAINER_OF(b, const struct kept_lock, due_node);
	(void)ctx;
	return x->due.boot != y->due.boot ? x->due.boot < y->due.boot
		: id128_compare(x->lock_id, y->lock_id) < 0;
}

static void kept_locks_free(struct kept_locks *k, struct kept_lock *take_kept) {
	map_remove(&k->by_lock, &take_kept->by_lock);
	tree_remove(&k->due, &take_kept->due_node, kept_locks_before, NULL);
	alloc_free(k->alloc, take_kept, take_kept->bytes);
}

static void kept_locks_remove(void *ctx, struct map_node *node) {
	kept_locks_free(ctx, CONTAINER_OF(node, struct kept_lock, by_lock));
}

void kept_locks_done(struct kept_locks *k) {
	map_drain(&k->by_lock, kept_locks_remove, k);
	map_done(&k->by_lock);
	*k = (struct kept_locks){ 0 };
}

/* The node itself has drawn the lock_ids, so they need no secret key. */
static uint64_t kept_locks_hash(struct id128 lock_id) {
	uint64_t hash;
	memcpy(&hash, lock_id.b, sizeof hash);
	return hash;
}

static uint8_t *kept_copy(uint8_t *at, struct slice from, struct slice *out) {
	*out = slice_of(at, from.size);
	return slice_put(at, from);
}

int kept_locks_add(struct kept_locks *k, struct slice key, struct id128 lock_id,
	const struct kept_holder *holder, struct kept_lease lease, uint32_t most) {
	const struct slice gids = slice_of(holder->gids,
		holder->gid_count * sizeof holder->gids[0]);
	const size_t bytes = sizeof(struct kept_lock) + gids.size + holder->identity.size
		+ holder->owner.size + key.size;
	if (k->by_lock.count >= most) {
		return PAWL_EFULL;
	}
	struct kept_lock *kept = alloc_new(k->alloc, bytes);
	if (!kept) {
		return PAWL_ENOMEM;
	}
	kept->lock_id = lock_id;
	kept->bytes = bytes;
	kept->holder = *holder;
	kept->holder.gids = (const uint32_t *)(kept + 1);
	uint8_t *at = slice_put((uint8_t *)(kept + 1), gids);
	at = kept_copy(at, holder->identity, &kept->holder.identity);
	at = kept_copy(at, holder->owner, &kept->holder.owner);
	(void)kept_copy(at, key, &kept->key);
	map_insert(&k->by_lock, &kept->by_lock, kept_locks_hash(lock_id));
	kept->lease = lease;
	kept->due = kept->asked = (struct instant){ 0, 0 };
	kept->request = 0;
	tree_insert(&k->due, &kept->due_node, kept_locks_before, NULL);
	return 0;
}

uint32_t kept_locks_count(const struct kept_locks *k) {
	return (uint32_t)k->by_lock.count;
}

struct kept_lock *kept_locks_find(const struct kept_locks *k, struct id128 lock_id) {
	struct map_node *node = k->by_lock.count
		? map_first(&k->by_lock, kept_locks_hash(lock_id)) : NULL;
	for (; node; node = map_next(node)) {
		struct kept_lock *kept = CONTAINER_OF(node, struct kept_lock, by_lock);
		if (id128_equal(kept->lock_id, lock_id)) {
			return kept;
		}
	}
	return NULL;
}

void kept_locks_drop(struct kept_locks *k, struct id128 lock_id) {
	struct kept_lock *kept = kept_locks_find(k, lock_id);
	if (kept) {
		kept_locks_free(k, kept);
	}
}

struct kept_lock *kept_locks_next(const struct kept_locks *k) {
	struct tree_node *first = tree_first(k->due);
	return first ? CONTAINER_OF(first, struct kept_lock, due_node) : NULL;
}

static struct instant kept_lock_told(const struct kept_lock *kept) {
	return instant_add(kept->lease.until, -(kept->lease.length / TOLD_BEFORE_PART));
}

void kept_locks_again(struct kept_locks *k, struct kept_lock *kept, struct instant now,
	span_ns max_lease) {
	const struct instant told = kept_lock_told(kept);
	const span_ns lease = kept->lease.length < max_lease ? kept->lease.length : max_lease;
	const struct instant extend = instant_add(now, lease / EXTENSIONS_A_LEASE);
	tree_remove(&k->due, &kept->due_node, kept_locks_before, NULL);
	kept->due = instant_left_short(now, told) < instant_left_short(now, extend) ? told : extend;
	tree_insert(&k->due, &kept->due_node, kept_locks_before, NULL);
}

void kept_lock_asked(struct kept_lock *kept, uint64_t request, struct instant now) {
	kept->request = request;
	kept->asked = now;
}

void kept_lock_extended(struct kept_lock *kept, uint64_t request, span_ns valid) {
	/* An earlier request was sent before `asked`, so its lease says nothing from there on. */
	if (kept->request == request) {
		kept->lease.until = instant_later(kept->lease.until,
			instant_add(kept->asked, valid));
		kept->lease.length = valid;
	}
}

bool kept_lock_over(const struct kept_lock *kept, struct instant now) {
	return instant_distrusted(now, kept_lock_told(kept));
}
