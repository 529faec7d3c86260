/* replication_state.h: the transaction log, what a master sends to a follower, and what a replica
 * knows of its master (section 7). Part of state.h. */
#ifndef PAWL_CLUSTER_REPLICATION_STATE_H
#define PAWL_CLUSTER_REPLICATION_STATE_H

#include "core.h"
#include "table_walk.h"

/* The transaction log. An entry names a record that has changed; what has become of it is looked up
 * when the entry is sent. Watch events, which are kept only for followers that want them, are told
 * as they were. */
struct log {
	/* The id of the log. There is a new one for each start, and for each table that replaced
	 * another. */
	uint64_t id;
	/* Numbers, from 1: of the entry to come, and of the oldest one that is still here. */
	uint64_t next, oldest;
	/* How many ids this start has given. */
	uint32_t generation;
	/* A ring of `slots` places. `count` of them, from `head` on, have a chunk. */
	struct log_chunk **chunks;
	/* The places of the ring; the first with a chunk; and how many have one. */
	uint32_t slots, head, count;
	/* The size of each chunk in bytes. */
	uint32_t chunk_bytes;
};

/* A place in the log: the next entry to be read. */
struct log_place {
	/* Its number in the log. */
	uint64_t number;
	/* The entry's place in its chunk, in bytes. */
	uint32_t offset;
};

/* The largest number of batches of one feed that are not acknowledged. */
#define FEED_WINDOW 4
#define FEED_ECHOES 8
/* What this node, as a master, sends to one follower. */
struct feed {
	/* The feed is on; and it is sending a snapshot. */
	bool active, walking;
	/* The follower has said something upon which batches are to be sent; and even one that is
	 * not full. */
	bool due, due_any;
	/* The follower's number of the feed, which everything in it carries. */
	uint64_t round;
	/* Everything in the log before this place has been sent. */
	struct log_place place;
	/* The place that the follower has acknowledged. */
	uint64_t acked;
	/* How many batches are not acknowledged. */
	uint32_t in_flight;
	/* The place at which the snapshot goes on. If its link breaks, it goes on from the
	 * beginning of that bucket. */
	struct table_walk walk;
	/* Of a snapshot that broke off: the log's id, and table.keys.shrinks at that time. It goes
	 * on only if both are the same. */
	uint64_t log, shrinks;
	/* Echoes that are to be returned: the follower's number, and the log's next number when the
	 * echo was heard. */
	struct { uint64_t echo, at; } echoes[FEED_ECHOES];
	/* How many echoes there are. */
	uint32_t echo_count;
	/* Somebody watches at the follower, and is told the watch events that the log has from this
	 * number on. */
	bool wants_events;
	uint64_t events_from;
};

/* A place in a master's log. */
struct follow_place {
	/* The identity of the master; 0 with the log 0. */
	struct id128 master;
	/* The log's id, and the number that is expected next. With the id 0 it is a place in
	 * nobody's log. */
	uint64_t log, number;
};

/* FOLLOW_ASKED: a master was asked for a feed. FOLLOW_ON: the feed is on. */
enum follow_state { FOLLOW_NONE, FOLLOW_ASKED, FOLLOW_ON };
#define FOLLOW_ECHOES 64
/* What this node, as a replica, receives from a master. */
struct follow {
	/* Whether the node follows a master. */
	enum follow_state state;
	/* A snapshot is in the staging table: it is under way, or has broken off. */
	bool building;
	/* FOLLOW_ASKED: this node has asked to go on with that snapshot. */
	bool resume;
	/* It accepts a master that is not linked with a quorum, because it found no better one. */
	bool accept_isolated;
	/* `fresh` is known. */
	bool fresh_known;
	/* FOLLOW_ASKED, FOLLOW_ON: the peer index of the master. */
	uint32_t peer;
	/* A bit set of masters that have been of no use since the last echo. */
	uint32_t tried;
	/* The number of the feed. */
	uint64_t round;
	/* The place of the live table, and that of the snapshot in the staging table. */
	struct follow_place live, staging_place;
	/* Where the snapshot goes on: the bucket in the master's table, and how many buckets that
	 * has. */
	uint32_t bucket, buckets;
	/* How many records of the snapshot have come. */
	uint64_t records;
	/* How many entries have been applied since the last batch ended. */
	uint64_t applied;
	/* When the last echo came back, or anything else that shows that the master works on it. */
	struct instant progress;
	/* Until then it waits for the master whose log it knows, or else for its first choice. */
	struct instant patience;
	/* Until then it asks nobody, because there was no memory. */
	struct instant rest;
	/* Until then it leaves the staging table to others. */
	struct instant yielded;
	/* The view is not older than this moment. */
	struct instant fresh;
	/* The newest echo that was sent; and the moments that the echoes name, by echo %
	 * FOLLOW_ECHOES. */
	uint64_t echo;
	struct instant echoes[FOLLOW_ECHOES];
	/* The master that the operator was told of. */
	struct id128 reported;
	/* The master of this feed was told that somebody watches here. */
	bool wants_events;
	/* The place in the log at which somebody began to watch; 0 if that was before this feed. */
	uint64_t watched;
};

#define OBSERVE_ECHOES 1024
/* What this node, as a replica that checks for double grants, hears from one master (observe.c). */
struct observed {
	/* The state of the feed for the audit; FOLLOW_NONE also while the replica follows this
	 * master. */
	enum follow_state state;
	/* The number of the feed; the log's id, and the number that is expected next. */
	uint64_t round, log, number;
	/* What the master sends next, it sends after this moment. */
	struct instant sent_after;
	/* When the master was last heard, or when it was left. */
	struct instant progress;
	/* How many entries have come since the last batch ended. */
	uint64_t entries;
};
struct grants;
struct observe {
	/* NULL: this node does not check for double grants. */
	struct grants *grants;
	/* By peer index. */
	struct observed streams[MASTERS_MAX];
	/* How many feeds were asked for; and the echoes, as in struct follow. */
	uint64_t rounds, echo;
	struct instant echoes[OBSERVE_ECHOES];
};

#endif
