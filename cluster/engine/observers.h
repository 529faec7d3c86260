/* observers.h: what the lower rooms tell the upper ones. node/events.c says who hears of each
 * event, and in which order. */
#ifndef PAWL_CLUSTER_OBSERVERS_H
#define PAWL_CLUSTER_OBSERVERS_H

#include "record_change.h"
#include "types.h"

struct core;
struct key;
struct record;
struct table;

struct observers {
	/* More of the durable state is on disk. */
	void (*persisted)(struct core *core);

	/* A link is coming up. What is known of the link before it is still there. */
	void (*link_comes)(struct core *core, uint32_t peer, struct id128 id, uint64_t boot);
	/* The link is up. */
	void (*link_up)(struct core *core, uint32_t peer);
	/* A link is about to be given up. */
	void (*link_ends)(struct core *core, uint32_t peer);
	/* A link is gone. closed: the other side has closed it. */
	void (*link_lost)(struct core *core, uint32_t peer, bool closed);
	/* The node at the other end votes now, or no longer votes, or is in another epoch. */
	void (*link_changed)(struct core *core, uint32_t peer);
	/* A master is suspect from now on, or no longer (peers/silence.c). */
	void (*suspicion_changed)(struct core *core, uint32_t peer);
	/* A message of this node to itself could not be queued. */
	void (*self_lost)(struct core *core);
	/* This node hears itself again. */
	void (*self_again)(struct core *core);
	/* This node votes now. */
	void (*votes_changed)(struct core *core);
	/* A node has taken this place in the table of peers. */
	void (*peer_added)(struct core *core, uint32_t peer);
	/* A linked peer is losing its place in the table of peers. */
	void (*peer_dropped)(struct core *core, uint32_t peer);
	/* The table of peers was built anew: from[i] is the index at which peer i was before, or
	 * -1. */
	void (*peers_moved)(struct core *core, const int from[NODES_MAX]);

	/* Something was appended to the log, which somebody follows. */
	void (*logged)(struct core *core);
	/* The log begins anew, so nobody can go on from a place in it. */
	void (*log_ends)(struct core *core);
	/* Somebody has begun to watch here, and nobody did before. */
	void (*watched)(struct core *core);

	/* The live table `old` is about to be replaced. */
	void (*table_ends)(struct core *core, struct table *old);
	/* Another table has taken the place of `old`. */
	void (*table_swapped)(struct core *core, struct table *old);
	/* The old table has been emptied. */
	void (*table_emptied)(struct core *core);
	/* A record has changed (changes/record_changed.c), or is about to end: then it is told
	 * before the record is dropped. */
	void (*record_changed)(struct core *core, struct key *key, struct record *r,
		enum record_change what);
	/* Those who copy the live table are to be told that a record of it is about to be dropped,
	 * or that nobody holds it any more. Its key stays closed for `closed` nanoseconds
	 * nevertheless. Only to be called while core->copied, like record_copied. */
	void (*record_lost)(struct core *core, const struct key *key, const struct record *r,
		span_ns closed);
	/* Something is remembered of a lock_id that has ended (store/tombstones.c). Those who copy
	 * the live table are to be told. */
	void (*lock_ended)(struct core *core, struct slice key, struct id128 lock_id);
	/* Those who copy the live table are to be sent this record again. */
	void (*record_copied)(struct core *core, const struct key *key, const struct record *r);
	/* Something that stood in the way of others is gone from a key of the live table. Those who
	 * wait in its queue may go on. */
	void (*key_opened)(struct core *core, struct key *key);
	/* A record or a promise of the key is gone: both key_opened and key_changed. */
	void (*key_ended)(struct core *core, struct key *key);
	/* A record of a key has come or has changed; NULL: one has ended. Local waits may wait for
	 * that, and requests of this node for a turn. */
	void (*key_changed)(struct core *core, struct key *key, const struct record *r);
	/* A key is about to be freed, with those who wait for it. */
	void (*key_freed)(struct core *core, struct key *key);
};

/* The one set of observers, in node/events.c. */
extern const struct observers node_observers;

#endif
