/* news.c: what has become of keys, told to the driver for those who watch them. */
#include "state.h"

const struct core_news *core_out_news(struct core_out *out) {
	(void)out;
	return NULL;
}

void core_want_news(struct core *core, bool wanted) {
	(void)core;
	(void)wanted;
}

void core_count_watchers(struct core *core, uint32_t (*count)(void *ctx, struct slice key), void *ctx) {
	(void)core;
	(void)count;
	(void)ctx;
}
