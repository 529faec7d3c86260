/* events_tell.c: tells watchers what has happened, at once or, if they are behind, later. */
#include "events_impl.h"

#include "check.h"

/* What is told in one turn is paid for in bytes of events. What costs time without being bytes
 * counts as that many bytes. */
#define TURN_COST ((int64_t)128 << 10)
/* The part of TURN_COST that is kept for those that are behind. */
#define TURN_LATE (TURN_COST / 4)
/* What one of those gets before the next one has its turn. */
#define TURN_CLIENT (TURN_COST / 16)
/* The cost of checking whether an event is for a client. */
#define COST_STEP 64
/* The cost of telling one watch of an event, without the bytes. */
#define COST_TELL 128
/* The cost of a write to a client, which comes once in each turn. */
#define COST_WRITE 2048

struct events_telling {
	uint64_t number;
	const struct core_watch_event *watch_event;
};

static bool events_shows_lock_id(const struct events_client *c,
	const struct core_watch_event *watch_event) {
	return c->admin
		|| slice_equal(slice_of(c->identity, c->identity_size), watch_event->identity);
}

/* An event that says that others were missed, and that names no key, concerns everybody. */
static bool events_is_global(const struct core_watch_event *watch_event) {
	return watch_event->kind == WATCH_EVENT_MISSED && watch_event->key.size == 0;
}

/* Returns what it costs to tell the client. A write of its own for each client in each turn costs
 * most. */
static int64_t events_cost(struct events *e, struct events_client *c,
	const struct core_watch_event *watch_event) {
	size_t size = watch_event
		? watch_event->key.size + watch_event->owner.size + watch_event->identity.size
			+ watch_event->value.size + watch_event->label.size
		: 0;
	int64_t write = c->turn == e->turn ? 0 : COST_WRITE;
	c->turn = e->turn;
	return write + COST_TELL + (int64_t)size;
}

/* Returns false if the event cannot be told now. */
static bool events_tell(struct events *e, struct events_one *w, const struct events_telling *t) {
	const struct core_watch_event *watch_event = t->watch_event
		&& events_is_global(t->watch_event) ? NULL : t->watch_event;
	const struct events_item item = { .watch = w->id, .position = { e->log, t->number },
		.watch_event = watch_event,
		.show_lock_id = watch_event && watch_event->kind != WATCH_EVENT_MISSED
			&& events_shows_lock_id(w->client, watch_event) };
	if (e->port->tell(e->ctx, w->client->id, &item) != 0) {
		return false;
	}
	e->left -= events_cost(e, w->client, t->watch_event);
	e->told++;
	w->since = t->number + 1;
	return true;
}

/* Puts the client among those that wait. If there is no room, it waits for events_room; if it is in
 * doubt, for the end of the review. */
static void events_wait(struct events *e, struct events_client *c) {
	c->full = list_linked(&c->doubted) || e->port->full(e->ctx, c->id);
	list_append(c->full ? &e->full : &e->lagging, &c->lagging);
}

void events_lag(struct events *e, struct events_client *c, uint64_t next) {
	c->next = next;
	events_wait(e, c);
}

static void events_catch_up(struct events_client *c) {
	list_remove(&c->lagging);
	for (struct list *at = list_first(&c->watches); at; at = list_after(&c->watches, at)) {
		CONTAINER_OF(at, struct events_one, among)->subject->all_behind = false;
	}
}

static void events_tell_at_once(struct events *e, struct events_one *w,
	const struct events_telling *t) {
	struct events_client *c = w->client;
	bool may = !list_linked(&c->doubted) && e->left >= TURN_LATE;
	if (!list_linked(&c->lagging)
		&& (!may || e->port->full(e->ctx, c->id) || !events_tell(e, w, t))) {
		/* `since` says which of its other watches have been told of this event. */
		events_lag(e, c, t->number);
	}
}

static void events_tell_subject(struct events *e, struct events_subject *s, const void *arg) {
	bool all_behind = true;
	for (struct list *at = s->all_behind ? NULL : list_first(&s->watches); at;
		at = list_after(&s->watches, at)) {
		struct events_one *w = CONTAINER_OF(at, struct events_one, of_subject);
		events_tell_at_once(e, w, arg);
		all_behind = all_behind && list_linked(&w->client->lagging);
	}
	s->all_behind = all_behind;
}

static void events_tell_all(struct events *e, const struct events_telling *t) {
	for (size_t bucket = 0; bucket < e->clients.bucket_count; bucket++) {
		for (struct map_node *n = map_bucket(&e->clients, bucket); n;
			n = map_next_in_bucket(n)) {
			struct events_client *c = CONTAINER_OF(n, struct events_client, node);
			for (struct list *at = list_first(&c->watches); at;
				at = list_after(&c->watches, at)) {
				events_tell_at_once(e, CONTAINER_OF(at, struct events_one, among),
					t);
			}
		}
	}
}

void events_add(struct events *e, const struct core_watch_event *watch_event) {
	if (!events_is_open(e)) {
		return;
	}
	watch_event_ring_push(&e->ring, watch_event);
	const struct events_telling t = { e->ring.next - 1, watch_event };
	if (events_is_global(watch_event)) {
		events_tell_all(e, &t);
	} else {
		events_each(e, watch_event->key, events_tell_subject, &t);
	}
}

/* ---- those that are behind ---- */

static bool events_tell_late(struct events *e, struct events_one *w, const void *arg) {
	const struct events_telling *t = arg;
	return w->since > t->number || events_tell(e, w, t);
}

static bool events_serve_gap(struct events *e, struct events_client *c,
	const struct events_telling *t) {
	bool on = true;
	for (struct list *at = list_first(&c->watches); on && at;
		at = list_after(&c->watches, at)) {
		on = events_tell_late(e, CONTAINER_OF(at, struct events_one, among), t);
	}
	return on;
}

/* The ring has gone on without the client. A watch that has lost something goes on with what comes
 * now, because its owner reads the key again. */
static bool events_serve_overflow(struct events *e, struct events_client *c) {
	const struct events_telling now = { e->ring.next - 1, NULL };
	bool on = true;
	for (struct list *at = list_first(&c->watches); on && at;
		at = list_after(&c->watches, at)) {
		struct events_one *w = CONTAINER_OF(at, struct events_one, among);
		on = w->since >= e->ring.oldest || events_tell(e, w, &now);
	}
	if (on) {
		c->next = e->ring.oldest;
	}
	return on;
}

static bool events_serve_one(struct events *e, struct events_client *c) {
	if (c->next < e->ring.oldest) {
		return events_serve_overflow(e, c);
	}
	const struct events_telling t = { c->next, watch_event_ring_at(&e->ring, c->next) };
	bool on = events_is_global(t.watch_event)
		? events_serve_gap(e, c, &t)
		: events_each_of(e, c, t.watch_event->key, events_tell_late, &t);
	c->next += on;
	return on;
}

/* Serves the client for its part of a turn. Returns false if something could not be told. */
static bool events_serve_client(struct events *e, struct events_client *c) {
	int64_t least = e->left - TURN_CLIENT;
	bool on = true, may = !list_linked(&c->doubted);
	while (on && may && c->next < e->ring.next && e->left > least
		&& !e->port->full(e->ctx, c->id)) {
		e->left -= COST_STEP;
		on = events_serve_one(e, c);
	}
	return on;
}

bool events_serve(struct events *e) {
	struct list *first;
	bool on = true;
	while (on && e->left > 0 && (first = list_first(&e->lagging)) != NULL) {
		struct events_client *c = CONTAINER_OF(first, struct events_client, lagging);
		on = events_serve_client(e, c);
		if (c->next == e->ring.next) {
			events_catch_up(c);
		} else {
			list_remove(first);
			events_wait(e, c);
		}
	}
	return on && !list_empty(&e->lagging);
}

void events_room(struct events *e, uint64_t client) {
	struct events_client *c = events_client(e, client);
	if (c && list_linked(&c->lagging) && c->full && !list_linked(&c->doubted)) {
		c->full = false;
		list_remove(&c->lagging);
		list_append(&e->lagging, &c->lagging);
	}
}

void events_turn(struct events *e) {
	e->left = TURN_COST;
	e->turn++;
}
