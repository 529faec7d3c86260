/* operation_kinds.h: what an operation keeps for its kind alone: the operation has these structs
 * in a union, which operation_state.h says how to read. Part of coordinator.h. */
#ifndef PAWL_CLUSTER_OPERATION_KINDS_H
#define PAWL_CLUSTER_OPERATION_KINDS_H

#include "state.h"

/* The largest number of entries in a list of the waiters of several keys. */
enum { WAITERS_MAX = 1000 };

/* ---- the holder's operations ---- */

/* Acquire: an attempt to get one lock. */
struct acquire_state {
	/* It has no wait time. */
	bool try_lock;
	/* A master has said that the key is contested. */
	bool contested_seen;
	/* CORE_END_WAIT has ended its wait. */
	bool wait_cut;
	/* It has met a rival, and the timer is set for that. */
	bool rival_waiting;
	/* A commit was sent in an earlier try, and masters may have accepted it. */
	bool committed;
	/* Its commit was refused, and it begins again with the turn that it had. */
	bool resumes;
	/* It has promises of q masters, and has waited for the home. */
	bool home_waited;
	/* The masters that tell again which permit numbers are taken, a bit each. */
	uint16_t told;
	/* How often its commit was overtaken (commit.c). */
	uint8_t overtaken;
	/* How long after its arrival it entered a queue, in milliseconds, plus 1; 0: it never did,
	 * or nobody wants to know (slow.c). */
	uint32_t queued_after;
	/* The token that was chosen. */
	uint64_t token;
	/* If its commit brings a first value, q masters have lacked the lock_id at one moment since
	 * then. */
	struct instant since;
	/* A random number that names the commit under way. */
	uint64_t commit_name;
	/* The same name, if the commit under way is for permits and so has to be rolled back when
	 * it fails; else 0. */
	uint64_t roll_back_name;
	/* When the last of the records ends that its turn is parked behind, as far as masters have
	 * said. */
	struct instant parked_until;
	/* Link in core->coordinator.queued_at. */
	struct list queued;
	/* Its place in the queue. Seq 0: it was in none yet. */
	struct ticket ticket;
	/* The round under which the home knows the entry. */
	uint64_t queue_round;
	/* The round under which promises were asked for. */
	uint64_t attempt;
	/* The peer index of the home, or -1. */
	int home;
	/* peer.stopped of the home when the request was entered there. */
	uint32_t home_stopped;
	/* core->coordinator.home_changes when the request last looked for its home. */
	uint32_t home_changes;
	/* How often it has paused for a rival. */
	uint32_t pauses;
	/* The ballot of its first value. */
	struct ballot ballot;
	/* The value with the highest ballot that was reported by a master that has the lock_id.
	 * NULL means that nobody has it, and the request brings the first value. */
	struct record *reported;
	/* The record of the holder that stood in the way, or NULL. */
	struct record *holder;
};

struct extend_state {
	/* The caller keeps its own deadline. */
	bool deadline_kept;
	/* This node vouches for the lock by a deadline that it has answered. */
	bool backed;
	/* Neither of the two, so only masters count that had the lock. */
	bool blind;
	/* The caller names an order, so no answer of this node vouches for the lock. */
	bool ordered;
	/* The order that a shortening names; 0: it is none. */
	uint32_t shortens;
	/* The token that the caller named. */
	uint64_t token;
	/* The highest token that a master has reported. */
	uint64_t best_token;
	/* The extension's own name, if this node did not answer the lock to its caller; 0 for
	 * none. */
	uint64_t roll_back_name;
	/* When the first of the masters that may not lengthen the lease yet may do so. */
	struct instant later;
	/* The peer index of the master that the record is being asked of, or -1. */
	int fetch_from;
	/* A bit set of the masters that the record has been asked of. */
	uint32_t fetch_tried;
	/* A copy of the record, to repair masters with; or NULL. */
	struct record *record;
};

struct update_state {
	/* Which of the expectations are given. */
	bool expect_value, expect_seq;
	/* It is a release that expects a value: it writes a last value. */
	bool ends;
	/* After the answer: a master was asked for the record. */
	bool fetching;
	/* The error that is answered after the value was written back. */
	int error;
	/* How often it has paused for a rival. */
	uint32_t pauses;
	/* Its ballot, the expected one, and the highest one that stood in the way. */
	struct ballot ballot, expected_seq, seen;
	/* A copy of the value that this node knows, so that a report of the same value leaves it
	 * out; or NULL. */
	struct record *own_value;
	/* The value with the highest ballot that a master has reported. */
	struct record *record;
};

/* Release, and the second round of a transfer, which goes on as a release. */
struct release_state {
	/* A master had the lock. */
	bool had_any;
	/* The lock was bound to this node, which has lost it. So it ends at the masters where it is
	 * still bound to this node. */
	bool lost_here;
	/* A master keeps the key closed, as the release asked for; and the peer index, plus 1, of
	 * the master that is asked for the record which does so; 0: none is. */
	bool closed_any;
	uint8_t fetch_from;
	/* For how long the key is to stay closed, and until when, from the first round on; 0: it
	 * opens at once. */
	span_ns closes;
	struct instant closed_until;
};

struct transfer_state {
	/* This comes first, because the operation ends as a release. */
	struct release_state release;
	/* The peer index of this node's home for the key, or -1. */
	int home;
	/* The waiter that is to be next, once it was found. */
	struct successor successor;
};

struct downgrade_state {
	/* A master had the lock. */
	bool had_any;
	/* The highest token that a master has reported. */
	uint64_t best_token;
};

/* ---- what asks masters for reports ---- */

/* A copy of what a master has reported: a record, or an entry of its queue. */
struct master_reply {
	/* What was reported; the record is owned. */
	struct record *record;
	/* Of a queue entry: the identity of its coordinator. */
	struct id128 node;
	/* The peer index of the master. */
	uint32_t from;
	/* The value counts, as in Prepare (section 2, Update). */
	bool counts;
	/* The flags of the message; an explanation reads them. */
	uint32_t flags;
};

/* Read, explain, break, waiters: what the masters have reported. It comes first in the struct of
 * each of these. */
struct reports {
	/* What was reported, in the order in which it came. */
	struct master_reply *replies;
	uint32_t replies_count, replies_capacity;
	/* When the masters were first asked for these replies. */
	struct instant asked;
	/* How many parts of its report each master has sent. */
	uint64_t parts_seen[MASTERS_MAX];
	/* It is one of the operations that may ask for more than the first piece of the reports. */
	bool reporting;
	/* The lock_id whose value is being fetched (OP_SECOND). */
	struct id128 fetching;
};

/* Read and explain. */
struct read_state {
	/* What the masters have reported. */
	struct reports reports;
	/* Read: a quorum is asked. */
	bool quorum;
	/* It has asked a second time. */
	bool again;
	/* Read: a master has said that the key is contested. */
	bool contested_seen;
};

struct break_state {
	/* What the masters have reported. */
	struct reports reports;
	/* The break is by force. */
	bool now;
	/* A master had the lock. */
	bool had_any;
	/* The token that the caller named; and the one that is answered. */
	uint64_t token, best_token;
};

struct waiters_state {
	/* What the masters have reported. */
	struct reports reports;
	/* The list is of all keys with a prefix. */
	bool prefix;
	/* The most entries that are wanted. */
	uint32_t limit;
};

/* ---- what this node does without a quorum ---- */

struct wait_state {
	/* It is for the key to be free; else to be held. */
	bool for_free;
	/* The key that it waits for. */
	struct key *on;
	/* In core->coordinator.local_waits. */
	struct list all;
};

struct list_state {
	/* The most entries that are wanted. */
	uint32_t limit;
	/* The work for the list since its last reply, in the units of local.c. */
	uint32_t work;
	/* The bucket at which its walk over the table goes on. */
	size_t bucket;
	/* The names of keys that it has found. */
	struct key_names *names;
};

struct ask_state {
	/* A bit set of peers that have not answered yet. */
	uint64_t asked;
	/* How many watchers were told. */
	uint32_t reached;
};

#endif
