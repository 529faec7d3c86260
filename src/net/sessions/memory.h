/* memory.h: the memory that the connections of clients take of a node, counted for the identity and
 * for the address of each.
 *
 * A limit has three steps. At the limit itself, whoever has reached it is refused more: requests,
 * and large answers. At half of the reserve above the limit, the connections that have most are
 * ended, with the turn of the loop. At the end of the reserve, allocations fail. Small answers,
 * refusals, and requests that give something back or keep a lock find room until then.
 */
#ifndef PAWL_NET_MEMORY_H
#define PAWL_NET_MEMORY_H

#include "alloc.h"
#include "shares.h"

/* The steps, in parts of the reserve. */
enum memory_step {
	MEMORY_LIMIT = 0,
	MEMORY_HIGH = 1,
	MEMORY_END = 2,
	/* Administrators have a reserve above that of the others. */
	MEMORY_ADMIN_END = 4
};

/* Returns the limit plus that many parts of the reserve. */
uint64_t memory_above(uint64_t limit, enum memory_step step);

/* The memory of all connections. */
struct memory_pool {
	/* Borrowed. */
	const struct allocator *alloc;
	/* Borrowed. It counts what `alloc` has given. NULL means that the pool has no limit. */
	struct alloc_counter *counter;
	/* The limit in bytes; 0 means no limit. */
	uint64_t limit;
	/* Since the last turn, the pool or a share has come to MEMORY_HIGH. The owner resets it. */
	bool high;
	/* Called once when `high` is set. */
	void (*on_high)(void *ctx);
	void *ctx;
	/* The number of accounts that are not gone yet. */
	size_t accounts;
};

/* Memory of a connection that is not allocated through its account. */
enum memory_claim {
	MEMORY_WATCHES,
	MEMORY_BATCH,
	/* The pool's allocator does not count this memory either. */
	MEMORY_TLS,
	MEMORY_CLAIMS
};

/* What one connection takes. */
struct memory_account {
	/* Allocations through this allocator are counted for the account. */
	struct allocator alloc;
	struct memory_pool *pool;

	/* The identity is NULL while it is not known yet who is at the other end. */
	struct share_pair share;

	/* How many bytes the connection takes, including the claims. */
	uint64_t used;
	/* The bytes of each claim. */
	size_t claims[MEMORY_CLAIMS];

	/* `admin`: the client is an administrator. `closed`: memory_close was called, and the
	 * account goes with its last allocation. */
	bool admin, closed;
};

/* Returns NULL if there is no memory. */
struct memory_account *memory_open(struct memory_pool *pool);
/* Closes the account. Memory that was allocated through it may be given back later; the account is
 * gone with the last of it. Accepts NULL. */
void memory_close(struct memory_account *account);
/* From now on, and with what it already takes, the account counts for these shares. */
void memory_join(struct memory_account *account, const struct share_pair *share);
/* Claims memory; this replaces what was claimed before for the same purpose. It is never
 * refused. */
void memory_claim(struct memory_account *account, enum memory_claim what, size_t bytes);

/* Returns whether `count` bytes more would bring the pool above that step of its limit. */
bool memory_pool_full(const struct memory_pool *pool, uint64_t count, enum memory_step step);
/* Returns whether no limit is near: even with that many bytes more, none would be reached. Every
 * request asks this first. */
static inline bool memory_easy(const struct memory_account *account, uint64_t bytes) {
	const struct share *const both[] = { account->share.identity, account->share.address };
	for (int i = 0; i < 2 && both[i]; i++) {
		const uint64_t most = both[i]->limits.max[SHARE_MEMORY];
		if (most && both[i]->used[SHARE_MEMORY] + bytes >= most) {
			return false;
		}
	}
	const struct memory_pool *pool = account->pool;
	return !pool->counter || !pool->limit || pool->counter->used + bytes <= pool->limit;
}

/* Returns whether the identity or the address has come to that step. */
bool memory_share_full(const struct memory_account *account, enum memory_step step);

/* Returns how many bytes more a large answer may take. That is up to the limits of the identity and
 * of the address, but of the pool it may also take the first part of the reserve, because others
 * fill the pool. */
uint64_t memory_room(const struct memory_account *account);

/* Returns where the reserve ends for this account. */
enum memory_step memory_end(const struct memory_account *account);

/* Returns how many bytes more anything may take. */
uint64_t memory_rest(const struct memory_account *account);

/* Returns how many bytes more the share may take up to that step; UINT64_MAX if it has no limit. */
uint64_t memory_share_room(const struct share *share, enum memory_step step);

#endif
