/* Notifications of what is watched, both ways. */
#include "check.h"
#include "client_fact.h"
#include "client_reply.h"

static const char *const event_names[CLIENT_EVENT_OTHER] = {
#define EVENT_NAME(name, text) [CLIENT_EVENT_##name] = text,
	CLIENT_EVENT_TABLE(EVENT_NAME)
#undef EVENT_NAME
};

const char *client_event_name(enum client_event_type type) {
	CHECK((unsigned)type < CLIENT_EVENT_OTHER);
	return event_names[type];
}

#define EVENT_FACT(member, type) { #member, type, offsetof(struct client_event, member), 0 }
/* Of every event, ... */
static const struct client_fact event_facts[] = {
	EVENT_FACT(watch, FACT_U64),
	EVENT_FACT(position, FACT_POSITION),
};
/* ... of all but an overflow of all keys of the watch, ... */
static const struct client_fact event_key = { "key", FACT_BYTES, offsetof(struct client_event, entry.key), 0 };
/* ... and of those that ask. */
static const struct client_fact event_asked_facts[] = {
	EVENT_FACT(by, FACT_BYTES),
	EVENT_FACT(to, FACT_BYTES),
	EVENT_FACT(priority, FACT_I32),
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static enum client_event_type event_type(enum core_news_kind kind) {
	switch (kind) {
	case NEWS_ACQUIRED:
		return CLIENT_EVENT_ACQUIRED;
	case NEWS_UPDATED:
		return CLIENT_EVENT_UPDATED;
	case NEWS_DOWNGRADED:
		return CLIENT_EVENT_DOWNGRADED;
	case NEWS_RELEASED:
		return CLIENT_EVENT_RELEASED;
	case NEWS_EXPIRED:
		return CLIENT_EVENT_EXPIRED;
	case NEWS_LOST:
		return CLIENT_EVENT_LOST;
	case NEWS_ASKED:
		return CLIENT_EVENT_ASKED;
	case NEWS_GAP:
		return CLIENT_EVENT_OVERFLOW;
	}
	CHECK(false);
}

/* Whoever let go has no value any more. */
static bool event_has_value(enum core_news_kind kind) {
	return kind == NEWS_ACQUIRED || kind == NEWS_UPDATED || kind == NEWS_DOWNGRADED;
}

struct client_event client_event_of(const struct core_news *news, bool show_lock_id) {
	struct client_event event = { .type = event_type(news->kind), .entry.key = news->key };
	if (news->kind == NEWS_GAP) {
		return event;
	}
	if (news->kind == NEWS_ASKED) {
		event.by = news->owner;
		event.to = news->value;
		event.priority = news->terms.priority;
		return event;
	}
	const struct core_entry core = { .key = news->key, .owner = news->owner, .value = news->value, .identity = news->identity,
		.token = news->token, .lock_id = news->lock_id, .show_lock_id = show_lock_id, .value_seq = news->value_seq,
		.terms = news->terms, .label = news->label };
	uint32_t without = CLIENT_ENTRY_REMAINING | CLIENT_ENTRY_HELD_FOR;
	without |= event_has_value(news->kind) ? 0 : CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ;
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
	pack_text(&k, client_event_name(event->type));
	client_fact_put_all(&k, &map, event_facts, COUNT(event_facts), event, 0);
	if (event->entry.key.size || event->type != CLIENT_EVENT_OVERFLOW) {
		client_fact_put(&k, &map, &event_key, event);
	}
	if (event->type != CLIENT_EVENT_OVERFLOW) {
		client_reply_put_entry(&k, &map, &event->entry);
	}
	if (event->type == CLIENT_EVENT_ASKED) {
		client_fact_put_all(&k, &map, event_asked_facts, COUNT(event_asked_facts), event, 0);
	}
	pack_map_close(&k, &map);
	return pack_end(&k);
}

/* The type comes first, which is one of ours, then the watch: what others wrote stands behind it. */
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

/* One pair of the map; *got counts what must be there: type, watch, position. */
static void event_take_pair(struct unpack *u, struct client_event *out, bool *typed) {
	struct client_fact_set facts = { event_facts, COUNT(event_facts), out, NULL };
	struct client_fact_set key = { &event_key, 1, out, NULL };
	struct client_fact_set asked = { event_asked_facts, COUNT(event_asked_facts), out, NULL };
	struct client_fact_set entry = { client_entry_facts, client_entry_fact_count, &out->entry, &out->entry.present };
	struct slice name = unpack_bytes(u, SIZE_MAX);
	if (slice_equal(name, slice_str("type"))) {
		out->type = event_take_type(u);
		*typed = true;
	} else if (!client_fact_take(&facts, name, u) && !client_fact_take(&key, name, u) && !client_fact_take(&asked, name, u) &&
		!client_fact_take(&entry, name, u)) {
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
	bool whole = typed && out->watch && (out->type == CLIENT_EVENT_OVERFLOW || out->entry.key.size || out->type == CLIENT_EVENT_OTHER);
	return u.bad || unpack_left(&u) != 0 || !whole ? PAWL_EPROTOCOL : 0;
}
