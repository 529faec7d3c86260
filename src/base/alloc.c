/* alloc.c: allocating through an allocator, and the allocator that uses malloc. */
#include "alloc.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

void *alloc_new(const struct allocator *a, size_t size) {
	CHECK(size > 0);
	void *p = a->resize(a->ctx, NULL, 0, size);
	if (p) {
		memset(p, 0, size);
	}
	return p;
}

void *alloc_resize(const struct allocator *a, void *p, size_t old_size, size_t new_size) {
	CHECK(new_size > 0);
	CHECK(p ? old_size > 0 : old_size == 0);
	return a->resize(a->ctx, p, old_size, new_size);
}

void alloc_free(const struct allocator *a, void *p, size_t size) {
	if (p) {
		a->resize(a->ctx, p, size, 0);
	}
}

static void *libc_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct alloc_counter *counter = ctx;
	if (counter) {
		CHECK(counter->used >= old_size);
		size_t others = counter->used - old_size;
		if (counter->max && new_size > old_size &&
			(others > counter->max || new_size > counter->max - others)) {
			return NULL;
		}
	}
	void *out = NULL;
	if (new_size == 0) {
		free(p);
	} else {
		out = p ? realloc(p, new_size) : malloc(new_size);
		if (!out) {
			return NULL;
		}
	}
	if (counter) {
		counter->used = counter->used - old_size + new_size;
	}
	return out;
}

struct allocator alloc_libc(struct alloc_counter *counter) {
	return (struct allocator){ .resize = libc_resize, .ctx = counter };
}
