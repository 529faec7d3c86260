/* shares.h: how much of this node each identity, and each source address, takes, and where that is as much as it may.
 *
 * A share is there as long as something is counted for it, also when its connections are gone: locks end with their leases. Requests a second
 * are counted as a debt that melts with time (the generic cell rate algorithm): up to a second's worth may come at once. Pure: time is
 * handed in.
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

#define SHARES_QUOTA_BYTES (ADDRESS_TEXT_BYTES + 256)

struct shares {
	const struct allocator *alloc; /* borrowed */
	struct siphash_key hash_key;
	struct map by_name;
	struct list among; /* all, in the order of their numbers */
	uint64_t last;     /* number */
	struct list idle; /* shares of which nothing is in use */
	uint64_t refused; /* requests and connections since the start; counted by whoever refuses them */
};

struct share {
	struct shares *all;
	struct map_node node;
	struct list among, idle;
	uint64_t number;
	uint64_t used[SHARE_KINDS];
	uint64_t total; /* of all kinds */
	struct share_limits limits;
	int64_t paid; /* CLOCK_BOOTTIME up to which the requests so far use up the rate */
	struct fair_flow flow;   /* among the identities that have requests waiting */
	struct fair_queue ready; /* its connections whose requests wait */
	size_t name_size;
	uint8_t name[]; /* "=" and an identity; "+" and that of the program around the node; "@" and the address of those without one; "#" and an address */
};

/* What one connection counts for. */
struct share_pair {
	struct share *identity;
	struct share *address; /* NULL: it has none */
};

/* What is refused, in words. */
struct share_quota {
	struct client_refusal refusal;
	char message[SHARES_QUOTA_BYTES];
};

int shares_init(struct shares *s, const struct allocator *alloc, struct siphash_key hash_key); /* 0 or PAWL_ENOMEM */
void shares_done(struct shares *s); /* accepts zeroed memory; nothing may be used of a share afterwards */
/* Once a second: forgets shares of which nothing is used, and whose debt has melted. */
void shares_sweep(struct shares *s, struct instant now);

/* The share of that name, made if need be. It may go with the next shares_sweep unless something is taken. NULL: no memory. */
struct share *shares_find(struct shares *s, char kind, struct slice name, int64_t connection_quantum);

/* True: `count` more would be above a limit of either, where that is raised by `spare`; *out says which, and when to come again. */
bool shares_full(const struct share_pair *pair, enum share_kind kind, uint64_t count, uint64_t spare, struct share_quota *out);
/* The share that has most memory, of an identity or of those without one from one address, but not of the program around the node; NULL: none has any. */
const struct share *shares_heaviest(const struct shares *s);
/* The first with a number above that; NULL: there is none. */
const struct share *shares_after(const struct shares *s, uint64_t number);
const struct share *shares_next(const struct share *share);
void shares_take(const struct share_pair *pair, enum share_kind kind, uint64_t count);
void shares_give(const struct share_pair *pair, enum share_kind kind, uint64_t count);

/* True: so many requests have come lately that another one has to wait. `urgent`: half of what may come at once is for these alone. */
bool shares_hurried(const struct share_pair *pair, bool urgent, struct instant now, struct share_quota *out);
static inline bool shares_rated(const struct share_pair *pair) {
	return pair->identity->limits.most[SHARE_RATE] || (pair->address && pair->address->limits.most[SHARE_RATE]);
}
void shares_charge(const struct share_pair *pair, uint64_t requests, struct instant now);

#endif
