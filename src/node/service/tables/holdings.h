/* holdings.h: what the locks that were granted through this node count for: whose share, how many
 * bytes of values, and until when.
 *
 * A lock is known by a hash of its lock_id and key under a secret key. A lock that was granted
 * through another node counts here from its first extension on. There is a holding for each lock,
 * so it is packed: who shares a lock has a number here. This is pure: time is an argument.
 */
#ifndef PAWL_NODE_HOLDINGS_H
#define PAWL_NODE_HOLDINGS_H

#include "clock.h"
#include "flat.h"
#include "map.h"
#include "parties.h"
#include "shares.h"
#include "types.h"

/* Whose share and whose party a lock counts for, as long as there is such a lock. */
struct holder;

struct holdings {
	const struct allocator *alloc;
	struct siphash_key hash_key;
	/* struct holding, by the hash of its key and lock_id; and of the locks that have a value,
	 * struct holding_value, by the same. */
	struct flat all, values;
	/* struct holder, by its shares and its party. */
	struct map holders;
	/* The holders by their numbers. A place that is free has the number of the next free
	 * one. */
	union holder_place {
		struct holder *holder;
		uint32_t next_free;
	} *places;
	uint32_t place_count, first_free;
	/* The index at which the sweep goes on, and how many locks it has yet to look at. */
	uint32_t sweep_next, sweep_left;
	/* Borrowed. */
	struct parties *parties;
};

/* One lock, and what it counts for. A pointer to it is good until any other one is dropped. */
struct holding {
	struct flat_entry entry;
	/* When the lock may have ended, in units of 2^27 ns (an eighth of a second) of
	 * CLOCK_BOOTTIME, rounded up. */
	uint32_t end;
	/* The number of the holder. */
	uint32_t holder : 31;
	/* There is a struct holding_value of the lock. */
	uint32_t valued : 1;
};
_Static_assert(sizeof(struct holding) <= 20, "one for each lock");

/* The size of a lock's value in bytes, which counts for the share. */
struct holding_value {
	struct flat_entry entry;
	uint32_t bytes;
};

/* Returns 0 or PAWL_ENOMEM. */
int holdings_init(struct holdings *h, const struct allocator *alloc, struct siphash_key hash_key,
	struct parties *parties);
/* Gives nothing back to the shares. Accepts zeroed memory. */
void holdings_done(struct holdings *h);

uint64_t holdings_hash(const struct holdings *h, struct slice key, struct id128 lock_id);
/* Returns NULL if the lock does not count here. */
struct holding *holdings_find(const struct holdings *h, uint64_t hash);
/* Takes over what is already counted for the share: one lock, and these bytes. Returns NULL if
 * there is no memory. */
struct holding *holdings_adopt(struct holdings *h, uint64_t hash, const struct share_pair *share,
	struct party *party, uint32_t value_bytes);
/* Returns the number of the party that holds the lock, or PARTY_NONE. */
uint32_t holdings_party(const struct holdings *h, const struct holding *held);
/* The lock is held by this party from now on. NULL: that is not known, and nothing changes; nor
 * does it if there is no memory. */
void holdings_belongs(struct holdings *h, struct holding *held, struct party *party);
/* Returns the size of the lock's value that is counted. */
uint32_t holdings_value_bytes(const struct holdings *h, const struct holding *held);
/* Counts another size of the lock's value. If there is no memory for that, none is counted. */
void holdings_value(struct holdings *h, struct holding *held, uint32_t bytes);
/* Counts the lock until `end`. */
void holdings_until(struct holding *held, struct instant end);
/* Takes the lock out of its shares and its party, and frees the holding. */
void holdings_drop(struct holdings *h, struct holding *take_held);

/* Drops locks whose time is over. A sweep looks at a quarter of all locks, but at no less than
 * HOLDINGS_SWEPT of them; a call looks at no more than `most`. Returns true if the sweep is not
 * over. */
#define HOLDINGS_SWEPT ((uint32_t)1 << 16)
bool holdings_sweep(struct holdings *h, struct instant now, uint32_t most);

#endif
