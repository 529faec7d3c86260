/* tombstones.h: what has ended lately and must not come back (tombstones.c). Part of state.h. */
#ifndef PAWL_CLUSTER_TOMBSTONES_H
#define PAWL_CLUSTER_TOMBSTONES_H

#include "message.h"

/* What a master remembers of a lock_id that has ended. */
struct tombstone {
	struct id128 lock_id;
	/* A record up to this token was rolled back by a request that failed (section 11); 0: none
	 * was. */
	uint64_t rolled_back;
	/* The name under which the lock_id was last rolled back; 0: it was not. */
	uint64_t name;
	/* The lock has ended with this connection of its holder, and so has whatever is bound to it
	 * or to an earlier one (section 2, Release on disconnect); 0: it has not. */
	uint32_t binding;
	/* The lock_id was released (R3). */
	bool released;
	/* A break forbids its extension. */
	bool barred;
	/* This place of the ring is in use. */
	bool used;
};

#define EXTENDED_MAX 64

/* A record that rested on `name` alone was lengthened by an extension with the name `by`, which may
 * be taken back (section 11). If the two are the same, the extension has made the record. */
struct extended {
	uint64_t name, by;
};

/* How many places there are to remember for how long lock_ids have been lacking (lacked.c,
 * first.c). */
#define LACKED_PLACES (NODES_MAX < 8 ? 8 : 1024)

#endif
