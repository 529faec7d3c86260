/* holdings.c: the locks that were granted through this node, by hash, and when they end. */
#include "holdings.h"

#include <string.h>

#include "core.h"

int holdings_init(struct holdings *h, const struct allocator *alloc, struct siphash_key hash_key,
	struct parties *parties, struct instant now) {
	h->alloc = alloc;
	h->hash_key = hash_key;
	h->parties = parties;
	wheel_init(&h->ends, now.boot);
	return map_init(&h->all, alloc);
}

static void holdings_free(struct holdings *h, struct holding *held) {
	parties_let_go(h->parties, held->party);
	wheel_disarm(&h->ends, &held->end);
	map_remove(&h->all, &held->node);
	alloc_free(h->alloc, held, sizeof *held);
}

static void holdings_drained(void *h, struct map_node *node) {
	holdings_free(h, CONTAINER_OF(node, struct holding, node));
}

void holdings_done(struct holdings *h) {
	map_drain(&h->all, holdings_drained, h);
	map_done(&h->all);
	memset(&h->all, 0, sizeof h->all);
}

/* Folded multiplication, as in wyhash. Each cycle of a lock needs two hashes. Nobody sees them, or
 * can try them out, without the key. SipHash would cost three times as much. */
static uint64_t holdings_mix(uint64_t a, uint64_t b) {
	__extension__ const unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t holdings_word(const uint8_t *at) {
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return word;
}

/* Mixes in the last bytes, of which there are at most 16, as two words, which overlap if there are
 * fewer. */
static uint64_t holdings_mix_rest(uint64_t hash, uint64_t key, const uint8_t *at, size_t size) {
	uint8_t last[sizeof hash] = { 0 };
	if (size >= sizeof hash) {
		return holdings_mix(hash ^ holdings_word(at),
			key ^ holdings_word(at + size - sizeof hash));
	}
	for (size_t i = 0; i < size; i++) {
		last[i] = at[i];
	}
	return holdings_mix(hash ^ holdings_word(last), key);
}

uint64_t holdings_hash(const struct holdings *h, struct slice key, struct id128 lock_id) {
	uint64_t k0 = h->hash_key.k0, k1 = h->hash_key.k1;
	uint64_t hash = holdings_mix(holdings_word(lock_id.b) ^ k0,
		holdings_word(lock_id.b + sizeof hash) ^ k1);
	const uint8_t *at = key.data;
	size_t rest = key.size;
	for (; rest > 2 * sizeof hash; rest -= 2 * sizeof hash, at += 2 * sizeof hash) {
		hash = holdings_mix(hash ^ holdings_word(at), k1 ^ holdings_word(at + sizeof hash));
	}
	return holdings_mix(holdings_mix_rest(hash, k1, at, rest) ^ key.size, k0);
}

struct holding *holdings_find(const struct holdings *h, uint64_t hash) {
	struct map_node *node = map_first(&h->all, hash);
	return node ? CONTAINER_OF(node, struct holding, node) : NULL;
}

struct holding *holdings_adopt(struct holdings *h, uint64_t hash, const struct share_pair *share,
	uint32_t value_bytes) {
	struct holding *held = alloc_new(h->alloc, sizeof *held);
	if (held) {
		held->share = *share;
		held->value_bytes = value_bytes;
		map_insert(&h->all, &held->node, hash);
	}
	return held;
}

void holdings_belongs(struct holdings *h, struct holding *held, struct party *party) {
	if (party && party->number != held->party) {
		parties_let_go(h->parties, held->party);
		held->party = party_hold(party);
	}
}

void holdings_value(struct holding *held, uint32_t bytes) {
	shares_take(&held->share, SHARE_VALUES, bytes);
	shares_give(&held->share, SHARE_VALUES, held->value_bytes);
	held->value_bytes = bytes;
}

void holdings_until(struct holdings *h, struct holding *held, struct instant end) {
	wheel_arm(&h->ends, &held->end, end.boot);
}

void holdings_drop(struct holdings *h, struct holding *take_held) {
	shares_give(&take_held->share, SHARE_VALUES, take_held->value_bytes);
	shares_give(&take_held->share, SHARE_LOCKS, 1);
	holdings_free(h, take_held);
}

bool holdings_sweep(struct holdings *h, struct instant now, uint32_t most) {
	struct wheel_timer *over;
	while ((over = wheel_expire_some(&h->ends, now.boot, &most)) != NULL) {
		holdings_drop(h, CONTAINER_OF(over, struct holding, end));
	}
	return most == 0;
}
