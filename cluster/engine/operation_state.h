/* operation_state.h: what a coordinator keeps of what it was asked for (sections 2, 3 and 5). Part of state.h, in the middle of it. */
#ifndef PAWL_CLUSTER_OPERATION_STATE_H
#define PAWL_CLUSTER_OPERATION_STATE_H

enum vote_state {
	VOTE_NONE,     /* not asked */
	VOTE_ASKED,    /* no answer yet */
	VOTE_GONE,     /* silent: not linked, does not vote, or out of time */
	VOTE_OK,       /* promised, accepted */
	VOTE_SELF,     /* promise: held by yourself */
	VOTE_PARKED,     /* promise with a turn: kept */
	VOTE_HAD,      /* extension: accepted, and it had it */
	VOTE_NEED,     /* wants the record */
	VOTE_LEARNING, /* was sent the record */
	VOTE_BEHIND,   /* extension: accepted, and it had it, but under a token below another's */
	VOTE_LATER,    /* extension: has the record, and may not lengthen it yet */
	VOTE_HELD,     /* refused: held by another, or contested */
	VOTE_RIVAL,    /* refused: promised to another */
	VOTE_QUEUED,   /* refused: somebody waits ahead */
	VOTE_STALE,    /* refused: R2 */
	VOTE_BALLOT,   /* refused: a higher ballot */
	VOTE_ABSENT,   /* does not have the lock_id */
	VOTE_REFUSED   /* refused for another reason, in `status` */
};

struct vote {
	enum vote_state state;
	enum status status;
	bool fresh; /* answered since the last renewal of a turn */
	bool more;  /* extension: it has other numbers, too */
	bool lately; /* extension, update, downgrade: what it lacks it may have had when it was asked */
	bool lapsed; /* acquire: it promised, and had lacked the lock_id since before it was asked */
	uint64_t token, noted;
	uint64_t repaired; /* extension: the token of the record that it was sent */
	struct permits set; /* of a semaphore: a promise: what others have there; held by yourself, extension: its own */
	struct permits had; /* extension: those of its own that it had */
};

/* Something is still to come, or to be sent, over the link to that master. */
static inline bool vote_open(const struct vote *v) {
	return v->state == VOTE_ASKED || v->state == VOTE_LEARNING || v->state == VOTE_NEED || v->state == VOTE_BEHIND;
}

struct op;
bool op_lately(const struct core *core, const struct op *op, const struct message *m); /* what this answer lacks it may have had when it was asked */
uint32_t op_lacked(const struct op *op, uint32_t states); /* those in these states that had not */

enum op_state {
	OP_ASKING,     /* acquire: promises asked */
	OP_QUEUED,     /* acquire: in the home's queue, or without a home */
	OP_TURN,       /* acquire: has a turn, promises asked or kept */
	OP_PAUSED,     /* acquire, update: refused by a rival; extend: masters may not lengthen it yet; tries again when the timer fires */
	OP_COMMITTING, /* acquire: second phase */
	OP_ROUND,      /* others: the one round, or update's and break's first */
	OP_SECOND,     /* update: write; break: the break itself */
	OP_LOCAL,      /* wait and list: no messages */
	OP_IN_LINE,    /* until fewer reports are under way (report.c) */
	OP_SUSPENDED,     /* the epoch has changed, and fewer than q masters vote in it yet */
	OP_BINDING,       /* as long as the lock is bound to this node */
	OP_UNFINISHED   /* answered; teaching, or sending a release again */
};

enum { WAITERS_MAX = 1000 }; /* of several keys, that are listed at once */

struct master_reply { /* a copy of what a master reported: a record, or an entry of its queue */
	struct record *record;
	struct id128 node; /* of a queue entry */
	uint32_t from;
	bool counts; /* its value counts as in Prepare */
	uint32_t flags; /* of an explanation */
};

struct op;
struct caller { /* who gets the answer; a repeated request joins the attempt */
	struct list link, by_client;
	struct op *op;
	struct client *client;
	uint64_t id;
	struct instant arrived;
	bool admin;
	struct op *group; /* not a client: the request for several keys that this is a part of, and for which of them */
	uint32_t member;
};

struct client {
	struct map_node node;
	uint64_t id;
	struct list callers;
	uint32_t waiters;
	struct list leaving; /* in core->coordinator.leaving: the connection is gone */
	struct list lists;   /* its operations of this kind, which go on one after the other */
	struct list listing; /* in core->coordinator.lists: there are such */
};

struct successor { /* who comes next, because the holder says so (section 10, Succession) */
	struct id128 lock_id, node; /* and its coordinator */
	uint64_t attempt;
	struct ballot first; /* of its first value, as its home has drawn it */
};

struct op {
	struct list link;         /* core->coordinator.ops or core->lingering */
	struct list waiting;      /* core->coordinator.waiting: acquires before their commit; key_more.waits: waits; client.lists: lists */
	struct map_node by_id, by_lock;
	struct timer timer;
	struct list callers;
	struct caller first;      /* of them, or a later one in its room; `op` is NULL while it is free */
	enum core_op kind;
	enum op_state state;
	uint64_t id, round;       /* round = id << 16 | count: names the present round and attempt */
	struct instant sent;      /* of the present round */
	struct instant arrived;
	struct instant until;     /* wait end; teaching: end of belief; release: when the lease would be over */
	struct vote votes[MASTERS_MAX];
	struct id128 lock_id;
	span_ns lease, wait;
	struct terms terms;       /* acquire; the set: what the commit is for */
	uint64_t token;           /* acquire: chosen; extend, break: the caller's */
	uint64_t best_token;      /* the highest token reported */
	bool try_lock, deadline_kept, backed, blind, quorum_read, now_flag, for_free, had_any, again, contested_seen;
	bool lost_here; /* release: the lock was bound to this node, which has lost it: it ends where it is bound to it still */
	bool wavering;            /* acquire: a rival was met, and the timer is for that */
	bool committed;           /* acquire: a commit was sent in an earlier try; some masters may have accepted it */
	bool resumes;             /* acquire: its commit was refused, and it begins again with the turn that it had */
	uint8_t overtaken;        /* acquire: how often its commit was (commit.c) */
	struct instant since;     /* acquire: q masters have lacked the lock_id at one moment since then, where its commit brings a first value */
	uint64_t commit;          /* acquire: names the commit that is under way, at random */
	/* acquire, of permits: the same, said with the commit that is under way, so that it can be given back; 0: none. Extend: its own, where this node
	 * did not answer the lock to its caller */
	uint64_t name;
	int error;                /* update: what to answer after the write back */
	/* acquire */
	struct instant parked_until; /* when the last of the records ends that its turn is kept behind, as far as masters have said */
	struct ticket ticket;
	uint64_t queue_round;     /* under which the home knows the entry */
	uint64_t attempt;         /* round under which promises were asked */
	int home;                 /* slot, or -1 */
	uint32_t home_stopped;    /* of that peer, when it was entered there; and core->coordinator.homes, when its home was looked for */
	uint32_t homes;
	uint32_t pauses;
	/* extend; in `terms` what the answers said of them, and the set: the numbers that it is for (none: those that q masters had) */
	struct instant later;     /* when the first of those that may not lengthen it yet may */
	int fetch_from;           /* slot the record is being asked of, or -1 */
	uint32_t fetch_tried;     /* bit set of those that were */
	/* update; acquire: the ballot of its first value */
	struct ballot ballot, expected_seq, seen; /* seen: the highest one that stood in the way */
	struct record *own_value; /* a copy: a report of the same value leaves it out. Acquire: the value with the highest ballot that was
	                           * reported by a master that has the lock_id; NULL: nobody has it, and the first value is its own */
	bool expect_value, expect_seq;
	/* read */
	struct master_reply *replies;
	uint32_t replies_count, replies_capacity;
	uint64_t parts_seen[MASTERS_MAX];
	bool reporting;           /* it is one of those that may ask for more than a little */
	struct id128 fetching;    /* whose value is being asked for (OP_SECOND) */
	/* wait: the key it waits on; list */
	struct key *on;
	uint32_t limit;
	bool prefix; /* waiters */
	size_t bucket;
	struct key_names *names;
	uint32_t work; /* list: since its last reply */
	struct binding *binding; /* bond */
	struct successor successor;  /* transfer: once somebody was found */
	uint64_t asked;    /* ask: bit set of peers that have not answered yet */
	uint32_t reached;
	struct group *group;      /* acquire-all */
	uint64_t part_of;         /* names the group, and is said with what is accepted for it, so that it can be given back; 0: of none */
	/* bytes: one block holds them all */
	uint8_t *block;
	size_t block_size;
	struct slice key, owner, identity, value, expected, label, to;
	struct record *record;    /* extend, update: a copy to teach from; acquire: who held the key */
};

#include "group.h"

#define GRANTED_ASKER (UINT64_MAX >> 1)
struct granted { /* a lock this node has answered, believed until the deadline */
	struct map_node node;
	struct id128 lock_id;
	struct instant deadline;
	uint64_t asker : 63; /* who was answered last (op_asker); 0: somebody who had left by then */
	uint64_t numbered : 1;
	struct permits numbers[]; /* one where it is `numbered`: those that were answered last */
};

#endif
