/* table_walk.h: the place of a walk over the records of the live table, which goes on piece by
 * piece while the table changes (store/walk.c). */
#ifndef PAWL_CLUSTER_TABLE_WALK_H
#define PAWL_CLUSTER_TABLE_WALK_H

#include "types.h"

/* Zeroed, it is the beginning. All buckets in front of `bucket` have been visited. Of this bucket,
 * the keys with a lower number (key_number), and of the keys with this number the records up to
 * this lock_id. */
struct table_walk {
	/* The bucket at which the walk goes on. */
	size_t bucket;
	/* The number of the key at which it goes on in that bucket. */
	uint64_t number;
	/* The last lock_id of that key which was visited. */
	struct id128 lock_id;
};

struct core;
struct key;
struct record;

/* One piece of a walk: its limits, of which the first one that is reached ends it, and how much of
 * each has been used. The bytes may be more by one record. */
struct walk_piece {
	/* The most records, and the most buckets. */
	uint32_t records_max, buckets_max;
	/* The most bytes of records. */
	size_t bytes_max;
	/* Is called for each record. It leaves the live table as it is. False breaks the piece
	 * off. */
	bool (*visit)(struct core *core, void *ctx, const struct key *key, const struct record *r);
	void *ctx;
	/* How many of each have been visited. */
	uint32_t records, buckets;
	/* How many bytes the records had. */
	size_t bytes;
	/* `visit` has returned false. */
	bool failed;
};

#endif
