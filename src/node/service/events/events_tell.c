/* events_tell.c: tells watchers what has happened, at once or, if they are behind, later. */
#include "events_impl.h"

/* What is told in one turn is paid for in bytes of events. What costs time without being bytes
 * counts as that many bytes. */
#define TURN_COST ((int64_t)32 << 10)
/* The part of TURN_COST that is kept for those that are behind. */
#define TURN_LATE (TURN_COST / 4)
/* What one of those gets before the next one has its turn. */
#define TURN_CLIENT (TURN_COST / 4)
/* The cost of checking whether an event is for a client. */
#define COST_STEP 64
/* The cost of checking whether a client, an entry or a watch is still to be told. */
#define COST_SKIP 32
/* How many entries and watches an event is taken past in one turn (events_walk.c). Most of them are
 * not in the processor's cache. */
#define WALK_STEPS 512
/* In a short turn, TURN_COST and WALK_STEPS are divided by this. */
#define SHORT_PART 2
/* The cost of telling one watch of an event, without the bytes. */
#define COST_TELL 128
/* The cost of a write to a client, which comes once in each turn. */
#define COST_WRITE 4096

struct events_telling {
	/* Watches that have been told of this number need not be told. */
	uint64_t missed;
	/* The number that is told, and up to which the watch has been told afterwards. */
	uint64_t number;
	const struct core_watch_event *watch_event;
};

static bool events_shows_lock_id(const struct events_client *c,
	const struct core_watch_event *watch_event) {
	return c->admin
		|| slice_equal(slice_of(c->identity, c->identity_size), watch_event->identity);
}

bool events_is_global(const struct core_watch_event *watch_event) {
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

/* This is charged to the turn, but not to the client's part of it: it does not bring the client
 * nearer to the end, and a client must come nearer with each part. */
static void events_charge_turn(struct events *e, int64_t cost) {
	e->left -= cost;
	e->least -= cost;
}

static uint64_t place_since(const struct list *at) {
	return CONTAINER_OF(at, struct events_one, of_entry)->since;
}

void events_place(struct events *e, struct events_one *w, struct list *at) {
	struct list *head = &w->entry->watches;
	while (at != head && place_since(at) <= w->since) {
		at = at->next;
		events_charge_turn(e, COST_SKIP);
	}
	while (at->prev != head && place_since(at->prev) > w->since) {
		at = at->prev;
		events_charge_turn(e, COST_SKIP);
	}
	list_insert_before(at, &w->of_entry);
}

/* Returns the next of the entry's watches that has not been told of that number; NULL if all
 * have. */
static struct events_one *events_to_tell(const struct events_entry *entry, uint64_t number) {
	struct events_one *w = CONTAINER_OF(list_first(&entry->watches), struct events_one,
		of_entry);
	return w->since <= number ? w : NULL;
}

/* Returns false if the event cannot be told now. */
static bool events_tell(struct events *e, struct events_one *w, const struct events_telling *t) {
	const struct core_watch_event *watch_event = t->watch_event
		&& events_is_global(t->watch_event) ? NULL : t->watch_event;
	const struct events_item item = { .watch = w->id, .position = { e->log, t->number },
		.watch_event = watch_event,
		.show_lock_id = watch_event && watch_event->kind != WATCH_EVENT_MISSED
			&& events_shows_lock_id(w->entry->client, watch_event) };
	if (e->port->tell(e->ctx, w->entry->client->id, &item) != 0) {
		return false;
	}
	e->left -= events_cost(e, w->entry->client, t->watch_event);
	e->told++;
	w->since = t->number + 1;
	/* Most often its place is after the watch that was told before it. */
	const struct events_one *near = w->entry->told ? w->entry->told : w;
	struct list *at = near->of_entry.next;
	list_remove(&w->of_entry);
	events_place(e, w, at);
	w->entry->told = w;
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

static void events_catch_up(struct events *e, struct events_client *c) {
	list_remove(&c->lagging);
	events_charge_turn(e, c->entry_count * COST_SKIP);
	for (struct list *at = list_first(&c->entries); at; at = list_after(&c->entries, at)) {
		events_walk_found(e, CONTAINER_OF(at, struct events_entry, among)->subject);
	}
}

void events_tell_at_once(struct events *e, struct events_entry *entry, uint64_t number) {
	const struct events_telling t = { number, number,
		watch_event_ring_at(&e->ring, number) };
	struct events_client *c = entry->client;
	struct events_one *w;
	while (!list_linked(&c->lagging) && (w = events_to_tell(entry, number)) != NULL) {
		bool may = !list_linked(&c->doubted) && e->left >= TURN_LATE;
		e->walk.steps--;
		if (!may || e->port->full(e->ctx, c->id) || !events_tell(e, w, &t)) {
			events_lag(e, c, number);
		}
	}
}

void events_add(struct events *e, const struct core_watch_event *watch_event) {
	if (events_is_open(e)) {
		watch_event_ring_push(&e->ring, watch_event);
		events_walk(e);
	}
}

/* ---- those that are behind ---- */

/* Tells those of the entry's watches that have not been told of the event. Returns false if that
 * fails, or if the client's part of the turn is over. */
static bool events_tell_late(struct events *e, struct events_entry *entry, const void *arg) {
	const struct events_telling *t = arg;
	struct events_one *w;
	events_charge_turn(e, COST_SKIP);
	while ((w = events_to_tell(entry, t->missed)) != NULL) {
		if (e->left <= e->least || !events_tell(e, w, t)) {
			return false;
		}
	}
	return true;
}

static bool events_serve_everything(struct events *e, struct events_client *c,
	const struct events_telling *t) {
	bool on = true;
	for (struct list *at = list_first(&c->entries); on && at;
		at = list_after(&c->entries, at)) {
		on = events_tell_late(e, CONTAINER_OF(at, struct events_entry, among), t);
	}
	return on;
}

/* The ring has gone on without the client. A watch that has lost something goes on with what comes
 * now, because its owner reads the key again. */
static bool events_serve_overflow(struct events *e, struct events_client *c) {
	if (c->lost == 0) {
		c->lost = e->ring.oldest - 1;
		c->lost_until = e->ring.next - 1;
	}
	const struct events_telling lost = { c->lost, c->lost_until, NULL };
	bool on = events_serve_everything(e, c, &lost);
	if (on) {
		c->next = c->lost + 1;
		c->lost = 0;
		e->overflows++;
	}
	return on;
}

static bool events_serve_one(struct events *e, struct events_client *c) {
	if (c->next < e->ring.oldest) {
		return events_serve_overflow(e, c);
	}
	const struct events_telling t = { c->next, c->next,
		watch_event_ring_at(&e->ring, c->next) };
	uint32_t looks = c->entry_count < e->prefix_sizes + 1
		? c->entry_count : e->prefix_sizes + 1;
	events_charge_turn(e, looks * COST_SKIP);
	bool on = events_is_global(t.watch_event)
		? events_serve_everything(e, c, &t)
		: events_each_of(e, c, t.watch_event->key, events_tell_late, &t);
	c->next += on;
	return on;
}

/* Serves the client for its part of a turn, or until the turn is over: with many watches, to look
 * for those that an event is for takes long. Returns false if something could not be told. */
static bool events_serve_client(struct events *e, struct events_client *c) {
	bool on = true, may = !list_linked(&c->doubted);
	e->least = e->left - TURN_CLIENT;
	while (on && may && c->next < e->ring.next && e->left > e->least && e->left > 0
		&& !e->port->full(e->ctx, c->id)) {
		e->left -= COST_STEP;
		on = events_serve_one(e, c);
	}
	/* It may also have stopped in the middle of an event because its part is over. */
	return on || e->left <= e->least;
}

bool events_serve(struct events *e) {
	struct list *first;
	bool on = true;
	events_walk(e);
	while (on && e->left > 0 && (first = list_first(&e->lagging)) != NULL) {
		struct events_client *c = CONTAINER_OF(first, struct events_client, lagging);
		on = events_serve_client(e, c);
		if (c->next == e->ring.next) {
			events_catch_up(e, c);
		} else {
			list_remove(first);
			events_wait(e, c);
		}
	}
	return on && !events_is_idle(e);
}

void events_room(struct events *e, uint64_t client) {
	struct events_client *c = events_client(e, client);
	if (c && list_linked(&c->lagging) && c->full && !list_linked(&c->doubted)) {
		c->full = false;
		list_remove(&c->lagging);
		list_append(&e->lagging, &c->lagging);
	}
}

void events_turn(struct events *e, bool is_short) {
	const int32_t part = is_short ? SHORT_PART : 1;
	e->left = TURN_COST / part;
	e->walk.steps = WALK_STEPS / part;
	e->turn++;
}
