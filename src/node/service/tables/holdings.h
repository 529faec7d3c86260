/* holdings.h: what the locks that were granted through this node count for: whose share, how many bytes of values, and until when.
 *
 * A lock is known by a hash of its lock_id and key under a secret key. One that was got elsewhere counts here from its first extension.
 * Pure: time is handed in.
 */
#ifndef PAWL_NODE_HOLDINGS_H
#define PAWL_NODE_HOLDINGS_H

#include "clock.h"
#include "map.h"
#include "shares.h"
#include "types.h"
#include "wheel.h"

struct holdings {
	const struct allocator *alloc;
	struct siphash_key hash_key;
	struct map all;
	struct wheel ends;
};

struct holding {
	struct map_node node;
	struct wheel_timer end;
	struct share_pair share;
	uint32_t value_bytes;
};

int holdings_init(struct holdings *h, const struct allocator *alloc, struct siphash_key hash_key, struct instant now); /* 0 or PAWL_ENOMEM */
void holdings_done(struct holdings *h); /* gives nothing back; accepts zeroed memory */

uint64_t holdings_hash(const struct holdings *h, struct slice key, struct id128 lock_id);
struct holding *holdings_find(const struct holdings *h, uint64_t hash); /* NULL: it does not count here */
/* Keeps what is counted for the share already: one lock, and these bytes. NULL: no memory. */
struct holding *holdings_adopt(struct holdings *h, uint64_t hash, const struct share_pair *share, uint32_t value_bytes);
void holdings_value(struct holding *held, uint32_t bytes);
void holdings_until(struct holdings *h, struct holding *held, struct instant end);
void holdings_drop(struct holdings *h, struct holding *take_held);

/* Those whose time is over do not count any more: `most` of them in one call. True: perhaps there are others. */
bool holdings_sweep(struct holdings *h, struct instant now, uint32_t most);

#endif
