/* facts.c: the parties, keys, waits and locks that a look for a deadlock has heard of. */
#include "facts.h"

struct facts *facts_new(const struct allocator *alloc, struct siphash_key hash_key) {
	struct facts *f = alloc_new(alloc, sizeof *f);
	if (f) {
		f->alloc = alloc;
		f->hash_key = hash_key;
		arena_init(&f->bytes, alloc, FACTS_BYTES_MAX);
		memset(f->party_buckets, 0xff, sizeof f->party_buckets);
		memset(f->key_buckets, 0xff, sizeof f->key_buckets);
	}
	return f;
}

void facts_free(struct facts *f) {
	if (f) {
		arena_done(&f->bytes);
		alloc_free(f->alloc, f, sizeof *f);
	}
}

static uint32_t bucket_of(const struct facts *f, struct slice name) {
	return (uint32_t)(siphash_short(f->hash_key, name.data, name.size) % FACTS_MAX);
}

static uint32_t find_party(const struct facts *f, struct id128 id) {
	uint32_t i = f->party_buckets[bucket_of(f, slice_of(id.b, sizeof id.b))];
	while (i != FACT_NONE && !id128_equal(f->parties[i].id, id)) {
		i = f->parties[i].next_in_bucket;
	}
	return i;
}

uint32_t facts_party(struct facts *f, struct id128 id) {
	uint32_t i = find_party(f, id);
	if (i != FACT_NONE) {
		return i;
	}
	if (f->party_count == FACTS_MAX) {
		f->cut = true;
		return FACT_NONE;
	}
	uint32_t *first = &f->party_buckets[bucket_of(f, slice_of(id.b, sizeof id.b))];
	f->parties[f->party_count] = (struct fact_party){ .id = id, .holds = FACT_NONE,
		.next_in_bucket = *first };
	*first = f->party_count;
	return f->party_count++;
}

static uint32_t find_key(const struct facts *f, struct slice name) {
	uint32_t i = f->key_buckets[bucket_of(f, name)];
	while (i != FACT_NONE && !slice_equal(f->keys[i].name, name)) {
		i = f->keys[i].next_in_bucket;
	}
	return i;
}

uint32_t facts_key(struct facts *f, struct slice name) {
	uint32_t i = find_key(f, name);
	struct slice copy;
	if (i != FACT_NONE) {
		return i;
	}
	if (f->key_count == FACTS_MAX || arena_copy(&f->bytes, name, &copy) != 0) {
		f->cut = true;
		return FACT_NONE;
	}
	uint32_t *first = &f->key_buckets[bucket_of(f, name)];
	f->keys[f->key_count] = (struct fact_key){ .name = copy, .waits = FACT_NONE,
		.holds = FACT_NONE, .next_in_bucket = *first };
	*first = f->key_count;
	return f->key_count++;
}

void facts_wait(struct facts *f, const struct wait_fact *fact, uint32_t node) {
	uint32_t party = facts_party(f, fact->party), key = facts_key(f, fact->key);
	struct slice owner;
	if (party == FACT_NONE || key == FACT_NONE) {
		return;
	}
	for (uint32_t i = f->keys[key].waits; i != FACT_NONE; i = f->waits[i].next_of_key) {
		if (f->waits[i].node == node && f->waits[i].request == fact->request) {
			return;
		}
	}
	if (f->wait_count == FACTS_MAX || arena_copy(&f->bytes, fact->owner, &owner) != 0) {
		f->cut = true;
		return;
	}
	f->waits[f->wait_count] = (struct fact_wait){ .lock_id = fact->lock_id, .owner = owner,
		.party = party, .key = key, .of = fact->of, .count = fact->count,
		.free = fact->free, .node = node, .request = fact->request,
		.since_ms = fact->since_ms, .next_of_key = f->keys[key].waits };
	f->keys[key].waits = f->wait_count++;
}

void facts_hold(struct facts *f, const struct hold_fact *fact) {
	uint32_t party = facts_party(f, fact->party), key = facts_key(f, fact->key);
	if (party == FACT_NONE || key == FACT_NONE) {
		return;
	}
	for (uint32_t i = f->keys[key].holds; i != FACT_NONE; i = f->holds[i].next_of_key) {
		if (id128_equal(f->holds[i].lock_id, fact->lock_id)) {
			f->holds[i].disputed = f->holds[i].disputed || f->holds[i].party != party;
			return;
		}
	}
	if (f->hold_count == FACTS_MAX) {
		f->cut = true;
		return;
	}
	f->holds[f->hold_count] = (struct fact_hold){ .lock_id = fact->lock_id, .party = party,
		.key = key, .of = fact->of, .count = fact->count,
		.next_of_key = f->keys[key].holds, .next_of_party = f->parties[party].holds };
	f->keys[key].holds = f->parties[party].holds = f->hold_count++;
}

bool facts_has_wait(const struct facts *f, const struct facts *other, uint32_t wait) {
	const struct fact_wait *w = &other->waits[wait];
	uint32_t key = find_key(f, other->keys[w->key].name);
	uint32_t party = find_party(f, other->parties[w->party].id);
	for (uint32_t i = key == FACT_NONE ? FACT_NONE : f->keys[key].waits; i != FACT_NONE;
		i = f->waits[i].next_of_key) {
		if (f->waits[i].node == w->node && f->waits[i].request == w->request
			&& f->waits[i].party == party
			&& id128_equal(f->waits[i].lock_id, w->lock_id)) {
			return true;
		}
	}
	return false;
}

bool facts_has_hold(const struct facts *f, const struct facts *other, uint32_t hold) {
	const struct fact_hold *h = &other->holds[hold];
	uint32_t key = find_key(f, other->keys[h->key].name);
	uint32_t party = find_party(f, other->parties[h->party].id);
	for (uint32_t i = key == FACT_NONE ? FACT_NONE : f->keys[key].holds; i != FACT_NONE;
		i = f->holds[i].next_of_key) {
		if (f->holds[i].party == party && !f->holds[i].disputed
			&& id128_equal(f->holds[i].lock_id, h->lock_id)) {
			return true;
		}
	}
	return false;
}
