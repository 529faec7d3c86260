/* holdings.c: the locks that were granted through this node, by hash, and when they end. */
#include "holdings.h"

#include "core.h"
#include "load.h"

#define END_UNIT_BITS 27
#define PLACES_MIN 16
/* The bits of holding.holder are enough. */
#define PLACES_MAX ((uint32_t)1 << 31)

struct holder {
	/* Element of holdings.holders. */
	struct map_node node;
	struct share_pair share;
	/* The number of its party, or PARTY_NONE. */
	uint32_t party;
	/* Its place in holdings.places; and how many locks it has. */
	uint32_t number, locks;
};

int holdings_init(struct holdings *h, const struct allocator *alloc, struct siphash_key hash_key,
	struct parties *parties) {
	h->alloc = alloc;
	h->hash_key = hash_key;
	h->parties = parties;
	flat_init(&h->all, alloc, sizeof(struct holding));
	flat_init(&h->values, alloc, sizeof(struct holding_value));
	return map_init(&h->holders, alloc);
}

static void holder_free(struct holdings *h, struct holder *holder) {
	parties_let_go(h->parties, holder->party);
	map_remove(&h->holders, &holder->node);
	h->places[holder->number].next_free = h->first_free;
	h->first_free = holder->number;
	alloc_free(h->alloc, holder, sizeof *holder);
}

static void holder_drained(void *h, struct map_node *node) {
	holder_free(h, CONTAINER_OF(node, struct holder, node));
}

void holdings_done(struct holdings *h) {
	flat_done(&h->all);
	flat_done(&h->values);
	map_drain(&h->holders, holder_drained, h);
	map_done(&h->holders);
	if (h->places) {
		alloc_free(h->alloc, h->places, h->place_count * sizeof *h->places);
	}
	*h = (struct holdings){ 0 };
}

/* Folded multiplication, as in wyhash. Each cycle of a lock needs two hashes. Nobody sees them, or
 * can try them out, without the key. SipHash would cost three times as much. */
static uint64_t holdings_mix(uint64_t a, uint64_t b) {
	__extension__ const unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t holdings_hash(const struct holdings *h, struct slice key, struct id128 lock_id) {
	uint64_t k0 = h->hash_key.k0, k1 = h->hash_key.k1;
	uint64_t hash = holdings_mix(load_le64(lock_id.b) ^ k0,
		load_le64(lock_id.b + sizeof hash) ^ k1);
	const uint8_t *at = key.data;
	size_t rest = key.size;
	for (; rest > 2 * sizeof hash; rest -= 2 * sizeof hash, at += 2 * sizeof hash) {
		hash = holdings_mix(hash ^ load_le64(at), k1 ^ load_le64(at + sizeof hash));
	}
	/* At most 16 bytes are left, which are two words, which overlap if there are fewer; or
	 * fewer bytes than one word. */
	if (rest >= sizeof hash) {
		hash = holdings_mix(hash ^ load_le64(at),
			k1 ^ load_le64(at + rest - sizeof hash));
	} else {
		uint8_t last[sizeof hash] = { 0 };
		for (size_t i = 0; i < rest; i++) {
			last[i] = at[i];
		}
		hash = holdings_mix(hash ^ load_le64(last), k1);
	}
	return holdings_mix(hash ^ key.size, k0);
}

/* ---- holders ---- */

/* Makes sure that there is a free place. */
static bool places_room(struct holdings *h) {
	if (h->first_free < h->place_count) {
		return true;
	}
	if (h->place_count == PLACES_MAX) {
		return false;
	}
	const uint32_t count = h->place_count ? 2 * h->place_count : PLACES_MIN;
	union holder_place *bigger = alloc_resize(h->alloc, h->places,
		h->place_count * sizeof *bigger, count * sizeof *bigger);
	if (!bigger) {
		return false;
	}
	for (uint32_t i = h->place_count; i < count; i++) {
		bigger[i].next_free = i + 1;
	}
	h->places = bigger;
	h->first_free = h->place_count;
	h->place_count = count;
	return true;
}

/* Returns the holder with these shares and this party, which may be NULL, and makes it if need be.
 * NULL: there is no memory. */
static struct holder *holder_of(struct holdings *h, const struct share_pair *share,
	struct party *of) {
	const uint32_t party = of ? of->number : PARTY_NONE;
	const uint64_t hash = holdings_mix((uintptr_t)share->identity ^ h->hash_key.k0,
		(uintptr_t)share->address ^ h->hash_key.k1 ^ ((uint64_t)party << 32));
	for (struct map_node *n = map_first(&h->holders, hash); n; n = map_next(n)) {
		struct holder *holder = CONTAINER_OF(n, struct holder, node);
		if (holder->share.identity == share->identity
			&& holder->share.address == share->address && holder->party == party) {
			return holder;
		}
	}
	struct holder *holder = places_room(h) ? alloc_new(h->alloc, sizeof *holder) : NULL;
	if (holder) {
		holder->share = *share;
		holder->party = party;
		holder->number = h->first_free;
		h->first_free = h->places[holder->number].next_free;
		h->places[holder->number].holder = holder;
		map_insert(&h->holders, &holder->node, hash);
		party_hold(of);
	}
	return holder;
}

static struct holder *holder_at(const struct holdings *h, const struct holding *held) {
	return h->places[held->holder].holder;
}

/* ---- locks ---- */

struct holding *holdings_find(const struct holdings *h, uint64_t hash) {
	struct flat_entry *e = flat_first(&h->all, hash);
	return e ? CONTAINER_OF(e, struct holding, entry) : NULL;
}

static struct holding_value *value_of(const struct holdings *h, const struct holding *held) {
	struct flat_entry *e = held->valued ? flat_first(&h->values, held->entry.hash) : NULL;
	return e ? CONTAINER_OF(e, struct holding_value, entry) : NULL;
}

uint32_t holdings_value_bytes(const struct holdings *h, const struct holding *held) {
	const struct holding_value *value = value_of(h, held);
	return value ? value->bytes : 0;
}

/* Notes the size of the value. False: there is no memory, and nothing has changed. */
static bool put_value(struct holdings *h, struct holding *held, uint32_t bytes) {
	struct holding_value *value = value_of(h, held);
	if (value && bytes == 0) {
		flat_remove(&h->values, &value->entry);
		held->valued = false;
		return true;
	}
	if (!value && bytes > 0) {
		struct flat_entry *e = flat_add(&h->values, held->entry.hash);
		if (!e) {
			return false;
		}
		held->valued = true;
		value = CONTAINER_OF(e, struct holding_value, entry);
	}
	if (value) {
		value->bytes = bytes;
	}
	return true;
}

struct holding *holdings_adopt(struct holdings *h, uint64_t hash, const struct share_pair *share,
	struct party *party, uint32_t value_bytes) {
	struct holder *holder = holder_of(h, share, party);
	struct flat_entry *e = holder ? flat_add(&h->all, hash) : NULL;
	struct holding *held = e ? CONTAINER_OF(e, struct holding, entry) : NULL;
	if (held && value_bytes > 0 && !put_value(h, held, value_bytes)) {
		flat_remove(&h->all, e);
		held = NULL;
	}
	if (held) {
		held->holder = holder->number & (PLACES_MAX - 1);
		held->end = UINT32_MAX;
		holder->locks++;
	} else if (holder && holder->locks == 0) {
		holder_free(h, holder);
	}
	return held;
}

/* The holder has a lock less. */
static void holder_lost(struct holdings *h, struct holder *holder) {
	if (--holder->locks == 0) {
		holder_free(h, holder);
	}
}

uint32_t holdings_party(const struct holdings *h, const struct holding *held) {
	return holder_at(h, held)->party;
}

void holdings_belongs(struct holdings *h, struct holding *held, struct party *party) {
	struct holder *before = holder_at(h, held);
	if (!party || party->number == before->party) {
		return;
	}
	struct holder *now = holder_of(h, &before->share, party);
	if (now) {
		now->locks++;
		held->holder = now->number & (PLACES_MAX - 1);
		holder_lost(h, before);
	}
}

void holdings_value(struct holdings *h, struct holding *held, uint32_t bytes) {
	const struct share_pair *share = &holder_at(h, held)->share;
	const uint32_t before = holdings_value_bytes(h, held),
		now = put_value(h, held, bytes) ? bytes : 0;
	shares_take(share, SHARE_VALUES, now);
	shares_give(share, SHARE_VALUES, before);
}

void holdings_until(struct holding *held, struct instant end) {
	const uint64_t units = ((uint64_t)end.boot >> END_UNIT_BITS) + 1;
	held->end = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

void holdings_drop(struct holdings *h, struct holding *take_held) {
	struct holder *holder = holder_at(h, take_held);
	if (take_held->valued) {
		holdings_value(h, take_held, 0);
	}
	shares_give(&holder->share, SHARE_LOCKS, 1);
	flat_remove(&h->all, &take_held->entry);
	holder_lost(h, holder);
}

/* Where one is dropped, another one takes its place, and is looked at next. */
bool holdings_sweep(struct holdings *h, struct instant now, uint32_t most) {
	const uint64_t units = (uint64_t)now.boot >> END_UNIT_BITS;
	if (h->sweep_left == 0) {
		const uint32_t quarter = h->all.count / 4;
		h->sweep_left = quarter > HOLDINGS_SWEPT ? quarter
			: h->all.count < HOLDINGS_SWEPT ? h->all.count : HOLDINGS_SWEPT;
	}
	for (; most > 0 && h->sweep_left > 0 && h->all.count > 0; most--, h->sweep_left--) {
		if (h->sweep_next >= h->all.count) {
			h->sweep_next = 0;
		}
		struct holding *held = CONTAINER_OF(flat_at(&h->all, h->sweep_next),
			struct holding, entry);
		if (held->end <= units) {
			holdings_drop(h, held);
		} else {
			h->sweep_next++;
		}
	}
	if (h->all.count == 0) {
		h->sweep_left = 0;
	}
	return h->sweep_left > 0;
}
