/* digest.c: what a table holds, in numbers that masters can compare (section 7, Anti-entropy).
 * Every key belongs to a leaf, by a hash that is the same on all nodes. The digest of a leaf is the
 * exclusive or of a hash of each of its held records, the digest of a group that of its leaves. Two
 * masters whose numbers are equal have the same records. Where the numbers differ, only the keys of
 * that leaf are compared.
 *
 * Ends are no part of it, because they differ by what the network took. Nor is `noted`, which is a
 * master's own. */
#include "load.h"
#include "store.h"

/* The hash needs no secret. Whoever chooses keys that fall into one leaf makes the comparison of
 * that leaf long, which is bounded, and does nothing else. */
uint16_t digest_leaf_of(struct slice name) {
	uint64_t h = name.size;
	size_t at = 0;
	for (; at + 8 <= name.size; at += 8) {
		h = hash_fold(h ^ load_le64(name.data + at), UINT64_C(0x9e3779b97f4a7c15));
	}
	uint64_t rest = 0;
	if (name.size >= 8) {
		rest = load_le64(name.data + name.size - 8);
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
	uint64_t h = hash_fold(load_le64(r->lock_id.b) ^ UINT64_C(0x94d049bb133111eb),
		load_le64(r->lock_id.b + 8) ^ UINT64_C(0xd6e8feb86659fd93));
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

#define LEAF_PIECE_BYTES (LEAF_PIECE * sizeof(uint32_t))

static uint32_t *leaf_element(const struct leaf *leaf, uint32_t index) {
	return &leaf->pieces[index / LEAF_PIECE][index % LEAF_PIECE];
}

/* Frees the pieces from this one on, of which no key needs any. */
static void leaf_trim(struct core *core, struct leaf *leaf, uint32_t piece) {
	for (; piece < leaf->room && leaf->pieces[piece]; piece++) {
		alloc_free(&core->alloc, leaf->pieces[piece], LEAF_PIECE_BYTES);
		leaf->pieces[piece] = NULL;
	}
}

bool digest_add_key(struct core *core, struct table *t, struct key *key, uint64_t hash) {
	const uint16_t number = key_leaf(key);
	struct leaf **group = &t->leaves[number / DIGEST_GROUP];
	if (*group == NULL) {
		*group = alloc_new(&core->alloc, DIGEST_GROUP * sizeof **group);
	}
	struct leaf *leaf = *group ? leaf_at(t, number) : NULL;
	const uint32_t piece = leaf ? leaf->count / LEAF_PIECE : 0;
	if (leaf && piece == leaf->room) {
		const uint32_t room = leaf->room ? 2 * leaf->room : 1;
		uint32_t **more = alloc_resize(&core->alloc, leaf->pieces,
			leaf->room * sizeof *more, room * sizeof *more);
		if (more) {
			memset(more + leaf->room, 0, (room - leaf->room) * sizeof *more);
			leaf->pieces = more;
			leaf->room = room;
		}
	}
	if (leaf && piece < leaf->room && leaf->pieces[piece] == NULL) {
		leaf->pieces[piece] = alloc_new(&core->alloc, LEAF_PIECE_BYTES);
	}
	if (leaf == NULL || piece >= leaf->room || leaf->pieces[piece] == NULL) {
		COUNT(core, no_memory);
		return false;
	}
	leaf->pieces[piece][leaf->count % LEAF_PIECE] = (uint32_t)hash;
	key->node.own = leaf->count++;
	return true;
}

uint32_t digest_keys(const struct table *t, uint32_t leaf) {
	return t->leaves[leaf / DIGEST_GROUP] ? leaf_at(t, leaf)->count : 0;
}

struct key *digest_key(const struct table *t, uint32_t leaf, uint32_t index) {
	struct map_node *n = map_first(&t->keys, *leaf_element(leaf_at(t, leaf), index));
	for (;;) {
		CHECK(n);
		struct key *key = CONTAINER_OF(n, struct key, node);
		if (n->own == index && key_leaf(key) == leaf) {
			return key;
		}
		n = map_next(n);
	}
}

/* The last key takes the place of this one. Nobody asks for the keys of a table that is emptied. */
void digest_drop_key(struct core *core, struct key *key) {
	struct table *t = key_table(core, key);
	const bool asked_for = t != core->store.staging ||
		core->store.staging_use != STAGING_EMPTYING;
	const uint16_t number = key_leaf(key);
	struct leaf *leaf = leaf_at(t, number);
	const uint32_t index = key->node.own, last = leaf->count - 1;
	if (index != last && asked_for) {
		struct key *moved = digest_key(t, number, last);
		*leaf_element(leaf, index) = moved->node.hash;
		moved->node.own = index;
	}
	leaf->count = last;
	/* One piece is kept in reserve, so that keys that come and go do not make and free one each
	 * time. */
	if (last / LEAF_PIECE + 2 < leaf->room) {
		leaf_trim(core, leaf, last / LEAF_PIECE + 2);
	}
}

/* Adds the record to the digest of its leaf, or takes it out: the same is done for both. */
static void turn(struct core *core, const struct key *key, struct record *r) {
	struct table *t = key_table(core, key);
	const uint64_t hash = hash_of(core, r);
	leaf_at(t, key_leaf(key))->digest ^= hash;
	t->group_digests[key_leaf(key) / DIGEST_GROUP] ^= hash;
	r->digested = !r->digested;
}

void digest_join(struct core *core, const struct key *key, struct record *r) {
	CHECK(!r->digested);
	turn(core, key, r);
	if (key_index(key)) {
		index_token(key_index(key), r);
	}
}

void digest_leave(struct core *core, const struct key *key, struct record *r) {
	if (r->digested) {
		turn(core, key, r);
	}
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

bool digest_done(struct core *core, struct table *t, uint32_t groups) {
	for (uint32_t g = 0; g < DIGEST_GROUPS; g++) {
		if (t->leaves[g] && groups-- == 0) {
			return false;
		}
		for (uint32_t i = 0; t->leaves[g] && i < DIGEST_GROUP; i++) {
			struct leaf *leaf = &t->leaves[g][i];
			leaf_trim(core, leaf, 0);
			alloc_free(&core->alloc, leaf->pieces, leaf->room * sizeof *leaf->pieces);
		}
		alloc_free(&core->alloc, t->leaves[g], DIGEST_GROUP * sizeof *t->leaves[g]);
		t->leaves[g] = NULL;
	}
	return true;
}

void digest_check_key(const struct core *core, const struct table *t, const struct key *key,
	uint64_t sums[DIGEST_GROUPS]) {
	const uint16_t number = key_leaf(key);
	const struct leaf *leaf = leaf_at(t, number);
	CHECK(number == digest_leaf_of(key_name(key)) && key->node.own < leaf->count &&
		digest_key(t, number, key->node.own) == key);
	uint64_t sum = 0;
	/* This is done once for each leaf. */
	for (uint32_t i = 0; i < leaf->count && key->node.own == 0; i++) {
		for (const struct record *r = digest_key(t, number, i)->held; r; r = r->next) {
			CHECK(r->digested);
			sum ^= hash_of(core, r);
		}
	}
	CHECK(key->node.own > 0 || sum == leaf->digest);
	sums[number / DIGEST_GROUP] ^= sum;
}
