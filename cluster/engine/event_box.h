/* event_box.h: watch events on their way to the driver. Part of the outbox; only outbox.c and
 * watch_event.c look into it. */
#ifndef PAWL_CLUSTER_EVENT_BOX_H
#define PAWL_CLUSTER_EVENT_BOX_H

#include "buffer.h"
#include "core.h"

/* Bounds of what the driver has not taken yet, in bytes and in events. Above them the driver is
 * told that events were missed. */
#define WATCH_EVENT_BYTES_MAX ((size_t)16 << 20)
#define WATCH_EVENT_MAX ((size_t)1 << 16)

struct event_box {
	/* The events: `count` of them, of which the driver has read the first `read`. */
	struct core_watch_event *watch_event;
	size_t count, capacity, read;
	/* The bytes of the events. */
	struct arena bytes;
	/* How many events that came after these were not kept. The driver is told that events were
	 * missed once it has read the others. */
	uint64_t lost;
	/* The event that says so. It needs no memory. */
	struct core_watch_event missed;
};

void event_box_init(struct event_box *box, const struct allocator *alloc);
void event_box_done(struct event_box *box, const struct allocator *alloc);

#endif
