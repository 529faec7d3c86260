/* coordinator.h: what the operations of a coordinator have in common: callers, rounds, votes,
 * reports, and what goes on after the answer. It sees nothing of the master, with which it speaks
 * by messages only. */
#ifndef PAWL_CLUSTER_COORDINATOR_H
#define PAWL_CLUSTER_COORDINATOR_H

#include "changes.h"
#include "operation_state.h"

/* Describes a key as one caller sees it. The bytes and the list are in the room of the step's
 * output. */
struct shown {
	/* The holder that is shown first. */
	struct core_entry entry;

	/* All holders, if there are several; otherwise NULL and 0. */
	const struct core_entry *holders;
	uint32_t holder_count;

	/* Somebody holds the key; it is contested (section 4). */
	bool held, contested;

	/* `holders` leaves some of them out. */
	bool more;
};

/* Returns the hash under which operations of a lock are found. */
static inline uint64_t op_hash_lock(const struct core *core, struct slice key,
	struct id128 lock_id) {
	return hash_lock_id(core, lock_id) ^ key.size;
}

/* ---- granted.c ---- */

/* In what follows, `key_hash` is the hash of the key in the tables (op.key_hash). */

/* Keeps a granted lease, or replaces what is kept of it. `asker`: who was answered (op_asker).
 * `numbers`: the permits of a semaphore that were answered. */
void granted_set(struct core *core, uint64_t key_hash, struct id128 lock_id,
	struct instant deadline, uint64_t asker, struct permits numbers);

/* Does the same with a granted lease that may still be trusted, and nothing if there is none. */
void granted_renew(struct core *core, uint64_t key_hash, struct id128 lock_id,
	struct instant deadline, uint64_t asker, struct permits numbers);

/* Returns the granted lease while it may be trusted; otherwise NULL. The pointer is good until any
 * granted lease is set or dropped. */
struct granted *granted_find(struct core *core, uint64_t key_hash, struct id128 lock_id);

/* Returns it only if this asker was the one that was answered last. */
struct granted *granted_of(struct core *core, uint64_t key_hash, struct id128 lock_id,
	uint64_t asker);

/* Returns the permits that were answered last; none for a lock that is no semaphore's. */
struct permits granted_numbers(const struct core *core, const struct granted *b);

/* Returns until when the granted lease may be trusted, rounded down by at most 33 us. */
struct instant granted_deadline(const struct granted *b);

/* Returns who was answered last, cut to GRANTED_ASKER_BITS; 0 for one that had gone by then. And
 * sets it. */
uint64_t granted_answered(const struct granted *b);
void granted_put_asker(struct granted *b, uint64_t asker);

/* The lease may not be trusted after this deadline. */
void granted_shorten(struct core *core, uint64_t key_hash, struct id128 lock_id,
	struct instant deadline);

/* Forgets the granted lease, if there is one. */
void granted_drop(struct core *core, uint64_t key_hash, struct id128 lock_id);

/* Looks at so many granted leases, and frees those that have ended. */
#define GRANTED_SWEPT_A_BEAT 1024
void granted_sweep(struct core *core, uint32_t most);

/* Takes no memory yet. */
void granted_init(struct core *core);

/* Frees all granted leases at the end of the node. */
void granted_done(struct core *core);

/* ---- caller.c ---- */

/* Adds the request's connection to those that ask for the operation. NULL: no memory. */
struct caller *op_join(struct core *core, struct op *op, const struct core_request *r);

/* Adds a request for several keys, of which the operation serves one member. NULL: no memory. */
struct caller *op_join_inside(struct core *core, struct op *op, struct op *group, uint32_t member);

/* Returns who asked last: a client's id, or the name of a request for several keys. 0: nobody asks
 * any more. */
uint64_t op_asker(const struct op *op);

/* Takes a caller from its operation and frees the caller. */
void op_leave(struct core *core, struct caller *c);

/* A client's connection is gone: gives up what it asked for, in pieces. */
void op_client_gone(struct core *core, uint64_t client);
/* The wait of a request that acquires is over now (CORE_END_WAIT). */
void op_end_wait(struct core *core, uint64_t client, uint64_t request_id);

/* Makes the last reply to a caller, and frees the caller. The reply is to be filled in before
 * anything else is done. */
struct core_reply *op_reply(struct core *core, struct caller *c, int error);

/* Replies to all callers of the operation and frees the callers. */
void op_reply_all(struct core *core, struct op *op, int error);

/* Tells whether as many requests share the operation as may. */
bool op_crowded(const struct op *op);

/* Returns how many requests of the client wait for a lock. */
uint32_t op_client_waiters(struct core *core, uint64_t client);

/* Gives up as much for clients that are gone as may be done in this turn of the loop. */
void op_leaving_go_on(struct core *core);

/* Tells whether nobody asks for the operation any more, and yet it cannot be given up in this turn
 * of the loop. Then it comes first in the next turn, and what has been answered has no effect. */
bool op_leaves_later(struct core *core, struct op *op);

/* Takes from the operation the callers whose clients are gone. True: nobody asks for it any more,
 * and it was freed. */
bool op_left(struct core *core, struct op *op);

/* Makes one of several replies to a caller, who stays. There is room for it after
 * out_reserve_reply. */
struct core_reply *op_reply_part(struct core *core, struct caller *c, int error);

/* ---- entry.c ---- */

/* Describes a record as reads show it, but for its key. The bytes are the record's own. */
struct core_entry entry_of(const struct core *core, const struct record *r, struct instant now);

/* Returns a record that would be shown, and whose value was left out of the report and is not in
 * this node's own copy; NULL: none. */
const struct record *entry_lacks(struct core *core, const struct op *op, const struct key *key);

/* Tells whether the record's lease runs, and whether that of any record of the key does. */
bool entry_holds(const struct record *r, struct instant now);
bool entry_held(const struct key *key, struct instant now);

/* Returns the record to show; NULL: none is live. *holders: how many hold the key. */
const struct record *entry_shown(const struct key *key, struct instant now, uint32_t *holders);

/* Describes a record with copies of its bytes, as this caller may see it. False: no memory. */
bool local_entry(struct core *core, const struct caller *c, struct slice identity, struct slice key,
	const struct record *r, struct core_entry *entry);

/* Describes a key as this caller may see it. False: no memory. */
bool entry_show(struct core *core, const struct caller *c, const struct op *op,
	const struct key *key, struct shown *shown);

/* Returns how many bytes of values are shown. */
uint64_t entry_value_bytes(const struct shown *shown);

/* Puts what is shown into a reply. */
void entry_reply(struct core_reply *reply, const struct shown *shown);

/* Answers one caller with the holders, which are in *shown then; without memory for them, with
 * PAWL_EBUSY. Returns the reply. */
struct core_reply *entry_answer(struct core *core, struct caller *c, const struct op *op,
	const struct key *key, int error, struct shown *shown);

/* ---- reports.c: copies of what masters reported ---- */

/* Adds a copy of what a master reported to the reports of the operation, which owns it. NULL: no
 * memory. */
struct record *op_reply_add(struct core *core, struct op *op, uint32_t from,
	const struct message *m);

/* Sorts the reports by lock_id, then by master. */
void op_replies_sort(struct op *op);

/* Drops all reports. */
void op_replies_clear(struct core *core, struct op *op);

/* ---- roll_back.c ---- */

/* Returns when a lease that is accepted now would be over at every master. */
struct instant longest_lease(const struct core *core);

/* Returns for how long the key is still to stay closed after this release (section 10, Closing). */
span_ns release_closes(const struct core *core, const struct op *op);

/* Returns the release that this operation sends. */
struct message release_message(const struct core *core, const struct op *op);

/* Tells the masters that can be reached, once, to roll back what rests on this name. */
void release_roll_back_once(struct core *core, struct slice key, struct id128 lock_id,
	uint64_t name);

/* Tells all masters, again and again until they have acknowledged it, to roll back what rests on
 * this name. False: not every master is told at once. */
bool release_roll_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name);

/* ---- catch_up.c ---- */

/* Sends a master what it has missed, if it can be reached. */
void catch_up(struct core *core, struct op *op, uint32_t peer);

/* Begins the time after the answer. May free the operation. */
void catch_up_begin(struct core *core, struct op *op);

/* Frees the operation if nothing is left to be done. */
void catch_up_settle(struct core *core, struct op *op);

/* Frees the operation, whatever is left to be done. */
void catch_up_end(struct core *core, struct op *op);

/* Notes what a master says after the operation was answered. */
void catch_up_vote(struct op *op, uint32_t from, const struct message *m);

/* Sends a release, a break or a downgrade again. */
void catch_up_send_again(struct core *core, struct op *op, uint32_t peer);

/* A master has answered after the operation was answered. May free the operation. */
void catch_up_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);

/* A master can be reached, or votes, again. May free the operation. */
void catch_up_peer_changed(struct core *core, struct op *op, uint32_t peer);

/* ---- op.c ---- */

/* Makes an operation for a client's request. NULL: no memory. */
struct op *op_new(struct core *core, const struct core_request *r);

/* Makes an operation for one member of a request for several keys, which alone gets the answer.
 * NULL: no memory. */
struct op *op_new_inside(struct core *core, const struct core_request *r, struct op *group,
	uint32_t member);

/* Makes an operation that nobody asks for. NULL: no memory. */
struct op *op_new_alone(struct core *core, const struct core_request *r);

/* Frees an operation with its callers, who get no reply. */
void op_free(struct core *core, struct op *op);

/* Frees all operations at the end of the node. */
void op_free_all(struct core *core);

/* Returns the operation that this round belongs to, or belonged to; NULL: it is over. */
struct op *op_find(struct core *core, uint64_t round);

/* The operation was answered and sends nothing more: keeps it until the last master has answered or
 * the round is over. May free it. */
void op_finish(struct core *core, struct op *op);

/* Return the first operation under way, and then the one after it. In between any operation may be
 * freed. NULL: there is none. */
struct op *op_first(struct core *core);
struct op *op_following(struct core *core);

/* The link to a peer is lost. `closed`: the other side closed it. */
void op_peer_lost(struct core *core, uint32_t peer, bool closed);

/* A link is up again, or a master votes, or no longer votes. */
void op_peer_changed(struct core *core, uint32_t peer);

/* The operation's timer has fired. */
void op_timer(struct core *core, struct op *op);

/* Judges the operation once its masters have had request_timeout to answer; before that, sets the
 * timer. */
void op_round_timer(struct core *core, struct op *op);

/* A peer has answered a question of this node. */
void op_answer(struct core *core, uint32_t from, const struct message *m);

/* Hashes the number of an operation or of a connection for the tables. Numbers are this node's own,
 * so that nobody chooses them. */
static inline uint64_t op_hash_number(uint64_t n) {
	return (n ^ (n >> 32)) * 0x9e3779b97f4a7c15u;
}

/* Moves an operation to those that have been answered. May free the oldest of these. */
void op_enter_catching_up(struct core *core, struct op *op);

/* ---- op_lock.c ---- */

/* Returns the operation of this kind for the lock, or the request for several keys that begins with
 * it; NULL: there is none under way. */
struct op *op_find_lock(const struct core *core, enum core_op kind, struct slice key,
	struct id128 lock_id);

/* The lock was released through this node, or broken. */
void op_lock_released(struct core *core, struct slice key, struct id128 lock_id, bool broken);

/* What rests on this name is rolled back. */
void op_lock_rolled_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name);

/* The lock is a shared one from now on. */
void op_lock_downgraded(struct core *core, struct slice key, struct id128 lock_id);

/* ---- reports.c ---- */

/* Asks all masters for their records of the key. `rest`: a whole piece at once, not only the
 * first few. */
void report_ask_all(struct core *core, struct op *op, bool rest);

/* Begins a round that asks for reports. What was reported before is dropped. */
void report_begin(struct core *core, struct op *op);

/* Takes one part of a master's report, and asks for the next piece where there is one. */
void report_part(struct core *core, struct op *op, uint32_t from, const struct message *m);

/* Nothing more is expected of the masters that have not answered. The votes of the others stay. */
void report_close(const struct core *core, struct op *op);

/* Asks this node itself for the next piece of its report. */
void report_ask_on(struct core *core, struct op *op);

/* All reports are there. True: there are many, and many of another operation were weighed a moment
 * ago, so this one is evaluated later. */
bool report_weigh_later(struct core *core, struct op *op);
/* Evaluates an operation that was put off, if its time has come; and returns when that will be, in
 * nanoseconds of CLOCK_BOOTTIME. */
void report_weigh_go_on(struct core *core);
int64_t report_weigh_deadline(const struct core *core);
/* Returns what the reports have cost, as a number of simple requests. */
uint32_t report_cost(const struct op *op);
/* Gives up an operation that nobody asks for any more; true, for it is freed. */
bool report_forget(struct core *core, struct op *op);

/* Visits the records that were reported, one lock_id after the other. Each master has told its own
 * records in that order. */
struct report_walk {
	/* Says where each master's next record stands in op->replies. */
	uint32_t next[MASTERS_MAX];

	/* Are bit sets: the masters that told the present lock_id, and those that left out what
	 * comes from here on. */
	uint32_t told, cut;
};

struct report_walk report_walk_begin(const struct core *core, const struct op *op);
/* Goes on to the least lock_id that has not been visited. False: there is none. */
bool report_walk_on(const struct core *core, const struct op *op, struct report_walk *w);

/* Of two reports of one lock_id: tells whether `r` is to be shown rather than `best`, which may be
 * NULL. It has the newer write, or the same one with its value. */
bool report_better(const struct core *core, const struct record *r, const struct record *best);

/* Fetches a value that was left out of a report. False: no master can be asked. */
bool report_fetch(struct core *core, struct op *op, const struct record *lacks);

/* Takes the value that was fetched. False: it is not there any more. */
bool report_fetched(struct core *core, struct op *op, uint32_t from, const struct message *m);

/* Tells whether the operation may ask for more than the first piece. False: it stands in line. */
bool report_may_begin(struct core *core, struct op *op);

/* Frees all reports. The operation asks for nothing more. */
void reports_free(struct core *core, struct op *op);

/* Tells whether an operation in line may begin. */
bool report_due(const struct core *core);

/* Begins an operation that stands in line. False: none may begin in this step. */
bool report_run(struct core *core);

/* ---- restart.c ---- */

/* Peers have new indexes: from[i] is where peer i was before, or -1. */
void op_permute(struct core *core, const int from[NODES_MAX]);

/* Begins an operation that needs the masters: now, or as soon as they vote. */
void restart_begin(struct core *core, struct op *op);

/* Begins an operation again; an acquire keeps its lock_id. */
void restart_again(struct core *core, struct op *op);

/* Begins all operations again, because another epoch is in force. */
void restart_all(struct core *core);

/* Goes on with the operations that waited for q masters of the epoch to vote. */
void restart_suspended(struct core *core);

/* Tells whether there are such operations. */
static inline bool restart_has_suspended(const struct core *core) {
	return !list_empty(&core->coordinator.suspended);
}

/* A suspended operation has waited long enough and goes on. */
void restart_timer(struct core *core, struct op *op);

/* ---- round.c ---- */

/* Begins a new round and returns its number: no master has voted in it, and it is sent now. */
uint64_t op_next_round(struct core *core, struct op *op);

/* Sends the round's question to a master, whose vote is VOTE_ASKED then, or VOTE_GONE if it cannot
 * be reached. */
void op_ask(struct core *core, struct op *op, uint32_t index, struct message *m);

/* Sends the round's question to all masters. */
void op_ask_all(struct core *core, struct op *op, struct message *m);

/* Counts the votes that are in one of these states, which are a bit set (VOTE_BIT). */
uint32_t op_votes(const struct core *core, const struct op *op, uint32_t states);

/* Tells whether a master that answers that it lacks something may have had it when it was asked. */
bool op_had_when_asked(const struct core *core, const struct op *op, const struct message *m);

/* Counts like op_votes, but only masters that lacked the lock already when they were asked. */
uint32_t op_lacked(const struct op *op, uint32_t states);

/* Tells whether q masters have answered under this epoch, so that a lock may be called lost. */
bool op_epoch_stands(const struct core *core, const struct op *op);

/* Tells whether request_timeout has passed since the round was sent. */
bool op_late(const struct core *core, const struct op *op);

/* See slow.c: a master has answered the round under way. */
__attribute__((cold)) void slow_answer(struct core *core, struct op *op, uint32_t from);
/* An acquire enters a queue for the first time. */
__attribute__((cold)) void slow_queued(const struct core *core, struct op *op);
/* Returns where the time of the operation went, for a caller that came at `arrived`; NULL: no
 * memory. */
__attribute__((cold)) struct core_times *slow_times(struct core *core, const struct op *op,
	struct instant arrived);

/* Returns the bit set of the masters that have not answered, without those of the next function. */
uint64_t op_silent(const struct core *core, const struct op *op);
/* Returns the bit set of the masters that are there, but do not vote. */
uint64_t op_not_voting(const struct core *core, const struct op *op);

/* Returns a message of the present round with what the request says, as far as the kind has fields
 * for that. The bytes are the operation's own. The kind is mostly a constant, and then what is left
 * of this are its fields. */
static inline __attribute__((always_inline)) struct message op_message(const struct op *op,
	enum message_kind kind) {
	const uint32_t fields = message_fields(kind);
	struct message m;
	message_clear(&m);
	m.kind = kind;
	m.round = fields & F_ROUND ? op->round : 0;
	m.key = op->key;
	if (fields & F_LOCK_ID) {
		m.lock_id = op->lock_id;
	}
	if (fields & F_OWNER) {
		m.owner = op->owner;
	}
	if (fields & F_IDENTITY) {
		m.identity = op->identity;
	}
	if (fields & F_VALUE) {
		m.value = op->value;
	}
	if (fields & F_LABEL) {
		m.label = op->label;
	}
	if (fields & F_TERMS) {
		m.terms = op->terms;
	}
	if (fields & F_LEASE) {
		m.lease_us = (uint64_t)(op->lease / SPAN_US);
	}
	m.key_hash = op->key_hash;
	return m;
}

#endif
