/* operation_state.h: what a coordinator keeps of what it was asked for (sections 2, 3 and 5). Part
 * of coordinator.h. */
#ifndef PAWL_CLUSTER_OPERATION_STATE_H
#define PAWL_CLUSTER_OPERATION_STATE_H

#include "group.h"
#include "operation_kinds.h"
#include "state.h"

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

/* Makes a member of a bit set of enum vote_state. */
#define VOTE_BIT(s) (1u << (s))
/* An answer is still to come from that master, or something is still to be sent to it. */
#define VOTES_OPEN \
	(VOTE_BIT(VOTE_ASKED) | VOTE_BIT(VOTE_LEARNING) | VOTE_BIT(VOTE_NEED) | \
		VOTE_BIT(VOTE_BEHIND))

struct vote {
	/* What the last answer means for the round. */
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
	/* Acquire, permits: no other coordinator had a promise there. */
	bool alone;
	/* Acquire: it has promised, and it had lacked the lock_id since before it was asked. */
	bool lapsed;
	/* The token and the noted clock that it reported. */
	uint64_t token, noted;
	/* Extension: the token and the session binding of the record that it was sent; 0 if it was
	 * sent none. */
	uint64_t repaired;
	uint32_t repaired_binding;
	/* Extension: the session binding of the record that it has. */
	uint32_t binding;
	/* Permit numbers of a semaphore. Promise: those that others have there. "Held by yourself",
	 * extension: those of its own record. */
	struct permits set;
	/* Extension: those of its own record's numbers that it had. */
	struct permits had;
};

/* Tells whether the vote is one of VOTES_OPEN. */
static inline bool vote_open(const struct vote *v) {
	return VOTES_OPEN >> v->state & 1;
}

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
	/* Read: it has been decided, and is answered in one of the next turns of the loop. */
	OP_SHOWING,
	/* All reports are there, and are weighed a little later (reports.c). */
	OP_WEIGHING,
	/* The epoch has changed, and fewer than q masters vote in the new one yet. */
	OP_SUSPENDED,
	/* Session binding: it lasts as long as the lock is bound to this node. */
	OP_BINDING,
	/* It has been answered, and is catching up: it repairs masters, or sends a release
	 * again. */
	OP_CATCHING_UP
};

struct op;
/* Somebody who gets the answer of an operation. The caller of a repeated request joins the
 * operation that is under way. */
struct caller {
	/* Links in op.callers and in client.callers. */
	struct list link, by_client;
	/* The operation that it waits for. */
	struct op *op;
	/* The client; NULL: it is a group. */
	struct client *client;
	/* The driver's number of the request. */
	uint64_t id;
	/* When the request arrived. */
	struct instant arrived;
	/* The request is an administrator's, who sees every lock_id; and it waits for a lock, and
	 * so counts in client.waiters. */
	bool admin, waits;
	/* The request for several keys that the operation is a part of, if the caller is no client;
	 * and the index of its member there. */
	struct op *group;
	uint32_t member;
};

struct client {
	/* Element of core->coordinator.clients. */
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

/* So many bytes of a request need no memory of their own: most keys, owners and labels are
 * short. */
#define OP_NEAR_BYTES 128

/* An operation of this node as a coordinator: what all kinds have in common, and the struct of its
 * kind. */
struct op {
	/* Link in core->coordinator.ops, .catching_up or .op_pool. */
	struct list link;
	/* Link in another list: of an acquire before its commit, core->coordinator.waiting; of a
	 * local wait, key_more.waits; of a list, client.lists; in line, core->coordinator.in_line;
	 * of a read that was decided, core->coordinator.showing; and others. */
	struct list waiting;
	/* Elements of core->coordinator.ops_by_id and .ops_by_lock. */
	struct map_node by_id, by_lock;
	/* Fires when the round, the wait, or the catching up is over. */
	struct timer timer;
	/* struct caller: those who get the answer. */
	struct list callers;
	/* Room for one of the callers; first.op is NULL while it is free. */
	struct caller first;
	/* A binding that is lost, and a transfer that is answered, go on as a release. */
	enum core_op kind;
	/* What the operation waits for. */
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
	/* The lock that it is about. */
	struct id128 lock_id;
	/* Acquire, extend, several keys: the lease that was asked for, in nanoseconds. */
	span_ns lease;
	/* Acquire, several keys, wait: the wait that was asked for, in nanoseconds. Session
	 * binding: the grace time. */
	span_ns wait;
	/* Acquire, several keys: the lock terms; the set has the permit numbers that the commit is
	 * for. Extend: the terms that the answers said, with the greatest session binding that was
	 * named or answered; the set has the numbers that it is for, and none stands for those that
	 * q masters had. Release: `binding` is the connection that was named. */
	struct terms terms;
	/* Acquire, extend, release: the name of the request for several keys that this is a part
	 * of; it is said with everything that is accepted for it, so that it can be rolled back. 0
	 * means that this is a part of none. */
	uint64_t part_of;

	/* One block of memory that has all bytes of the request, which the slices point into. It is
	 * `near` if they are few. */
	uint8_t *block;
	size_t block_size;
	/* What the request says. `to` is what it names besides: a successor, or whom an ask is for.
	 * */
	struct slice key, owner, identity, value, expected, label, to;
	/* The hash of the key in the tables (table_hash). */
	uint64_t key_hash;

	/* What the kind alone needs. It is read and written by the names below, which check the
	 * kind. It is all zero until the function `make` of the kind has filled it in
	 * (operation.h). */
	union {
		struct acquire_state acquire;
		struct extend_state extend;
		struct update_state update;
		struct release_state release;
		struct transfer_state transfer;
		struct downgrade_state downgrade;
		struct reports reports;
		struct read_state read;
		struct break_state breaking;
		struct waiters_state waiters;
		struct wait_state wait;
		struct list_state list;
		struct ask_state ask;
		/* What is known of each master. */
		struct binding *binding;
		/* The members. */
		struct group *group;
	} as;

	/* An answer came when all its callers had left, and had no effect (op_leaves_later). */
	bool missed;
	/* A bit set of the masters that were late (slow.c). */
	uint16_t late;
	/* The masters' votes, by peer index. They come behind the rest, because those from
	 * core->masters_most on are zero in every operation, and so need not be zeroed. */
	struct vote votes[MASTERS_MAX];
	/* Not zeroed either. */
	uint8_t near[OP_NEAR_BYTES];
};

#define OP_KIND(name) (UINT32_C(1) << CORE_##name)

/* Fails unless the operation is of one of these kinds, a bit set. */
static inline void op_check_kind(const struct op *op, uint32_t kinds) {
	CHECK((kinds >> op->kind) & 1);
}

/* These stand for a pointer to the struct of the operation's kind, which is const if `op` is. They
 * fail for an operation of another kind. `op` is evaluated twice. */
#define op_acquire(op) (op_check_kind(op, OP_KIND(ACQUIRE)), &(op)->as.acquire)
#define op_extend(op) (op_check_kind(op, OP_KIND(EXTEND)), &(op)->as.extend)
#define op_update(op) (op_check_kind(op, OP_KIND(UPDATE)), &(op)->as.update)
#define op_release(op) \
	(op_check_kind(op, OP_KIND(RELEASE) | OP_KIND(TRANSFER)), &(op)->as.release)
#define op_transfer(op) (op_check_kind(op, OP_KIND(TRANSFER)), &(op)->as.transfer)
#define op_downgrade(op) (op_check_kind(op, OP_KIND(DOWNGRADE)), &(op)->as.downgrade)
#define op_reports(op) \
	(op_check_kind(op, OP_KIND(GET) | OP_KIND(EXPLAIN) | OP_KIND(BREAK) | OP_KIND(WAITERS)), \
		&(op)->as.reports)
#define op_read(op) (op_check_kind(op, OP_KIND(GET) | OP_KIND(EXPLAIN)), &(op)->as.read)
#define op_break(op) (op_check_kind(op, OP_KIND(BREAK)), &(op)->as.breaking)
#define op_waiters(op) (op_check_kind(op, OP_KIND(WAITERS)), &(op)->as.waiters)
#define op_wait(op) (op_check_kind(op, OP_KIND(WAIT)), &(op)->as.wait)
#define op_list(op) (op_check_kind(op, OP_KIND(LIST)), &(op)->as.list)
#define op_ask_state(op) (op_check_kind(op, OP_KIND(ASK)), &(op)->as.ask)
/* These two stand for the pointer itself. */
#define op_binding(op) (*(op_check_kind(op, OP_KIND(BINDING)), &(op)->as.binding))
#define op_group(op) (*(op_check_kind(op, OP_KIND(ACQUIRE_ALL)), &(op)->as.group))

/* The deadlines of granted leases are kept in units of 2^15 ns, which are 33 us. Their bits are
 * enough for 36 years. */
#define GRANTED_UNIT_BITS 15
#define GRANTED_TIME_BITS 45
#define GRANTED_ASKER_BITS 37
/* A granted lease: a lock that this node has answered, and trusts until the deadline. There is one
 * for each lease, so it is an entry of a flat table (flat.h), and packed. The hash is of the key
 * and of the lock_id. */
struct granted {
	/* The hash of the key and of the lock_id. */
	struct flat_entry entry;
	/* 32 bits more of the hash of the lock_id. */
	uint32_t check;
	/* The deadline by both clocks, rounded down (granted_deadline); and the connection that was
	 * answered last (granted_answered). */
	flat_u64 boot : GRANTED_TIME_BITS, asker_low : 19;
	flat_u64 raw : GRANTED_TIME_BITS, asker_high : 18;
	/* There is a struct granted_numbers of the lock. */
	flat_u64 numbered : 1;
};
_Static_assert(sizeof(struct granted) <= 32, "one for each lease");

/* The permit numbers of a granted lease of a semaphore: those that were answered last. */
struct granted_numbers {
	/* The hash, and the rest of it, are those of the granted lease. */
	struct flat_entry entry;
	uint32_t check;
	/* The numbers, as struct permits has them. */
	flat_u64 words[2];
};

#endif
