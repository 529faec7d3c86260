/* message.c: what is known of the kinds in MESSAGE_TABLE, and of the statuses, by their names. */
#include "message.h"

bool message_of_any_epoch(enum message_kind kind) {
	enum { THIS_EPOCH, ANY_EPOCH };
	switch (kind) {
#define MESSAGE_CASE(name, number, room, handler, epochs, fields) \
	case MESSAGE_##name: \
		return (epochs) == ANY_EPOCH;
		MESSAGE_TABLE(MESSAGE_CASE)
#undef MESSAGE_CASE
	}
	return false;
}

const char *message_name(enum message_kind kind) {
	switch (kind) {
#define MESSAGE_CASE(name, number, room, handler, epochs, fields) \
	case MESSAGE_##name: \
		return #name;
		MESSAGE_TABLE(MESSAGE_CASE)
#undef MESSAGE_CASE
	}
	return "?";
}

const char *status_name(enum status status) {
	switch (status) {
	case STATUS_OK: return "ok";
	case STATUS_HELD_SELF: return "held_self";
	case STATUS_PARKED: return "parked";
	case STATUS_NEED: return "need";
	case STATUS_HELD: return "held";
	case STATUS_PROMISED: return "promised";
	case STATUS_QUEUED: return "queued";
	case STATUS_STALE: return "stale";
	case STATUS_RELEASED: return "released";
	case STATUS_TOO_LONG: return "too_long";
	case STATUS_CLOCK: return "clock";
	case STATUS_RECOVERING: return "recovering";
	case STATUS_EPOCH: return "epoch";
	case STATUS_DENIED: return "denied";
	case STATUS_FULL: return "full";
	case STATUS_BARRED: return "barred";
	case STATUS_BALLOT: return "ballot";
	case STATUS_CONTESTED: return "contested";
	case STATUS_ABSENT: return "absent";
	case STATUS_TERMS: return "terms";
	case STATUS_LATER: return "later";
	}
	return "?";
}
