/* service_watch.c: how watches begin and end, and how the core's events get to those who watch. */
#include <event2/event.h>

#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"

/* If more bytes than this are unsent on a connection, its watchers are behind. */
#define WATCH_BACKLOG_MAX ((size_t)32 << 10)

/* ---- the port ---- */

static bool watch_full(void *ctx, uint64_t client) {
	struct service *s = ctx;
	return sessions_crowded(s->sessions, client, WATCH_BACKLOG_MAX);
}

static int watch_encode(const struct events_item *item, struct buffer *to) {
	struct client_event event = { .type = CLIENT_EVENT_OVERFLOW };
	if (item->watch_event) {
		event = client_event_of(item->watch_event, item->show_lock_id);
	}
	event.watch = CLIENT_EVENT_ANY_WATCH;
	event.position = (struct client_position){ item->position.log, item->position.number };
	return client_event_encode(&event, to);
}

/* An event is encoded once for all who watch, in two forms: with the lock_id, and without. */
static int watch_tell(void *ctx, uint64_t client, const struct events_item *item) {
	struct service *s = ctx;
	struct service_event *last = &s->last_events[item->show_lock_id];
	struct buffer *to = sessions_notify(s->sessions, client);
	if (!to) {
		/* The connection only writes its last answer, and then closes. */
		return 0;
	}
	if (!item->watch_event || last->number != item->position.number) {
		buffer_clear(&last->bytes);
		last->number = 0;
		int error = watch_encode(item, &last->bytes);
		if (error) {
			return error;
		}
		last->number = item->watch_event ? item->position.number : 0;
	}
	int error = buffer_append(to, last->bytes.data, last->bytes.size);
	if (!error) {
		client_event_address(slice_of(to->data + to->size - last->bytes.size,
				last->bytes.size), item->watch);
	}
	return error;
}

const struct events_port service_events_port = { watch_full, watch_tell };

/* ---- events are wanted while somebody watches, and for a while after ---- */

static uint32_t watch_count(void *ctx, struct slice key) {
	struct service *s = ctx;
	return events_watchers(&s->events, key);
}

void service_want_events(struct service *s) {
	s->wants_events = events_is_open(&s->events) || service_audit_watches(s);
	core_want_watch_events(s->driver->core, s->wants_events);
}

int service_watch_open(struct service *s) {
	int error = events_open(&s->events);
	if (!error) {
		event_del(s->unwatched);
		core_count_watchers(s->driver->core, watch_count, s);
		service_want_events(s);
	}
	return error;
}

void service_watch_settle(struct service *s) {
	static const struct timeval minute = { 60, 0 };
	if (events_is_open(&s->events) && events_count(&s->events) == 0
		&& !event_pending(s->unwatched, EV_TIMEOUT, NULL)) {
		event_add(s->unwatched, &minute);
	}
}

void service_on_unwatched(evutil_socket_t fd, short what, void *ctx) {
	struct service *s = ctx;
	(void)fd;
	(void)what;
	if (events_count(&s->events) == 0) {
		events_close(&s->events);
		service_want_events(s);
	}
}

void service_take_events(struct service *s) {
	const struct core_watch_event *watch_event;
	while ((watch_event = core_out_watch_event(s->driver->out)) != NULL) {
		if (s->audit) {
			service_audit_event(s, watch_event);
		}
		events_add(&s->events, watch_event);
	}
}

void service_serve_watches(struct service *s) {
	bool more = events_serve(&s->events);
	sessions_flush(s->sessions);
	if (more) {
		driver_flush_later(s->driver);
	}
}

/* ---- watches ---- */

void service_watch_begin(struct service *s, uint64_t client, uint32_t msgid, struct slice subject,
	bool prefix, const struct events_position *from, const struct core_reply *view) {
	struct session_who who;
	if (!sessions_who(s->sessions, client, &who)) {
		return;
	}
	if (service_share_watched_enough(s, client, msgid)) {
		return;
	}
	const struct events_watcher watcher = { client, service_owner(s, &who),
		service_has(s, &who, RIGHT_BREAK) };
	uint64_t watch = 0;
	int error = service_watch_open(s);
	error = error ? error : events_watch(&s->events, &watcher, subject, prefix, from,
		s->driver->config->limits.watches_per_client, &watch);
	service_watch_settle(s);
	if (error) {
		service_refuse(s, client, msgid, error == PAWL_EFULL ? PAWL_EFULL : PAWL_EBUSY,
			error == PAWL_EFULL ? "watches_per_client" : NULL,
			error == PAWL_EFULL ? "this connection has reached its limit of watches "
				"(watches_per_client)" : NULL);
		return;
	}
	struct buffer *to = sessions_answer(s->sessions, client);
	const struct client_position position = { from->log, from->number };
	if (to) {
		const struct service_view shown = service_view_begin(s, client, to);
		error = service_view_end(s, client, &shown, msgid,
			client_watch_encode(msgid, watch, position, view, &s->driver->context, to));
	}
	if (error == PAWL_EBUSY) {
		(void)events_unwatch(&s->events, client, watch);
		service_watch_settle(s);
	} else if (error) {
		service_sever(s, client);
	}
	sessions_watches(s->sessions, client, events_watches(&s->events, client),
		events_bytes(&s->events, client));
	driver_flush_later(s->driver);
}

void service_unwatch(const struct service_call *call) {
	struct service *s = call->service;
	uint32_t msgid = call->request->msgid;
	if (!events_unwatch(&s->events, call->client, call->request->watch)) {
		service_refuse(s, call->client, msgid, PAWL_ENOTFOUND, "watch",
			"this connection has no such watch");
		return;
	}
	sessions_watches(s->sessions, call->client, events_watches(&s->events, call->client),
		events_bytes(&s->events, call->client));
	service_watch_settle(s);
	service_tell_done(s, call->client, msgid);
}

uint32_t service_watch_forget(struct service *s, uint64_t client, uint32_t most) {
	uint32_t forgotten = events_forget(&s->events, client, most);
	service_watch_settle(s);
	return forgotten;
}
