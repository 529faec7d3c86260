/* lies.h: what a member that lies may say (docs/guarantees.md, A node that lies): messages that
 * keep to the form, made of those that were said before. The fuzzer of a member (tests/fuzz)
 * and the simulator's lying master (tests/sim) use this. They bring the randomness, what there
 * is to lie about, and the links. */
#ifndef PAWL_TESTS_LIES_H
#define PAWL_TESTS_LIES_H

#include <stdio.h>

#include "config.h"
#include "message.h"

#define LIES_NODES 16
#define LIES_SEEN 32
#define LIES_TEXT 2048
#define LIES_KEYS 4
#define LIES_LOCKS 4

struct lies_seen { /* a message that somebody sent */
	struct message m;
	uint8_t bytes[LIES_TEXT]; /* of its slices, one behind the other */
};

struct lies {
	uint8_t (*next)(void *ctx); /* a byte that decides */
	void *ctx;
	struct lies_seen seen[LIES_SEEN];
	uint32_t seen_count;
	uint32_t nodes, liar;       /* n1, n2, ...: index 0, 1, ... */
	struct id128 ids[LIES_NODES];
	struct id128 locks[LIES_LOCKS]; /* that clients use */
	const char *keys[LIES_KEYS];
	const struct config *config; /* of those who do not lie */
	uint64_t clock;
	uint8_t blob[BLOB_MAX];
};

static inline uint8_t lies_next(struct lies *w) {
	return w->next(w->ctx);
}

static inline uint32_t lies_next_of(struct lies *w, uint32_t bound) {
	return lies_next(w) % bound;
}

/* ---- what was said ---- */

static inline void lies_keep(struct lies_seen *seen, struct slice *s, size_t *used) {
	size_t size = s->size < LIES_TEXT - *used ? s->size : LIES_TEXT - *used;
	if (size) {
		memcpy(seen->bytes + *used, s->data, size);
	}
	*s = slice_of(seen->bytes + *used, size);
	*used += size;
}

static inline void lies_see(struct lies *w, const struct message *m) {
	struct lies_seen *seen = &w->seen[w->seen_count++ % LIES_SEEN];
	const uint32_t fields = message_fields(m->kind);
	struct slice *texts[] = { &seen->m.key, &seen->m.owner, &seen->m.identity, &seen->m.label,
		&seen->m.value, &seen->m.blob };
	const uint32_t bits[] = { F_KEY, F_OWNER, F_IDENTITY, F_LABEL, F_VALUE, F_BLOB };
	size_t used = 0;
	seen->m = *m;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		*texts[i] = fields & bits[i] ? *texts[i] : slice_of(NULL, 0);
		lies_keep(seen, texts[i], &used);
	}
}

static inline const struct message *lies_seen_one(struct lies *w) {
	uint32_t back = lies_next_of(w, LIES_SEEN);
	return &w->seen[(w->seen_count + LIES_SEEN - 1 - back) % LIES_SEEN].m;
}

/* ---- single fields ---- */

/* Returns a number that is mostly near the clock of those who do not lie, and sometimes at the edge
 * of what they allow, or beyond it. */
static inline uint64_t lies_number(struct lies *w) {
	const uint8_t b = lies_next(w);
	const uint64_t clock = w->clock;
	switch (b & 7) {
	case 0: return b >> 3;
	case 1: return TOKEN_MAX - (b >> 3);
	case 2: return clock + CLOCK_JUMP_MAX + (b >> 3);
	case 3: return clock + CLOCK_JUMP_MAX - 1 - (b >> 3);
	case 4: return clock + (UINT64_C(1) << (b >> 3));
	case 5: return clock < 32 ? 0 : clock - (b >> 3);
	default: return clock + (b >> 3);
	}
}

static inline uint64_t lies_token(struct lies *w) {
	const uint64_t n = lies_number(w);
	return n < TOKEN_MAX ? n : TOKEN_MAX;
}

static inline uint64_t lies_count(struct lies *w, uint64_t n) {
	const uint8_t b = lies_next(w);
	switch (b & 3) {
	case 0: return n + (b >> 2);
	case 1: return n - (b >> 2);
	case 2: return b >> 2;
	default: return UINT64_MAX >> (b >> 2);
	}
}

/* Returns a time in microseconds. */
static inline uint64_t lies_time(struct lies *w) {
	static const uint64_t times[] = { 0, 1, 1000, 100000, 500000, 1000000, 1000001, 2000000,
		3600000000, UINT64_C(1) << 40, UINT64_MAX / 1000, UINT64_MAX / 2, UINT64_MAX };
	return times[lies_next_of(w, sizeof times / sizeof *times)];
}

static inline struct slice lies_key(struct lies *w) {
	return slice_str(w->keys[lies_next_of(w, LIES_KEYS)]);
}

static inline struct slice lies_text(struct lies *w) {
	static const char *const texts[] = { "", "a", "b", "value", "another value, a longer one" };
	return slice_str(texts[lies_next_of(w, 5)]);
}

/* A node's, one that clients use, or one that was said. */
static inline struct id128 lies_id(struct lies *w) {
	const uint8_t b = lies_next(w);
	const struct message *seen = &w->seen[(b >> 2) % LIES_SEEN].m;
	switch (b & 3) {
	case 0: return w->ids[(b >> 2) % w->nodes];
	case 1: return w->locks[(b >> 2) % LIES_LOCKS];
	case 2: return seen->by;
	default: return seen->lock_id;
	}
}

static inline struct ballot lies_ballot(struct lies *w, struct ballot b) {
	const uint8_t how = lies_next(w);
	b.clock = how & 1 ? lies_token(w) : b.clock;
	b.node = how & 2 ? id128_word(w->ids[(how >> 4 & 3) % w->nodes]) : b.node;
	b.boot = how & 4 ? b.boot ^ BALLOT_FIRST : b.boot;
	b.boot = how & 8 ? (uint32_t)(how >> 6) : b.boot;
	return b;
}

static inline struct permits lies_permits(struct lies *w) {
	const uint8_t b = lies_next(w);
	return (struct permits){ { b & 1 ? UINT64_MAX : b >> 1, b & 128 ? UINT64_MAX : 0 } };
}

static inline struct terms lies_terms(struct lies *w, struct terms t) {
	static const uint16_t of[] = { MODE_EXCLUSIVE, MODE_SHARED, 1, 2, 3, PERMITS_MAX };
	const uint8_t how = lies_next(w);
	t.of = how & 1 ? of[(how >> 1) % 6] : t.of;
	t.count = how & 16 ? (uint16_t)lies_next_of(w, 4) : t.count;
	t.priority = how & 32 ? (lies_next(w) - 128) * (1 << 24) : t.priority;
	t.delay = how & 64 ? (span_ns)(lies_time(w) % (uint64_t)(SPAN_MAX / SPAN_US)) * SPAN_US
		: t.delay;
	t.set = how & 128 ? lies_permits(w) : t.set;
	t.binding = how & 8 ? lies_next(w) : t.binding;
	return t;
}

/* ---- blobs ---- */

/* A configuration as somebody might have chosen it, or nobody. */
static inline struct slice lies_config(struct lies *w) {
	const uint8_t how = lies_next(w), masters = lies_next(w);
	struct config c = *w->config;
	c.previous_master_count = how & 1 ? config_masters(&c) : c.previous_master_count;
	memcpy(c.previous_masters, c.nodes,
		(how & 1 ? c.previous_master_count : 0) * sizeof *c.previous_masters);
	c.epoch += how >> 1 & 3;
	c.max_lease += how & 8 ? SPAN_S : 0;
	c.cluster_id.b[0] ^= how & 128 && how & 64 ? 1 : 0;
	if (how & 16) {
		/* There are bits for four nodes. */
		const uint32_t nodes = w->nodes < 4 ? w->nodes : 4;
		c.node_count = 0;
		for (uint32_t i = 0; i < 2 * nodes; i++) {
			const uint32_t node = i % nodes;
			if ((i < nodes) == (masters >> node & 1) && masters >> (4 + node) & 1) {
				struct config_node *n = &c.nodes[c.node_count++];
				*n = (struct config_node){ .master = i < nodes, .id = how & 32 &&
					node == w->liar ? w->ids[0] : w->ids[node] };
				snprintf(n->name, sizeof n->name, "n%u", (unsigned)node + 1);
				snprintf(n->address, sizeof n->address, "n%u:7118",
					(unsigned)node + 1);
			}
		}
	}
	return slice_of(w->blob, config_encode(&c, w->blob));
}

static inline struct slice lies_blob(struct lies *w, struct slice from) {
	const uint8_t how = lies_next(w);
	if (how & 1) {
		return lies_config(w);
	}
	size_t size = from.size;
	if (size) {
		memmove(w->blob, from.data, size);
	}
	if (how & 2) { /* shorter, or longer */
		const size_t wanted = how & 4 ? (size_t)lies_next(w) * 8
			: size - (size ? lies_next(w) % size : 0);
		memset(w->blob + size, 0x5a, wanted > size ? wanted - size : 0);
		size = wanted;
	}
	for (int i = how >> 4; i > 0 && size; i--) {
		const size_t at = lies_next(w) % size;
		w->blob[at] = lies_next(w);
	}
	return slice_of(w->blob, size);
}

/* ---- a message that is altered ---- */

static inline void lies_alter_low(struct lies *w, struct message *m, uint32_t field) {
	switch (field) {
	case F_ROUND:
		m->round = lies_next_of(w, 2) ? lies_seen_one(w)->round : lies_count(w, m->round);
		break;
	case F_KEY: m->key = lies_key(w); break;
	case F_LOCK_ID: m->lock_id = lies_id(w); break;
	case F_ATTEMPT:
		m->attempt = lies_next_of(w, 2) ? lies_seen_one(w)->attempt
			: lies_count(w, m->attempt);
		break;
	case F_TICKET:
		m->ticket = (struct ticket){ lies_number(w), lies_count(w, m->ticket.seq) };
		break;
	case F_TOKEN: m->token = lies_token(w); break;
	case F_NOTED: m->noted = lies_token(w); break;
	case F_LEASE: m->lease_us = lies_time(w); break;
	case F_LEFT: m->left_us = lies_time(w); break;
	case F_OWNER: m->owner = lies_text(w); break;
	case F_IDENTITY: m->identity = lies_text(w); break;
	case F_VALUE: m->value = lies_text(w); break;
	case F_BALLOT: m->ballot = lies_ballot(w, m->ballot); break;
	default: m->prepared = lies_ballot(w, m->prepared); break;
	}
}

static inline void lies_alter_high(struct lies *w, struct message *m, uint32_t field) {
	switch (field) {
	case F_FLAGS: m->flags ^= UINT32_C(1) << lies_next_of(w, 26); break;
	case F_STATUS: m->status = (enum status)lies_next_of(w, STATUS_MAX + 1); break;
	case F_BY: m->by = lies_id(w); break;
	case F_PART:
		m->parts = (uint32_t)lies_count(w, m->parts);
		m->part = (uint32_t)lies_count(w, m->part);
		break;
	case F_BLOB: m->blob = lies_blob(w, m->blob); break;
	case F_CLOCK: m->clock = lies_token(w); break;
	case F_EPOCH: m->epoch = lies_count(w, m->epoch); break;
	case F_NUMBER: m->number = lies_count(w, m->number); break;
	case F_LOG: m->log = lies_count(w, m->log); break;
	case F_ECHO: m->echo = lies_count(w, m->echo); break;
	case F_TERMS: m->terms = lies_terms(w, m->terms); break;
	case F_LABEL: m->label = lies_text(w); break;
	case F_AGE: m->age_us = lies_time(w); break;
	default: m->had = lies_permits(w); break;
	}
}

static inline void lies_alter(struct lies *w, struct message *m) {
	const uint32_t fields = message_fields(m->kind),
		count = (uint32_t)__builtin_popcount(fields);
	uint32_t left = fields;
	for (uint32_t which = lies_next_of(w, count); which > 0; which--) {
		left &= left - 1;
	}
	left &= -left;
	if (left < F_FLAGS) {
		lies_alter_low(w, m, left);
	} else {
		lies_alter_high(w, m, left);
	}
}

/* What a peer that keeps to the form may send: the codec CHECKs that nothing else is. */
static inline void lies_trim(struct message *m) {
	const bool empty = m->kind == MESSAGE_WAITERS || m->kind == MESSAGE_WAITERS_ANSWER ||
		m->kind == MESSAGE_FEED_WATCH_EVENT;
	m->key = m->key.size == 0 && !empty ? slice_str("k") : m->key;
	m->key.size = m->key.size < KEY_MAX ? m->key.size : KEY_MAX;
	m->parts = m->part >= m->parts ? 0 : m->parts;
	m->part = m->parts ? m->part : 0;
	m->ballot.clock = m->ballot.clock < TOKEN_MAX ? m->ballot.clock : TOKEN_MAX;
	m->prepared.clock = m->prepared.clock < TOKEN_MAX ? m->prepared.clock : TOKEN_MAX;
	m->terms = terms_valid(&m->terms) ? m->terms : (struct terms){ .of = MODE_EXCLUSIVE };
	m->owner.size = m->owner.size < OWNER_MAX ? m->owner.size : OWNER_MAX;
	m->identity.size = m->identity.size < IDENTITY_MAX ? m->identity.size : IDENTITY_MAX;
	m->label.size = m->label.size < LABEL_MAX ? m->label.size : LABEL_MAX;
}

/* Returns a message that was sent before, altered in up to three fields; its answer; or one of any
 * kind with the fields of another. */
static inline struct message lies_message(struct lies *w) {
	const uint8_t how = lies_next(w);
	struct message m = *lies_seen_one(w);
	if (how & 4) { /* most answers have the number after their request's */
		m.kind = (enum message_kind)(m.kind + 1);
	}
	if (how & 8 || m.kind == 0 || (unsigned)m.kind > MESSAGE_KIND_MAX) {
		m.kind = (enum message_kind)(1 + lies_next_of(w, MESSAGE_KIND_MAX));
	}
	for (int i = how & 3; i > 0; i--) {
		lies_alter(w, &m);
	}
	lies_trim(&m);
	return m;
}

#endif
