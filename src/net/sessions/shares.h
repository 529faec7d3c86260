/* shares.h: counts how much of this node each identity and each source address takes, and says when
 * that is as much as it may.
 *
 * A share exists as long as something is counted for it, even if its connections are gone, because
 * locks end with their leases. Requests per second are counted as a debt that melts with time (the
 * generic cell rate algorithm), so that up to a second's worth of them may come at once. This is
 * pure: time is an argument.
 */
#ifndef PAWL_NET_SHARES_H
#define PAWL_NET_SHARES_H

#include <stdbool.h>

#include "address.h"
#include "client.h"
#include "clock.h"
#include "fair.h"
#include "map.h"
#include "share.h"
#include "siphash.h"

/* The size of a refusal's message, in bytes. */
#define SHARES_QUOTA_BYTES (ADDRESS_TEXT_BYTES + 256)

/* All shares of a node. */
struct shares {
	/* Borrowed. */
	const struct allocator *alloc;
	struct siphash_key hash_key;
	struct map by_name;

	/* All shares, in the order of their numbers. */
	struct list among;
	/* The number that was given last. */
	uint64_t last;
	/* The shares of which nothing is in use. */
	struct list idle;
	/* The number of requests and connections that were refused since the start. Whoever refuses
	 * them counts them. */
	uint64_t refused;
};

/* What one identity, or one address, takes. */
struct share {
	struct shares *all;
	/* Element of shares.by_name. */
	struct map_node node;
	/* Link in shares.among; and in shares.idle, while nothing is in use. */
	struct list among, idle;

	/* Numbers count up and are never used again. */
	uint64_t number;
	/* How much of each kind is in use, in the unit of that kind. */
	uint64_t used[SHARE_KINDS];
	/* The sum of `used` over all kinds. */
	uint64_t total;
	struct share_limits limits;

	/* The requests so far use up the rate until this instant of CLOCK_BOOTTIME. */
	int64_t paid;

	/* How many of its connections are closed and wait for the turn in which they end. */
	uint32_t leaving;

	/* The place of this share among those that have requests waiting. */
	struct fair_flow flow;
	/* The connections of this share whose requests wait. */
	struct fair_queue ready;

	size_t name_size;
	/* "=" and an identity; "+" and the identity of the program around the node; "@" and the
	 * address of connections without an identity; or "#" and an address. */
	uint8_t name[];
};

/* The shares that one connection counts for. */
struct share_pair {
	struct share *identity;
	/* NULL if the connection has no address. */
	struct share *address;
};

/* A refusal, and room for its message. */
struct share_quota {
	struct client_refusal refusal;
	char message[SHARES_QUOTA_BYTES];
};

/* Returns 0 or PAWL_ENOMEM. */
int shares_init(struct shares *s, const struct allocator *alloc, struct siphash_key hash_key);
/* Accepts zeroed memory. Nothing of a share may be used afterwards. */
void shares_done(struct shares *s);
/* To be called once a second. Forgets the shares of which nothing is used and whose debt has
 * melted. */
void shares_sweep(struct shares *s, struct instant now);

/* Returns the share with that name, which is made if it does not exist; or NULL if there is no
 * memory. The next shares_sweep may free it unless something is taken from it. */
struct share *shares_find(struct shares *s, char kind, struct slice name,
	int64_t connection_quantum);

/* Returns true if `count` more would exceed a limit of either share, with the limit raised by
 * `spare`. *out says which limit that is, and when to come again. */
bool shares_full(const struct share_pair *pair, enum share_kind kind, uint64_t count,
	uint64_t spare, struct share_quota *out);

/* Returns the share that has most memory, or NULL if none has any. It is that of an identity, or of
 * the connections without an identity from one address, but never that of the program around the
 * node. */
const struct share *shares_heaviest(const struct shares *s);

/* Returns the first share whose number is above `number`, or NULL if there is none. */
const struct share *shares_after(const struct shares *s, uint64_t number);
/* Returns the share with the next higher number, or NULL if there is none. */
const struct share *shares_next(const struct share *share);

/* Adds to, or takes from, what both shares of a pair count. */
void shares_take(const struct share_pair *pair, enum share_kind kind, uint64_t count);
void shares_give(const struct share_pair *pair, enum share_kind kind, uint64_t count);

/* Returns true if the rate of requests is at its limit, so that another one has to wait. An
 * `urgent` request may use twice as much; the second half is only for those. */
bool shares_hurried(const struct share_pair *pair, bool urgent, struct instant now,
	struct share_quota *out);
/* Charges the requests to the rate of both shares. */
void shares_charge(const struct share_pair *pair, uint64_t requests, struct instant now);

#endif
