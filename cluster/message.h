/* message.h: what masters and coordinators say to each other. Messages are plain values here;
 * src/wire turns them into bytes and back. */
#ifndef PAWL_CLUSTER_MESSAGE_H
#define PAWL_CLUSTER_MESSAGE_H

#include "message_kinds.h"
#include "types.h"

/* Some bits mean something else in messages of another kind. */
enum message_flag {
	/* PROMISE: the asker takes this master for the home of the key. */
	FLAG_HOME = 1,
	/* ENQUEUE: the request comes from another home. */
	FLAG_MOVED = 1,
	/* CONFIG: the sender passes on the claim of another master, and does not claim it
	 * itself. */
	FLAG_PASSED_ON = 1,
	/* PROMISE: the request has a turn, so that no queue refuses it and it may be parked
	 * (STATUS_PARKED). */
	FLAG_TURN = 2,
	/* FEED_RECORD: a commit has made the record, or was accepted for it. */
	FLAG_BY_COMMIT = 2,
	/* PROMISE: the asker wants to be told again which permit numbers are taken, when a record
	 * of the key ends. */
	FLAG_TELL = 4,
	/* ENQUEUE: the request has a wait time. A try-lock in a tie has none. */
	FLAG_WAIT = 4,
	/* EXTEND_ANSWER: the master had the lock_id in the sense of section 2, Extend, so that
	 * nobody else's lease came between. Other answers: there was such a lock. */
	FLAG_HAD = 8,
	/* FEED_RECORD: this master has accepted the record by the rules, since it began to vote at
	 * the latest; else it came by a merge. */
	FLAG_BY_RULES = 8,
	/* BREAK: the lock is released by force. BINDING: the node has lost the lock, which ends
	 * where it is bound to that node. */
	FLAG_NOW = 16,
	/* SNAPSHOT_RECORD: the record is bound to a node there (section 2, Release on
	 * disconnect). */
	FLAG_BOUND = 16,
	/* RELEASE_ANSWER: the key is closed here as the release asked for (section 10, Closing). */
	FLAG_CLOSED = 16,
	/* The record is barred. SNAPSHOT_RELEASED: so is what comes back of it. */
	FLAG_BARRED = 32,
	/* PREPARE_ANSWER: the value is the one that the asker named, and is left out. READ_ANSWER:
	 * the value is left out. */
	FLAG_SAME = 64,
	/* READ_ANSWER, PREPARE_ANSWER, SNAPSHOT_RECORD: the value counts, as in Prepare (section 2,
	 * Update). */
	FLAG_COUNTS = 128,
	/* PLEDGE: the sender has written this epoch 1. */
	FLAG_BORN = 256,
	/* SNAPSHOT_RELEASED: the lock_id was released. BINDING: the lock is no longer bound. */
	FLAG_RELEASED = 512,
	/* SNAPSHOT: the asker takes over for that epoch; else it rejoins it. */
	FLAG_HANDOVER = 1024,
	/* SNAPSHOT_END: the source voted in the previous epoch when it adopted this one, and has
	 * kept its memory since. */
	FLAG_REMEMBERS = 2048,
	/* SNAPSHOT_END: the source had voted before, and has forgotten (section 6). The clock is
	 * its clock reservation, and the lease is the longest that it may have accepted. */
	FLAG_FORGOT = 4096,
	/* SNAPSHOT_END: the source never voted before. */
	FLAG_NEVER = 8192,
	/* FEED_BATCH: the snapshot ends with this batch. */
	FLAG_WHOLE = 16384,
	/* FOLLOW: the follower has room for a snapshot. FEED_BEGIN: a snapshot begins. */
	FLAG_STAGING = 32768,
	/* FOLLOW: the follower asks to go on with the snapshot of the same round that broke off at
	 * this part. */
	FLAG_RESUME = 65536,
	/* FOLLOW: the follower accepts a master that is not linked with a quorum, because it found
	 * no better one. */
	FLAG_ACCEPT_ISOLATED = 131072,
	/* READ: the report is to have promises and parked requests, too. READ_ANSWER: this part is
	 * not a held record; one of the next two flags says what it is. */
	FLAG_EXPLAIN = 262144,
	/* READ_ANSWER: the part is a promise. */
	FLAG_PROMISE = 524288,
	/* READ_ANSWER: the part is a parked request. */
	FLAG_PARKED = 1048576,
	/* WAITERS: the list is of all keys that begin with `key`. */
	FLAG_PREFIX = 2097152,
	/* READ_ANSWER to an explanation: this master is the home, and the key's queue has `number`
	 * entries. */
	FLAG_IS_HOME = 4194304,
	/* FEED_ECHO: somebody has been watching at the follower since its place was `number`; 0
	 * stands for an earlier time. Without the flag nobody watches. */
	FLAG_WATCH_EVENT = 8388608,
	/* READ: the asker wants a whole piece of the report: what comes after the first `number`
	 * records, the last of which was lock_id. READ_ANSWER, WAITERS_ANSWER: this is the last
	 * part of a piece, and there is more; in an explanation, more of its sort was left out. */
	FLAG_REST = 16777216,
	/* EXTEND_ANSWER: the record has other permit numbers, too, that are in doubt or left to run
	 * out. */
	FLAG_MORE = 33554432
};
/* EXTEND, EXTEND_PERMITS: in `number`, above the order that it names: the record's end becomes an
 * earlier one (section 2, Shorten). A node of release 0.2.0 does not look at it. */
#define NUMBER_SHORTENS (UINT64_C(1) << 32)
/* All flags. */
#define MESSAGE_FLAGS (2 * (uint32_t)FLAG_MORE - 1)

/* What a master answers. From STATUS_HELD on it is a refusal. R1 to R5 are the rules of section
 * 2. A new one also needs STATUS_MAX and the error that the client is told (docs/architecture.md, A
 * new reason for a refusal). */
enum status {
	STATUS_OK = 0,
	/* Promise: the lock_id is held already; token, noted and value are reported. Commit: this
	 * master has a later value than the one that the commit brings. */
	STATUS_HELD_SELF = 1,
	/* Promise with a turn: the request is parked behind a held record, or behind a promise;
	 * then the answer has no token. */
	STATUS_PARKED = 2,
	/* Extension, write: the master lacks the record and asks to be sent it. */
	STATUS_NEED = 3,
	/* R1: a live held record of another lock_id stands in the way. */
	STATUS_HELD = 4,
	/* R1: a live promise of another lock_id stands in the way. */
	STATUS_PROMISED = 5,
	/* R1: somebody waits ahead at the home of the key. */
	STATUS_QUEUED = 6,
	/* R2: the token is not above what was noted. */
	STATUS_STALE = 7,
	/* R3: the lock_id was released. */
	STATUS_RELEASED = 8,
	/* R5: the duration is above max_lease. */
	STATUS_TOO_LONG = 9,
	/* The message's clock or token is beyond the bound of section 9. */
	STATUS_CLOCK = 10,
	/* R4: the master does not vote. */
	STATUS_RECOVERING = 11,
	/* R4: the master has another epoch or hash. */
	STATUS_EPOCH = 12,
	/* The lock_id belongs to another identity. */
	STATUS_DENIED = 13,
	/* A limit of the master is reached. */
	STATUS_FULL = 14,
	/* The lock_id is barred: a break forbids its extension. */
	STATUS_BARRED = 15,
	/* A higher ballot was noted, or this one is not above the record's noted clock. */
	STATUS_BALLOT = 16,
	/* The key is contested: only releases and, later, extensions of what is here are
	 * accepted. */
	STATUS_CONTESTED = 17,
	/* The master lacks the lock_id. */
	STATUS_ABSENT = 18,
	/* The master has the lock_id under other terms, which it keeps (section 10). */
	STATUS_TERMS = 19,
	/* Extension: the master has the lock_id on a contested key, and may lengthen it when `left`
	 * has passed (section 4). */
	STATUS_LATER = 20
};
/* The greatest status. A frame with a greater one is refused as a whole, and its link is closed. */
#define STATUS_MAX 20

/* One message. A field has its meaning in the messages of those kinds that have it (MESSAGE_TABLE),
 * and is zero in all others. Where kinds differ, the comment names them; "the lock" is the one of
 * `lock_id`, and "a record" stands for one that FETCH_ANSWER, READ_ANSWER, LEARN, SNAPSHOT_RECORD,
 * FEED_RECORD or SYNC_RECORD describes. */
struct message {
	/* The row of MESSAGE_TABLE: it says which of the fields below the message has. */
	enum message_kind kind;
	/* What became of what was asked. SNAPSHOT_END: OK, or why there is no more of the
	 * snapshot. FEED_END: why the master ends the feed; STALE: its log no longer reaches back
	 * to the follower's place. COPY_AHEAD_ANSWER: OK: ready; NEED: not yet. SYNC_RECORD: OK:
	 * the record follows; RELEASED and BARRED: what is remembered of the lock. */
	enum status status;
	/* Bits of enum message_flag. */
	uint32_t flags;
	/* READ_ANSWER, WAITERS_ANSWER: which part of the report this is, from 0, and how many the
	 * report has up to the end of this piece; 0, 0: it has none. SNAPSHOT_CHUNK: which piece of
	 * the snapshot is over, and that number + 1. SNAPSHOT_GO_ON: the same of the piece that has
	 * come; 0, 0: the asker has enough. FEED_BATCH, FOLLOW with FLAG_RESUME: the bucket of the
	 * master's table at which the snapshot goes on, and 1 + how many there are; 0, 0: there is
	 * no snapshot. FEED_WATCH_EVENT: enum core_watch_event_kind, and 1 + the greatest kind; 0,
	 * 0: an event that the follower is not to be told. */
	uint32_t part, parts;
	/* The asker's number for what it asks, which the answers repeat: of the round of an
	 * operation (op.round); of a ping; of a snapshot; of a feed; of an exchange (SYNC_*); of a
	 * change or of a round of its decree. TURN, ENQUEUE_ANSWER: the round of the ENQUEUE.
	 * DECREE_ACCEPTED to others than the proposer: 0. */
	uint64_t round;
	union {
		/* PROMISE, ENQUEUE, DISPLACED, WITHDRAW: the number of the attempt at its
		 * coordinator (an attempt is named by that, the coordinator and its boot).
		 * WITHDRAW: its promise and parked request go; 0: only the queue entry does.
		 * NOMINATE_ANSWER, HAND_OVER: the attempt of the successor. */
		uint64_t attempt;
		/* HAND_OVER without a `blob`, which is a release: for how long the key stays
		 * closed, in microseconds. */
		uint64_t closes_us;
		/* COMMIT, EXTEND, EXTEND_PERMITS, LEARN: the name of the request for which the
		 * record is accepted (section 11); 0: it has none. RELEASE: the name that is rolled
		 * back; 0: it is no rollback. SNAPSHOT_RECORD, SYNC_RECORD: the name that the
		 * record rests on; 0: several, or not known. SNAPSHOT_RELEASED, SYNC_RECORD with
		 * RELEASED: the name under which the lock was last rolled back; 0: it was not. */
		uint64_t name;
	};
	/* The fencing token of the lock: of a record, of FEED_WATCH_EVENT, of what the master has
	 * (EXTEND_ANSWER, DOWNGRADE_ANSWER, and a promise that is "held by yourself"), or of the
	 * record that stands in the way (a refusal). COMMIT: the one that was chosen. EXTEND,
	 * EXTEND_PERMITS: the one that the caller named. COMMIT_ANSWER, LEARN_ANSWER: the one that
	 * was asked for; STALE: the master's clock, above which the attempt begins again.
	 * SNAPSHOT_RELEASED: the greatest one that was rolled back; 0: none. */
	uint64_t token;
	/* The clock that the master has noted for the promise or the record (section 1). */
	uint64_t noted;
	/* SNAPSHOT_RECORD: the noted clock of the permit numbers in `had`. SNAPSHOT_END: the
	 * source's Lamport clock; with FLAG_FORGOT its clock reservation, if that is higher. */
	uint64_t clock;
	/* The epoch for which the snapshot is. */
	uint64_t epoch;
	/* EXTEND, EXTEND_PERMITS: the connection to which the holder binds the lock, or the order
	 * that it names (terms.binding); 0: none; and NUMBER_SHORTENS. RELEASE: the
	 * connection that ended, with what is bound to it; 0: none. READ, WAITERS: how many parts
	 * the asker has had; READ_ANSWER repeats that; in an explanation it has the length of the
	 * key's queue. ASK_ANSWER: how many watchers were told. SNAPSHOT_RELEASED: the connection
	 * with which the lock ended; 0: none. COPY_AHEAD_ANSWER: how many records were copied.
	 * DECREE_ACCEPTED: the hash of the accepted configuration. SYNC_ROOT: the digest of the
	 * table. SYNC_ASK: 0: `blob` lists groups; 1: leaves. SYNC_KEYS: enum sync_list_end.
	 * COUNTED: how many commits the start of the node has begun. FEED_RECORD, FEED_GONE,
	 * FEED_WATCH_EVENT: the entry's number in the log; 0: it belongs to the snapshot. FOLLOW:
	 * the number that the follower expects next. FEED_BEGIN, FEED_BATCH: the number that the
	 * master sends next. FEED_ACK: that of the batch which has come. FEED_ECHO: the place in
	 * the log at which somebody began to watch at the follower; 0: before. */
	uint64_t number;
	/* FOLLOW, FEED_BEGIN: the id of the log in which `number` is a place: there is one for each
	 * start of a master, and for each table that replaced another. COUNTED: the boot of the
	 * node. */
	uint64_t log;
	/* FOLLOW, FEED_ACK, FEED_ECHO: names a moment of the follower's clock. FEED_BATCH: the
	 * latest of these by which the master had said nothing that has not been sent; 0: none.
	 * COUNTED: how many writes the start has begun that are for the receiver. */
	uint64_t echo;
	/* Microseconds. COMMIT, LEARN: for how long the record lasts from its arrival on, lock
	 * delay included. EXTEND, EXTEND_PERMITS: the same without the lock delay. SNAPSHOT_END:
	 * the longest lease that the source may have accepted. PONG: the longest round trip that
	 * the node has measured lately. */
	uint64_t lease_us;
	/* Microseconds. A record, a promise in an explanation, BREAK_ANSWER: until the end, rounded
	 * up; 0: there is no record. A refusal, DISPLACED: until the end of what stands in the way;
	 * LATER: until the lock may be extended. ENQUEUE, WAITERS_ANSWER: for how long the request
	 * has waited. SNAPSHOT_LOST: for how long the key stays closed. BINDING: the grace time.
	 * BINDING_ANSWER: until the record's end; ABSENT: for how long the master has lacked it.
	 * These two are rounded down. */
	uint64_t left_us;
	/* The lock that the message is about. READ, WAITERS: of the last part that came before
	 * (`number`). NOMINATE_ANSWER: the named waiter's. FEED_WATCH_EVENT: 0: events were
	 * missed. */
	struct id128 lock_id;
	/* A refusal, DISPLACED: the lock_id that stands in the way; 0: none does. PROMISE_ANSWER of
	 * permits: that of a promise or parked request, if some of these are of another
	 * coordinator. WAITERS, WAITERS_ANSWER, NOMINATE_ANSWER: the identity of the entry's
	 * coordinator. HAND_OVER: the successor's lock_id. COUNTED: the identity of the node whose
	 * commits are counted. */
	struct id128 by;
	/* The place of the request in the order (section 10). Seq 0: it has not waited. WITHDRAW:
	 * that of the entry which goes; seq 0: none goes. WAITERS: that of the last entry that came
	 * before. ENQUEUE_ANSWER: as the home has stamped it. */
	struct ticket ticket;
	/* PROMISE, ENQUEUE, NOMINATE_ANSWER, HAND_OVER: the ballot of the request's first value; 0:
	 * it has none yet. PROMISE_ANSWER, TURN: the same; "held by yourself": that of the record's
	 * value. PREPARE, WRITE: the ballot of the update. DECREE_*: that of the decree, or the
	 * higher one that stands in its way. Others: that of `value`. */
	struct ballot ballot;
	/* COMMIT: the highest ballot of a value that masters reported; 0: none has the lock.
	 * PREPARE: that of the value which the asker has. PREPARE_ANSWER, WRITE_ANSWER,
	 * SNAPSHOT_RECORD, FEED_RECORD: the highest one that is noted for the record.
	 * DECREE_PROMISE: the one under which `blob` was accepted; 0: nothing was. */
	struct ballot prepared;
	/* The key. WAITERS with FLAG_PREFIX: a prefix of keys. SNAPSHOT_RELEASED from a walk: "?",
	 * because it is not remembered. */
	struct slice key;
	/* Of the lock or the request: who holds or wants it, for people. A refusal, DISPLACED: of
	 * the record in the way. NOMINATE: of the waiter that is to be next. */
	struct slice owner;
	/* Who may go on with the lock or the request: its client, as TLS or the rights name it. */
	struct slice identity;
	/* The value of the record, or that is written. ASK: what the asker says. WAITERS with
	 * FLAG_PREFIX: the key of the last entry that came before. */
	struct slice value;
	/* PLEDGE, CONFIG, COPY_AHEAD, DECREE_ACCEPT, DECREE_PROMISE: a configuration
	 * (config_encode). HAND_OVER: the identity of the successor's coordinator; empty: there is
	 * no successor, and the key stays closed. SYNC_GROUPS: the
	 * digests of all groups, 8 bytes each. SYNC_ASK: the numbers of groups, a byte each, or of
	 * leaves, two bytes each. SYNC_LEAVES: the number of a group and the digests of its leaves,
	 * and so on. SYNC_KEYS: what the records of the leaves are (sync_list.c). */
	struct slice blob;
	/* What the holder or the waiter says about itself. */
	struct slice label;
	/* The lock terms. PROMISE_ANSWER, TURN: `set` has the permit numbers that others have;
	 * "held by yourself": those of the record. A refusal: the terms of the record in the way.
	 * EXTEND_PERMITS: `set` has the numbers that are extended, and EXTEND_ANSWER those that
	 * were. SYNC_RECORD with RELEASED: `binding` is the connection with which the lock ended;
	 * 0: none. */
	struct terms terms;
	/* Microseconds, rounded down. A record: the time since the lock was acquired.
	 * EXTEND_ANSWER, PREPARE_ANSWER, DOWNGRADE_ANSWER, RELEASE_ANSWER: the time since anything
	 * of the lock ended here last. PROMISE_ANSWER: the time since it ended otherwise than by
	 * release. */
	uint64_t age_us;
	/* EXTEND_ANSWER: the permit numbers of `terms` that the master had. SNAPSHOT_RECORD: those
	 * of struct older, whose noted clock is in `clock`. */
	struct permits had;

	/* The rest is not on the wire. */

	/* Messages that this node sends to several peers at once, and that are the same, have the
	 * same number, which is not 0. They are encoded once. */
	uint64_t same;
	/* How many bytes the slices have, if these bytes are kept already (out_keep); else 0. */
	size_t kept;
	/* The hash of the key in the tables of this node (table_hash), in what the node says to
	 * itself about an operation; 0 if it is not known. */
	uint64_t key_hash;
};

/* These copy a message and zero one. They do so in parts, which the compiler handles in place with
 * the largest registers that every machine has. For the whole it would call the C library. */
_Static_assert(sizeof(struct message) == 384, "it has two parts of 192 and four of 96 bytes");
static inline void message_copy(struct message *to, const struct message *from) {
	uint8_t *at = (uint8_t *)to;
	const uint8_t *other = (const uint8_t *)from;
	memcpy(at, other, 192);
	memcpy(at + 192, other + 192, 192);
}

static inline void message_clear(struct message *m) {
	uint8_t *at = (uint8_t *)m;
	memset(at, 0, 96);
	memset(at + 96, 0, 96);
	memset(at + 192, 0, 96);
	memset(at + 288, 0, 96);
}

/* Flags of a frame: the sender votes in this epoch; and it knows that all masters of this epoch
 * have voted in it (section 6). */
#define FRAME_VOTING 1u
#define FRAME_COMPLETE 2u
/* The messages that go to one peer at once. Every frame says which node sends it, under which
 * configuration, and what its clock is. */
struct frame {
	/* The epoch and hash of the sender's configuration; 0 before birth. */
	uint64_t epoch, config_hash;
	/* The identity of the sender. */
	struct id128 sender;
	/* The sender's boot, and its Lamport clock. */
	uint64_t boot, clock;
	/* FRAME_VOTING, FRAME_COMPLETE. */
	uint32_t flags;
	/* The messages. */
	const struct message *messages;
	size_t count;
	/* More messages of the frame follow in another event, with the same head. Not on the
	 * wire. */
	bool more;
};

/* Tells whether the messages of a kind mean the same under any epoch. */
bool message_of_any_epoch(enum message_kind kind);
/* Return names in static storage; "?" for a number that has none. */
const char *message_name(enum message_kind kind);
const char *status_name(enum status status);

#endif
