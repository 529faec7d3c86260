/* watch_event_ring.c: events of different sizes, one after the other. An event that does not fit
 * before the end of the memory begins at its start:
 *
 *   not wrapped:  ....[head ... oldest to newest ... tail)..........      wrap = size
 *   wrapped:      newest ... tail)....[head ... older ... wrap)....
 *
 * If tail == head and there are events, the ring is full, and counts as wrapped.
 */
#include "watch_event_ring.h"

#include "check.h"
#include "pawl/error.h"

#define ALIGNMENT _Alignof(struct core_watch_event)

void watch_event_ring_init(struct watch_event_ring *r, const struct allocator *alloc) {
	*r = (struct watch_event_ring){ .alloc = alloc, .oldest = 1, .next = 1 };
}

void watch_event_ring_done(struct watch_event_ring *r) {
	if (r->alloc) {
		alloc_free(r->alloc, r->bytes, r->size);
		alloc_free(r->alloc, r->places, r->place_count * sizeof *r->places);
	}
	r->bytes = NULL;
	r->places = NULL;
}

int watch_event_ring_open(struct watch_event_ring *r, size_t size) {
	CHECK(!r->bytes && size >= WATCH_EVENT_RING_LEAST && size <= UINT32_MAX);
	r->size = r->wrap = size;
	/* No event is smaller than this struct. */
	r->place_count = size / sizeof(struct core_watch_event) + 1;
	r->head = r->tail = 0;
	/* The memory is not touched before it is needed. */
	r->bytes = alloc_resize(r->alloc, NULL, 0, size);
	r->places = alloc_resize(r->alloc, NULL, 0, r->place_count * sizeof *r->places);
	if (!r->bytes || !r->places) {
		watch_event_ring_done(r);
		return PAWL_ENOMEM;
	}
	return 0;
}

void watch_event_ring_close(struct watch_event_ring *r) {
	watch_event_ring_done(r);
	r->oldest = ++r->next;
}

static size_t ring_bytes(const struct core_watch_event *watch_event) {
	const size_t size = sizeof *watch_event + watch_event->key.size
		+ watch_event->owner.size + watch_event->identity.size + watch_event->value.size
		+ watch_event->label.size;
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

const struct core_watch_event *watch_event_ring_at(const struct watch_event_ring *r,
	uint64_t number) {
	CHECK(number >= r->oldest && number < r->next);
	return (const void *)(r->bytes + r->places[number % r->place_count]);
}

static void ring_drop_oldest(struct watch_event_ring *r) {
	r->head += ring_bytes(watch_event_ring_at(r, r->oldest));
	r->oldest++;
	if (r->head == r->wrap) {
		r->head = 0;
		r->wrap = r->size;
	}
}

/* Returns whether that many bytes are free at the tail. The tail may go to the start for that. */
static bool ring_fits(struct watch_event_ring *r, size_t bytes) {
	if (r->oldest == r->next) {
		r->head = r->tail = 0;
		r->wrap = r->size;
		return true;
	}
	if (r->tail > r->head) {
		if (r->size - r->tail >= bytes) {
			return true;
		}
		r->wrap = r->tail;
		r->tail = 0;
	}
	return r->head - r->tail >= bytes;
}

static struct slice ring_copy(uint8_t **to, struct slice from) {
	struct slice copy = slice_of(*to, from.size);
	if (from.size > 0) {
		memcpy(*to, from.data, from.size);
	}
	*to += from.size;
	return copy;
}

void watch_event_ring_push(struct watch_event_ring *r, const struct core_watch_event *watch_event) {
	size_t bytes = ring_bytes(watch_event);
	CHECK(bytes <= r->size);
	while (!ring_fits(r, bytes)) {
		ring_drop_oldest(r);
	}
	struct core_watch_event *entry = (void *)(r->bytes + r->tail);
	uint8_t *to = r->bytes + r->tail + sizeof *entry;
	*entry = *watch_event;
	entry->key = ring_copy(&to, watch_event->key);
	entry->owner = ring_copy(&to, watch_event->owner);
	entry->identity = ring_copy(&to, watch_event->identity);
	entry->value = ring_copy(&to, watch_event->value);
	entry->label = ring_copy(&to, watch_event->label);
	r->places[r->next++ % r->place_count] = (uint32_t)r->tail;
	r->tail += bytes;
}
