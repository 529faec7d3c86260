/* directory.h: the segments of a table that grows by one segment at a time, and never moves one.
 * Before the list of segments is full, one of twice the size is filled a few places at a time. So
 * no step copies the whole list, and none touches more than a few places of fresh memory. */
#ifndef PAWL_BASE_DIRECTORY_H
#define PAWL_BASE_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc.h"

struct directory {
	/* How many segments there are, and for how many there is room. */
	uint32_t count, size;
	void **segments;
	/* The list of twice the size; NULL: it is not needed yet. The first `copied` segments are
	 * in it. */
	void **next;
	uint32_t copied;
};

/* Adds a segment of so many bytes, which are not zeroed. False: there is no memory. */
bool directory_add(const struct allocator *alloc, struct directory *d, size_t bytes);

/* Frees the last segment, which has so many bytes. */
void directory_drop(const struct allocator *alloc, struct directory *d, size_t bytes);

/* Frees all segments. Accepts zeroed memory. */
void directory_done(const struct allocator *alloc, struct directory *d, size_t bytes);

#endif
