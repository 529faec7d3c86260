/* observers.h: what the lower rooms tell the upper ones. node/events.c says who hears of each event, and in which order. */
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

	/* A link comes up; what is known of the link before is still there. */
	void (*link_comes)(struct core *core, uint32_t peer, struct id128 id, uint64_t boot);
	/* It is up. */
	void (*link_up)(struct core *core, uint32_t peer);
	/* A link is about to be given up. */
	void (*link_ends)(struct core *core, uint32_t peer);
	/* It is gone. closed: the other side closed it. */
	void (*link_lost)(struct core *core, uint32_t peer, bool closed);
	/* The node at the other end votes now, or does not any more, or is in another epoch. */
	void (*link_changed)(struct core *core, uint32_t peer);
	/* A message of this node to itself could not be queued; then it hears itself again. */
	void (*self_lost)(struct core *core);
	void (*self_again)(struct core *core);
	/* This node votes now. */
	void (*votes_changed)(struct core *core);
	/* A node has taken this place in the table of peers. */
	void (*peer_added)(struct core *core, uint32_t peer);
	/* The place of a linked peer is gone from the table of peers. */
	void (*peer_dropped)(struct core *core, uint32_t peer);
	/* The table of peers was built anew: from[i] is where peer i was before, or -1. */
	void (*peers_moved)(struct core *core, const int from[NODES_MAX]);

	/* Something was appended to the log. */
	void (*logged)(struct core *core);
	/* The log begins anew, and nobody can go on from before. */
	void (*log_ends)(struct core *core);
	/* Somebody watches here, for the first time. */
	void (*watched)(struct core *core);

	/* The live table is about to be replaced; then it was, by another one than `old`; then the old one has been emptied. */
	void (*table_ends)(struct core *core, struct table *old);
	void (*table_swapped)(struct core *core, struct table *old);
	void (*table_emptied)(struct core *core);
	/* What follows from the change of a record (changes/record_changed.c); of an end: before the record is dropped. */
	void (*record_changed)(struct core *core, struct key *key, struct record *r, enum record_change what);
	/* A record of the live table is about to be dropped, or nobody holds it any more: its key stays closed for so long all the same. */
	void (*record_lost)(struct core *core, const struct key *key, const struct record *r, span_ns closed);
	/* Something is remembered of a lock_id that has ended (store/tombstones.c): whoever copies is told. */
	void (*lock_ended)(struct core *core, struct slice key, struct id128 lock_id);
	/* Whoever copies the live table is to have this record anew. */
	void (*record_copied)(struct core *core, const struct key *key, const struct record *r);
	/* Something that stood in the way of others is gone from a key of the live table: those who wait in its queue may go on. */
	void (*key_opened)(struct core *core, struct key *key);
	/* Both: a record or a promise of it is gone. */
	void (*key_ended)(struct core *core, struct key *key);
	/* A key has changed for which somebody waits. */
	void (*key_changed)(struct core *core, struct key *key);
	/* A key is about to be freed with whoever waits for it. */
	void (*key_freed)(struct core *core, struct key *key);
};

extern const struct observers node_observers;

#endif
