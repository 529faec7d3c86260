/* events_review.c: judges watches by new rules, a few at a time, so that no number of them stops
 * the node.
 */
#include "events_impl.h"

void events_doubt(struct events *e) {
	e->rules++;
	for (struct list *at = list_first(&e->everybody); at; at = list_after(&e->everybody, at)) {
		struct events_client *c = CONTAINER_OF(at, struct events_client, among);
		if (!list_linked(&c->doubted)) {
			list_append(&e->doubted, &c->doubted);
		}
	}
}

/* Returns the client's next entry that was judged by older rules, or NULL. If there is one, it is
 * the first in the list. */
static struct events_entry *review_next(const struct events *e, const struct events_client *c) {
	struct events_entry *entry = CONTAINER_OF(list_first(&c->entries), struct events_entry,
		among);
	return entry->rules == e->rules ? NULL : entry;
}

/* Moves an entry that was judged behind those that were not. */
static void review_pass(struct events *e, struct events_entry *entry) {
	entry->rules = e->rules;
	list_remove(&entry->among);
	list_append(&entry->client->entries, &entry->among);
}

enum events_reviewed events_review(struct events *e, uint32_t limit, events_forbidden *is_it,
	uint64_t *out_client) {
	struct list *first;
	while ((first = list_first(&e->doubted)) != NULL) {
		struct events_client *c = CONTAINER_OF(first, struct events_client, doubted);
		const struct events_watcher who = { c->id, slice_of(c->identity, c->identity_size),
			c->admin };
		struct events_entry *entry;
		while ((entry = review_next(e, c)) != NULL) {
			if (limit-- == 0) {
				return EVENTS_REVIEW_MORE;
			}
			if (is_it(e->ctx, &who,
					slice_of(entry->subject->bytes, entry->subject->size),
					entry->subject->prefix)) {
				*out_client = c->id;
				return EVENTS_REVIEW_FORBIDDEN;
			}
			review_pass(e, entry);
		}
		list_remove(&c->doubted);
		/* The client has not been told what has happened meanwhile. */
		events_room(e, c->id);
	}
	return EVENTS_REVIEW_DONE;
}
