/* tombstones.h: what has ended of late and is not to come back (tombstones.c). */
#ifndef PAWL_CLUSTER_RELEASED_H
#define PAWL_CLUSTER_RELEASED_H

#include "map.h"
#include "message.h"

struct tombstone {
	struct map_node node;
	struct id128 lock_id;
	/* By a request that failed (section 11): a record up to this token was dropped; 0: none was. */
	uint64_t rolled_back;
	/* The name under which the lock_id was given back last; 0: it was not. */
	uint64_t name;
	uint32_t binding;       /* it ended with this connection of its holder (section 2): up to this bond; 0: not */
	bool released;       /* R3 */
	bool barred;         /* by a break */
	bool used;
};

#define EXTENDED_MAX 64

struct extended { /* a record that rested on `name` alone was lengthened by an extension that may be taken back (section 11) */
	uint64_t name, by;
};

#define LACKED_PLACES (NODES_MAX < 8 ? 8 : 1024)

#endif
