/* fuzz_member.h: what the fuzzer of a lying member draws from its bytes: the stage, what was said on it, and messages made from that. */
#ifndef PAWL_TESTS_FUZZ_MEMBER_H
#define PAWL_TESTS_FUZZ_MEMBER_H

#include "check.h"
#include "stage.h"

#define MEMBER_NODES 4 /* n1 to n3 are born together, n4 may be added; the last of the masters lies */
#define MEMBER_LIAR 2
#define MEMBER_LAST 3
#define MEMBER_SEEN 32
#define MEMBER_TEXT 2048
#define MEMBER_MESSAGES 3 /* that the liar puts into a frame of its own */

struct member_seen { /* a message that somebody sent */
	struct message m;
	uint8_t bytes[MEMBER_TEXT]; /* of its slices, one behind the other */
};

struct member {
	const uint8_t *data;
	size_t size;
	struct stage *s;
	struct member_seen seen[MEMBER_SEEN];
	uint32_t seen_count;
	struct id128 said_id[MEMBER_NODES]; /* by which identity the liar said hello to each of the others, */
	uint64_t said_boot[MEMBER_NODES];   /* and by which boot */
	uint8_t blob[BLOB_MAX];
	struct peer_decoder decoder;
	struct buffer bytes;
	uint32_t deliveries; /* of frames that are left: lies may keep others talking */
	bool cut;     /* no link is made anew */
	bool tampers; /* what the liar's own core says is altered as well */
};

static inline uint8_t member_next(struct member *w) {
	if (w->size == 0) {
		return 0;
	}
	w->size--;
	return *w->data++;
}

static inline uint32_t member_next_of(struct member *w, uint32_t bound) {
	return member_next(w) % bound;
}

/* ---- what was said ---- */

static inline void member_keep(struct member_seen *seen, struct slice *s, size_t *used) {
	size_t size = s->size < MEMBER_TEXT - *used ? s->size : MEMBER_TEXT - *used;
	if (size) {
		memcpy(seen->bytes + *used, s->data, size);
	}
	*s = slice_of(seen->bytes + *used, size);
	*used += size;
}

static inline void member_see(struct member *w, const struct message *m) {
	struct member_seen *seen = &w->seen[w->seen_count++ % MEMBER_SEEN];
	const uint32_t fields = message_fields(m->kind);
	struct slice *texts[] = { &seen->m.key, &seen->m.owner, &seen->m.identity, &seen->m.label, &seen->m.value, &seen->m.blob };
	const uint32_t bits[] = { F_KEY, F_OWNER, F_IDENTITY, F_LABEL, F_VALUE, F_BLOB };
	size_t used = 0;
	seen->m = *m;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		*texts[i] = fields & bits[i] ? *texts[i] : slice_of(NULL, 0);
		member_keep(seen, texts[i], &used);
	}
}

static inline const struct message *member_seen_one(struct member *w) {
	uint32_t back = member_next_of(w, MEMBER_SEEN);
	return &w->seen[(w->seen_count + MEMBER_SEEN - 1 - back) % MEMBER_SEEN].m;
}

/* ---- single fields ---- */

static inline bool member_runs(const struct member *w, uint32_t node) {
	return w->s->nodes[node].core != NULL;
}

static inline const struct core *member_core(const struct member *w) {
	return w->s->nodes[member_runs(w, 0) ? 0 : 1].core;
}

static inline uint64_t member_clock(const struct member *w) {
	const uint32_t node = member_runs(w, 0) ? 0 : 1;
	return member_runs(w, node) ? stage_status(w->s, node).clock : 0;
}

/* Mostly near the clock of those who do not lie, sometimes at the edge of what they allow, or beyond it. */
static inline uint64_t member_number(struct member *w) {
	const uint8_t b = member_next(w);
	const uint64_t clock = member_clock(w);
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

static inline uint64_t member_token(struct member *w) {
	const uint64_t n = member_number(w);
	return n < TOKEN_MAX ? n : TOKEN_MAX;
}

static inline uint64_t member_count(struct member *w, uint64_t n) {
	const uint8_t b = member_next(w);
	switch (b & 3) {
	case 0: return n + (b >> 2);
	case 1: return n - (b >> 2);
	case 2: return b >> 2;
	default: return UINT64_MAX >> (b >> 2);
	}
}

static inline uint64_t member_time(struct member *w) { /* microseconds */
	static const uint64_t times[] = { 0, 1, 1000, 100000, 500000, 1000000, 1000001, 2000000, 3600000000, UINT64_C(1) << 40, UINT64_MAX / 1000,
		UINT64_MAX / 2, UINT64_MAX };
	return times[member_next_of(w, sizeof times / sizeof *times)];
}

static inline struct slice member_key(struct member *w) {
	static const char *const keys[] = { "k", "l", "m", "n" };
	return slice_str(keys[member_next_of(w, 4)]);
}

static inline struct slice member_text(struct member *w) {
	static const char *const texts[] = { "", "a", "b", "value", "another value, a longer one" };
	return slice_str(texts[member_next_of(w, 5)]);
}

/* A node's, one that clients use, or one that was said. */
static inline struct id128 member_id(struct member *w) {
	const uint8_t b = member_next(w);
	const struct message *seen = &w->seen[(b >> 2) % MEMBER_SEEN].m;
	switch (b & 3) {
	case 0: return w->s->nodes[(b >> 2) % MEMBER_NODES].disk.node_id;
	case 1: return stage_lock((uint8_t)(1 + (b >> 2) % 4));
	case 2: return seen->by;
	default: return seen->lock_id;
	}
}

static inline struct ballot member_ballot(struct member *w, struct ballot b) {
	const uint8_t how = member_next(w);
	b.clock = how & 1 ? member_token(w) : b.clock;
	b.node = how & 2 ? id128_word(w->s->nodes[how >> 4 & 3].disk.node_id) : b.node;
	b.boot = how & 4 ? b.boot ^ BALLOT_FIRST : b.boot;
	b.boot = how & 8 ? (uint32_t)(how >> 6) : b.boot;
	return b;
}

static inline struct permits member_permits(struct member *w) {
	const uint8_t b = member_next(w);
	return (struct permits){ { b & 1 ? UINT64_MAX : b >> 1, b & 128 ? UINT64_MAX : 0 } };
}

static inline struct terms member_terms(struct member *w, struct terms t) {
	static const uint16_t of[] = { SHARE_EXCLUSIVE, SHARE_SHARED, 1, 2, 3, PERMITS_MAX };
	const uint8_t how = member_next(w);
	t.of = how & 1 ? of[(how >> 1) % 6] : t.of;
	t.count = how & 16 ? (uint16_t)member_next_of(w, 4) : t.count;
	t.priority = how & 32 ? (member_next(w) - 128) * (1 << 24) : t.priority;
	t.delay = how & 64 ? (span_ns)(member_time(w) % (uint64_t)(SPAN_MAX / SPAN_US)) * SPAN_US : t.delay;
	t.set = how & 128 ? member_permits(w) : t.set;
	t.bond = how & 8 ? member_next(w) : t.bond;
	return t;
}

/* ---- blobs ---- */

/* A configuration as somebody might have chosen it, or nobody. */
static inline struct slice member_config(struct member *w) {
	const uint8_t how = member_next(w), masters = member_next(w);
	struct config c = *core_config(member_core(w));
	c.before_count = how & 1 ? config_masters(&c) : c.before_count;
	memcpy(c.before, c.nodes, (how & 1 ? c.before_count : 0) * sizeof *c.before);
	c.epoch += how >> 1 & 3;
	c.max_lease += how & 8 ? SPAN_S : 0;
	c.cluster_id.b[0] ^= how & 128 && how & 64 ? 1 : 0;
	if (how & 16) {
		c.node_count = 0;
		for (uint32_t i = 0; i < 2 * MEMBER_NODES; i++) {
			const uint32_t node = i % MEMBER_NODES;
			if ((i < MEMBER_NODES) == (masters >> node & 1) && masters >> (4 + node) & 1) {
				struct config_node *n = &c.nodes[c.node_count++];
				*n = (struct config_node){ .id = how & 32 && node == MEMBER_LIAR ? w->s->nodes[0].disk.node_id : w->s->nodes[node].disk.node_id,
					.master = i < MEMBER_NODES };
				snprintf(n->name, sizeof n->name, "n%u", (unsigned)node + 1);
				snprintf(n->address, sizeof n->address, "n%u:7118", (unsigned)node + 1);
			}
		}
	}
	return slice_of(w->blob, config_encode(&c, w->blob));
}

static inline struct slice member_blob(struct member *w, struct slice from) {
	const uint8_t how = member_next(w);
	if (how & 1) {
		return member_config(w);
	}
	size_t size = from.size;
	if (size) {
		memmove(w->blob, from.data, size);
	}
	if (how & 2) { /* shorter, or longer */
		const size_t wanted = how & 4 ? (size_t)member_next(w) * 8 : size - (size ? member_next(w) % size : 0);
		memset(w->blob + size, 0x5a, wanted > size ? wanted - size : 0);
		size = wanted;
	}
	for (int i = how >> 4; i > 0 && size; i--) {
		const size_t at = member_next(w) % size;
		w->blob[at] = member_next(w);
	}
	return slice_of(w->blob, size);
}

/* ---- a message that is altered ---- */

static inline void member_alter_low(struct member *w, struct message *m, uint32_t field) {
	switch (field) {
	case F_ROUND: m->round = member_next_of(w, 2) ? member_seen_one(w)->round : member_count(w, m->round); break;
	case F_KEY: m->key = member_key(w); break;
	case F_LOCK_ID: m->lock_id = member_id(w); break;
	case F_ATTEMPT: m->attempt = member_next_of(w, 2) ? member_seen_one(w)->attempt : member_count(w, m->attempt); break;
	case F_TICKET: m->ticket = (struct ticket){ member_number(w), member_count(w, m->ticket.seq) }; break;
	case F_TOKEN: m->token = member_token(w); break;
	case F_NOTED: m->noted = member_token(w); break;
	case F_LEASE: m->lease_us = member_time(w); break;
	case F_LEFT: m->left_us = member_time(w); break;
	case F_OWNER: m->owner = member_text(w); break;
	case F_IDENTITY: m->identity = member_text(w); break;
	case F_VALUE: m->value = member_text(w); break;
	case F_BALLOT: m->ballot = member_ballot(w, m->ballot); break;
	default: m->prepared = member_ballot(w, m->prepared); break;
	}
}

static inline void member_alter_high(struct member *w, struct message *m, uint32_t field) {
	switch (field) {
	case F_FLAGS: m->flags ^= UINT32_C(1) << member_next_of(w, 26); break;
	case F_STATUS: m->status = (enum status)member_next_of(w, STATUS_MAX + 1); break;
	case F_BY: m->by = member_id(w); break;
	case F_PART:
		m->parts = (uint32_t)member_count(w, m->parts);
		m->part = (uint32_t)member_count(w, m->part);
		break;
	case F_BLOB: m->blob = member_blob(w, m->blob); break;
	case F_CLOCK: m->clock = member_token(w); break;
	case F_EPOCH: m->epoch = member_count(w, m->epoch); break;
	case F_NUMBER: m->number = member_count(w, m->number); break;
	case F_LOG: m->log = member_count(w, m->log); break;
	case F_ECHO: m->echo = member_count(w, m->echo); break;
	case F_TERMS: m->terms = member_terms(w, m->terms); break;
	case F_LABEL: m->label = member_text(w); break;
	case F_AGE: m->age_us = member_time(w); break;
	default: m->had = member_permits(w); break;
	}
}

static inline void member_alter(struct member *w, struct message *m) {
	const uint32_t fields = message_fields(m->kind), count = (uint32_t)__builtin_popcount(fields);
	uint32_t left = fields;
	for (uint32_t which = member_next_of(w, count); which > 0; which--) {
		left &= left - 1;
	}
	left &= -left;
	if (left < F_FLAGS) {
		member_alter_low(w, m, left);
	} else {
		member_alter_high(w, m, left);
	}
}

/* What a peer that keeps to the form may send: the codec CHECKs that nothing else is. */
static inline void member_trim(struct message *m) {
	const bool empty = m->kind == MESSAGE_WAITERS || m->kind == MESSAGE_WAITERS_ANSWER || m->kind == MESSAGE_FEED_NEWS;
	m->key = m->key.size == 0 && !empty ? slice_str("k") : m->key;
	m->key.size = m->key.size < KEY_MAX ? m->key.size : KEY_MAX;
	m->parts = m->part >= m->parts ? 0 : m->parts;
	m->part = m->parts ? m->part : 0;
	m->ballot.clock = m->ballot.clock < TOKEN_MAX ? m->ballot.clock : TOKEN_MAX;
	m->prepared.clock = m->prepared.clock < TOKEN_MAX ? m->prepared.clock : TOKEN_MAX;
	m->terms = terms_valid(&m->terms) ? m->terms : (struct terms){ .of = SHARE_EXCLUSIVE };
	m->owner.size = m->owner.size < OWNER_MAX ? m->owner.size : OWNER_MAX;
	m->identity.size = m->identity.size < IDENTITY_MAX ? m->identity.size : IDENTITY_MAX;
	m->label.size = m->label.size < LABEL_MAX ? m->label.size : LABEL_MAX;
}

/* One that was sent before, altered in up to three fields; its answer; or one of any kind with the fields of another. */
static inline struct message member_message(struct member *w) {
	const uint8_t how = member_next(w);
	struct message m = *member_seen_one(w);
	if (how & 4) { /* most answers have the number after their request's */
		m.kind = (enum message_kind)(m.kind + 1);
	}
	if (how & 8 || m.kind == 0 || (unsigned)m.kind > MESSAGE_KIND_MAX) {
		m.kind = (enum message_kind)(1 + member_next_of(w, MESSAGE_KIND_MAX));
	}
	for (int i = how & 3; i > 0; i--) {
		member_alter(w, &m);
	}
	member_trim(&m);
	return m;
}

#endif
