/* operation_state.h: what a coordinator keeps of what it was asked for (sections 2, 3 and 5). Part
 * of state.h, in the middle of it. */
#ifndef PAWL_CLUSTER_OPERATION_STATE_H
#define PAWL_CLUSTER_OPERATION_STATE_H

/* What a master has said in the round under way. */
enum vote_state {
	/* The master was not asked. */
	VOTE_NONE,
	/* It has not answered yet. */
	VOTE_ASKED,
	/* It counts as silent: it is not linked, does not vote, or is out of time. */
	VOTE_GONE,
	/* It has promised or accepted. */
	VOTE_OK,
	/* Promise: it says "held by yourself". */
	VOTE_SELF,
	/* Promise with a turn: it has parked the request. */
	VOTE_PARKED,
	/* Extension: it has accepted, and it had the lock_id. */
	VOTE_HAD,
	/* It wants to be sent the record. */
	VOTE_NEED,
	/* It was sent the record. */
	VOTE_LEARNING,
	/* Extension: it has accepted, and it had the lock_id, but under a token or a session
	 * binding below another master's. */
	VOTE_BEHIND,
	/* Extension: it has the record, and may not lengthen it yet. */
	VOTE_LATER,
	/* It refuses: another lock holds the key, or the key is contested. */
	VOTE_HELD,
	/* It refuses: the key is promised to another lock_id. */
	VOTE_RIVAL,
	/* It refuses: somebody waits ahead. */
	VOTE_QUEUED,
	/* It refuses by R2. */
	VOTE_STALE,
	/* It refuses for a higher ballot. */
	VOTE_BALLOT,
	/* It lacks the lock_id. */
	VOTE_ABSENT,
	/* It refuses for another reason, which is in vote.status. */
	VOTE_REFUSED
};

struct vote {
	enum vote_state state;
	/* The status of the master's last answer. */
	enum status status;
	/* The master has answered since the turn was renewed last. */
	bool fresh;
	/* Extension: its record has other permit numbers, too, that are in doubt or left to run
	 * out. */
	bool more;
	/* Extension, update, downgrade: what it lacks it may have had when it was asked. */
	bool had_when_asked;
	/* Acquire: it has promised, and it had lacked the lock_id since before it was asked. */
	bool lapsed;
	/* The token and the noted clock that it reported. */
	uint64_t token, noted;
	/* Extension: the token of the record that it was sent; 0 if it was sent none. */
	uint64_t repaired;
	/* Extension: the session binding of the record that it has, or was sent. */
	uint32_t binding;
	/* Permit numbers of a semaphore. Promise: those that others have there. "Held by yourself",
	 * extension: those of its own record. */
	struct permits set;
	/* Extension: those of its own record's numbers that it had. */
	struct permits had;
};

/* Tells whether an answer is still to come from that master, or something is still to be sent to
 * it. */
static inline bool vote_open(const struct vote *v) {
	return v->state == VOTE_ASKED || v->state == VOTE_LEARNING || v->state == VOTE_NEED ||
		v->state == VOTE_BEHIND;
}

struct op;
/* Tells whether a master that answers that it lacks something may have had it when it was asked. */
bool op_had_when_asked(const struct core *core, const struct op *op, const struct message *m);
/* Returns how many masters in these states lacked the lock already when they were asked. */
uint32_t op_lacked(const struct op *op, uint32_t states);

enum op_state {
	/* Acquire: promises have been asked for. */
	OP_ASKING,
	/* Acquire: it is in the queue of the home, or has no home. */
	OP_QUEUED,
	/* Acquire: it has a turn; promises have been asked for, or are kept. */
	OP_TURN,
	/* Acquire, update: a rival refused it. Extend: masters may not lengthen the lease yet. The
	 * operation tries again when its timer fires. */
	OP_PAUSED,
	/* Acquire: the second phase is under way. */
	OP_COMMITTING,
	/* Others: the one round is under way, or the first of an update or a break. */
	OP_ROUND,
	/* Update: the write is under way. Break: the break itself is. Read: a value is being
	 * fetched. */
	OP_SECOND,
	/* Wait, list, several keys: it sends no messages of its own. */
	OP_LOCAL,
	/* It waits until fewer reports are under way (reports.c). */
	OP_IN_LINE,
	/* The epoch has changed, and fewer than q masters vote in the new one yet. */
	OP_SUSPENDED,
	/* Session binding: it lasts as long as the lock is bound to this node. */
	OP_BINDING,
	/* It has been answered, and is catching up: it repairs masters, or sends a release
	 * again. */
	OP_CATCHING_UP
};

/* A list of the waiters of several keys has at most so many entries. */
enum { WAITERS_MAX = 1000 };

/* A copy of what a master has reported: a record, or an entry of its queue. */
struct master_reply {
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

struct op;
/* Somebody who gets the answer of an operation. The caller of a repeated request joins the
 * operation that is under way. */
struct caller {
	/* Links in op.callers and in client.callers. */
	struct list link, by_client;
	struct op *op;
	struct client *client;
	/* The driver's number of the request. */
	uint64_t id;
	/* When the request arrived. */
	struct instant arrived;
	bool admin;
	/* The request for several keys that the operation is a part of, if the caller is no client;
	 * and the index of its member there. */
	struct op *group;
	uint32_t member;
};

struct client {
	struct map_node node;
	/* The driver's number of the connection. */
	uint64_t id;
	/* struct caller: those of this client. */
	struct list callers;
	/* How many of its requests wait. */
	uint32_t waiters;
	/* Link in core->coordinator.leaving, if the connection is gone. */
	struct list leaving;
	/* struct op: its operations of the kind list, which go on one after the other. */
	struct list lists;
	/* Link in core->coordinator.lists, if it has any of these. */
	struct list listing;
};

/* The waiter that is to be next because the holder says so (section 10, Succession). */
struct successor {
	/* The waiter's lock_id, and the identity of its coordinator. */
	struct id128 lock_id, node;
	uint64_t attempt;
	/* The ballot of its first value, as its home has drawn it. */
	struct ballot first;
};

/* An operation of this node as a coordinator. A field that names operations in front of its
 * description is used by these alone. */
struct op {
	/* Link in core->coordinator.ops, .catching_up or .op_pool. */
	struct list link;
	/* Link in another list: of an acquire before its commit, core->coordinator.waiting; of a
	 * local wait, key_more.waits; of a list, client.lists; in line, core->coordinator.in_line;
	 * and others. */
	struct list waiting;
	/* Elements of core->coordinator.ops_by_id and .ops_by_lock. */
	struct map_node by_id, by_lock;
	struct timer timer;
	/* struct caller: those who get the answer. */
	struct list callers;
	/* Room for one of the callers; first.op is NULL while it is free. */
	struct caller first;
	enum core_op kind;
	enum op_state state;
	/* The number of the operation; and the number of the present round and attempt: id << 16 |
	 * count. */
	uint64_t id, round;
	/* When the present round was sent. */
	struct instant sent;
	/* When the request arrived. */
	struct instant arrived;
	/* Before the answer: when the wait is over; of an extension with `backed`, the deadline
	 * that this node has answered. After it: when the operation stops catching up, which is at
	 * the end of the granted lease or, for a release, when the lease would be over. */
	struct instant until;
	/* The masters' votes, by peer index. */
	struct vote votes[MASTERS_MAX];
	struct id128 lock_id;
	/* The lease and the wait that were asked for, in nanoseconds. */
	span_ns lease, wait;
	/* Acquire: the lock terms; the set has the permit numbers that the commit is for. Extend:
	 * the terms that the answers said, with the greatest session binding that was named or
	 * answered; the set has the numbers that it is for, and none stands for those that q
	 * masters had. */
	struct terms terms;
	/* Acquire: the token that was chosen. Extend, break: the token that the caller named. */
	uint64_t token;
	/* The highest token that a master has reported. */
	uint64_t best_token;

	bool
		/* Acquire: it has no wait time. */
		try_lock,
		/* Extend: the caller keeps its own deadline. */
		deadline_kept,
		/* Extend: this node vouches for the lock by a deadline that it has answered. */
		backed,
		/* Extend: neither of the two, so only masters count that had the lock. */
		blind,
		/* Read: a quorum is asked. */
		quorum_read,
		/* Break: it is by force. */
		now_flag,
		/* Wait: it is for the key to be free; else to be held. */
		for_free,
		/* Release, transfer, downgrade, break: a master had the lock. */
		had_any,
		/* Read, explain: it has asked a second time. */
		again,
		/* Acquire, read: a master has said that the key is contested. */
		contested_seen;
	/* Release: the lock was bound to this node, which has lost it. So it ends at the masters
	 * where it is still bound to this node. */
	bool lost_here;
	/* Acquire: it has met a rival, and the timer is set for that. */
	bool rival_waiting;
	/* Acquire: a commit was sent in an earlier try, and masters may have accepted it. */
	bool committed;
	/* Acquire: its commit was refused, and it begins again with the turn that it had. */
	bool resumes;
	/* Acquire: how often its commit was overtaken (commit.c). */
	uint8_t overtaken;
	/* Acquire: if its commit brings a first value, q masters have lacked the lock_id at one
	 * moment since then. */
	struct instant since;
	/* Acquire: a random number that names the commit under way. */
	uint64_t commit_name;
	/* Acquire, of permits: the same name as it is said with the commit under way, so that it
	 * can be given back; 0 for none. Extend: the extension's own name, if this node did not
	 * answer the lock to its caller. */
	uint64_t roll_back_name;
	/* Update: the error that is answered after the value was written back. */
	int error;

	/* Acquire: when the last of the records ends that its turn is parked behind, as far as
	 * masters have said. */
	struct instant parked_until;
	struct ticket ticket;
	/* Acquire: the round under which the home knows the entry. */
	uint64_t queue_round;
	/* Acquire: the round under which promises were asked for. */
	uint64_t attempt;
	/* Acquire: the peer index of the home, or -1. */
	int home;
	/* Acquire: peer.stopped of the home when the request was entered there. */
	uint32_t home_stopped;
	/* Acquire: core->coordinator.home_changes when the request last looked for its home. */
	uint32_t home_changes;
	/* Acquire, update: how often it has paused for a rival. */
	uint32_t pauses;

	/* Extend: when the first of the masters that may not lengthen the lease yet may do so. */
	struct instant later;
	/* Extend: the peer index of the master that the record is being asked of, or -1. */
	int fetch_from;
	/* Extend: a bit set of the masters that the record has been asked of. */
	uint32_t fetch_tried;

	/* Update: its ballot, the expected one, and the highest one that stood in the way. Acquire:
	 * the ballot of its first value. */
	struct ballot ballot, expected_seq, seen;
	/* Update: a copy of the value that it knows, so that a report of the same value leaves it
	 * out. Acquire: the value with the highest ballot that was reported by a master that has
	 * the lock_id. NULL means that nobody has it, and the request brings the first value. */
	struct record *own_value;
	/* Update: which of the expectations are given. */
	bool expect_value, expect_seq;

	/* Read, break, waiters, explain: copies of what the masters have reported. */
	struct master_reply *replies;
	uint32_t replies_count, replies_capacity;
	/* How many parts of its report each master has sent. */
	uint64_t parts_seen[MASTERS_MAX];
	/* It is one of the operations that may ask for more than the first piece of the reports. */
	bool reporting;
	/* Read: the lock_id whose value is being fetched (OP_SECOND). */
	struct id128 fetching;

	/* Wait: the key that it waits for. */
	struct key *on;
	/* List, waiters: the most entries that are wanted. */
	uint32_t limit;
	/* Waiters: the list is of all keys with a prefix. */
	bool prefix;
	/* List: the bucket at which its walk over the table goes on; and the names of keys that it
	 * has found. */
	size_t bucket;
	struct key_names *names;
	/* List: the work for it since its last reply, in the units of local.c. */
	uint32_t work;
	/* Session binding: what is known of each master. */
	struct binding *binding;
	/* Transfer: the waiter that is to be next, once it was found. */
	struct successor successor;
	/* Ask: a bit set of peers that have not answered yet; and how many watchers were told. */
	uint64_t asked;
	uint32_t reached;
	/* Several keys: the members. */
	struct group *group;
	/* The name of the request for several keys that this is a part of; it is said with
	 * everything that is accepted for it, so that it can be given back. 0 means that this is a
	 * part of none. */
	uint64_t part_of;

	/* One block of memory that has all bytes of the request, which the slices point into. */
	uint8_t *block;
	size_t block_size;
	struct slice key, owner, identity, value, expected, label, to;
	/* Extend, update: a copy of the record, to repair masters with. Acquire: the record of the
	 * holder that stood in the way. */
	struct record *record;
};

#include "group.h"

#define GRANTED_ASKER (UINT64_MAX >> 1)
/* A granted lease: a lock that this node has answered, and trusts until the deadline. */
struct granted {
	struct map_node node;
	struct id128 lock_id;
	struct instant deadline;
	/* The connection that was answered last (op_asker), cut to GRANTED_ASKER; 0 for one that
	 * had gone by then. */
	uint64_t asker : 63;
	/* `numbers` has one element. */
	uint64_t numbered : 1;
	/* The permit numbers that were answered last. */
	struct permits numbers[];
};

#endif
