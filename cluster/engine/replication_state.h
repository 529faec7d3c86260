/* replication_state.h: the transaction log, what a follower is being sent, and what a replica knows of its master (section 7). Included by
 * state.h. */
#ifndef PAWL_CLUSTER_REPLICATION_STATE_H
#define PAWL_CLUSTER_REPLICATION_STATE_H

#include "core.h"

struct log_chunk {
	uint64_t first; /* number of its first entry */
	uint32_t count, used;
	uint8_t bytes[];
};

struct log { /* names what has changed; what has become of it is looked up when it is sent. News, which are only kept for followers that
              * want them, are told as they were */
	uint64_t id;           /* one for each start, and for each table that replaced another */
	uint64_t next, oldest; /* numbers, from 1: of the entry to come, and of the oldest one still here */
	uint32_t generation;
	struct log_chunk **chunks; /* a ring of `slots` */
	uint32_t slots, head, count;
	uint32_t chunk_bytes;
};

struct log_place { /* of the next entry to be read */
	uint64_t number;
	uint32_t offset; /* in its chunk */
};

struct log_entry {
	struct slice key;
	struct id128 lock_id;
	bool is_watch_event;
	struct core_watch_event watch_event; /* whose bytes last as long as the log is left alone; but for `key` and `lock_id` */
	uint8_t bytes[KEY_MAX];
};

#define FEED_WINDOW 4 /* batches that were not acknowledged */
#define FEED_ECHOES 8
struct feed { /* what a follower is being sent */
	bool active, walking;
	uint64_t round;
	struct log_place place; /* everything before has been sent */
	uint64_t acked;
	uint32_t in_flight;
	size_t bucket;          /* of the snapshot */
	uint64_t log, shrinks;  /* of the one that broke off */
	struct { uint64_t echo, at; } echoes[FEED_ECHOES]; /* at: the log's next number when it was heard */
	uint32_t echo_count;
	bool watch_event;          /* somebody watches there, ... */
	uint64_t watch_event_from; /* ... and is told what the log has from this number on */
};

struct follow_place { /* in a master's log */
	struct id128 master;
	uint64_t log, number; /* log 0: in nobody's; number: the next one expected */
};

enum follow_state { FOLLOW_NONE, FOLLOW_ASKED, FOLLOW_ON };
#define FOLLOW_ECHOES 64
struct follow { /* a replica's feed */
	enum follow_state state;
	bool building;     /* a snapshot in the table beside, under way or broken off */
	bool partly;       /* ASKED: to go on with it */
	bool anyway;
	bool fresh_known;
	uint32_t peer;     /* ASKED, ON */
	uint32_t tried;    /* bit set of masters that were of no use since the last echo */
	uint64_t round;
	struct follow_place live, part;
	uint32_t bucket, buckets; /* of the snapshot: where it goes on */
	uint64_t records;
	uint64_t applied;         /* since the last batch ended */
	struct instant progress;  /* of the last echo, or of whatever shows that the master works on it */
	struct instant patience;  /* until then it waits for the master whose log it knows, or else for its first choice */
	struct instant rest;      /* until then it asks nobody: there was no memory */
	struct instant yielded;   /* until then it leaves the table beside to others */
	struct instant fresh;     /* the view is not older */
	uint64_t echo;            /* the newest one sent */
	struct instant echoes[FOLLOW_ECHOES];
	struct id128 noted;       /* the master that the operator was told of */
	bool watch_event;                /* this feed's master was told that somebody watches */
	uint64_t watched;         /* the place at which whoever watches began to; 0: earlier than this feed */
};

#define UNWRITTEN_MAX 32u
struct unwritten { /* a write that was refused, and whose value has not come since (unwritten.c) */
	struct id128 lock_id;
	struct ballot ballot;
};

#endif
