/* event_box.c: the memory of watch events on their way to the driver. */
#include "event_box.h"

void event_box_init(struct event_box *box, const struct allocator *alloc) {
	arena_init(&box->bytes, alloc, WATCH_EVENT_BYTES_MAX);
	box->missed.kind = WATCH_EVENT_MISSED;
}

void event_box_done(struct event_box *box, const struct allocator *alloc) {
	alloc_free(alloc, box->watch_event, box->capacity * sizeof *box->watch_event);
	arena_done(&box->bytes);
}
