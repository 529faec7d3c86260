/* news_ring.h: the latest news of the core, numbered, in a bounded piece of memory: what a watcher missed is looked up here. */
#ifndef PAWL_NODE_NEWS_RING_H
#define PAWL_NODE_NEWS_RING_H

#include "core.h"

struct watch_event_ring {
	const struct allocator *alloc;
	uint8_t *bytes;      /* NULL: closed */
	uint32_t *places;    /* where number n begins, by n modulo their count */
	size_t size, place_count;
	size_t head, tail;   /* of the oldest; where the next goes */
	size_t wrap;         /* where the entries end that are followed by the one at 0 */
	uint64_t oldest, next; /* numbers; from 1 */
};

void watch_event_ring_init(struct watch_event_ring *r, const struct allocator *alloc); /* closed, and without memory; allocator borrowed */
void watch_event_ring_done(struct watch_event_ring *r);

/* Takes the memory. 0 or PAWL_ENOMEM. Room for the largest news is the least: `size` at least NEWS_RING_LEAST. */
int watch_event_ring_open(struct watch_event_ring *r, size_t size);
/* Gives it back. What happens until it is opened again is missing, so the next number is not the one that would have followed. */
void watch_event_ring_close(struct watch_event_ring *r);
static inline bool watch_event_ring_is_open(const struct watch_event_ring *r) {
	return r->bytes != NULL;
}
#define WATCH_EVENT_RING_LEAST ((size_t)2 * VALUE_MAX_HARD)

/* A copy, in place of the oldest ones. It gets the number r->next - 1 that it then is. */
void watch_event_ring_push(struct watch_event_ring *r, const struct core_watch_event *watch_event);
/* oldest <= number < next. Until the next push. */
const struct core_watch_event *watch_event_ring_at(const struct watch_event_ring *r, uint64_t number);

#endif
