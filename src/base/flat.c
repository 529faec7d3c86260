/* flat.c: linear hashing, as in map.c, over entries that stand in an array. */
#include "flat.h"

#include <stdbool.h>
#include <string.h>

#include "check.h"

/* As in map.c. */
#define BUCKETS_AN_ADDITION 2
#define BUCKETS_A_REMOVAL 4

/* ---- the arrays ---- */

static size_t segment_bytes(const struct flat_array *a) {
	return (size_t)a->size * FLAT_SEGMENT;
}

/* Keeps the segments of so many elements, and one more, so that additions and removals in turn do
 * not make and free a segment each time. */
static void array_trim(const struct allocator *alloc, struct flat_array *a, uint32_t count) {
	const uint32_t kept = (count + FLAT_SEGMENT - 1) / FLAT_SEGMENT + 1;
	if (a->segments.count > kept) {
		directory_drop(alloc, &a->segments, segment_bytes(a));
	}
}

static void array_done(const struct allocator *alloc, struct flat_array *a) {
	directory_done(alloc, &a->segments, segment_bytes(a));
}

/* ---- buckets ---- */

/* Returns the bucket of the entries with this hash. */
static inline uint32_t *bucket_of(const struct flat *f, uint64_t hash) {
	const uint32_t i = (uint32_t)hash & f->mask;
	return flat_element(&f->buckets, i < f->bucket_count ? i : i & (f->mask >> 1));
}

/* Splits the next bucket that is due. */
static bool grow(struct flat *f) {
	if (f->bucket_count >> FLAT_SEGMENT_BITS == f->buckets.segments.count &&
		!directory_add(f->alloc, &f->buckets.segments, segment_bytes(&f->buckets))) {
		return false;
	}
	const uint32_t power = (f->mask + 1) / 2;
	uint32_t *to = flat_element(&f->buckets, f->bucket_count),
		*from = flat_element(&f->buckets, f->bucket_count - power);
	*to = 0;
	while (*from) {
		struct flat_entry *e = flat_at(f, *from - 1);
		if (e->hash & power) {
			*to = *from;
			*from = e->next;
			e->next = 0;
			to = &e->next;
		} else {
			from = &e->next;
		}
	}
	f->bucket_count++;
	f->mask = f->bucket_count > f->mask ? 2 * f->mask + 1 : f->mask;
	return true;
}

/* Appends the last bucket to the one from which it was split. */
static void shrink(struct flat *f) {
	const uint32_t last = f->bucket_count - 1;
	f->mask = last <= f->mask / 2 ? f->mask / 2 : f->mask;
	uint32_t *to = flat_element(&f->buckets, last - (f->mask + 1) / 2);
	while (*to) {
		to = &flat_at(f, *to - 1)->next;
	}
	*to = *(uint32_t *)flat_element(&f->buckets, last);
	f->bucket_count = last;
	array_trim(f->alloc, &f->buckets, last);
}

/* ---- the table ---- */

void flat_init(struct flat *f, const struct allocator *alloc, uint32_t size) {
	CHECK(size >= sizeof(struct flat_entry) && size % sizeof(uint32_t) == 0);
	*f = (struct flat){ .alloc = alloc, .entries = { .size = size },
		.buckets = { .size = sizeof(uint32_t) } };
}

void flat_done(struct flat *f) {
	if (f->alloc) {
		array_done(f->alloc, &f->entries);
		array_done(f->alloc, &f->buckets);
		f->count = f->bucket_count = f->mask = 0;
	}
}

struct flat_entry *flat_first(const struct flat *f, uint64_t hash) {
	uint32_t link = f->count ? *bucket_of(f, hash) : 0;
	while (link && flat_at(f, link - 1)->hash != hash) {
		link = flat_at(f, link - 1)->next;
	}
	return link ? flat_at(f, link - 1) : NULL;
}

struct flat_entry *flat_next(const struct flat *f, const struct flat_entry *e) {
	uint32_t link = e->next;
	while (link && flat_at(f, link - 1)->hash != e->hash) {
		link = flat_at(f, link - 1)->next;
	}
	return link ? flat_at(f, link - 1) : NULL;
}

struct flat_entry *flat_add(struct flat *f, uint64_t hash) {
	for (int i = 0; i < BUCKETS_AN_ADDITION && f->count >= f->bucket_count; i++) {
		if (!grow(f)) {
			break;
		}
	}
	if (f->bucket_count == 0 || f->count >= FLAT_MAX) {
		return NULL;
	}
	if (f->count >> FLAT_SEGMENT_BITS == f->entries.segments.count &&
		!directory_add(f->alloc, &f->entries.segments, segment_bytes(&f->entries))) {
		return NULL;
	}
	struct flat_entry *e = flat_at(f, f->count);
	uint32_t *bucket = bucket_of(f, hash);
	memset(e, 0, f->entries.size);
	e->hash = hash;
	e->next = *bucket;
	*bucket = ++f->count;
	return e;
}

/* Returns what leads to an entry, and so has its index: its bucket, or the entry before it. */
static uint32_t *link_of(const struct flat *f, const struct flat_entry *e) {
	uint32_t *at = bucket_of(f, e->hash);
	for (;;) {
		CHECK(*at);
		struct flat_entry *here = flat_at(f, *at - 1);
		if (here == e) {
			return at;
		}
		at = &here->next;
	}
}

void flat_remove(struct flat *f, struct flat_entry *e) {
	uint32_t *link = link_of(f, e);
	const uint32_t index = *link - 1, last = f->count - 1;
	*link = e->next;
	if (index != last) {
		struct flat_entry *moved = flat_at(f, last);
		*link_of(f, moved) = index + 1;
		memcpy(e, moved, f->entries.size);
	}
	f->count = last;
	if ((last & (FLAT_SEGMENT - 1)) == 0) {
		array_trim(f->alloc, &f->entries, last);
	}
	for (int i = 0; i < BUCKETS_A_REMOVAL; i++) {
		if (f->bucket_count <= FLAT_SEGMENT || f->count > f->bucket_count / 4) {
			break;
		}
		shrink(f);
	}
}
