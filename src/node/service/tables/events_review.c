/* events_review.c: judges watches by new rules, a few at a time, so that no number of them stops
 * the node.
 */
#include "events_impl.h"

void events_doubt(struct events *e) {
	e->rules++;
	for (size_t bucket = 0; bucket < e->clients.bucket_count; bucket++) {
		for (struct map_node *n = map_bucket(&e->clients, bucket); n;
			n = map_next_in_bucket(n)) {
			struct events_client *c = CONTAINER_OF(n, struct events_client, node);
			if (!list_linked(&c->doubted)) {
				list_append(&e->doubted, &c->doubted);
			}
		}
	}
}

/* Returns the client's next watch that was judged by older rules, or NULL. If there is one, it is
 * the first in the list. */
static struct events_one *review_next(const struct events *e, const struct events_client *c) {
	struct events_one *w = CONTAINER_OF(list_first(&c->watches), struct events_one, among);
	return w->rules == e->rules ? NULL : w;
}

/* Moves a watch that was judged behind those that were not. */
static void review_pass(struct events *e, struct events_one *w) {
	w->rules = e->rules;
	list_remove(&w->among);
	list_append(&w->client->watches, &w->among);
}

enum events_reviewed events_review(struct events *e, uint32_t limit, events_forbidden *is_it,
	uint64_t *out_client) {
	struct list *first;
	while ((first = list_first(&e->doubted)) != NULL) {
		struct events_client *c = CONTAINER_OF(first, struct events_client, doubted);
		const struct events_watcher who = { c->id, slice_of(c->identity, c->identity_size),
			c->admin };
		struct events_one *w;
		while ((w = review_next(e, c)) != NULL) {
			if (limit-- == 0) {
				return EVENTS_REVIEW_MORE;
			}
			if (is_it(e->ctx, &who, slice_of(w->subject->bytes, w->subject->size),
					w->subject->prefix)) {
				*out_client = c->id;
				return EVENTS_REVIEW_FORBIDDEN;
			}
			review_pass(e, w);
		}
		list_remove(&c->doubted);
		/* The client has not been told what has happened meanwhile. */
		events_room(e, c->id);
	}
	return EVENTS_REVIEW_DONE;
}
