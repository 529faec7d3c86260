/* sync_list.c: the records of a few leaves, as a master lists them for another master that
 * compares: name, lock_id, token, ballot of the value, bar, and what the record excludes, but no
 * values. */
#include "repair.h"
#include "sync.h"

/* Bytes of a listed record without its name: lock_id 16, token 8, ballot 8 + 8 + 4, flags 1, size
 * of the name 2, terms 2 + 8 + 8 + 4. */
#define FIXED 69

static size_t put_record(const struct core *core, uint8_t *p, const struct key *key,
	const struct record *r) {
	const struct ballot wrote = record_wrote(core, r);
	memcpy(p, r->lock_id.b, 16);
	put_u64(p + 16, r->token);
	put_u64(p + 24, wrote.clock);
	put_u64(p + 32, wrote.node);
	put_u32(p + 40, wrote.boot);
	p[44] = r->barred;
	put_u16(p + 45, key->size);
	const struct permits set = record_set(r);
	put_u16(p + 47, r->of);
	put_u64(p + 49, set.w[0]);
	put_u64(p + 57, set.w[1]);
	put_u32(p + 65, record_binding(r));
	memcpy(p + FIXED, key->name, key->size);
	return FIXED + (size_t)key->size;
}

static void send_list(struct core *core, uint32_t to, uint64_t round, size_t size,
	enum sync_list_end end) {
	struct message m = { .kind = MESSAGE_SYNC_KEYS, .round = round, .number = end,
		.blob = slice_of(core->repair.sync->scratch, size) };
	out_send(core, to, &m);
}

/* A list on its way to the master that has asked. */
struct listing {
	uint32_t to;
	uint64_t round;
	size_t size;
	/* How many records it may still have. */
	uint32_t left;
	bool cut;
};

static void list_key(struct core *core, struct listing *l, const struct key *key) {
	for (const struct record *r = key->held; r; r = r->next) {
		if (l->left == 0) {
			l->cut = true;
			return;
		}
		if (l->size + FIXED + key->size > SYNC_SCRATCH) {
			send_list(core, l->to, l->round, l->size, SYNC_LIST_GOES_ON);
			l->size = 0;
		}
		l->size += put_record(core, core->repair.sync->scratch + l->size, key, r);
		l->left--;
	}
}

/* Returns with which key of a leaf a list begins that may have `most` records (section 7). Each
 * exchange has another place, by its number. Masters whose leaf has about as many keys begin at the
 * same one, so that a record is in the lists of q masters at the same time. */
static uint32_t first_key(uint32_t keys, uint32_t most, uint64_t round) {
	const uint32_t step = keys > most / 2 ? most / 2 : 1, places = (keys + step - 1) / step;
	return (uint32_t)(hash_fold(round, UINT64_C(0x9e3779b97f4a7c15)) % places) * step;
}

static void list_leaf(struct core *core, struct listing *l, uint32_t leaf, uint32_t most) {
	const struct table *t = table_live(core);
	const uint32_t keys = leaf < DIGEST_LEAVES ? digest_keys(t, leaf) : 0,
		first = keys > 0 ? first_key(keys, most, l->round) : 0;
	for (uint32_t i = 0; i < keys && !l->cut; i++) {
		list_key(core, l, digest_key(t, leaf, (first + i) % keys));
	}
}

/* The lists of q masters together have no more records than are kept. If there are more to be
 * listed, the list says so, so that nothing is taken for absent. Nobody asks for more than
 * SYNC_LEAVES_MAX leaves. */
void sync_list_leaves(struct core *core, uint32_t to, uint64_t round, struct slice leaves) {
	if (!sync_open(core)) {
		return;
	}
	const uint32_t most = SYNC_SEEN_MAX / (core->quorum > 2 ? core->quorum : 2),
		count = (uint32_t)(leaves.size / 2 < SYNC_LEAVES_MAX
			? leaves.size / 2 : SYNC_LEAVES_MAX);
	struct listing l = { .to = to, .round = round, .left = most };
	for (uint32_t i = 0; i < count && !l.cut; i++) {
		const uint8_t *p = leaves.data + 2 * (size_t)((round + i) % count);
		list_leaf(core, &l, get_u16(p), most);
	}
	send_list(core, to, round, l.size, l.cut ? SYNC_LIST_CUT : SYNC_LIST_WHOLE);
}

static bool room_for_seen(struct core *core, struct sync *s) {
	if (s->seen_count < s->seen_capacity) {
		return true;
	}
	uint32_t wanted = s->seen_capacity ? 2 * s->seen_capacity : 64;
	void *p = wanted <= SYNC_SEEN_MAX
		? alloc_resize(&core->alloc, s->seen, s->seen_capacity * sizeof *s->seen,
			wanted * sizeof *s->seen)
		: NULL;
	if (p == NULL) {
		return false;
	}
	s->seen = p;
	s->seen_capacity = wanted;
	return true;
}

bool sync_take_list(struct core *core, uint32_t from, struct slice list) {
	struct sync *s = core->repair.sync;
	const uint8_t *p = list.data;
	for (size_t left = list.size, each; left > 0; left -= each, p += each) {
		uint32_t name = left >= FIXED ? get_u16(p + 45) : 0;
		each = FIXED + (size_t)name;
		if (name == 0 || name > KEY_MAX || each > left || !room_for_seen(core, s)) {
			return false;
		}
		struct sync_seen *seen = &s->seen[s->seen_count];
		*seen = (struct sync_seen){ .token = load_le64(p + 16),
			.wrote = { load_le64(p + 24), load_le64(p + 32), get_u32(p + 40) },
			.of = (uint16_t)get_u16(p + 47),
			.set = { { load_le64(p + 49), load_le64(p + 57) } },
			.binding = get_u32(p + 65),
			.from = (uint8_t)from, .barred = p[44] != 0 };
		memcpy(seen->lock_id.b, p, 16);
		if (arena_copy(&s->names, slice_of(p + FIXED, name), &seen->key) != 0) {
			return false;
		}
		s->seen_count++;
	}
	return true;
}
