/* record_index.h: an index over the records of a key that has many (index.c). Part of store.h. */
#ifndef PAWL_CLUSTER_RECORD_INDEX_H
#define PAWL_CLUSTER_RECORD_INDEX_H

#include "treap.h"

/* Where a record stands in the index of its key. */
struct record_place {
	/* Elements of record_index.by_lock, .by_end and .by_token. */
	struct tree_node by_lock, by_end, by_token;
	/* The record. */
	struct record *record;
	/* The place of the record in front of it in key.held; NULL: it is the first. */
	struct record_place *before;
	/* The lock_id and the token of the record. */
	struct id128 lock_id;
	uint64_t token;
	/* The record, or permit numbers of it, end no earlier than this, in nanoseconds of
	 * CLOCK_MONOTONIC_RAW. Ends that become later are noted when this time has come. */
	int64_t due;
};

/* The index of a key with at least limits.indexed records. What one message needs of the key takes
 * a number of steps that is logarithmic in the count of its records. */
struct record_index {
	/* struct record_place: by lock_id; by the first end; by the token, the highest first. */
	struct tree_node *by_lock, *by_end, *by_token;
	/* How many records there are, and how many of them are shared. */
	uint32_t count, shared;
	/* of[n]: how many records have permits of a semaphore that has n in all; of[0]: how many
	 * are exclusive. */
	uint32_t of[PERMITS_MAX + 1];
	/* How many records have each permit number; and the numbers that some record has, and that
	 * several have. */
	uint32_t having[PERMITS_MAX];
	struct permits had, doubled;
};

#endif
