/* message.c: the names and fields of MESSAGE_TABLE. */
#include "message.h"

uint32_t message_fields(enum message_kind kind) {
	switch (kind) {
#define MESSAGE_CASE(name, number, fields) \
	case MESSAGE_##name: \
		return fields;
		MESSAGE_TABLE(MESSAGE_CASE)
#undef MESSAGE_CASE
	}
	return 0;
}

bool message_of_any_epoch(enum message_kind kind) {
	switch (kind) {
	case MESSAGE_PING: case MESSAGE_PONG: case MESSAGE_COUNTED: case MESSAGE_PLEDGE: case MESSAGE_CONFIG: case MESSAGE_COPY_AHEAD: case MESSAGE_COPY_AHEAD_ANSWER:
	case MESSAGE_COPY_AHEAD_END: case MESSAGE_SNAPSHOT: case MESSAGE_SNAPSHOT_RECORD: case MESSAGE_SNAPSHOT_RELEASED:
	case MESSAGE_SNAPSHOT_LOST: case MESSAGE_SNAPSHOT_CHUNK: case MESSAGE_SNAPSHOT_GO_ON: case MESSAGE_SNAPSHOT_READY: case MESSAGE_SNAPSHOT_END:
		return true;
	case MESSAGE_SYNC_ROOT: case MESSAGE_SYNC_GROUPS: case MESSAGE_SYNC_ASK: case MESSAGE_SYNC_LEAVES: case MESSAGE_SYNC_KEYS:
	case MESSAGE_SYNC_FETCH: case MESSAGE_SYNC_RECORD:
	case MESSAGE_PROMISE: case MESSAGE_PROMISE_ANSWER: case MESSAGE_COMMIT: case MESSAGE_COMMIT_ANSWER: case MESSAGE_WITHDRAW:
	case MESSAGE_EXTEND: case MESSAGE_EXTEND_PERMITS: case MESSAGE_EXTEND_ANSWER: case MESSAGE_FETCH: case MESSAGE_FETCH_ANSWER: case MESSAGE_LEARN:
	case MESSAGE_LEARN_ANSWER: case MESSAGE_RELEASE: case MESSAGE_RELEASE_ANSWER: case MESSAGE_BREAK: case MESSAGE_BREAK_ANSWER:
	case MESSAGE_PREPARE: case MESSAGE_PREPARE_ANSWER: case MESSAGE_WRITE: case MESSAGE_WRITE_ANSWER: case MESSAGE_READ:
	case MESSAGE_READ_ANSWER: case MESSAGE_ENQUEUE: case MESSAGE_ENQUEUE_ANSWER: case MESSAGE_TURN: case MESSAGE_DISPLACED:
	case MESSAGE_WAITERS: case MESSAGE_WAITERS_ANSWER: case MESSAGE_DECREE_PREPARE: case MESSAGE_DECREE_PROMISE:
	case MESSAGE_DECREE_ACCEPT: case MESSAGE_DECREE_ACCEPTED:
	case MESSAGE_BINDING: case MESSAGE_BINDING_ANSWER:
	case MESSAGE_DOWNGRADE: case MESSAGE_DOWNGRADE_ANSWER: case MESSAGE_NOMINATE: case MESSAGE_NOMINATE_ANSWER: case MESSAGE_HAND_OVER:
	case MESSAGE_ASK: case MESSAGE_ASK_ANSWER:
	case MESSAGE_FOLLOW: case MESSAGE_FEED_BEGIN: case MESSAGE_FEED_RECORD: case MESSAGE_FEED_GONE: case MESSAGE_FEED_BATCH:
	case MESSAGE_FEED_ACK: case MESSAGE_FEED_ECHO: case MESSAGE_FEED_END: case MESSAGE_FEED_WATCH_EVENT:
		return false;
	}
	return false;
}

const char *message_name(enum message_kind kind) {
	switch (kind) {
#define MESSAGE_CASE(name, number, fields) \
	case MESSAGE_##name: \
		return #name;
		MESSAGE_TABLE(MESSAGE_CASE)
#undef MESSAGE_CASE
	}
	return "?";
}

const char *status_name(enum status status) {
	static const char *const names[STATUS_MAX + 1] = { "ok", "held_self", "kept", "need", "held", "promised", "queued", "stale",
		"released", "too_long", "clock", "recovering", "epoch", "denied", "full", "barred", "ballot", "contested", "absent", "terms", "later" };
	return (unsigned)status <= STATUS_MAX ? names[status] : "?";
}
