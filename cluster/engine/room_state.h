/* room_state.h: what the rooms keep, one struct for each. Part of state.h. */
#ifndef PAWL_CLUSTER_ROOM_STATE_H
#define PAWL_CLUSTER_ROOM_STATE_H

/* A state that the driver has taken to write: its number, and what it says of these fields of
 * struct durable. */
struct persisting {
	/* The number of the state; and its clock reservation and boot. */
	uint64_t seq, ceiling, boot;
	/* The node has pledged; and it has voted in the state's epoch. */
	bool pledged, voted;
};

/* engine/: the bounds of the Lamport clock, what is on disk, and the present turn of the loop. */
struct engine_state {
	/* Up to where others could raise the clock at clock_limit_at. Since then the limit has
	 * grown by one each nanosecond (section 9). */
	uint64_t clock_limit;
	/* See clock_limit. */
	struct instant clock_limit_at;

	/* The number of the state that is wanted on disk. */
	uint64_t persist_seq;
	/* The number of the newest state that is on disk. */
	uint64_t persist_done;
	/* States that the driver has taken to write and that are not on disk yet, by persist_seq %
	 * 4. */
	struct persisting taken[4];
	/* Parts of `durable` as they are on disk. */
	uint64_t ceiling_on_disk, boot_on_disk;
	/* Parts of it as they are on disk: the pledge, and that the node has voted. */
	bool pledged_on_disk, voted_on_disk;
	/* The Lamport clock when this node last stopped voting, on which the votes rest that it had
	 * not sent yet; 0 if it has not stopped since its start. */
	uint64_t vote_clock;
	/* With persist_again: when a write that has failed is tried again. */
	struct instant persist_retry;
	/* The last write has failed. */
	bool persist_again;

	/* A bit set of peers, this node included, for which a message could not be queued in this
	 * step. */
	uint64_t failed;
	/* The last number of struct message, `same`. */
	uint64_t same;
	/* A message of this node to itself could not be queued. Until the next beat it counts as
	 * not linked with itself. */
	bool self_lost;
	/* A turn of the loop has ended since the last step. */
	bool turn_over;
	/* The request of this step was not taken. */
	bool unheard;
	/* Which work is left: bits of enum pending. */
	uint32_t pending;
	/* How much long work a turn may do, and what is left of that in this turn. */
	struct pieces most, left;
	/* How many callers there are. The outbox keeps room for one reply to each, because all of
	 * them may have to be answered at once. */
	uint64_t caller_count;
	/* All timers. */
	struct wheel wheel;
};

/* peers/: the table of peers. The peers themselves are in core->peers. */
struct peering_state {
	/* When this node was last linked with a quorum. */
	struct instant near_at;
	/* This node is isolated: for more than a request_timeout it has not been linked with a
	 * quorum. So it dials everybody whom it knows. */
	bool isolated;
	/* The driver has not been told yet that the table of peers has changed, or who is to be
	 * dialled. */
	bool peers_changed;
	/* How many masters are suspect; and the alarm for silent ones, with the time for which it
	 * was set, and when that was done (silence.c). */
	uint32_t suspects;
	struct timer silence_alarm;
	struct instant silence_due, silence_set;
	/* Memory to build a new table of peers in. */
	struct peer_table_room *peer_table_room;
};

enum { ORIGIN_CHAINS = 256 };
/* A node, at one of its boots, that has drawn ballots of records. */
struct origin {
	/* ballot.node and ballot.boot. */
	uint64_t node;
	uint32_t boot;
	/* The next number of the same chain, or the next one that is free; 0: there is none. */
	uint32_t next;
	/* How many records have this number. */
	uint64_t records;
};

#define EXTENDED_MAX 64

/* A record that rested on `name` alone was lengthened by an extension with the name `by`, which may
 * be taken back (section 11). If the two are the same, the extension has made the record. */
struct extended {
	uint64_t name, by;
};

/* Records of the live table whose `sources` are not 0 are finished when somebody looks them up, or
 * by a sweep (store/finish.c). */
struct finishing {
	/* There are records to be finished. */
	bool active;
	/* What came between is not known. So `floor` counts as noted for each of these records, and
	 * none is dropped because a source lacks it. */
	bool unknown;
	/* The Lamport clock that counts as noted; it is used only with `unknown`. */
	uint64_t floor;
	/* The bucket at which the sweep goes on. */
	size_t bucket;
	/* A bit set of the tries whose sources were heard to their end. */
	uint32_t brought;
	/* Those of them that count for what was noted: all but sources that have never voted,
	 * neither before nor now. */
	uint32_t done;
	/* The clock of each of these sources at the end of its snapshot. */
	uint64_t clock_end[32];
};

/* store/: the tables, what has ended, and what a master remembers of the lock_ids that it lacks. */
struct store_state {
	/* The memory of the live table and of the staging table. */
	struct table tables[2];
	/* The table that is voted and read from; and the one that is built from snapshots, is being
	 * emptied, or is empty. */
	struct table *live, *staging;
	/* What the staging table is used for. */
	enum staging_use staging_use;
	/* STAGING_EMPTYING: the buckets from this one on are empty. */
	size_t empty_bucket;
	/* How many promises the live table has. */
	uint64_t promise_count;
	/* Keys that are counted apart. */
	struct key_groups groups;
	/* Who drew the ballots of all records (record.c). */
	struct origins {
		/* The origins by their numbers, and how many places there are; the first number
		 * that is free, or 0; and the first number of each chain, by hash. */
		struct origin *all;
		uint32_t size, free, chains[ORIGIN_CHAINS];
	} origins;

	/* A ring of `tombstones_size` places; tombstones_next is the place that is filled next. */
	struct tombstone *tombstones;
	uint32_t tombstones_size, tombstones_next;
	/* Their index, by lock_id: a flat table with open addressing, of tombstones_slots slots, a
	 * power of two (tombstones.c). */
	uint32_t *tombstones_index;
	size_t tombstones_slots;
	/* How many bits of a slot are the number of a place. */
	uint32_t tombstones_bits;
	/* limits.lacked places for lock_ids whose records have ended here; and as many for those
	 * that have lapsed: whose records have ended otherwise than by release, or of which this
	 * master has noted something and lost it (lacked.c). */
	struct lacking_place *lacked, *lapsed;
	/* When this master began to vote; and its Lamport clock then. */
	struct instant vote_began;
	uint64_t clock_began;
	/* The clock of the last ballot that this node drew for a first value. */
	uint64_t first_drawn;

	/* A ring of updates whose write has not come yet; preparing_next is the place that is
	 * filled next. */
	struct preparing preparing[PREPARING_MAX];
	uint32_t preparing_next;
	/* A ring of the last extensions that have made records, or lengthened records that rested
	 * on a request's name; extended_next counts them (tombstones.c). */
	struct extended extended[EXTENDED_MAX];
	uint32_t extended_next;
	/* How merged records are finished. */
	struct finishing finish;
};

/* changes/: the log of changes, watch events, and what this master may have missed. */
struct changes_state {
	/* The transaction log. */
	struct log log;
	/* How many followers are fed; and how many of them want watch events. */
	uint32_t feeds, event_feeds;
	/* Somebody watches at this node. */
	bool watch_event_wanted;
	/* Tells how many clients of this node watch a key; NULL if there are none. */
	uint32_t (*count_watchers)(void *ctx, struct slice key);
	void *count_watchers_ctx;

	/* struct refused, by key: what was refused here and may count elsewhere (missed.c). There
	 * is none while nobody watches. */
	struct map refused;
	/* The same, in the order in which it was refused. */
	struct list refused_all;
	/* The memory of its records in bytes. */
	size_t refused_bytes;
	/* The cache of the highest tokens that were told, by key (watch_event.c). */
	struct told *told;
	/* The highest token that was told of a key that has left the cache. */
	uint64_t told_before;
	/* A ring of locks that were told of although this master never had them: the first word of
	 * the lock_id, and the token. told_lately_next counts them. */
	struct told_once {
		uint64_t lock, token;
	} told_lately[64];
	uint32_t told_lately_next;

	/* How many commits this node has begun since its start (counted.c). */
	uint64_t commits_begun;
	/* Counts beats; and how often in a row enough masters that remember could have said what
	 * came to them. */
	uint32_t counted_beats, says_heard;
	/* A node was left out of the new epoch whose commits may have passed this master by. */
	bool left_out;
	/* With missed_under_way: what was under way when something had been missed has ended by
	 * then, and missed events are told once more (missed.c). */
	bool missed_under_way;
	struct instant missed_over;
	/* The next comparison of the tables is due at once. */
	bool sync_hurry;

	/* The totals of core_figures.h, of the live table (figures_changed.c). */
	uint64_t releases, lost[FIGURE_LOSSES], group_lost[KEY_GROUPS_MAX];
	/* For how long leases had been held that have ended. */
	struct buckets holds;
	/* Which keys of the live table are granted most often; NULL if nobody wants to know. */
	struct sketch *granted;
	/* The leases of the live table that were lost last; NULL if nobody wants to know. */
	struct lost_ring *lost_last;
};

/* master/: who waits, and what is bound to which node. */
struct master_state {
	/* The queues of the keys whose home this node is, and parked requests. */
	struct queues queues;
	/* How many queue entries there are. */
	uint64_t waiter_count;
	/* The number of queues of each length, and the greatest length with a queue. Lengths from
	 * `lengths_size` - 1 on count as this one. */
	uint32_t *lengths, lengths_size, longest;
	/* struct holder: nodes that have bound records of this master to themselves; and how many
	 * there are. */
	struct list holders;
	uint32_t holder_count;
	/* struct holder: those whose records are being examined, in pieces. */
	struct list holders_due;
	/* The bound lock_ids. */
	struct map bound_locks;
};

enum { QUEUED_PLACES = 1024 };

/* coordinator/: operations under way, and those who wait for their answers. */
struct coordinator_state {
	/* struct op by number, and by key and lock_id; struct client by connection. */
	struct map ops_by_id, ops_by_lock, clients;
	/* struct granted, and struct granted_numbers, by key and lock_id. */
	struct flat granted_leases, granted_numbers;
	/* struct op: those under way; those that catch up after their answer; and acquires before
	 * their commit. struct client: those that have lists. */
	struct list ops, catching_up, waiting, lists;
	/* The next operation of a walk over `ops` that is under way. */
	struct list *ops_next;
	/* Freed operations, for the next requests. */
	struct list op_pool;
	/* The number of the next operation; and the number of the last ticket. */
	uint64_t op_next, ticket_next;
	/* How many operations are under way, catch up, wait before their commit, are in the pool,
	 * and bind a lock to this node. */
	uint32_t op_count, catch_up_count, waiting_count, pool_count, binding_count;
	/* The index at which the sweep of granted leases goes on. */
	uint32_t granted_next;
	/* struct op: suspended operations. */
	struct list suspended;
	/* struct op: operations in line, which want more than the first piece of the masters'
	 * reports. */
	struct list in_line;
	/* struct op: reads that were decided, and are answered in the next turns because their
	 * answers are large. */
	struct list showing;
	/* struct op: operations that have all reports, and weigh them one after the other; and when
	 * the next one may. */
	struct list weighing;
	struct instant weigh_at;
	/* struct key_more: keys that have due waits, in the order in which they are served. */
	struct list due_waits;
	/* struct op: all waits for a change of a key. */
	struct list local_waits;
	/* struct op: operations that go on with this node's own report in the next turn. */
	struct list asking;
	/* struct client: those whose connection is gone and for whom operations still wait. */
	struct list leaving;
	/* Replies to nobody are written here: to a client that has gone. */
	struct core_reply nobody;
	/* How many operations may ask for more than the first piece of the reports; and how many
	 * operations in line have begun in this step. */
	uint32_t reporting, reports_begun;
	/* struct group: requests for several keys to which something was answered. They go on
	 * within the same step. */
	struct list groups;
	/* Counts how often homes may have changed. A request whose op.home_changes is another
	 * number has yet to look for its home (home.c). */
	uint32_t home_changes;
	/* How many requests are in queues; and struct op: these requests by the place of their key,
	 * which other keys share (home.c). */
	uint32_t queued_count;
	struct list queued_at[QUEUED_PLACES];
	/* A request is slow if it takes longer than this many nanoseconds; 0: none is. */
	span_ns slow_after;
	/* Some requests found no home. With the next beat all of them look for theirs again. */
	bool home_missing;
	/* The node has been without a quorum for request_timeout (home.c); and how many of
	 * those who wait are still to be looked at for that. */
	bool no_quorum;
	uint32_t unserved;
};

/* replication/: the batches of feeds. */
struct replication_state {
	/* How long a batch may wait, in nanoseconds. */
	span_ns replication_interval;
	/* Fires when a batch is due that is not full. */
	struct timer feed_timer;
	/* The log's next number at which a batch is full. */
	uint64_t feed_full_at;
	/* Fires when the follower is to look after its feed. */
	struct timer follow_timer;
	/* The same for the feeds of the audit. */
	struct timer observe_timer;
	/* What a replica hears that checks for double grants. */
	struct observe observe;
};

/* repair/: the comparison of tables between masters (sync.c). */
struct repair_state {
	/* What the present exchange has found. It is NULL until a difference is met. */
	struct sync *sync;
	/* The number of the exchange. */
	uint64_t sync_round;
	/* How many beats have passed since the exchange began. */
	uint32_t sync_beats;
	/* The exchange was evaluated: its differences have been judged. */
	bool sync_evaluated;
	/* core->tick when the exchange began. What others list in the exchange they have later than
	 * that. */
	uint16_t sync_tick;
	/* When core->tick is raised next. */
	struct instant tick_at;
};

/* The walk over the live table for the keys that stand out, and for the lease that was acquired
 * first. */
struct oldest {
	/* Somebody wants to know. */
	bool wanted;
	/* What this walk has found so far, and what the last one found; NULL if nobody wants to
	 * know, or if there was no memory. */
	struct hot_found *finding, *hot;
	/* When the next slot of changes.granted begins. */
	struct instant turn;
	/* The bucket at which the walk goes on, and when it does so. */
	size_t bucket;
	struct instant next;
	/* When the oldest lock that this walk has met so far was acquired, and the one that the
	 * last walk found, in nanoseconds of CLOCK_BOOTTIME; INT64_MAX for none. */
	int64_t found, known;
};

/* node/: steps, beats, and a planned stop. */
struct node_state {
	/* The time of the last step. */
	struct instant last_step;
	/* There has been a step. */
	bool stepped;
	/* When this master last found itself behind a quorum (section 9); 0 if it has not since its
	 * start. */
	struct instant behind_at;
	/* When the next piece of long work may be done. */
	struct instant background_at;
	/* The walk that finds the keys that stand out. */
	struct oldest oldest;
	/* For how long the loop stood still in all, in nanoseconds. */
	uint64_t stood_still;
	/* The timer of beats, a quarter of request_timeout apart. */
	struct timer beat;
	/* Memory for the messages of one frame of the side file. */
	struct message *drain_messages;
	/* A frame of the side file could not be restored. */
	bool drain_failed;
	/* Where the side file goes on: the bucket, and the place of the ring of tombstones. */
	size_t drain_bucket;
	uint32_t drain_tombstones;
	/* How many records of that bucket have been written. */
	uint32_t drain_written;
};

#endif
