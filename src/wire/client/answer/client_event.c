/* client_event.c: encodes and decodes watch events. */
#include "check.h"
#include "client_field.h"
#include "client_reply.h"

static const char *const event_names[CLIENT_EVENT_OTHER] = {
#define EVENT_NAME(name, text) [CLIENT_EVENT_##name] = text,
	CLIENT_EVENT_TABLE(EVENT_NAME)
#undef EVENT_NAME
};

#define EVENT_FIELD(member, type) { #member, type, offsetof(struct client_event, member), 0 }
/* The fields of every event. */
static const struct client_field event_fields[] = {
	EVENT_FIELD(watch, FIELD_U64),
	EVENT_FIELD(position, FIELD_POSITION),
};
/* The field of every event but an overflow for all keys of the watch. */
static const struct client_field event_key = { "key", FIELD_BYTES,
	offsetof(struct client_event, entry.key), 0 };
/* The fields of an event that asks the holder to let go. */
static const struct client_field event_asked_fields[] = {
	EVENT_FIELD(by, FIELD_BYTES),
	EVENT_FIELD(to, FIELD_BYTES),
	EVENT_FIELD(priority, FIELD_I32),
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static enum client_event_type event_type(enum core_watch_event_kind kind) {
	switch (kind) {
	case WATCH_EVENT_ACQUIRED:
		return CLIENT_EVENT_ACQUIRED;
	case WATCH_EVENT_UPDATED:
		return CLIENT_EVENT_UPDATED;
	case WATCH_EVENT_DOWNGRADED:
		return CLIENT_EVENT_DOWNGRADED;
	case WATCH_EVENT_RELEASED:
		return CLIENT_EVENT_RELEASED;
	case WATCH_EVENT_EXPIRED:
		return CLIENT_EVENT_EXPIRED;
	case WATCH_EVENT_LOST:
		return CLIENT_EVENT_LOST;
	case WATCH_EVENT_ASKED:
		return CLIENT_EVENT_ASKED;
	case WATCH_EVENT_MISSED:
		return CLIENT_EVENT_OVERFLOW;
	}
	CHECK(false);
}

struct client_event client_event_of(const struct core_watch_event *watch_event, bool show_lock_id) {
	struct client_event event = {
		.type = event_type(watch_event->kind),
		.entry.key = watch_event->key
	};
	if (watch_event->kind == WATCH_EVENT_MISSED) {
		return event;
	}
	if (watch_event->kind == WATCH_EVENT_ASKED) {
		event.by = watch_event->owner;
		event.to = watch_event->value;
		event.priority = watch_event->terms.priority;
		return event;
	}
	const struct core_entry core = {
		.key = watch_event->key,
		.owner = watch_event->owner,
		.value = watch_event->value,
		.identity = watch_event->identity,
		.token = watch_event->token,
		.lock_id = watch_event->lock_id,
		.show_lock_id = show_lock_id,
		.value_seq = watch_event->value_seq,
		.terms = watch_event->terms,
		.label = watch_event->label
	};
	uint32_t without = CLIENT_ENTRY_REMAINING | CLIENT_ENTRY_HELD_FOR;
	/* A holder that has let go has no value any more. */
	if (event.type != CLIENT_EVENT_ACQUIRED && event.type != CLIENT_EVENT_UPDATED &&
		event.type != CLIENT_EVENT_DOWNGRADED) {
		without |= CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ;
	}
	event.entry = client_reply_entry(&core, without);
	return event;
}

int client_event_encode(const struct client_event *event, struct buffer *out) {
	struct pack k;
	pack_begin(&k, out);
	pack_array(&k, 3);
	pack_uint(&k, 2);
	pack_text(&k, "event");
	pack_array(&k, 1);
	struct pack_open map = pack_map_open(&k);
	pack_key(&k, &map, "type");
	CHECK((unsigned)event->type < CLIENT_EVENT_OTHER);
	pack_text(&k, event_names[event->type]);
	client_field_put_all(&k, &map, event_fields, COUNT(event_fields), event, 0);
	if (event->entry.key.size || event->type != CLIENT_EVENT_OVERFLOW) {
		client_field_put(&k, &map, &event_key, event);
	}
	if (event->type != CLIENT_EVENT_OVERFLOW) {
		client_reply_put_entry(&k, &map, &event->entry);
	}
	if (event->type == CLIENT_EVENT_ASKED) {
		client_field_put_all(&k, &map, event_asked_fields, COUNT(event_asked_fields), event,
			0);
	}
	pack_map_close(&k, &map);
	return pack_end(&k);
}

/* The first bytes that look like the field are it: before it stands only the type, which is one of
 * ours, and what clients have written comes after it. */
void client_event_address(struct slice message, uint64_t watch) {
	static const uint8_t key[] = { 0xa5, 'w', 'a', 't', 'c', 'h', 0xcf };
	const uint8_t *at = memmem(message.data, message.size, key, sizeof key);
	CHECK(at && message.size - (size_t)(at - message.data) >= sizeof key + 8);
	uint8_t *to = (uint8_t *)(uintptr_t)at + sizeof key;
	for (int i = 7; i >= 0; i--, watch >>= 8) {
		to[i] = (uint8_t)watch;
	}
}

/* ---- the client's side ---- */

static enum client_event_type event_take_type(struct unpack *u) {
	struct slice name = unpack_bytes(u, SIZE_MAX);
	for (int i = 0; i < CLIENT_EVENT_OTHER; i++) {
		if (slice_equal(name, slice_str(event_names[i]))) {
			return (enum client_event_type)i;
		}
	}
	return CLIENT_EVENT_OTHER;
}

/* Reads one pair of the map. Sets *typed if it is the type. */
static void event_take_pair(struct unpack *u, struct client_event *out, bool *typed) {
	struct client_field_set context = { event_fields, COUNT(event_fields), out, NULL };
	struct client_field_set key = { &event_key, 1, out, NULL };
	struct client_field_set asked = { event_asked_fields, COUNT(event_asked_fields), out,
		NULL };
	struct client_field_set entry = { client_entry_fields, client_entry_field_count,
		&out->entry, &out->entry.present };
	struct slice name = unpack_bytes(u, SIZE_MAX);
	if (slice_equal(name, slice_str("type"))) {
		out->type = event_take_type(u);
		*typed = true;
	} else if (!client_field_take(&context, name, u) && !client_field_take(&key, name, u) &&
		!client_field_take(&asked, name, u) && !client_field_take(&entry, name, u)) {
		unpack_skip(u);
	}
}

int client_event_decode(struct slice message, struct client_event *out) {
	struct unpack u = unpack_of(message);
	bool typed = false;
	*out = (struct client_event){ .type = CLIENT_EVENT_OTHER };
	u.bad = unpack_array(&u) != 3 || unpack_uint(&u, 2) != 2;
	if (!slice_equal(unpack_bytes(&u, SIZE_MAX), slice_str("event")) && !u.bad) {
		return 0;
	}
	u.bad = unpack_array(&u) != 1 || u.bad;
	uint32_t pairs = unpack_map(&u);
	for (uint32_t i = 0; i < pairs && !u.bad; i++) {
		event_take_pair(&u, out, &typed);
	}
	bool whole = typed && out->watch &&
		(out->type == CLIENT_EVENT_OVERFLOW || out->entry.key.size ||
			out->type == CLIENT_EVENT_OTHER);
	return u.bad || unpack_left(&u) != 0 || !whole ? PAWL_EPROTOCOL : 0;
}
