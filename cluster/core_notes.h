/* core_notes.h: what a core tells its driver besides frames and replies: notes for the log, and
 * what has happened to keys. Part of core.h. */
#ifndef PAWL_CLUSTER_CORE_NOTES_H
#define PAWL_CLUSTER_CORE_NOTES_H

#include "types.h"

/* What an operator should read in the log. The comments say which fields of core_note are set. */
enum core_note_kind {
	/* The cluster is born. */
	NOTE_BORN,
	/* The pledge of `peer` differs; `text` says in what. `value` is 1 if that node is born. */
	NOTE_BIRTH_DIFFERS,
	/* `peer` does not have the identity that is configured: its state was lost or mixed up. */
	NOTE_BIRTH_STRANGER,
	/* This node votes; `text` says how it came to: by birth, rejoining, waiting, or drain. */
	NOTE_VOTING,
	/* This node recovers. */
	NOTE_RECOVERING,
	/* This node has stopped voting for a planned stop. */
	NOTE_DRAINING,
	/* Too few masters vote, or enough of them again; `value` says how many. */
	NOTE_QUORUM_LOST,
	NOTE_QUORUM_BACK,
	/* The clock of `peer`, in `value`, is too far ahead and was refused. */
	NOTE_CLOCK_REFUSED,
	/* A lease that `peer` told, of `value` nanoseconds, is longer than any was allowed. */
	NOTE_LEASE_REFUSED,
	/* A quorum of masters has clocks far above this node's, so that it rejoins. */
	NOTE_CLOCK_BEHIND,
	/* `peer` changes its vote or epoch again and again, so that its link is reset. */
	NOTE_UNSTEADY,
	/* The link of `peer` was reset. */
	NOTE_LINK_RESET,
	/* The loop of this node stood still for `value` nanoseconds. */
	NOTE_STOOD_STILL,
	/* `key` is contested, or is contested no more. */
	NOTE_CONTESTED,
	NOTE_CONTESTED_ENDED,
	/* The lock on `key` with the token `value` was broken: `text` says whether at once or by
	 * barring it. */
	NOTE_BROKEN,
	/* This node is in no configuration. `value` is the epoch that removed it, or 0 if it never
	 * was in one. */
	NOTE_OUTSIDE,
	/* This replica follows the master `peer` from now on. */
	NOTE_FOLLOWING,
	/* This node has adopted the epoch `value`; `text` says what it is there. */
	NOTE_ADOPTED,
	/* `peer` has another configuration under the epoch `value`. If enough masters have, this
	 * node stops voting. */
	NOTE_CONFLICT,
	/* This node is told of the later epoch `value` and has too little proof to adopt it. */
	NOTE_UNPROVEN,
	/* All masters of the epoch `value` vote. */
	NOTE_COMPLETE,
	/* A change would have made `peer` a master, which that node must not be. */
	NOTE_ROLE_REFUSED,
	/* A change that this node coordinates has come to the step `text`; `value` is its epoch. */
	NOTE_CHANGE,
	/* The cluster was started over at this node, with the epoch `value`. */
	NOTE_FORCED,
	/* Two locks of `key` that exclude each other were granted at once, as the table of the
	 * master `peer` shows; `text` says how. `holders` are the two, the earlier first. */
	NOTE_DOUBLE_GRANT
};
/* One of the two locks of a double grant. */
struct core_note_holder {
	/* Its fencing token. */
	uint64_t token;
	/* The first bytes of its owner. */
	struct slice owner;
};
struct core_note {
	/* What is to be noted. */
	enum core_note_kind kind;
	/* A peer index; NODES_MAX if that peer is gone by now. */
	uint32_t peer;
	/* A number, as the kind says. */
	uint64_t value;
	/* Static storage, or NULL. */
	const char *text;
	/* The key that the note is about, or empty. */
	struct slice key;
	/* DOUBLE_GRANT. */
	struct core_note_holder holders[2];
};

/* What has happened to keys in this node's own table, in order. The events that a client watches
 * are made of these. */
enum core_watch_event_kind {
	WATCH_EVENT_ACQUIRED,
	/* The value has changed. */
	WATCH_EVENT_UPDATED,
	/* An exclusive lock has become a shared one. */
	WATCH_EVENT_DOWNGRADED,
	/* The holder has released the lock. */
	WATCH_EVENT_RELEASED,
	/* The lease, and its lock delay, are over. */
	WATCH_EVENT_EXPIRED,
	/* The lock was taken away: it was broken, or its node or client is gone. */
	WATCH_EVENT_LOST,
	/* Somebody asks the holder to let go of the lock. `owner` is the owner that asks, `value`
	 * the owner in whose favour it asks (it may be empty), and terms.priority says how
	 * urgently. */
	WATCH_EVENT_ASKED,
	/* Events may have been missed here, of `key`; or, without a key, of any key, because the
	 * table was replaced or a master could not be heard. */
	WATCH_EVENT_MISSED
};
struct core_watch_event {
	/* What has happened. */
	enum core_watch_event_kind kind;
	/* The lock's key, owner, identity, value and label. ASKED: see there. */
	struct slice key, owner, identity, value, label;
	/* The lock; 0: events were missed. */
	struct id128 lock_id;
	/* Its fencing token. */
	uint64_t token;
	/* The ballot of its value. */
	struct ballot value_seq;
	/* Its terms, with the permit numbers of a semaphore. */
	struct terms terms;
};

#endif
