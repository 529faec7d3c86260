/* service_watch.c: `watch` and `unwatch`, and the way of the core's news to those who watch. */
#include <event2/event.h>

#include "check.h"
#include "config_file.h"
#include "pawl/error.h"
#include "service.h"
#include "time_source.h"

#define WATCH_BACKLOG_MAX ((size_t)32 << 10) /* unsent on a connection, above which it is behind */

/* ---- the port ---- */

static bool watch_full(void *ctx, uint64_t client) {
	struct driver *d = ctx;
	return sessions_crowded(d->sessions, client, WATCH_BACKLOG_MAX);
}

static int watch_encode(const struct events_item *item, struct buffer *to) {
	struct client_event event = { .type = CLIENT_EVENT_OVERFLOW };
	if (item->news) {
		event = client_event_of(item->news, item->show_lock_id);
	}
	event.watch = CLIENT_EVENT_ANY_WATCH;
	event.position = (struct client_position){ item->position.log, item->position.number };
	return client_event_encode(&event, to);
}

/* Encoded once for all who watch: in two forms, with the lock_id and without. */
static int watch_tell(void *ctx, uint64_t client, const struct events_item *item) {
	struct driver *d = ctx;
	struct driver_event *last = &d->last_events[item->show_lock_id];
	struct buffer *to = sessions_notify(d->sessions, client);
	if (!to) {
		return 0; /* it says its last words */
	}
	if (!item->news || last->number != item->position.number) {
		buffer_clear(&last->bytes);
		last->number = 0;
		int error = watch_encode(item, &last->bytes);
		if (error) {
			return error;
		}
		last->number = item->news ? item->position.number : 0;
	}
	int error = buffer_append(to, last->bytes.data, last->bytes.size);
	if (!error) {
		client_event_address(slice_of(to->data + to->size - last->bytes.size, last->bytes.size), item->watch);
	}
	return error;
}

const struct events_port driver_events_port = { watch_full, watch_tell };

/* ---- news are wanted while somebody watches, and for a while after ---- */

static uint32_t watch_count(void *ctx, struct slice key) {
	struct driver *d = ctx;
	return events_watchers(&d->events, key);
}

static int watch_open(struct driver *d) {
	int error = events_open(&d->events);
	if (!error) {
		event_del(d->unwatched);
		core_count_watchers(d->core, watch_count, d);
		core_want_news(d->core, true);
	}
	return error;
}

/* A client that lost its connection comes back soon, and goes on from where it was. */
static void watch_settle(struct driver *d) {
	static const struct timeval minute = { 60, 0 };
	if (events_is_open(&d->events) && events_count(&d->events) == 0 && !event_pending(d->unwatched, EV_TIMEOUT, NULL)) {
		event_add(d->unwatched, &minute);
	}
}

void driver_on_unwatched(evutil_socket_t fd, short what, void *ctx) {
	struct driver *d = ctx;
	(void)fd;
	(void)what;
	if (events_count(&d->events) == 0) {
		core_want_news(d->core, false);
		events_close(&d->events);
	}
}

void driver_take_news(struct driver *d) {
	const struct core_news *news;
	while ((news = core_out_news(d->out)) != NULL) {
		events_add(&d->events, news);
	}
}

void driver_serve_watches(struct driver *d) {
	if (list_empty(&d->events.lagging)) {
		return;
	}
	bool more = events_serve(&d->events);
	sessions_flush(d->sessions);
	if (more) {
		driver_flush_later(d);
	}
}

/* ---- requests ---- */

static void watch_begin(struct driver *d, uint64_t client, uint32_t msgid, struct slice subject, bool prefix,
	const struct events_position *from, const struct core_reply *view) {
	struct session_who who;
	if (!sessions_who(d->sessions, client, &who)) {
		return;
	}
	if (service_share_watched_enough(d, client, msgid)) {
		return;
	}
	const struct events_watcher watcher = { client, service_owner(d, &who), service_has(d, &who, RIGHT_BREAK) };
	uint64_t watch = 0;
	int error = watch_open(d);
	error = error ? error : events_watch(&d->events, &watcher, subject, prefix, from, d->config->limits.watches_per_client, &watch);
	watch_settle(d);
	if (error) {
		service_refuse(d, client, msgid, error == PAWL_EFULL ? PAWL_EFULL : PAWL_EBUSY, error == PAWL_EFULL ? "watches_per_client" : NULL,
			error == PAWL_EFULL ? "this connection watches as much as it may" : NULL);
		return;
	}
	struct buffer *to = sessions_answer(d->sessions, client);
	const struct client_position position = { from->log, from->number };
	if (to) {
		const struct service_view shown = service_view_begin(d, client, to);
		error = service_view_end(d, client, &shown, msgid, client_watch_encode(msgid, watch, position, view, &d->facts, to));
	}
	if (error == PAWL_EBUSY) {
		(void)events_unwatch(&d->events, client, watch);
		watch_settle(d);
	} else if (error) {
		service_sever(d, client);
	}
	sessions_watches(d->sessions, client, events_watches(&d->events, client), events_bytes(&d->events, client));
	driver_flush_later(d);
}

void service_watch_begin(struct driver *d, uint64_t client, uint32_t msgid, const struct requests_watch *watch,
	const struct core_reply *view) {
	const struct events_position from = { watch->log, watch->number };
	watch_begin(d, client, msgid, slice_of(watch->key, watch->size), false, &from, view);
}

/* The position comes first, then the look: what changes in between is told again, and nothing is missed. What is told of the
 * key waits until the look is answered. */
static void watch_look(const struct service_call *call, const struct events_position *from) {
	struct driver *d = call->driver;
	struct request *open;
	struct core_request request = service_core_request(call);
	int error = requests_open(&d->requests, call->client, call->request->msgid, &open);
	if (!error) {
		error = requests_keep_watch(&d->requests, open, request.key, from->log, from->number);
		if (error) {
			requests_close(&d->requests, open);
		}
	}
	if (error) {
		service_refuse(d, call->client, call->request->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	request.op = CORE_GET;
	request.id = open->id;
	service_step(call, &request);
}

void service_watch(const struct service_call *call) {
	struct driver *d = call->driver;
	const struct client_request *r = call->request;
	if (watch_open(d) != 0) {
		service_refuse(d, call->client, r->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	driver_take_news(d); /* what is known already is not for it */
	const struct events_position now = events_position(&d->events);
	const struct events_position wanted = { r->from.log, r->from.sequence };
	const struct events_position *from = r->present & CLIENT_HAS_FROM ? &wanted : &now;
	if (r->present & CLIENT_HAS_PREFIX) {
		watch_begin(d, call->client, r->msgid, r->core.key, true, from, NULL);
	} else {
		watch_look(call, from);
	}
	watch_settle(d);
}

void service_unwatch(const struct service_call *call) {
	struct driver *d = call->driver;
	uint32_t msgid = call->request->msgid;
	if (!events_unwatch(&d->events, call->client, call->request->watch)) {
		service_refuse(d, call->client, msgid, PAWL_ENOTFOUND, "watch", "this connection has no such watch");
		return;
	}
	sessions_watches(d->sessions, call->client, events_watches(&d->events, call->client), events_bytes(&d->events, call->client));
	watch_settle(d);
	struct buffer *to = sessions_answer(d->sessions, call->client);
	if (to && client_done_encode(msgid, to) != 0) {
		service_sever(d, call->client);
	}
	driver_flush_later(d);
}

void service_watch_forget(struct driver *d, uint64_t client) {
	events_forget(&d->events, client);
	watch_settle(d);
}
