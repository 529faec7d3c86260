/* holdings.h: what the locks that were granted through this node count for: whose share, how many
 * bytes of values, and until when.
 *
 * A lock is known by a hash of its lock_id and key under a secret key. A lock that was granted
 * through another node counts here from its first extension on. This is pure: time is an argument.
 */
#ifndef PAWL_NODE_HOLDINGS_H
#define PAWL_NODE_HOLDINGS_H

#include "clock.h"
#include "map.h"
#include "parties.h"
#include "shares.h"
#include "types.h"
#include "wheel.h"

struct holdings {
	const struct allocator *alloc;
	struct siphash_key hash_key;
	/* struct holding, by the hash of its key and lock_id. */
	struct map all;
	/* When the locks may have ended, in CLOCK_BOOTTIME. */
	struct wheel ends;
	/* Borrowed. */
	struct parties *parties;
};

/* One lock, and what it counts for. */
struct holding {
	struct map_node node;
	struct wheel_timer end;
	struct share_pair share;
	/* The size of the lock's value, which counts for the share. */
	uint32_t value_bytes;
	/* The number of the party that holds the lock, or PARTY_NONE. */
	uint32_t party;
};

/* Returns 0 or PAWL_ENOMEM. */
int holdings_init(struct holdings *h, const struct allocator *alloc, struct siphash_key hash_key,
	struct parties *parties, struct instant now);
/* Gives nothing back to the shares. Accepts zeroed memory. */
void holdings_done(struct holdings *h);

uint64_t holdings_hash(const struct holdings *h, struct slice key, struct id128 lock_id);
/* Returns NULL if the lock does not count here. */
struct holding *holdings_find(const struct holdings *h, uint64_t hash);
/* Takes over what is already counted for the share: one lock, and these bytes. Returns NULL if
 * there is no memory. */
struct holding *holdings_adopt(struct holdings *h, uint64_t hash, const struct share_pair *share,
	uint32_t value_bytes);
/* The lock is held by this party from now on. NULL: that is not known, and nothing changes. */
void holdings_belongs(struct holdings *h, struct holding *held, struct party *party);
/* Counts another size of the lock's value. */
void holdings_value(struct holding *held, uint32_t bytes);
/* Counts the lock until `end`. */
void holdings_until(struct holdings *h, struct holding *held, struct instant end);
/* Takes the lock out of its shares and its party, and frees the holding. */
void holdings_drop(struct holdings *h, struct holding *take_held);

/* Drops the locks whose time is over, at most `most` of them in one call. Returns true if there may
 * be others. */
bool holdings_sweep(struct holdings *h, struct instant now, uint32_t most);

#endif
