/* news_box.c: news on its way to the driver: memory for them. */
#include "news_box.h"

void news_box_init(struct news_box *box, const struct allocator *alloc) {
	arena_init(&box->bytes, alloc, NEWS_BYTES_MAX);
	box->gap.kind = NEWS_GAP;
}

void news_box_done(struct news_box *box, const struct allocator *alloc) {
	alloc_free(alloc, box->news, box->capacity * sizeof *box->news);
	arena_done(&box->bytes);
}

void news_box_clear(struct news_box *box) {
	if (box->read == box->count) {
		box->read = box->count = 0;
		arena_reset(&box->bytes);
	}
}
