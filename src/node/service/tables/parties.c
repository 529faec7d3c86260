/* parties.c: the parties of this node's clients, by id and by number. */
#include "parties.h"

#include "check.h"
#include "pawl/error.h"

/* So many places there are at first. */
#define PLACES_LEAST 64

static uint64_t parties_hash(const struct parties *p, struct id128 id) {
	return siphash_short(p->hash_key, id.b, sizeof id.b);
}

int parties_init(struct parties *p, const struct allocator *alloc, struct siphash_key hash_key) {
	*p = (struct parties){ .alloc = alloc, .hash_key = hash_key };
	return map_init(&p->by_id, alloc);
}

void parties_done(struct parties *p) {
	if (p->alloc) {
		CHECK(p->by_id.count == 0);
		map_done(&p->by_id);
		alloc_free(p->alloc, p->places, p->size * sizeof *p->places);
		*p = (struct parties){ 0 };
	}
}

struct party *parties_find(const struct parties *p, struct id128 id) {
	for (struct map_node *n = map_first(&p->by_id, parties_hash(p, id)); n; n = map_next(n)) {
		struct party *party = CONTAINER_OF(n, struct party, node);
		if (id128_equal(party->id, id)) {
			return party;
		}
	}
	return NULL;
}

/* Puts a place into the list of free ones. */
static void parties_put_free(struct parties *p, uint32_t number) {
	p->places[number - 1] = (uintptr_t)p->first_free << 1 | 1;
	p->first_free = number;
}

static bool parties_grow(struct parties *p) {
	uint32_t size = p->size ? 2 * p->size : PLACES_LEAST;
	uintptr_t *places = size > UINT32_MAX / 4 ? NULL : alloc_resize(p->alloc, p->places,
		p->size * sizeof *places, size * sizeof *places);
	if (!places) {
		return false;
	}
	p->places = places;
	for (uint32_t number = size; number > p->size; number--) {
		parties_put_free(p, number);
	}
	p->size = size;
	return true;
}

struct party *parties_use(struct parties *p, struct id128 id) {
	struct party *party = parties_find(p, id);
	if (party) {
		party->uses++;
		return party;
	}
	if (!p->first_free && !parties_grow(p)) {
		return NULL;
	}
	party = alloc_new(p->alloc, sizeof *party);
	if (party) {
		party->id = id;
		party->uses = 1;
		party->number = p->first_free;
		list_init(&party->waits);
		p->first_free = (uint32_t)(p->places[party->number - 1] >> 1);
		p->places[party->number - 1] = (uintptr_t)party;
		map_insert(&p->by_id, &party->node, parties_hash(p, id));
	}
	return party;
}

void parties_free(struct parties *p, struct party *party) {
	CHECK(list_empty(&party->waits) && party->holders == 0);
	map_remove(&p->by_id, &party->node);
	parties_put_free(p, party->number);
	alloc_free(p->alloc, party, sizeof *party);
}
