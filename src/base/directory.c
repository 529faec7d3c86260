/* directory.c: a list of segments that grows without being copied at once. */
#include "directory.h"

#define SIZE_MIN 4
/* While the second half of the list fills, so many places are copied for each new segment. */
#define COPIED_AN_ADDITION 2

static void next_free(const struct allocator *alloc, struct directory *d) {
	alloc_free(alloc, d->next, 2 * (size_t)d->size * sizeof *d->next);
	d->next = NULL;
	d->copied = 0;
}

static void copy(struct directory *d, uint32_t most) {
	for (; most > 0 && d->copied < d->count; most--, d->copied++) {
		d->next[d->copied] = d->segments[d->copied];
	}
}

/* Replaces a list that is full. Nearly all of it has been copied, unless memory was short. */
static bool turn_over(const struct allocator *alloc, struct directory *d) {
	if (d->size == 0) {
		d->segments = alloc_resize(alloc, NULL, 0, SIZE_MIN * sizeof *d->segments);
		d->size = d->segments ? SIZE_MIN : 0;
		return d->segments;
	}
	if (!d->next) {
		d->next = alloc_resize(alloc, NULL, 0, 2 * (size_t)d->size * sizeof *d->next);
	}
	if (!d->next) {
		return false;
	}
	copy(d, UINT32_MAX);
	alloc_free(alloc, d->segments, d->size * sizeof *d->segments);
	d->segments = d->next;
	d->size *= 2;
	d->next = NULL;
	d->copied = 0;
	return true;
}

bool directory_add(const struct allocator *alloc, struct directory *d, size_t bytes) {
	if (d->count == d->size && !turn_over(alloc, d)) {
		return false;
	}
	void *made = alloc_resize(alloc, NULL, 0, bytes);
	if (!made) {
		return false;
	}
	d->segments[d->count++] = made;
	if (d->count > d->size / 2 && !d->next) {
		d->next = alloc_resize(alloc, NULL, 0, 2 * (size_t)d->size * sizeof *d->next);
	}
	if (d->next) {
		copy(d, COPIED_AN_ADDITION);
	}
	return true;
}

void directory_drop(const struct allocator *alloc, struct directory *d, size_t bytes) {
	alloc_free(alloc, d->segments[--d->count], bytes);
	if (d->copied > d->count) {
		d->copied = d->count;
	}
	if (d->next && d->count <= d->size / 2) {
		next_free(alloc, d);
	}
}

void directory_done(const struct allocator *alloc, struct directory *d, size_t bytes) {
	while (d->count > 0) {
		alloc_free(alloc, d->segments[--d->count], bytes);
	}
	next_free(alloc, d);
	alloc_free(alloc, d->segments, d->size * sizeof *d->segments);
	*d = (struct directory){ .count = 0 };
}
