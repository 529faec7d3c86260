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

/* Makes sure that there is a segment for the element with this index, which is at most one segment
 * behind the last one. */
static bool array_room(const struct allocator *alloc, struct flat_array *a, uint32_t index) {
	return index >> FLAT_SEGMENT_BITS < a->segments.count ||
		directory_add(alloc, &a->segments, segment_bytes(a));
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

static inline uint32_t *bucket_at(const struct flat *f, uint32_t bucket) {
	return flat_element(&f->buckets, bucket);
}

/* Returns p for n buckets, with p <= n < 2p and p a power of two. */
static inline uint32_t power_of(uint32_t n) {
	return (uint32_t)1 << (31 - __builtin_clz(n));
}

static inline uint32_t *bucket_of(const struct flat *f, uint64_t hash) {
	const uint32_t power = power_of(f->bucket_count),
		i = (uint32_t)hash & (2 * power - 1);
	return bucket_at(f, i < f->bucket_count ? i : i - power);
}

/* Returns what leads to the entry with this index: its bucket, or the entry before it. */
static uint32_t *link_to(const struct flat *f, uint32_t index, uint64_t hash) {
	uint32_t *at = bucket_of(f, hash);
	while (*at != index + 1) {
		CHECK(*at);
		at = &flat_at(f, *at - 1)->next;
	}
	return at;
}

/* Splits the next bucket that is due. */
static bool grow(struct flat *f) {
	if (!array_room(f->alloc, &f->buckets, f->bucket_count)) {
		return false;
	}
	const uint32_t power = f->bucket_count ? power_of(f->bucket_count) : 0;
	uint32_t *to = bucket_at(f, f->bucket_count),
		*from = power ? bucket_at(f, f->bucket_count - power) : to;
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
	return true;
}

/* Appends the last bucket to the one from which it was split. */
static void shrink(struct flat *f) {
	const uint32_t last = f->bucket_count - 1;
	uint32_t *to = bucket_at(f, last - power_of(last));
	while (*to) {
		to = &flat_at(f, *to - 1)->next;
	}
	*to = *bucket_at(f, last);
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
		f->count = f->bucket_count = 0;
	}
}

static struct flat_entry *chain_find(const struct flat *f, uint32_t link, uint64_t hash) {
	while (link) {
		struct flat_entry *e = flat_at(f, link - 1);
		if (e->hash == hash) {
			return e;
		}
		link = e->next;
	}
	return NULL;
}

struct flat_entry *flat_first(const struct flat *f, uint64_t hash) {
	return f->count ? chain_find(f, *bucket_of(f, hash), hash) : NULL;
}

struct flat_entry *flat_next(const struct flat *f, const struct flat_entry *e) {
	return chain_find(f, e->next, e->hash);
}

struct flat_entry *flat_add(struct flat *f, uint64_t hash) {
	for (int i = 0; i < BUCKETS_AN_ADDITION && f->count >= f->bucket_count; i++) {
		if (!grow(f)) {
			break;
		}
	}
	if (f->bucket_count == 0 || f->count >= FLAT_MAX ||
		!array_room(f->alloc, &f->entries, f->count)) {
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

/* Finds the index of an entry through its chain. */
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
		*link_to(f, last, moved->hash) = index + 1;
		memcpy(e, moved, f->entries.size);
	}
	f->count = last;
	array_trim(f->alloc, &f->entries, last);
	for (int i = 0; i < BUCKETS_A_REMOVAL; i++) {
		if (f->bucket_count <= FLAT_SEGMENT || f->count > f->bucket_count / 4) {
			break;
		}
		shrink(f);
	}
}
