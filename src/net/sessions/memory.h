/* memory.h: the memory that connections of clients take of a node, counted for the identity and for the address of each.
 *
 * A limit has three steps. At the limit whoever has reached it is refused more: requests, and large answers. Half of the reserve above it later
 * the connections that have most end, with the turn of the loop. An allocation fails where the reserve ends: small answers, refusals, and
 * requests that give something back or keep it, find room until then.
 */
#ifndef PAWL_NET_MEMORY_H
#define PAWL_NET_MEMORY_H

#include "alloc.h"
#include "shares.h"

enum memory_step { /* in parts of the reserve */
	MEMORY_LIMIT = 0,
	MEMORY_HIGH = 1,
	MEMORY_END = 2,
	MEMORY_ADMIN_END = 4 /* administrators have a reserve above that of the others */
};

/* What the limit comes to with that many parts of the reserve. */
uint64_t memory_above(uint64_t limit, enum memory_step step);

struct memory_pool { /* of all connections */
	const struct allocator *alloc; /* borrowed */
	struct alloc_counter *counter; /* borrowed; what `alloc` has given. NULL: the pool has no limit */
	uint64_t most;                 /* 0: no limit */
	/* Since the last turn the pool or a share has come to MEMORY_HIGH; the owner resets it. */
	bool high;
	void (*on_high)(void *ctx); /* called once when it is set */
	void *ctx;
	size_t accounts;
};

enum memory_claim { /* memory that no allocation through the account shows */
	MEMORY_WATCHES,
	MEMORY_BATCH,
	MEMORY_TLS, /* the pool's allocator does not count it either */
	MEMORY_CLAIMS
};

/* What one connection takes. */
struct memory_account {
	struct allocator alloc; /* counts here */
	struct memory_pool *pool;
	struct share_pair share; /* identity NULL: it is not known yet who it is */
	uint64_t used;           /* with the claims */
	size_t claims[MEMORY_CLAIMS];
	bool admin, closed;
};

struct memory_account *memory_open(struct memory_pool *pool); /* NULL: no memory */
/* What was allocated through it may be given back later: with the last of that the account is gone. Accepts NULL. */
void memory_close(struct memory_account *account);
/* From now on, and so far, it counts for these. */
void memory_join(struct memory_account *account, const struct share_pair *share);
/* Replaces what was claimed for the same before. Never refused. */
void memory_claim(struct memory_account *account, enum memory_claim what, size_t bytes);

static inline bool memory_pool_full(const struct memory_pool *pool, uint64_t count, enum memory_step step) {
	return pool->counter && pool->most && pool->counter->used + count > pool->most && pool->counter->used + count > memory_above(pool->most, step);
}
static inline bool memory_share_easy(const struct share *share, uint64_t bytes) {
	return !share || share->limits.most[SHARE_MEMORY] == 0 || share->used[SHARE_MEMORY] + bytes < share->limits.most[SHARE_MEMORY];
}

/* No limit is near: with so many bytes more each would not be reached. What every request asks first. */
static inline bool memory_easy(const struct memory_account *account, uint64_t bytes) {
	return memory_share_easy(account->share.identity, bytes) && memory_share_easy(account->share.address, bytes)
		&& !memory_pool_full(account->pool, bytes, MEMORY_LIMIT);
}
/* Whether the identity, or the address, has come to that step. */
bool memory_share_full(const struct memory_account *account, enum memory_step step);
/* How much more a large answer may take: up to the limits of the identity and the address; of the pool's reserve it may take the first part,
 * because those who fill the pool are others. */
uint64_t memory_room(const struct memory_account *account);
/* Where the reserve ends for it. */
enum memory_step memory_end(const struct memory_account *account);
/* How much more anything may take. */
uint64_t memory_rest(const struct memory_account *account);
/* How much more the share may take up to that step; UINT64_MAX: any number. */
uint64_t memory_share_room(const struct share *share, enum memory_step step);

#endif
