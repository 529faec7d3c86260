/* message_kinds.h: which messages there are between masters and coordinators, and which fields each
 * has. Part of message.h.
 *
 * MESSAGE_TABLE is the whole definition of what is on the wire: the codec, its tests and its fuzzer
 * work from it. A message has the fields of its kind, in the order of their bits. A field that is
 * set in a message whose kind does not have it is not written (tests/guard). */
#ifndef PAWL_CLUSTER_MESSAGE_KINDS_H
#define PAWL_CLUSTER_MESSAGE_KINDS_H

#include <stdint.h>

/* The fields, as they are on the wire. What each means is said at its member of struct message. */

/* u64. */
#define F_ROUND (1u << 0)
/* bytes, 1 .. KEY_MAX; of WAITERS, WAITERS_ANSWER and FEED_WATCH_EVENT 0 .. KEY_MAX. */
#define F_KEY (1u << 1)
/* 16 bytes. */
#define F_LOCK_ID (1u << 2)
/* u64. */
#define F_ATTEMPT (1u << 3)
/* two u64. */
#define F_TICKET (1u << 4)
/* u64 <= TOKEN_MAX. */
#define F_TOKEN (1u << 5)
/* u64 <= TOKEN_MAX. */
#define F_NOTED (1u << 6)
/* u64, microseconds. */
#define F_LEASE (1u << 7)
/* u64, microseconds. */
#define F_LEFT (1u << 8)
/* bytes, 0 .. OWNER_MAX. */
#define F_OWNER (1u << 9)
/* bytes, 0 .. IDENTITY_MAX. */
#define F_IDENTITY (1u << 10)
/* bytes, 0 .. VALUE_MAX_HARD. */
#define F_VALUE (1u << 11)
/* clock u64 <= TOKEN_MAX, node u64, boot u32. */
#define F_BALLOT (1u << 12)
/* the same as F_BALLOT. */
#define F_PREPARED (1u << 13)
/* u32 <= MESSAGE_FLAGS. */
#define F_FLAGS (1u << 14)
/* u8 <= STATUS_MAX. */
#define F_STATUS (1u << 15)
/* 16 bytes. */
#define F_BY (1u << 16)
/* part u32, parts u32: part < parts, or both are 0. */
#define F_PART (1u << 17)
/* bytes, 0 .. BLOB_MAX. */
#define F_BLOB (1u << 18)
/* u64 <= TOKEN_MAX. */
#define F_CLOCK (1u << 19)
/* u64. */
#define F_EPOCH (1u << 20)
/* u64. */
#define F_NUMBER (1u << 21)
/* u64. */
#define F_LOG (1u << 22)
/* u64. */
#define F_ECHO (1u << 23)
/* of u16, count u16, priority i32, delay u64 (microseconds, rounded up), set two u64, binding
 * u32. */
#define F_TERMS (1u << 24)
/* bytes, 0 .. LABEL_MAX. */
#define F_LABEL (1u << 25)
/* u64, microseconds. */
#define F_AGE (1u << 26)
/* two u64. */
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

/* Returns the fields of a kind, as bits F_*; 0 for a number that is no kind. Of a constant kind it
 * is a constant. */
static inline uint32_t message_fields(enum message_kind kind) {
	switch (kind) {
#define MESSAGE_CASE(name, number, room, handler, epochs, fields) \
	case MESSAGE_##name: \
		return fields;
		MESSAGE_TABLE(MESSAGE_CASE)
#undef MESSAGE_CASE
	}
	return 0;
}

#endif
