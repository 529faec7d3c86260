/* news_box.h: news on its way to the driver. Part of the outbox; only news.c looks into it. */
#ifndef PAWL_CLUSTER_NEWS_BOX_H
#define PAWL_CLUSTER_NEWS_BOX_H

#include "buffer.h"
#include "core.h"

#define NEWS_BYTES_MAX ((size_t)16 << 20) /* of what the driver has not taken yet: above this it is told of a gap instead */
#define NEWS_MAX ((size_t)1 << 16)

struct news_box {
	struct core_news *news;
	size_t count, capacity, read;
	struct arena bytes;
	uint64_t lost;        /* so many that came since were not kept: a gap is told of once the rest was read */
	struct core_news gap; /* which needs no memory */
};

void news_box_init(struct news_box *box, const struct allocator *alloc);
void news_box_done(struct news_box *box, const struct allocator *alloc);
void news_box_clear(struct news_box *box); /* of what was read, when nothing else is left */

#endif
