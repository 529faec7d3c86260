/* failing.h: an allocator that fails the calls which a test chooses. */
#ifndef PAWL_TESTS_FAILING_H
#define PAWL_TESTS_FAILING_H

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "alloc.h"

struct failing {
	/* `fail_count` calls fail, beginning with number `fail_first`. 0: none fails. */
	uint64_t calls, fail_first, fail_count;
	size_t used;
};

/* Whatever grows is always moved, so that a test finds out who keeps an old pointer. */
static inline void *failing_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct failing *f = ctx;
	if (new_size > old_size) {
		uint64_t call = ++f->calls;
		if (f->fail_first && call >= f->fail_first &&
			call - f->fail_first < f->fail_count) {
			return NULL;
		}
	}
	void *moved = NULL;
	if (new_size) {
		moved = malloc(new_size);
		assert_non_null(moved);
		if (p) {
			memcpy(moved, p, old_size < new_size ? old_size : new_size);
		}
	}
	free(p);
	f->used += new_size - old_size;
	return moved;
}

#endif
