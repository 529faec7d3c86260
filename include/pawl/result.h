/* result.h: what comes out of a request (request.h). pawl.h includes it.
 */
#ifndef PAWL_RESULT_H
#define PAWL_RESULT_H

#include "request.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the answer as a tree ---- */

/* The kinds of values in the tree of an answer. The tree holds everything that a node said, also
 * the fields that have no place in struct pawl_result (of a status, or the details of an error). */
enum pawl_kind {
	PAWL_NIL,
	PAWL_BOOL,
	PAWL_INT,
	PAWL_REAL,
	PAWL_TEXT,
	PAWL_BYTES,
	PAWL_ARRAY,
	PAWL_MAP
};

struct pawl_value {
	/* What the value is; it says which of the fields below count. */
	enum pawl_kind kind;
	/* PAWL_BOOL. */
	bool boolean;
	/* PAWL_INT: the number does not fit int64_t; read `integer` as uint64_t. */
	bool above;
	/* PAWL_INT. */
	int64_t integer;
	/* PAWL_REAL. */
	double real;
	/* PAWL_TEXT, PAWL_BYTES. */
	struct pawl_bytes bytes;
	/* PAWL_ARRAY: `count` items. PAWL_MAP: 2 * count items, each key before its value. */
	const struct pawl_value *items;
	size_t count;
};

/* Returns the value under `key` in a map, borrowed from it. Returns NULL if the map has no such
 * key, and if `map` is NULL or not a map. */
const struct pawl_value *pawl_value_get(const struct pawl_value *map, const char *key);

/* ---- parts of a result ---- */

/* A key and one of its holders, as reads show them. */
struct pawl_entry {
	/* Somebody holds the key. */
	bool held;
	/* After a recovery several may hold the key. Nobody else gets it until one of them is
	 * left. */
	bool contested;
	/* Only lists and watches set this. */
	struct pawl_bytes key;
	struct pawl_bytes owner, value;
	/* Names the write of the value. It is opaque; pass it as expect_seq. */
	struct pawl_bytes value_seq;
	uint64_t token;
	/* How long the lease still runs at most as the node sees it, in ms, rounded up: until the
	 * latest end that it knows of. So it is no time that a holder may count on. */
	int64_t remaining_ms;
	/* All zeroes unless this client may see the lock_id. */
	struct pawl_id lock_id;
	/* The mode of the lock. */
	enum pawl_mode mode;
	/* PAWL_PERMITS: how many permits the holder has, and how many the semaphore has in all. */
	uint32_t permits, of;
	/* PAWL_PERMITS: the permit numbers, from 0; `permits` of them. NULL means that the node did
	 * not say. */
	const uint32_t *slots;
	/* How long ago the key was acquired at least, in ms; -1 means that the node did not say. */
	int64_t held_ms;
	/* The lock delay that the holder asked for, in ms: at most so long the key stays closed. */
	int64_t lock_delay_ms;
	/* The process id of the holder; 0 means that it did not say. */
	int64_t pid;
	/* What the holder says about itself; "" if it said nothing. */
	const char *label, *host;
	/* The name in the holder's certificate; "" if it has none. */
	const char *identity;
	/* The lease is over and its lock delay still runs: nobody holds the key (held is false),
	 * and nobody gets it yet. */
	bool closing;
	/* How long the key stays closed at most, in ms. */
	int64_t closing_ms;
	/* How many hold the key; at least 1 if it is held. */
	uint32_t holders;
};

/* The outcome of one of several extensions. */
struct pawl_extended {
	/* 0 or a PAWL_E... value. */
	int error;
	/* How many masters extended the lease. */
	uint32_t acks;
	/* The token, and the permit numbers that were extended (bit n % 64 of slots[n / 64]): from
	 * now on the holder has these permits and no others. */
	uint64_t token, slots[2];
	/* How long the lock may be trusted at least, in ms from the moment of sending. */
	int64_t valid_ms;
};

/* A waiter in the queue of a key. */
struct pawl_waiter {
	/* Who waits. */
	struct pawl_bytes owner;
	/* How long it has waited at least, in ms. */
	int64_t since_ms;
	/* The name of the node that serves the waiter. */
	const char *node;
	/* All zeroes unless this client may see the lock_id. */
	struct pawl_id lock_id;
	/* Only a request with `prefix` sets this. */
	struct pawl_bytes key;
	/* The mode that it wants. */
	enum pawl_mode mode;
	/* PAWL_PERMITS: how many permits it wants, and how many the semaphore has in all. */
	uint32_t permits, of;
	/* Its priority: greater ones are served first. */
	int32_t priority;
	/* The process id; 0 means that the waiter did not say. */
	int64_t pid;
	/* "" where the waiter did not say; identity is the name in its certificate. */
	const char *label, *host, *identity;
};

/* One of several keys that were acquired together. */
struct pawl_got {
	/* The key. */
	struct pawl_bytes key;
	/* The lock_id of its lock. */
	struct pawl_id lock_id;
	/* The fencing token of its lock. */
	uint64_t token;
	/* The mode of its lock. */
	enum pawl_mode mode;
	/* The permit numbers of a semaphore. */
	const uint32_t *slots;
	size_t slot_count;
};

/* ---- the result ---- */

/* The outcome of a request. Whoever receives it owns it until pawl_result_free; it does not depend
 * on the client. All that it points to lives as long as the result. Fields that a method does not
 * set are zero; strings are never NULL. */
struct pawl_result {
	/* What was asked for. */
	enum pawl_method method;
	/* 0 or a PAWL_E... value. */
	int error;
	/* A sentence for people; "" on success. */
	const char *message;
	/* The endpoint that answered; "" if none did. */
	const char *endpoint;
	/* PAWL_EBADREQUEST, PAWL_ETOOLARGE, PAWL_EFULL, PAWL_EQUOTA: the name of the parameter or
	 * limit; otherwise "". */
	const char *field;

	/* The lock_id that the request had, or that was drawn for it. */
	struct pawl_id lock_id;
	/* The fencing token of the lock. */
	uint64_t token;
	/* How long the lock may be trusted at least, in ms from the moment of sending.
	 * pawl_result_valid_ms tells how much of it is left. */
	int64_t valid_ms;
	/* How many masters are needed, how many gave a promise, and how many stored the lease. */
	uint32_t quorum, votes, acks;
	/* How long the request waited for others at least, in ms. */
	int64_t waited_ms;
	/* PAWL_EXTEND with `locks`: the outcomes in the order of request.locks. */
	const struct pawl_extended *extended;
	size_t extended_count;
	/* PAWL_ACQUIRE, PAWL_DOWNGRADE. */
	enum pawl_mode mode;
	/* PAWL_ACQUIRE and PAWL_EXTEND of permits: the permit numbers, from 0 to of - 1. No two
	 * holders have the same one. */
	const uint32_t *slots;
	size_t slot_count;
	/* PAWL_ACQUIRE with `keys`: the locks in the order of request.keys. */
	const struct pawl_got *got;
	size_t got_count;
	/* PAWL_ACQUIRE with `keys`: the key that an error is about; otherwise empty. */
	struct pawl_bytes key;
	/* PAWL_ASK_RELEASE: how many watchers were told. */
	uint32_t reached;
	/* PAWL_UPDATE: the name of this write. */
	struct pawl_bytes value_seq;
	/* PAWL_RELEASE, PAWL_TRANSFER: the lock was held, and is no longer. PAWL_BREAK: the lock
	 * was broken. */
	bool released;
	/* What a read shows. PAWL_EHELD: the holder, if entry.held. PAWL_EMISMATCH: the present
	 * value. */
	struct pawl_entry entry;
	/* All holders, if several hold the key; the first is the same as entry. Otherwise NULL. */
	const struct pawl_entry *holders;
	size_t holder_count;
	/* The node that answered, its role (`master` or `replica`), and its version. */
	const char *node, *role, *version;
	/* The node is recovering, so it may not know every holder. */
	bool recovering;
	/* How old a replica's view may be at most, in ms; -1 means that the node did not say, as on
	 * a master. */
	int64_t age_ms;
	/* PAWL_LIST: the held keys. */
	const struct pawl_entry *entries;
	size_t entry_count;
	/* PAWL_LIST, PAWL_WAITERS, PAWL_CLIENTS, PAWL_EXPLAIN: the answer does not have
	 * everything. */
	bool more;
	/* PAWL_WAITERS. */
	const struct pawl_waiter *waiters;
	size_t waiter_count;
	/* PAWL_CHANGE: the present epoch. */
	uint64_t epoch;
	/* PAWL_CHANGE. `settled`: a majority of the masters votes in this epoch. `complete`: all
	 * of them do. */
	bool settled, complete;
	/* PAWL_CHANGE: the names of the masters that do not vote in this epoch. */
	const char *const *missing;
	size_t missing_count;
	/* PAWL_CHANGE, PAWL_BREAK: a warning about what was done; "" if there is nothing to warn
	 * of. */
	const char *warning;

	/* The whole result map or error map as the node sent it. NULL if no node answered. */
	const struct pawl_value *tree;
	/* A PAWL_GET with quorum, about `entry`: for at least so long, in ms from the moment at
	 * which the request was sent, nobody else is granted the key, unless the lock is released,
	 * shortened or broken; and at most so long, in ms from the answer, the lease runs, unless
	 * it is extended. Both hold by any clock that keeps the bound on drift. -1 means that the
	 * node did not say. */
	int64_t valid_at_least_ms, held_at_most_ms;
	/* The request was sent more than once, so this may be the answer to a repetition: if it
	 * says that nothing was `released`, an earlier one may have released the lock. */
	bool repeated;
};

/* Returns how much of valid_ms is left now at least, in ms. Of two clocks the one that says less
 * counts. Once the time is over this returns 0 for ever. It only reads clocks. */
int64_t pawl_result_valid_ms(const struct pawl_result *result);
/* Frees the result and everything that it points to. NULL is allowed. */
void pawl_result_free(struct pawl_result *take_result);

#ifdef __cplusplus
}
#endif
#endif
