/* room_state.h: what the rooms keep, one struct for each. Part of state.h. */
#ifndef PAWL_CLUSTER_ROOM_STATE_H
#define PAWL_CLUSTER_ROOM_STATE_H

/* engine/: the Lamport clock's bounds, what is on disk, one turn of the loop */
struct engine_state {
	/* The greatest clock that was taken from others, and when; since then it may have risen by one
	 * each nanosecond (section 9). */
	uint64_t clock_limit;
	struct instant clock_limit_at;
	/* The number of what `durable` wants on disk, and of the last that is there. */
	uint64_t persist_seq;
	uint64_t persist_done;
	/* What was taken for writing and is not there yet. */
	struct persisting taken[4];
	/* Parts of `durable` as they are on disk. */
	uint64_t ceiling_on_disk, boot_on_disk;
	bool pledged_on_disk, voted_on_disk;
	/* The clock when this node last stopped voting, on which its votes of before rest; 0: it has not
	 * since its start. */
	uint64_t vote_clock;
	/* A write has failed: it is tried again then. */
	struct instant persist_retry;
	bool persist_again;
	/* A bit set of peers, with the node itself, for which a message could not be queued in this step. */
	uint64_t failed;
	/* A message to the node itself could not be queued; until the next beat. */
	bool self_lost;
	/* A turn of the loop is over since the last step. */
	bool turn_over;
	/* The long work that this turn has left. */
	struct pieces left;
	/* Callers that may have to be answered at once: the outbox keeps room for so many. */
	uint64_t caller_count;
	struct wheel wheel;
};

/* peers/ */
struct peering_state {
	/* When a quorum was last linked. */
	struct instant near_at;
	/* No quorum is linked: it dials everybody it knows. */
	bool isolated;
	/* For the driver: who is to be dialled has changed. */
	bool peers_changed;
	/* Room to build a new table of peers in. */
	struct peer_table_room *peer_table_room;
};

/* store/: the tables, what has ended, what was promised beside a record */
struct store_state {
	/* The table that is voted and read from, and one that is being built from snapshots, is being
	 * emptied, or is empty. */
	struct table tables[2];
	struct table *live, *staging;
	enum staging_use staging_use;
	/* STAGING_EMPTYING: from the last bucket down. */
	size_t empty_bucket;
	uint64_t promise_count, waiter_count;
	/* A ring. */
	struct tombstone *tombstones;
	uint32_t tombstones_size, tombstones_next;
	struct map tombstones_map;
	/* When a record ended here last. */
	struct instant lacked[LACKED_PLACES];
	/* The same of records that were not released (first.c). */
	struct lost {
		struct ballot noted;
		struct instant at;
	} lost[LACKED_PLACES];
	/* When it began to vote, and its clock then. */
	struct instant vote_began;
	uint64_t clock_began;
	/* The clock of the last ballot that it drew for a first value. */
	uint64_t first_drawn;
	struct preparing preparing[PREPARING_MAX];
	uint32_t preparing_next;
	struct extended extended[EXTENDED_MAX];
	uint32_t extended_next;
	struct finishing finish;
};

/* changes/: the log of changes, watch events, and what was missed */
struct changes_state {
	struct log log;
	/* Followers that are fed; of them, those that want watch events. */
	uint32_t feeds, watch_event_feeds;
	bool watch_event_wanted;
	uint32_t (*count_watchers)(void *ctx, struct slice key);
	void *count_watchers_ctx;
	/* Writes that were refused here for a newer one. */
	struct unwritten unwritten[UNWRITTEN_MAX];
	uint32_t unwritten_next;
	/* Commits that were refused here and may count elsewhere. */
	struct map unseen;
	struct list unseen_all;
	size_t unseen_bytes;
	struct told *told;
	uint64_t told_before;
	/* What was told of without having been here: the first word of the lock_id, and the token. */
	struct told_once {
		uint64_t lock, token;
	} told_lately[64];
	uint32_t told_lately_next;
	/* By this node, since its start (counted.c). */
	uint64_t commits_begun;
	uint32_t counted_beats, says_heard;
	bool left_out, missed_under_way;
	/* What was under way when something had been missed has ended by then. */
	struct instant missed_over;
	/* The next comparison of the tables is due at once. */
	bool sync_hurry;
};

/* master/: who waits, and what is bound to which node */
struct master_state {
	struct queues queues;
	/* Nodes that have bound records of this one to themselves. */
	struct list holders;
	uint32_t holder_count;
	struct map bound_locks;
};

/* coordinator/: operations under way, and those who wait for their answers */
struct coordinator_state {
	struct map ops_by_id, ops_by_lock, clients, granted_leases;
	struct list ops, unfinished, waiting, lists;
	/* Of a walk over `ops` that is under way. */
	struct list *ops_next;
	struct list op_pool;
	uint64_t op_next, ticket_next;
	uint32_t op_count, catch_up_count, waiting_count, pool_count, binding_count;
	uint64_t granted_count;
	/* Where the sweep of granted leases is. */
	size_t granted_bucket;
	struct list suspended;
	/* Operations that want more than a little of the masters' reports. */
	struct list in_line;
	/* Operations that go on with this node's own report in the next turn. */
	struct list asking;
	/* struct client: gone, and not all that it waited for has been given up; what those are answered. */
	struct list leaving;
	struct core_reply nobody;
	/* Operations that may ask for more than a little; of them, those that began in this step. */
	uint32_t reporting, reports_begun;
	/* Groups that something has been answered to: looked at within the same step. */
	struct list groups;
	/* An operation that is to look for its home anew has another number than this (home.c). */
	uint32_t homes;
	bool homes_stale;
};

/* replication/ */
struct replication_state {
	/* How long a batch may wait. */
	span_ns replication_interval;
	struct timer feed_timer;
	/* The log's number with which a batch is full. */
	uint64_t feed_full_at;
	struct timer follow_timer;
};

/* repair/: the comparison of tables between masters (sync.c) */
struct repair_state {
	/* NULL until a difference is met. */
	struct sync *sync;
	uint64_t sync_round;
	/* Since the exchange began. */
	uint32_t sync_beats;
	bool sync_judged;
	/* core->tick when the exchange began: what others list in it they have later than that. */
	uint16_t sync_tick;
	/* When core->tick counts on. */
	struct instant tick_at;
};

/* recovery/ */
struct recovery_state {
	struct state_transfer transfer;
	struct instant rejoin_at, vote_at;
	struct announced announced;
	/* The end of a planned stop has been written or restored, and the clock in it. */
	bool drain_whole;
	uint64_t drain_clock;
};

/* membership/: the configuration that follows, and who may be believed */
struct membership_state {
	uint64_t adopt_seq;
	/* The configuration that is being adopted starts the cluster over. */
	bool forced;
	bool auto_replace, birth_stopped;
	/* When a quorum was last known to vote. */
	struct instant voters_at;
	/* It is told of a later configuration that it cannot believe (proof.c): since when, and when last. */
	bool unproven, unproven_noted;
	struct instant unproven_since, unproven_at;
	/* Of decrees that were proposed here, since the start. */
	uint64_t ballot_drawn;
	/* When a decree that was accepted here is finished in its proposer's place. */
	struct instant finish_at;
	struct change change;
};

/* node/: steps, beats, and a planned stop */
struct node_state {
	struct instant last_step;
	bool stepped;
	/* When it last found itself behind a quorum; 0: not since its start. */
	struct instant behind_at;
	/* When the next piece of long work may be done. */
	struct instant background_at;
	struct timer beat;
	struct message *drain_messages;
	bool drain_failed;
	size_t drain_bucket;
	uint32_t drain_tombstones;
	/* Of the bucket's records. */
	uint32_t drain_written;
};

#endif
