/* event_box.h: news on its way to the driver. Part of the outbox; only watch_event.c looks into it. */
#ifndef PAWL_CLUSTER_EVENT_BOX_H
#define PAWL_CLUSTER_EVENT_BOX_H

#include "buffer.h"
#include "core.h"

#define WATCH_EVENT_BYTES_MAX ((size_t)16 << 20) /* of what the driver has not taken yet: above this it is told of a gap instead */
#define WATCH_EVENT_MAX ((size_t)1 << 16)

struct event_box {
	struct core_watch_event *watch_event;
	size_t count, capacity, read;
	struct arena bytes;
	uint64_t lost;        /* so many that came since were not kept: a gap is told of once the rest was read */
	struct core_watch_event gap; /* which needs no memory */
};

void event_box_init(struct event_box *box, const struct allocator *alloc);
void event_box_done(struct event_box *box, const struct allocator *alloc);
void event_box_clear(struct event_box *box); /* of what was read, when nothing else is left */

#endif
