/* message.h: what masters and coordinators say to each other. Messages are plain values here;
 * src/wire turns them into bytes and back.
 *
 * A message is a kind and those of the fields below that its kind carries, in the order of the
 * fields' bits. MESSAGE_TABLE is the whole definition: the codec, its tests and its fuzzer work
 * from it. */
#ifndef PAWL_CLUSTER_MESSAGE_H
#define PAWL_CLUSTER_MESSAGE_H

#include "types.h"

/* The fields. Each comment begins with the field's type on the wire. */

/* u64: the request number of the asker, which the answer echoes. */
#define F_ROUND (1u << 0)
/* bytes, 1 .. KEY_MAX. A prefix (WAITERS and its answer) and the key of FEED_WATCH_EVENT may be
 * empty. */
#define F_KEY (1u << 1)
/* 16 bytes. */
#define F_LOCK_ID (1u << 2)
/* u64; 0 for none. Where promises, turns and the queue are meant it is `attempt`, which is the
 * attempt together with the sender and its boot. Where records are meant it is `name`: the name of
 * the request that they are accepted or rolled back for (section 11). */
#define F_ATTEMPT (1u << 3)
/* two u64. */
#define F_TICKET (1u << 4)
/* u64 <= TOKEN_MAX. */
#define F_TOKEN (1u << 5)
/* u64 <= TOKEN_MAX: the clock that the master has noted. */
#define F_NOTED (1u << 6)
/* u64, microseconds. PONG: the longest round trip that its sender has measured lately. */
#define F_LEASE (1u << 7)
/* u64, microseconds: the time that is left; of a record it is rounded up. BINDING_ANSWER without a
 * record: for how long the master has lacked it, rounded down. */
#define F_LEFT (1u << 8)
/* bytes, 0 .. OWNER_MAX. */
#define F_OWNER (1u << 9)
/* bytes, 0 .. IDENTITY_MAX. */
#define F_IDENTITY (1u << 10)
/* bytes, 0 .. VALUE_MAX_HARD. */
#define F_VALUE (1u << 11)
/* clock u64 <= TOKEN_MAX, node u64, boot u32. */
#define F_BALLOT (1u << 12)
/* a second ballot, like F_BALLOT. COMMIT: the ballot of the value that masters have reported, or
 * {0, 0, 0} if none of them has the lock_id. */
#define F_PREPARED (1u << 13)
/* u32: bits of enum message_flag. */
#define F_FLAGS (1u << 14)
/* u8: enum status. */
#define F_STATUS (1u << 15)
/* 16 bytes: the lock_id whose record or promise stands in the way, or the identity of a node. A
 * promise of permits: the lock_id of a promise or parked request, if some of these are of another
 * coordinator. */
#define F_BY (1u << 16)
/* part u32, parts u32: part < parts, or both are 0. */
#define F_PART (1u << 17)
/* bytes, 0 .. BLOB_MAX. */
#define F_BLOB (1u << 18)
/* u64 <= TOKEN_MAX: a Lamport clock. */
#define F_CLOCK (1u << 19)
/* u64: the epoch that the message is about. */
#define F_EPOCH (1u << 20)
/* u64: a place in a transaction log, a count, or the number of a connection (terms.binding).
 * DECREE_ACCEPTED: the hash of the value. */
#define F_NUMBER (1u << 21)
/* u64: the id of the log that the number is of: there is one for each start, and for each table
 * that replaced another. COUNTED: the boot. */
#define F_LOG (1u << 22)
/* u64: names a moment of a follower's clock, and is returned to it; 0 names none. COUNTED: how
 * many writes. */
#define F_ECHO (1u << 23)
/* struct terms: of u16, count u16, priority i32, delay u64 (microseconds), set two u64, binding
 * u32. */
#define F_TERMS (1u << 24)
/* bytes, 0 .. LABEL_MAX. */
#define F_LABEL (1u << 25)
/* u64, microseconds, rounded down: the time since the lock was acquired, or since the entry was
 * made. EXTEND_ANSWER, PREPARE_ANSWER, DOWNGRADE_ANSWER, RELEASE_ANSWER: the time since anything of
 * the lock_id ended here last. PROMISE_ANSWER: the time since it ended otherwise than by
 * release. */
#define F_AGE (1u << 26)
/* two u64: permit numbers. EXTEND_ANSWER: those of `terms` that the master had. SNAPSHOT_RECORD:
 * those of struct older, whose noted clock is in `clock`. */
#define F_HAD (1u << 27)
#define BLOB_MAX 65536
/* The fields that are bytes. */
#define MESSAGE_BYTES (F_KEY | F_OWNER | F_IDENTITY | F_VALUE | F_BLOB | F_LABEL)

/* X(name, number on the wire, the room that takes the message, its function there, whether the
 * message means the same under any epoch or belongs to one, fields). ANY_EPOCH is for what is about
 * the configuration itself, or is merged in the staging table (section 6). */
#define MESSAGE_TABLE(X) \
	X(PROMISE, 1, master, master_promise, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TICKET | F_IDENTITY | F_BALLOT | \
		F_FLAGS | F_TERMS) \
	X(PROMISE_ANSWER, 2, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_TOKEN | F_NOTED | F_BY | F_LEFT | F_OWNER | F_VALUE | \
		F_BALLOT | F_TERMS | F_AGE) \
	X(COMMIT, 3, master, master_commit, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TICKET | F_TOKEN | F_LEASE | \
		F_OWNER | F_IDENTITY | F_VALUE | F_BALLOT | F_PREPARED | F_TERMS | F_LABEL) \
	X(COMMIT_ANSWER, 4, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_TOKEN | F_BY | F_LEFT) \
	X(WITHDRAW, 5, master, master_withdraw, THIS_EPOCH, \
		F_KEY | F_LOCK_ID | F_ATTEMPT | F_TICKET) \
	X(EXTEND, 6, master, master_extend, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TOKEN | F_LEASE | F_NUMBER) \
	X(EXTEND_ANSWER, 7, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_FLAGS | F_TOKEN | F_BY | F_LEFT | F_TERMS | F_AGE | F_HAD) \
	X(FETCH, 8, master, master_fetch, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID) \
	X(FETCH_ANSWER, 9, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_TOKEN | F_LEFT | F_OWNER | F_IDENTITY | F_VALUE | \
		F_BALLOT | F_FLAGS | F_TERMS | F_LABEL | F_AGE) \
	X(LEARN, 10, master, master_learn, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TOKEN | F_LEASE | F_OWNER | \
		F_IDENTITY | F_VALUE | F_BALLOT | F_FLAGS | F_TERMS | F_LABEL | F_AGE) \
	X(LEARN_ANSWER, 11, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_TOKEN | F_BY | F_LEFT) \
	X(RELEASE, 12, master, master_release, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_NUMBER) \
	X(RELEASE_ANSWER, 13, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_FLAGS | F_AGE) \
	X(BREAK, 14, master, master_break, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_FLAGS) \
	X(BREAK_ANSWER, 15, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_FLAGS | F_LEFT) \
	X(PREPARE, 16, master, master_prepare, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_BALLOT | F_PREPARED) \
	X(PREPARE_ANSWER, 17, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_VALUE | F_BALLOT | F_PREPARED | F_FLAGS | F_AGE) \
	X(WRITE, 18, master, master_write, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_VALUE | F_BALLOT) \
	X(WRITE_ANSWER, 19, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_PREPARED) \
	X(READ, 20, master, master_read, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_FLAGS | F_NUMBER) \
	X(READ_ANSWER, 21, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_PART | F_LOCK_ID | F_TOKEN | F_LEFT | F_OWNER | \
		F_IDENTITY | F_VALUE | F_BALLOT | F_FLAGS | F_TERMS | F_LABEL | F_AGE | F_NUMBER) \
	X(ENQUEUE, 22, master, queue_enqueue, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TICKET | F_OWNER | F_IDENTITY | \
		F_LEFT | F_BALLOT | F_FLAGS | F_TERMS | F_LABEL) \
	X(ENQUEUE_ANSWER, 23, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_TICKET | F_STATUS | F_TOKEN | F_BY | F_LEFT | F_OWNER) \
	X(TURN, 24, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_TOKEN | F_NOTED | F_BY | F_LEFT | F_OWNER | F_VALUE | \
		F_BALLOT | F_TERMS) \
	X(DISPLACED, 25, coordinator, attempt_displaced, THIS_EPOCH, \
		F_KEY | F_LOCK_ID | F_ATTEMPT | F_BY | F_LEFT | F_OWNER) \
	X(WAITERS, 26, master, master_waiters, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_TICKET | F_FLAGS | F_NUMBER | F_VALUE | F_BY | \
		F_TERMS) \
	X(WAITERS_ANSWER, 27, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_PART | F_LOCK_ID | F_TICKET | F_FLAGS | F_OWNER | \
		F_IDENTITY | F_LEFT | F_BY | F_KEY | F_TERMS | F_LABEL) \
	X(SNAPSHOT, 28, recovery, snapshot_asked, ANY_EPOCH, \
		F_ROUND | F_EPOCH | F_FLAGS) \
	X(SNAPSHOT_RECORD, 29, recovery, state_transfer_message, ANY_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TOKEN | F_NOTED | F_LEFT | F_OWNER | \
		F_IDENTITY | F_VALUE | F_BALLOT | F_PREPARED | F_FLAGS | F_CLOCK | F_TERMS | \
		F_LABEL | F_AGE | F_HAD) \
	X(SNAPSHOT_RELEASED, 30, recovery, state_transfer_message, ANY_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TOKEN | F_FLAGS | F_NUMBER) \
	X(SNAPSHOT_CHUNK, 31, recovery, state_transfer_message, ANY_EPOCH, \
		F_ROUND | F_PART) \
	X(SNAPSHOT_GO_ON, 32, recovery, snapshot_go_on, ANY_EPOCH, \
		F_ROUND | F_PART) \
	X(SNAPSHOT_END, 33, recovery, state_transfer_message, ANY_EPOCH, \
		F_ROUND | F_LEASE | F_FLAGS | F_STATUS | F_CLOCK) \
	X(PING, 34, peers, peer_ping, ANY_EPOCH, \
		F_ROUND) \
	X(PONG, 35, peers, peer_pong, ANY_EPOCH, \
		F_ROUND | F_LEASE) \
	X(PLEDGE, 36, membership, birth_pledge, ANY_EPOCH, \
		F_BLOB | F_FLAGS) \
	X(CONFIG, 37, membership, epoch_told, ANY_EPOCH, \
		F_BLOB | F_FLAGS) \
	X(DECREE_PREPARE, 38, membership, decree_prepare, THIS_EPOCH, \
		F_ROUND | F_BALLOT) \
	X(DECREE_PROMISE, 39, membership, propose_answered, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_BALLOT | F_PREPARED | F_BLOB) \
	X(DECREE_ACCEPT, 40, membership, decree_accept, THIS_EPOCH, \
		F_ROUND | F_BALLOT | F_BLOB) \
	X(DECREE_ACCEPTED, 41, membership, propose_accepted, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_BALLOT | F_NUMBER) \
	X(COPY_AHEAD, 42, recovery, copy_ahead_asked, ANY_EPOCH, \
		F_ROUND | F_BLOB) \
	X(COPY_AHEAD_ANSWER, 43, membership, change_ahead, ANY_EPOCH, \
		F_ROUND | F_STATUS | F_NUMBER) \
	X(SNAPSHOT_READY, 44, recovery, state_transfer_message, ANY_EPOCH, \
		F_ROUND) \
	X(COPY_AHEAD_END, 45, recovery, copy_ahead_ended, ANY_EPOCH, \
		F_ROUND) \
	X(BINDING, 46, master, binding_master_asked, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_LEFT | F_FLAGS) \
	X(BINDING_ANSWER, 47, coordinator, binding_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_LEFT) \
	X(FOLLOW, 48, replication, feed_asked, THIS_EPOCH, \
		F_ROUND | F_FLAGS | F_PART | F_NUMBER | F_LOG | F_ECHO) \
	X(FEED_BEGIN, 49, replication, follow_message, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_FLAGS | F_NUMBER | F_LOG) \
	X(FEED_RECORD, 50, replication, follow_message, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_TOKEN | F_NOTED | F_LEFT | F_OWNER | F_IDENTITY | \
		F_VALUE | F_BALLOT | F_PREPARED | F_FLAGS | F_NUMBER | F_TERMS | F_LABEL | F_AGE) \
	X(FEED_GONE, 51, replication, follow_message, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_NUMBER) \
	X(FEED_BATCH, 52, replication, follow_message, THIS_EPOCH, \
		F_ROUND | F_FLAGS | F_PART | F_NUMBER | F_ECHO) \
	X(FEED_ACK, 53, replication, feed_message, THIS_EPOCH, \
		F_ROUND | F_NUMBER | F_ECHO) \
	X(FEED_ECHO, 54, replication, feed_message, THIS_EPOCH, \
		F_ROUND | F_FLAGS | F_NUMBER | F_ECHO) \
	X(FEED_END, 55, replication, feed_ended, THIS_EPOCH, \
		F_ROUND | F_STATUS) \
	X(SYNC_ROOT, 56, repair, sync_message, THIS_EPOCH, \
		F_ROUND | F_NUMBER) \
	X(SYNC_GROUPS, 57, repair, sync_message, THIS_EPOCH, \
		F_ROUND | F_BLOB) \
	X(SYNC_ASK, 58, repair, sync_message, THIS_EPOCH, \
		F_ROUND | F_BLOB | F_NUMBER) \
	X(SYNC_LEAVES, 59, repair, sync_message, THIS_EPOCH, \
		F_ROUND | F_BLOB) \
	X(SYNC_KEYS, 60, repair, sync_message, THIS_EPOCH, \
		F_ROUND | F_BLOB | F_NUMBER) \
	X(SYNC_FETCH, 61, repair, sync_message, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_FLAGS) \
	X(SYNC_RECORD, 62, repair, sync_message, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TOKEN | F_LEFT | F_OWNER | \
		F_IDENTITY | F_VALUE | F_BALLOT | F_FLAGS | F_TERMS | F_LABEL | F_AGE) \
	X(DOWNGRADE, 63, master, master_downgrade, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID) \
	X(DOWNGRADE_ANSWER, 64, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_TOKEN | F_AGE) \
	X(NOMINATE, 65, master, master_nominate, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_OWNER) \
	X(NOMINATE_ANSWER, 66, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_LOCK_ID | F_ATTEMPT | F_BALLOT | F_BY) \
	X(HAND_OVER, 67, master, master_hand_over, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_BY | F_ATTEMPT | F_BALLOT | F_BLOB) \
	X(ASK, 68, master, master_ask, THIS_EPOCH, \
		F_ROUND | F_KEY | F_OWNER | F_IDENTITY | F_VALUE | F_TERMS) \
	X(ASK_ANSWER, 69, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_NUMBER) \
	X(FEED_WATCH_EVENT, 70, replication, follow_message, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_TOKEN | F_OWNER | F_IDENTITY | F_VALUE | \
		F_BALLOT | F_PART | F_NUMBER | F_TERMS | F_LABEL) \
	X(SNAPSHOT_LOST, 71, recovery, state_transfer_message, ANY_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_LEFT) \
	X(EXTEND_PERMITS, 72, master, master_extend, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TOKEN | F_LEASE | F_NUMBER | F_TERMS) \
	X(COUNTED, 73, changes, counted_said, ANY_EPOCH, \
		F_BY | F_NUMBER | F_LOG | F_ECHO)

enum message_kind {
#define MESSAGE_ENUM(name, number, room, handler, epochs, fields) MESSAGE_##name = number,
	MESSAGE_TABLE(MESSAGE_ENUM)
#undef MESSAGE_ENUM
};
#define MESSAGE_KIND_MAX 73

/* A set of kinds, for tests that stop, lose or count some of them, and for rules about who may say
 * what. */
__extension__ typedef unsigned __int128 message_set;
#define MESSAGE_BIT(kind) ((message_set)1 << (int)(kind))

/* One message of these kinds may take a tenth of a millisecond or more: it may ask for a piece of a
 * table, or begin or end a copy of one. */
#define MESSAGES_LONG \
	(MESSAGE_BIT(MESSAGE_SNAPSHOT) | MESSAGE_BIT(MESSAGE_SNAPSHOT_GO_ON) | \
		MESSAGE_BIT(MESSAGE_FOLLOW) | MESSAGE_BIT(MESSAGE_FEED_ACK) | \
		MESSAGE_BIT(MESSAGE_COPY_AHEAD) | MESSAGE_BIT(MESSAGE_COPY_AHEAD_END) | \
		MESSAGE_BIT(MESSAGE_SYNC_ASK) | MESSAGE_BIT(MESSAGE_SYNC_LEAVES) | \
		MESSAGE_BIT(MESSAGE_SYNC_KEYS))

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

/* One message. The field bits above (F_ROUND is `round`, and so on) say what each field means. */
struct message {
	enum message_kind kind;
	enum status status;
	uint32_t flags, part, parts;
	uint64_t round;
	/* F_ATTEMPT. */
	union { uint64_t attempt, name; };
	uint64_t token, noted, clock;
	uint64_t epoch, number, log, echo;
	/* F_LEASE, F_LEFT: microseconds. */
	uint64_t lease_us, left_us;
	struct id128 lock_id, by;
	struct ticket ticket;
	struct ballot ballot, prepared;
	struct slice key, owner, identity, value, blob, label;
	struct terms terms;
	/* F_AGE: microseconds. */
	uint64_t age_us;
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
	struct id128 sender;
	/* The sender's boot, and its Lamport clock. */
	uint64_t boot, clock;
	/* FRAME_VOTING, FRAME_COMPLETE. */
	uint32_t flags;
	const struct message *messages;
	size_t count;
	/* More messages of the frame follow in another event, with the same head. Not on the
	 * wire. */
	bool more;
};

/* Tells whether the messages of a kind mean the same under any epoch. */
bool message_of_any_epoch(enum message_kind kind);
/* Returns the fields of a kind, as bits F_*; 0 for a number that is no kind. */
uint32_t message_fields(enum message_kind kind);
/* Return names in static storage; "?" for a number that has none. */
const char *message_name(enum message_kind kind);
const char *status_name(enum status status);

#endif
