/* message.c: the names and fields of the kinds in MESSAGE_TABLE. */
#include "message.h"

uint32_t message_fields(enum message_kind kind) {
	switch (kind) {
#define MESSAGE_CASE(name, number, room, handler, epochs, fields) \
	case MESSAGE_##name: \
		return fields;
		MESSAGE_TABLE(MESSAGE_CASE)
#undef MESSAGE_CASE
	}
	return 0;
}

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
	static const char *const names[STATUS_MAX + 1] = {
		"ok", "held_self", "parked", "need", "held", "promised", "queued", "stale",
		"released", "too_long", "clock", "recovering", "epoch", "denied", "full",
		"barred", "ballot", "contested", "absent", "terms", "later" };
	return (unsigned)status <= STATUS_MAX ? names[status] : "?";
}
