/* watch_tell.c: tells the program the events of a watch. */
#include "check.h"
#include "copy.h"
#include "value.h"
#include "watch.h"

#define EVENT_BYTES_MAX ((size_t)16 << 20)

bool watch_tell(struct pawl_watch *watch, const struct pawl_event *event) {
	struct pawl *client = watch->client;
	bool gone = false;
	watch->gone = &gone;
	watch->told = watch->told || event->type != PAWL_EVENT_OVERFLOW;
	client->callbacks += !watch->quiet;
	watch->on_event(watch, event, watch->arg);
	if (!gone) {
		watch->gone = NULL;
	}
	return !gone && !client->dying;
}

static struct pawl_event event_blank(const struct pawl_watch *watch, enum pawl_event_type type) {
	struct pawl_event event = { .type = type, .entry = copy_no_entry, .to = { "", 0 },
		.resume = { "", 0 } };
	if (watch->resumes) {
		event.resume = (struct pawl_bytes){ watch->position, POSITION_BYTES };
	}
	return event;
}

bool watch_tell_plain(struct pawl_watch *watch, enum pawl_event_type type) {
	struct pawl_event event = event_blank(watch, type);
	return watch_tell(watch, &event);
}

/* Hashes a key and a token to one number (FNV-1a). A key never has the same token twice. */
static uint64_t acquisition(struct slice key, uint64_t token) {
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ token;
	for (size_t i = 0; i < key.size; i++) {
		h = (h ^ key.data[i]) * UINT64_C(0x100000001b3);
	}
	return h * UINT64_C(0x100000001b3);
}

static unsigned find_ended(const struct pawl_watch *watch, uint64_t which) {
	unsigned i = 0;
	while (i < watch->ended_count && watch->ended[i] != which) {
		i++;
	}
	return i;
}

bool watch_note_end(struct pawl_watch *watch, const struct client_event *event) {
	const uint64_t which = acquisition(event->entry.key, event->entry.token);
	unsigned i = find_ended(watch, which);
	bool ended = event->type == CLIENT_EVENT_RELEASED || event->type == CLIENT_EVENT_EXPIRED
		|| event->type == CLIENT_EVENT_LOST;
	if (ended && i == WATCH_ENDED_MAX) {
		return false;
	}
	if (ended) {
		watch->ended[i] = which;
		watch->ended_count += i == watch->ended_count;
	} else if (event->type == CLIENT_EVENT_ACQUIRED && i < watch->ended_count) {
		watch->ended[i] = watch->ended[--watch->ended_count];
	}
	return true;
}

static bool tell_holder(struct pawl_watch *watch, const struct pawl_entry *entry) {
	if (!entry->held
		|| find_ended(watch, acquisition(slice_of(entry->key.data, entry->key.size),
			entry->token)) < watch->ended_count) {
		return true;
	}
	struct pawl_event event = event_blank(watch, PAWL_EVENT_PRESENT);
	event.entry = *entry;
	if (!watch->prefix) {
		event.entry.key = (struct pawl_bytes){ watch->key, watch->key_size };
	}
	return watch_tell(watch, &event);
}

bool watch_tell_present(struct pawl_watch *watch, const struct pawl_result *result) {
	bool several = result->holder_count > 1;
	const struct pawl_entry *entries = watch->prefix ? result->entries
		: several ? result->holders
		: &result->entry;
	size_t count = watch->prefix ? result->entry_count : several ? result->holder_count : 1;
	bool alive = true;
	for (size_t i = 0; alive && i < count; i++) {
		alive = tell_holder(watch, &entries[i]);
	}
	return alive;
}

static enum pawl_event_type type_of(enum client_event_type type) {
	switch (type) {
	case CLIENT_EVENT_ACQUIRED:
		return PAWL_EVENT_ACQUIRED;
	case CLIENT_EVENT_UPDATED:
		return PAWL_EVENT_UPDATED;
	case CLIENT_EVENT_DOWNGRADED:
		return PAWL_EVENT_DOWNGRADED;
	case CLIENT_EVENT_RELEASED:
		return PAWL_EVENT_RELEASED;
	case CLIENT_EVENT_EXPIRED:
		return PAWL_EVENT_EXPIRED;
	case CLIENT_EVENT_LOST:
		return PAWL_EVENT_LOST;
	case CLIENT_EVENT_ASKED:
		return PAWL_EVENT_ASKED;
	case CLIENT_EVENT_OVERFLOW:
	case CLIENT_EVENT_OTHER:
		return PAWL_EVENT_OVERFLOW;
	}
	return PAWL_EVENT_OVERFLOW;
}

static bool holds_after(enum pawl_event_type type) {
	return type == PAWL_EVENT_ACQUIRED || type == PAWL_EVENT_UPDATED
		|| type == PAWL_EVENT_DOWNGRADED;
}

static int copy_change(struct arena *arena, const struct client_event *from,
	struct pawl_event *to) {
	int error = copy_entry(arena, &from->entry, &to->entry);
	if (!error && from->type == CLIENT_EVENT_ASKED) {
		error = value_bytes(arena, from->by, &to->entry.owner);
	}
	to->priority = from->priority;
	to->entry.held = holds_after(to->type);
	to->entry.holders = to->entry.held;
	return error ? error : value_bytes(arena, from->to, &to->to);
}

int watch_tell_change(struct pawl_watch *watch, const struct client_event *event, bool *out_alive) {
	struct arena arena;
	arena_init(&arena, watch->client->env.alloc, EVENT_BYTES_MAX);
	struct pawl_event told = event_blank(watch, type_of(event->type));
	told.position = event->position.sequence;
	int error = copy_change(&arena, event, &told);
	*out_alive = error ? true : watch_tell(watch, &told);
	arena_done(&arena);
	return error;
}

const char *pawl_event_name(enum pawl_event_type type) {
	static const char *const names[] = {
		[PAWL_EVENT_PRESENT] = "present",
		[PAWL_EVENT_CURRENT] = "current",
		[PAWL_EVENT_ACQUIRED] = "acquired",
		[PAWL_EVENT_UPDATED] = "updated",
		[PAWL_EVENT_DOWNGRADED] = "downgraded",
		[PAWL_EVENT_RELEASED] = "released",
		[PAWL_EVENT_EXPIRED] = "expired",
		[PAWL_EVENT_LOST] = "lost",
		[PAWL_EVENT_ASKED] = "asked",
		[PAWL_EVENT_OVERFLOW] = "overflow"
	};
	return (unsigned)type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type]
		: "unknown";
}
