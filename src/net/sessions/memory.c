/* memory.c: counts the memory of connections, and says how much more each of them may take. */
#include "memory.h"

#include "check.h"

/* A part of the reserve is this fraction of the limit. */
#define PARTS 32
/* A part of the reserve has at least this many bytes, so that it has room for refusals. */
#define PART_LEAST ((uint64_t)32 << 10)

uint64_t memory_above(uint64_t limit, enum memory_step step) {
	uint64_t part = limit / PARTS;
	return limit + (uint64_t)step * (part > PART_LEAST ? part : PART_LEAST);
}

/* ---- whether there is room ---- */

uint64_t memory_share_room(const struct share *share, enum memory_step step) {
	uint64_t most = share ? share->limits.max[SHARE_MEMORY] : 0;
	uint64_t end = memory_above(most, step);
	return !most ? UINT64_MAX : end > share->used[SHARE_MEMORY]
		? end - share->used[SHARE_MEMORY] : 0;
}

static uint64_t pool_room(const struct memory_pool *pool, enum memory_step step) {
	uint64_t end = memory_above(pool->limit, step);
	return !pool->limit || !pool->counter ? UINT64_MAX : end > pool->counter->used
		? end - pool->counter->used : 0;
}

bool memory_pool_full(const struct memory_pool *pool, uint64_t count, enum memory_step step) {
	return pool->counter && pool->limit
		&& pool->counter->used + count > memory_above(pool->limit, step);
}

static uint64_t account_room(const struct memory_account *account, enum memory_step share_step,
	enum memory_step pool_step) {
	uint64_t room = pool_room(account->pool, pool_step);
	uint64_t identity = memory_share_room(account->share.identity, share_step),
		address = memory_share_room(account->share.address, share_step);
	room = identity < room ? identity : room;
	return address < room ? address : room;
}

bool memory_share_full(const struct memory_account *account, enum memory_step step) {
	return memory_share_room(account->share.identity, step) == 0
		|| memory_share_room(account->share.address, step) == 0;
}

uint64_t memory_room(const struct memory_account *account) {
	return account_room(account, MEMORY_LIMIT, MEMORY_HIGH);
}

enum memory_step memory_end(const struct memory_account *account) {
	return account->admin ? MEMORY_ADMIN_END : MEMORY_END;
}

uint64_t memory_rest(const struct memory_account *account) {
	enum memory_step end = memory_end(account);
	return account_room(account, end, end);
}

/* ---- counting ---- */

static void account_note_high(const struct memory_account *account) {
	struct memory_pool *pool = account->pool;
	if (!pool->high && account_room(account, MEMORY_HIGH, MEMORY_HIGH) == 0) {
		pool->high = true;
		pool->on_high(pool->ctx);
	}
}

/* `easy`: no limit is near (memory_easy). */
static void account_grow(struct memory_account *account, uint64_t bytes, bool easy) {
	account->used += bytes;
	if (account->share.identity) {
		shares_take(&account->share, SHARE_MEMORY, bytes);
	}
	if (!easy) {
		account_note_high(account);
	}
}

static void account_shrink(struct memory_account *account, uint64_t bytes) {
	CHECK(account->used >= bytes);
	account->used -= bytes;
	if (account->share.identity) {
		shares_give(&account->share, SHARE_MEMORY, bytes);
	}
}

static void account_end(struct memory_account *account) {
	struct memory_pool *pool = account->pool;
	pool->accounts--;
	alloc_free(pool->alloc, account, sizeof *account);
}

static void *account_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct memory_account *account = ctx;
	const struct allocator *alloc = account->pool->alloc;
	if (new_size > old_size) {
		const size_t more = new_size - old_size;
		const bool easy = memory_easy(account, more);
		void *grown = easy || more <= memory_rest(account)
			? alloc->resize(alloc->ctx, p, old_size, new_size) : NULL;
		if (grown) {
			account_grow(account, more, easy);
		}
		return grown;
	}
	void *rest = alloc->resize(alloc->ctx, p, old_size, new_size);
	if (rest || new_size == 0) {
		account_shrink(account, old_size - new_size);
	}
	if (account->closed && account->used == 0) {
		account_end(account);
	}
	return rest;
}

void memory_claim(struct memory_account *account, enum memory_claim what, size_t bytes) {
	size_t before = account->claims[what];
	struct alloc_counter *counter = what == MEMORY_TLS ? account->pool->counter : NULL;
	account->claims[what] = bytes;
	if (counter) {
		counter->used = counter->used - before + bytes;
	}
	if (bytes > before) {
		account_grow(account, bytes - before, false);
	} else if (bytes < before) {
		account_shrink(account, before - bytes);
	}
}

/* ---- life ---- */

struct memory_account *memory_open(struct memory_pool *pool) {
	struct memory_account *account = alloc_new(pool->alloc, sizeof *account);
	if (account) {
		account->pool = pool;
		account->alloc = (struct allocator){ .resize = account_resize, .ctx = account };
		pool->accounts++;
	}
	return account;
}

void memory_close(struct memory_account *account) {
	if (!account) {
		return;
	}
	for (unsigned what = 0; what < MEMORY_CLAIMS; what++) {
		memory_claim(account, (enum memory_claim)what, 0);
	}
	account->closed = true;
	if (account->used == 0) {
		account_end(account);
	}
}

void memory_join(struct memory_account *account, const struct share_pair *share) {
	CHECK(!account->share.identity);
	account->share = *share;
	shares_take(share, SHARE_MEMORY, account->used);
	account_note_high(account);
}
