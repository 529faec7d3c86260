/* watch_event_ring.h: the latest events of the core, numbered, in a bounded piece of memory. What a
 * watcher has missed is looked up here.
 */
#ifndef PAWL_NODE_WATCH_EVENT_RING_H
#define PAWL_NODE_WATCH_EVENT_RING_H

#include "core.h"

/* The ring of the latest events. */
struct watch_event_ring {
	const struct allocator *alloc;
	/* NULL if the ring is closed. */
	uint8_t *bytes;
	/* Where the event with number n begins, at n modulo place_count. */
	uint32_t *places;
	size_t size, place_count;
	/* Where the oldest event begins, and where the next one goes. */
	size_t head, tail;
	/* Where those events end that are followed by the one at 0. */
	size_t wrap;
	/* Numbers of events; they begin with 1. */
	uint64_t oldest, next;
};

/* The ring is closed at first, and has no memory. The allocator is borrowed. */
void watch_event_ring_init(struct watch_event_ring *r, const struct allocator *alloc);
void watch_event_ring_done(struct watch_event_ring *r);

/* Takes the memory. `size` is at least WATCH_EVENT_RING_LEAST, so that the largest event fits.
 * Returns 0 or PAWL_ENOMEM. */
int watch_event_ring_open(struct watch_event_ring *r, size_t size);

/* Gives the memory back. What happens until the ring is opened again is missing, so the next number
 * is skipped. */
void watch_event_ring_close(struct watch_event_ring *r);
/* The least size of a ring, in bytes. */
#define WATCH_EVENT_RING_LEAST ((size_t)2 * VALUE_MAX_HARD)

/* Adds a copy of the event, in place of the oldest ones. Its number is r->next - 1 afterwards. */
void watch_event_ring_push(struct watch_event_ring *r, const struct core_watch_event *watch_event);
/* Returns an event with oldest <= number < next. It is valid until the next push. */
const struct core_watch_event *watch_event_ring_at(const struct watch_event_ring *r,
	uint64_t number);

#endif
