/* events_walk.c: takes one event after the other past those who watch its key, over as many turns
 * as that needs.
 */
#include "events_impl.h"

/* ---- where the walk stands, when somebody comes or goes ---- */

void events_walk_found(struct events *e, struct events_subject *s) {
	s->all_behind = false;
	if (e->walk.subject == s) {
		e->walk.all_behind = false;
	}
}

void events_walk_leave_entry(struct events *e, const struct events_entry *entry) {
	if (e->walk.at == &entry->of_subject) {
		e->walk.at = list_after(&entry->subject->entries, e->walk.at);
	}
}

void events_walk_leave_client(struct events *e, const struct events_client *c) {
	if (e->walk.at == &c->among) {
		e->walk.at = list_after(&e->everybody, e->walk.at);
	}
}

void events_walk_leave_subject(struct events *e, const struct events_subject *s) {
	if (e->walk.subject == s) {
		e->walk.subject = NULL;
	}
}

void events_walk_reset(struct events *e) {
	e->walk = (struct events_walk){ .number = e->ring.next, .steps = e->walk.steps };
}

/* ---- the walk ---- */

/* The ring has lost events before the walk came to them. Whoever is not behind may have missed some
 * of them, and is told of that. */
static void walk_lose(struct events *e) {
	const uint64_t last = e->ring.oldest - 1;
	e->walk = (struct events_walk){ .number = last, .begun = true, .everybody = true,
		.lost = true, .at = list_first(&e->everybody), .steps = e->walk.steps };
}

/* Goes on to the next subject that is watched. Returns false if that may be none. */
static bool walk_next_subject(struct events *e) {
	struct events_walk *w = &e->walk;
	const struct slice key = watch_event_ring_at(&e->ring, w->number)->key;
	if (!events_match_next(e, &w->match, key)) {
		return false;
	}
	w->steps--;
	w->subject = events_subject(e, w->match.hash, slice_of(key.data, w->match.size),
		w->match.prefix);
	w->all_behind = true;
	/* Where everybody is behind, nobody is to be told at once. */
	w->at = w->subject && !w->subject->all_behind ? list_first(&w->subject->entries) : NULL;
	return true;
}

static void walk_meet_client(struct events *e, struct events_client *c) {
	if (e->walk.lost) {
		if (!list_linked(&c->lagging)) {
			events_lag(e, c, e->walk.number);
		}
		return;
	}
	for (struct list *at = list_first(&c->entries); at; at = list_after(&c->entries, at)) {
		events_tell_at_once(e, CONTAINER_OF(at, struct events_entry, among),
			e->walk.number);
	}
}

static void walk_meet(struct events *e) {
	struct events_walk *w = &e->walk;
	struct list *at = w->at;
	w->steps--;
	w->at = list_after(w->everybody ? &e->everybody : &w->subject->entries, at);
	if (w->everybody) {
		walk_meet_client(e, CONTAINER_OF(at, struct events_client, among));
		return;
	}
	struct events_entry *entry = CONTAINER_OF(at, struct events_entry, of_subject);
	events_tell_at_once(e, entry, w->number);
	w->all_behind = w->all_behind && list_linked(&entry->client->lagging);
}

static void walk_step(struct events *e) {
	struct events_walk *w = &e->walk;
	if (w->number < e->ring.oldest && !w->lost) {
		walk_lose(e);
	} else if (!w->begun) {
		w->begun = true;
		w->everybody = events_is_global(watch_event_ring_at(&e->ring, w->number));
		w->at = w->everybody ? list_first(&e->everybody) : NULL;
	}
	if (w->at) {
		walk_meet(e);
		return;
	}
	if (w->subject) {
		w->subject->all_behind = w->all_behind;
		w->subject = NULL;
	}
	if (w->everybody || !walk_next_subject(e)) {
		*w = (struct events_walk){ .number = w->number + 1, .steps = w->steps };
	}
}

/* While nobody watches, there is nobody to be met. */
void events_walk(struct events *e) {
	if (e->count == 0) {
		events_walk_reset(e);
	}
	while (e->walk.steps > 0 && e->walk.number != e->ring.next) {
		walk_step(e);
	}
}
