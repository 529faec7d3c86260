/* digest.c: what a table holds, in numbers that masters can compare (section 7, Anti-entropy).
 * Every key belongs to a leaf, by a hash that is the same on all nodes. The digest of a leaf is the
 * exclusive or of a hash of each of its held records, the digest of a group that of its leaves. Two
 * masters whose numbers are equal have the same records. Where the numbers differ, only the keys of
 * that leaf are compared.
 *
 * Ends are no part of it, because they differ by what the network took. Nor is `noted`, which is a
 * master's own. */
#include "store.h"

/* Reads eight bytes as the same number on every machine. */
static inline uint64_t word_at(const uint8_t *p) {
	uint64_t w;
	memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	w = __builtin_bswap64(w);
#endif
	return w;
}

/* The hash needs no secret. Whoever chooses keys that fall into one leaf makes the comparison of
 * that leaf long, which is bounded, and does nothing else. */
uint16_t digest_leaf_of(struct slice name) {
	uint64_t h = name.size;
	size_t at = 0;
	for (; at + 8 <= name.size; at += 8) {
		h = hash_fold(h ^ word_at(name.data + at), UINT64_C(0x9e3779b97f4a7c15));
	}
	uint64_t rest = 0;
	if (name.size >= 8) {
		rest = word_at(name.data + name.size - 8);
	} else {
		for (size_t i = 0; i < name.size; i++) {
			rest |= (uint64_t)name.data[i] << (8 * i);
		}
	}
	h = hash_fold(h ^ rest, UINT64_C(0xbf58476d1ce4e5b9));
	return (uint16_t)(h % DIGEST_LEAVES);
}

static uint64_t hash_of(const struct core *core, const struct record *r) {
	const struct ballot wrote = record_wrote(core, r);
	uint64_t h = hash_fold(word_at(r->lock_id.b) ^ UINT64_C(0x94d049bb133111eb),
		word_at(r->lock_id.b + 8) ^ UINT64_C(0xd6e8feb86659fd93));
	if (r->of != MODE_EXCLUSIVE) {
		const struct permits set = record_set(r);
		h = hash_fold(h ^ r->of ^ set.w[0] << 16 ^ set.w[0] >> 48,
			UINT64_C(0xbf58476d1ce4e5b9) ^ set.w[1]);
	}
	h = hash_fold(h ^ r->token, UINT64_C(0xbf58476d1ce4e5b9) ^ wrote.clock);
	return hash_fold(h ^ wrote.node, UINT64_C(0x9e3779b97f4a7c15) ^
		((uint64_t)wrote.boot << 1) ^ (uint64_t)r->barred);
}

static struct leaf *leaf_at(const struct table *t, uint32_t leaf) {
	return &t->leaves[leaf / DIGEST_GROUP][leaf % DIGEST_GROUP];
}

bool digest_add_key(struct core *core, struct table *t, struct key *key) {
	const uint16_t leaf = key_leaf(key);
	struct leaf **group = &t->leaves[leaf / DIGEST_GROUP];
	if (*group == NULL) {
		*group = alloc_new(&core->alloc, DIGEST_GROUP * sizeof **group);
		if (*group == NULL) {
			COUNT(core, no_memory);
			return false;
		}
	}
	struct key **first = &leaf_at(t, leaf)->first;
	key->leaf_next = *first;
	key->leaf_link = first;
	if (*first) {
		(*first)->leaf_link = &key->leaf_next;
	}
	*first = key;
	return true;
}

void digest_drop_key(struct key *key) {
	*key->leaf_link = key->leaf_next;
	if (key->leaf_next) {
		key->leaf_next->leaf_link = key->leaf_link;
	}
}

static void change(struct core *core, const struct key *key, struct record *r, uint64_t hash) {
	struct table *t = key_table(core, key);
	uint64_t difference = r->digest ^ hash;
	leaf_at(t, key_leaf(key))->digest ^= difference;
	t->group_digests[key_leaf(key) / DIGEST_GROUP] ^= difference;
	r->digest = hash;
}

void digest_record(struct core *core, const struct key *key, struct record *r) {
	change(core, key, r, hash_of(core, r));
	if (key_index(key)) {
		index_token(key_index(key), r);
	}
}

void digest_drop_record(struct core *core, const struct key *key, struct record *r) {
	change(core, key, r, 0);
}

uint64_t digest_root(const struct table *t) {
	uint64_t root = 0;
	for (uint32_t g = 0; g < DIGEST_GROUPS; g++) {
		root = hash_fold(root ^ t->group_digests[g], UINT64_C(0x9e3779b97f4a7c15) + g);
	}
	return root;
}

uint64_t digest_leaf(const struct table *t, uint32_t leaf) {
	return t->leaves[leaf / DIGEST_GROUP] ? leaf_at(t, leaf)->digest : 0;
}

struct key *digest_first(const struct table *t, uint32_t leaf) {
	return t->leaves[leaf / DIGEST_GROUP] ? leaf_at(t, leaf)->first : NULL;
}

void digest_done(struct core *core, struct table *t) {
	for (uint32_t g = 0; g < DIGEST_GROUPS; g++) {
		if (t->leaves[g]) {
			alloc_free(&core->alloc, t->leaves[g], DIGEST_GROUP * sizeof *t->leaves[g]);
			t->leaves[g] = NULL;
		}
	}
}

void digest_check_key(const struct core *core, const struct table *t, const struct key *key,
	uint64_t sums[DIGEST_GROUPS]) {
	const struct leaf *leaf = leaf_at(t, key_leaf(key));
	CHECK(*key->leaf_link == key && key_leaf(key) == digest_leaf_of(key_name(key)));
	uint64_t sum = 0;
	/* This is done once for each leaf. */
	for (const struct key *k = leaf->first == key ? key : NULL; k; k = k->leaf_next) {
		for (const struct record *r = k->held; r; r = r->next) {
			CHECK(r->digest == hash_of(core, r));
			sum ^= r->digest;
		}
	}
	CHECK(leaf->first != key || sum == leaf->digest);
	sums[key_leaf(key) / DIGEST_GROUP] ^= sum;
}
