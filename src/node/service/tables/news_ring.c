/* Entries of different sizes one behind the other; one that does not fit before the end of the memory begins at its start:
 *
 *   not wrapped:  ....[head ... oldest to newest ... tail)..........      wrap = size
 *   wrapped:      newest ... tail)....[head ... older ... wrap)....
 *
 * tail == head with entries in it is full, and counts as wrapped. */
#include "news_ring.h"

#include "check.h"
#include "pawl/error.h"

#define ALIGNMENT _Alignof(struct core_news)

void news_ring_init(struct news_ring *r, const struct allocator *alloc) {
	*r = (struct news_ring){ .alloc = alloc, .oldest = 1, .next = 1 };
}

void news_ring_done(struct news_ring *r) {
	if (r->alloc) {
		alloc_free(r->alloc, r->bytes, r->size);
		alloc_free(r->alloc, r->places, r->place_count * sizeof *r->places);
	}
	r->bytes = NULL;
	r->places = NULL;
}

int news_ring_open(struct news_ring *r, size_t size) {
	CHECK(!news_ring_is_open(r) && size >= NEWS_RING_LEAST && size <= UINT32_MAX);
	r->size = r->wrap = size;
	r->place_count = size / sizeof(struct core_news) + 1; /* none is smaller */
	r->head = r->tail = 0;
	r->bytes = alloc_resize(r->alloc, NULL, 0, size); /* not touched before it is needed */
	r->places = alloc_resize(r->alloc, NULL, 0, r->place_count * sizeof *r->places);
	if (!r->bytes || !r->places) {
		news_ring_done(r);
		return PAWL_ENOMEM;
	}
	return 0;
}

void news_ring_close(struct news_ring *r) {
	news_ring_done(r);
	r->oldest = ++r->next;
}

static size_t ring_round(size_t size) {
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t ring_bytes(const struct core_news *n) {
	return ring_round(sizeof *n + n->key.size + n->owner.size + n->identity.size + n->value.size + n->label.size);
}

const struct core_news *news_ring_at(const struct news_ring *r, uint64_t number) {
	CHECK(number >= r->oldest && number < r->next);
	return (const void *)(r->bytes + r->places[number % r->place_count]);
}

static void ring_drop_oldest(struct news_ring *r) {
	r->head += ring_bytes(news_ring_at(r, r->oldest));
	r->oldest++;
	if (r->head == r->wrap) {
		r->head = 0;
		r->wrap = r->size;
	}
}

/* Whether so many bytes are free at the tail, which may go to the start for that. */
static bool ring_fits(struct news_ring *r, size_t bytes) {
	if (r->oldest == r->next) {
		r->head = r->tail = 0;
		r->wrap = r->size;
		return true;
	}
	if (r->tail > r->head) {
		if (r->size - r->tail >= bytes) {
			return true;
		}
		r->wrap = r->tail;
		r->tail = 0;
	}
	return r->head - r->tail >= bytes;
}

static struct slice ring_copy(uint8_t **to, struct slice from) {
	struct slice copy = slice_of(*to, from.size);
	if (from.size > 0) {
		memcpy(*to, from.data, from.size);
	}
	*to += from.size;
	return copy;
}

void news_ring_push(struct news_ring *r, const struct core_news *news) {
	size_t bytes = ring_bytes(news);
	CHECK(bytes <= r->size);
	while (!ring_fits(r, bytes)) {
		ring_drop_oldest(r);
	}
	struct core_news *entry = (void *)(r->bytes + r->tail);
	uint8_t *to = r->bytes + r->tail + sizeof *entry;
	*entry = *news;
	entry->key = ring_copy(&to, news->key);
	entry->owner = ring_copy(&to, news->owner);
	entry->identity = ring_copy(&to, news->identity);
	entry->value = ring_copy(&to, news->value);
	entry->label = ring_copy(&to, news->label);
	r->places[r->next++ % r->place_count] = (uint32_t)r->tail;
	r->tail += bytes;
}
