/* message.h: what masters and coordinators say to each other. Plain values; src/wire turns them into bytes and back.
 *
 * A message is a kind and those of the fields below that its kind carries, in the order of the fields' bits. The table
 * MESSAGE_TABLE is the whole definition: the codec, its tests and its fuzzer work from it.
 */
#ifndef PAWL_CLUSTER_MESSAGE_H
#define PAWL_CLUSTER_MESSAGE_H

#include "types.h"

/* X(field bit, member, type on the wire) */
#define F_ROUND (1u << 0)     /* u64: request number of the asker, echoed by the answer */
#define F_KEY (1u << 1)       /* bytes, 1 .. KEY_MAX; a prefix (WAITERS, and its answer) and that of FEED_NEWS may be empty */
#define F_LOCK_ID (1u << 2)      /* 16 bytes */
#define F_ATTEMPT (1u << 3)   /* u64: with the sender and its boot it names the attempt; 0: none */
#define F_TICKET (1u << 4)    /* two u64 */
#define F_TOKEN (1u << 5)     /* u64 <= TOKEN_MAX */
#define F_NOTED (1u << 6)     /* u64 <= TOKEN_MAX */
#define F_LEASE (1u << 7)     /* u64, microseconds; PONG: the longest round trip that its sender has measured lately */
#define F_LEFT (1u << 8)      /* u64, microseconds, rounded up; BOND_ANSWER without a record: for how long it has lacked it, rounded down */
#define F_OWNER (1u << 9)     /* bytes, 0 .. OWNER_MAX */
#define F_IDENTITY (1u << 10) /* bytes, 0 .. IDENTITY_MAX */
#define F_VALUE (1u << 11)    /* bytes, 0 .. VALUE_MAX_HARD */
#define F_BALLOT (1u << 12)   /* clock u64 <= TOKEN_MAX, node u64, boot u32 */
#define F_PREPARED (1u << 13) /* a second ballot; COMMIT: of the value that masters reported, {0, 0, 0} if none has the lock_id */
#define F_FLAGS (1u << 14)    /* u32, bits of enum message_flag */
#define F_STATUS (1u << 15)   /* u8, enum status */
#define F_BY (1u << 16)       /* 16 bytes: whose record or promise stands in the way, or a node's identity */
#define F_PART (1u << 17)     /* part u32, parts u32: part < parts, or both 0 */
#define F_BLOB (1u << 18)     /* bytes, 0 .. BLOB_MAX */
#define F_CLOCK (1u << 19)    /* u64 <= TOKEN_MAX */
#define F_EPOCH (1u << 20)    /* u64: the epoch that the message is about */
#define F_NUMBER (1u << 21)   /* u64: a place in a transaction log, a count, or a bond (struct terms); DECREE_ACCEPTED: the value's hash */
#define F_LOG (1u << 22)      /* u64: which log the number is of: one for each start and each table that replaced another; COUNTED: the boot */
#define F_ECHO (1u << 23)     /* u64: names a moment of a follower's clock, and is given back to it; 0: none; COUNTED: writes */
#define F_TERMS (1u << 24)    /* of u16, count u16, priority i32, delay u64 (microseconds), set: two u64, bond u32 */
#define F_LABEL (1u << 25)    /* bytes, 0 .. LABEL_MAX */
#define F_AGE (1u << 26)      /* u64, microseconds, rounded down: since the lock was acquired, or the entry made;
                              * EXTEND_, PREPARE_, DOWNGRADE_, RELEASE_ANSWER: since anything of it ended here last; PROMISE_ANSWER:
                              * since it ended otherwise than by release */
#define F_HAD (1u << 27)      /* two u64: numbers of a semaphore. EXTEND_ANSWER: those of `terms` that it had; SNAPSHOT_RECORD: see struct older, `clock` is theirs */
#define BLOB_MAX 65536
#define MESSAGE_BYTES (F_KEY | F_OWNER | F_IDENTITY | F_VALUE | F_BLOB | F_LABEL) /* fields that are bytes */

/* X(name, number on the wire, room that takes it, the function there, whether it means the same under
 * any epoch or belongs to one, fields). ANY_EPOCH: about the configuration itself, or what is merged
 * beside the table (section 6). */
#define MESSAGE_TABLE(X) \
	X(PROMISE, 1, master, master_promise, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TICKET | F_IDENTITY | F_BALLOT | F_FLAGS | \
		F_TERMS) \
	X(PROMISE_ANSWER, 2, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_TOKEN | F_NOTED | F_BY | F_LEFT | F_OWNER | F_VALUE | F_BALLOT \
		| F_TERMS | F_AGE) \
	X(COMMIT, 3, master, master_commit, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TICKET | F_TOKEN | F_LEASE | F_OWNER | \
		F_IDENTITY | F_VALUE | F_BALLOT | F_PREPARED | F_TERMS | F_LABEL) \
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
		F_ROUND | F_STATUS | F_TOKEN | F_LEFT | F_OWNER | F_IDENTITY | F_VALUE | F_BALLOT | \
		F_FLAGS | F_TERMS | F_LABEL | F_AGE) \
	X(LEARN, 10, master, master_learn, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TOKEN | F_LEASE | F_OWNER | F_IDENTITY | \
		F_VALUE | F_BALLOT | F_FLAGS | F_TERMS | F_LABEL | F_AGE) \
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
		F_ROUND | F_STATUS | F_PART | F_LOCK_ID | F_TOKEN | F_LEFT | F_OWNER | F_IDENTITY | \
		F_VALUE | F_BALLOT | F_FLAGS | F_TERMS | F_LABEL | F_AGE | F_NUMBER) \
	X(ENQUEUE, 22, master, queue_enqueue, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TICKET | F_OWNER | F_IDENTITY | F_LEFT | \
		F_BALLOT | F_FLAGS | F_TERMS | F_LABEL) \
	X(ENQUEUE_ANSWER, 23, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_TICKET | F_STATUS | F_TOKEN | F_BY | F_LEFT | F_OWNER) \
	X(TURN, 24, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_TOKEN | F_NOTED | F_BY | F_LEFT | F_OWNER | F_VALUE | F_BALLOT \
		| F_TERMS) \
	X(DISPLACED, 25, coordinator, attempt_displaced, THIS_EPOCH, \
		F_KEY | F_LOCK_ID | F_ATTEMPT | F_BY | F_LEFT | F_OWNER) \
	X(WAITERS, 26, master, waiters_list, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_TICKET | F_FLAGS | F_NUMBER | F_VALUE | F_BY | \
		F_TERMS) \
	X(WAITERS_ANSWER, 27, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_PART | F_LOCK_ID | F_TICKET | F_FLAGS | F_OWNER | F_IDENTITY | \
		F_LEFT | F_BY | F_KEY | F_TERMS | F_LABEL) \
	X(SNAPSHOT, 28, recovery, snapshot_asked, ANY_EPOCH, \
		F_ROUND | F_EPOCH | F_FLAGS) \
	X(SNAPSHOT_RECORD, 29, recovery, state_transfer_message, ANY_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_ATTEMPT | F_TOKEN | F_NOTED | F_LEFT | F_OWNER | \
		F_IDENTITY | F_VALUE | F_BALLOT | F_PREPARED | F_FLAGS | F_CLOCK | F_TERMS | F_LABEL | \
		F_AGE | F_HAD) \
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
	X(DECREE_PROMISE, 39, membership, change_decree, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_BALLOT | F_PREPARED | F_BLOB) \
	X(DECREE_ACCEPT, 40, membership, decree_accept, THIS_EPOCH, \
		F_ROUND | F_BALLOT | F_BLOB) \
	X(DECREE_ACCEPTED, 41, membership, change_accepted_there, THIS_EPOCH, \
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
	X(NOMINATE, 65, master, transfer_nominate, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_OWNER) \
	X(NOMINATE_ANSWER, 66, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_LOCK_ID | F_ATTEMPT | F_BALLOT | F_BY) \
	X(HAND_OVER, 67, master, transfer_hand_over, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_BY | F_ATTEMPT | F_BALLOT | F_BLOB) \
	X(ASK, 68, master, ask_heard, THIS_EPOCH, \
		F_ROUND | F_KEY | F_OWNER | F_IDENTITY | F_VALUE | F_TERMS) \
	X(ASK_ANSWER, 69, coordinator, op_answer, THIS_EPOCH, \
		F_ROUND | F_STATUS | F_NUMBER) \
	X(FEED_WATCH_EVENT, 70, replication, follow_message, THIS_EPOCH, \
		F_ROUND | F_KEY | F_LOCK_ID | F_TOKEN | F_OWNER | F_IDENTITY | F_VALUE | F_BALLOT | \
		F_PART | F_NUMBER | F_TERMS | F_LABEL) \
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

/* A set of kinds, for those who stop, lose or count some of them. */
__extension__ typedef unsigned __int128 message_set;
#define MESSAGE_BIT(kind) ((message_set)1 << (int)(kind))

enum message_flag {
	FLAG_HOME = 1,      /* PROMISE: the asker takes this master for the key's home */
	FLAG_PASSED_ON = 1, /* CONFIG: another master's claim, not its own */
	FLAG_TURN = 2,      /* PROMISE: the request has a turn: refused by no queue, kept (STATUS_KEPT) */
	FLAG_WAIT = 4,      /* ENQUEUE: with a wait time (a try-lock in a tie has none) */
	FLAG_HAD = 8,       /* the master had it, for EXTEND in the sense of "nobody else's came between" */
	FLAG_NOW = 16,      /* BREAK: a release by force; BOND: the node has lost the lock, which ends where it is bound to it */
	FLAG_BOUND = 16,    /* SNAPSHOT_RECORD: it is bound to a node there (section 2, Release on disconnect) */
	FLAG_BARRED = 32,   /* the record may not be extended any more; SNAPSHOT_RELEASED: nor may what comes back of it */
	FLAG_SAME = 64,     /* PREPARE_ANSWER: the value is the one the asker named, and left out; READ_ANSWER: the value is left out */
	FLAG_COUNTS = 128,  /* READ_ANSWER, PREPARE_ANSWER, SNAPSHOT_RECORD: the value counts as in Prepare */
	FLAG_BORN = 256,    /* PLEDGE: this epoch 1 has been written */
	FLAG_RELEASED = 512, /* SNAPSHOT_RELEASED: released; BOND: bound no more */
	FLAG_HANDOVER = 1024, /* SNAPSHOT: for a handover to that epoch (else to rejoin it) */
	FLAG_REMEMBERS = 2048, /* SNAPSHOT_END: the source voted in the epoch before when it adopted this one, and kept its memory */
	FLAG_FORGOT = 4096,  /* SNAPSHOT_END: it had voted in the epoch before, and has restarted since; the clock is its ceiling,
	                      * and the lease the longest that it may have accepted */
	FLAG_NEVER = 8192,   /* SNAPSHOT_END: it never voted in the epoch before */
	FLAG_WHOLE = 16384,  /* FEED_BATCH: the snapshot ends with this batch */
	FLAG_STAGING = 32768, /* FOLLOW: there is room for a snapshot; FEED_BEGIN: one begins */
	FLAG_PARTLY = 65536, /* FOLLOW: go on with the snapshot of the same round that broke off at this part */
	FLAG_ANYWAY = 131072, /* FOLLOW: even though the master is not linked with a quorum: nobody who is was found */
	FLAG_EXPLAIN = 262144, /* READ: with promises and kept requests; READ_ANSWER, when this part is no held record: */
	FLAG_PROMISE = 524288, /* ... a promise */
	FLAG_PARKED = 1048576,   /* ... a request that is kept */
	FLAG_PREFIX = 2097152, /* WAITERS: of all keys that begin with `key` */
	FLAG_IS_HOME = 4194304, /* READ_ANSWER to an explanation: `number` entries are in the key's queue here */
	FLAG_WATCH_EVENT = 8388608,    /* FEED_ECHO: somebody watches at the follower, since its place was `number` (0: longer); else nobody does */
	FLAG_REST = 16777216,   /* READ: a whole piece of the report: what comes after the first `number`, of which lock_id was the last;
	                         * READ_ANSWER, WAITERS_ANSWER: the last of a piece, and there is more; to an explanation: more of its sort was left out */
	FLAG_MORE = 33554432    /* EXTEND_ANSWER: the record has other numbers, too, that are in doubt or left to run out */
};
#define MESSAGE_FLAGS (2 * (uint32_t)FLAG_MORE - 1) /* all of them */

/* What a master answers. Up to STATUS_NEED it is no refusal. */
enum status {
	STATUS_OK = 0,
	STATUS_HELD_SELF = 1,   /* promise: held by yourself; token, noted and value are reported; commit: here is a
	                         * later value than the one that it brings */
	STATUS_PARKED = 2,        /* promise with a turn: kept behind the held record, or behind a promise (then without token) */
	STATUS_NEED = 3,        /* extension, write: the record is not here, send it */
	STATUS_HELD = 4,        /* R1: a live held record of another lock_id */
	STATUS_PROMISED = 5,    /* R1: a live promise of another lock_id */
	STATUS_QUEUED = 6,      /* R1: somebody waits ahead at the key's home */
	STATUS_STALE = 7,       /* R2: the token is not above what was noted */
	STATUS_RELEASED = 8,    /* R3 */
	STATUS_TOO_LONG = 9,    /* R5 */
	STATUS_CLOCK = 10,      /* the message's clock or token is beyond the bound of section 9 */
	STATUS_RECOVERING = 11, /* R4: the master does not vote */
	STATUS_EPOCH = 12,      /* R4: another epoch or hash */
	STATUS_DENIED = 13,     /* the lock_id belongs to another identity */
	STATUS_FULL = 14,       /* a limit of the master */
	STATUS_BARRED = 15,     /* barred from extension by a break */
	STATUS_BALLOT = 16,     /* a higher ballot was noted, or this one is not above the record's noted clock */
	STATUS_CONTESTED = 17,  /* several held records: nothing but releases and, later, extensions of what is here */
	STATUS_ABSENT = 18,     /* the lock_id is not here */
	STATUS_TERMS = 19,      /* the lock_id is here, under other terms, which it keeps (section 10) */
	STATUS_LATER = 20       /* extension: the lock_id is here on a contested key, and may be lengthened when `left` has passed (section 4) */
};
#define STATUS_MAX 20

struct message {
	enum message_kind kind;
	enum status status;
	uint32_t flags, part, parts;
	uint64_t round, attempt, token, noted, clock;
	uint64_t epoch, number, log, echo;
	uint64_t lease_us, left_us;
	struct id128 lock_id, by;
	struct ticket ticket;
	struct ballot ballot, prepared;
	struct slice key, owner, identity, value, blob, label;
	struct terms terms;
	uint64_t age_us;
	struct permits had;
};

/* Every frame says who speaks, under which configuration, and how far its clock is. */
#define FRAME_VOTING 1u   /* the sender votes in this epoch */
#define FRAME_COMPLETE 2u /* ... and knows that all its masters have voted in it (section 6) */
struct frame {
	uint64_t epoch, config_hash;
	struct id128 sender;
	uint64_t boot, clock;
	uint32_t flags;
	const struct message *messages;
	size_t count;
};

bool message_of_any_epoch(enum message_kind kind);
uint32_t message_fields(enum message_kind kind); /* bits F_*; 0 for what is no kind */
const char *message_name(enum message_kind kind);
const char *status_name(enum status status);

#endif
