/* peer_message.c: encodes and decodes a message between peers. It has the fields of its kind in the
 * order of their bits. */
#include "peer_message.h"

#include "check.h"
#include "pack.h"
#include "pawl/error.h"

/* The most bytes of a message without its byte strings. The numbers, the ids and the heads of all
 * fields add up to 358 bytes. */
#define MESSAGE_FIXED_MAX 360

/* How many elements the array of a message has: one for its kind and one for each field, and the
 * further ones of the fields that have several. */
#define PEER_ELEMENTS(fields) \
	(uint32_t)(1 + __builtin_popcount(fields) + !!((fields) & F_TICKET) + \
		2 * !!((fields) & F_BALLOT) + 2 * !!((fields) & F_PREPARED) + \
		!!((fields) & F_PART) + \
		6 * !!((fields) & F_TERMS) + !!((fields) & F_HAD))

/* The functions marked so are compiled once for each kind, whose fields are a constant there. What
 * is left of them is the code for the fields that the kind has: a third of the instructions of one
 * function that asks for each of 28 fields whether the message has it. */
#define PEER_FOR_A_KIND static inline __attribute__((always_inline))

/* ---- encoding ---- */

uint8_t *peer_put_id(uint8_t *p, struct id128 id) {
	*p++ = 0xc4;
	*p++ = sizeof id.b;
	memcpy(p, id.b, sizeof id.b);
	return p + sizeof id.b;
}

static uint8_t *peer_put_ballot(uint8_t *p, struct ballot b) {
	p = pack_put_uint(p, b.clock);
	p = pack_put_uint(p, b.node);
	return pack_put_uint(p, b.boot);
}

/* The sign of the priority is its lowest bit, so that small numbers of either sign are short. Most
 * locks are exclusive and without any of the other terms, so that seven zeros are written. */
static uint8_t *peer_put_terms(uint8_t *p, const struct terms *t) {
	if (((uint32_t)t->of | t->count | (uint32_t)t->priority | t->binding) == 0 &&
		t->delay == 0 && permits_none(t->set)) {
		memset(p, 0, 7);
		return p + 7;
	}
	p = pack_put_uint(p, t->of);
	p = pack_put_uint(p, t->count);
	p = pack_put_uint(p,
		t->priority < 0
			? 2 * (uint64_t)(-(int64_t)t->priority) - 1
			: 2 * (uint64_t)t->priority);
	p = pack_put_uint(p, ((uint64_t)t->delay + 999) / 1000);
	p = pack_put_uint(p, t->set.w[0]);
	p = pack_put_uint(p, t->set.w[1]);
	return pack_put_uint(p, t->binding);
}

/* The first half of the fields, in the order of their bits. */
PEER_FOR_A_KIND uint8_t *peer_put_low(uint8_t *p, uint32_t fields, const struct message *m) {
	if (fields & F_ROUND) {
		p = pack_put_uint(p, m->round);
	}
	if (fields & F_KEY) {
		p = pack_put_bin(p, m->key);
	}
	if (fields & F_LOCK_ID) {
		p = peer_put_id(p, m->lock_id);
	}
	if (fields & F_ATTEMPT) {
		p = pack_put_uint(p, m->attempt);
	}
	if (fields & F_TICKET) {
		p = pack_put_uint(p, m->ticket.clock);
		p = pack_put_uint(p, m->ticket.seq);
	}
	if (fields & F_TOKEN) {
		p = pack_put_uint(p, m->token);
	}
	if (fields & F_NOTED) {
		p = pack_put_uint(p, m->noted);
	}
	if (fields & F_LEASE) {
		p = pack_put_uint(p, m->lease_us);
	}
	if (fields & F_LEFT) {
		p = pack_put_uint(p, m->left_us);
	}
	if (fields & F_OWNER) {
		p = pack_put_bin(p, m->owner);
	}
	if (fields & F_IDENTITY) {
		p = pack_put_bin(p, m->identity);
	}
	return p;
}

PEER_FOR_A_KIND uint8_t *peer_put_high(uint8_t *p, uint32_t fields, const struct message *m) {
	if (fields & F_VALUE) {
		p = pack_put_bin(p, m->value);
	}
	if (fields & F_BALLOT) {
		p = peer_put_ballot(p, m->ballot);
	}
	if (fields & F_PREPARED) {
		p = peer_put_ballot(p, m->prepared);
	}
	if (fields & F_FLAGS) {
		p = pack_put_uint(p, m->flags);
	}
	if (fields & F_STATUS) {
		p = pack_put_uint(p, (uint64_t)m->status);
	}
	if (fields & F_BY) {
		p = peer_put_id(p, m->by);
	}
	if (fields & F_PART) {
		p = pack_put_uint(p, m->part);
		p = pack_put_uint(p, m->parts);
	}
	if (fields & F_BLOB) {
		p = pack_put_bin(p, m->blob);
	}
	if (fields & F_CLOCK) {
		p = pack_put_uint(p, m->clock);
	}
	if (fields & F_EPOCH) {
		p = pack_put_uint(p, m->epoch);
	}
	if (fields & F_NUMBER) {
		p = pack_put_uint(p, m->number);
	}
	if (fields & F_LOG) {
		p = pack_put_uint(p, m->log);
	}
	if (fields & F_ECHO) {
		p = pack_put_uint(p, m->echo);
	}
	if (fields & F_TERMS) {
		p = peer_put_terms(p, &m->terms);
	}
	if (fields & F_LABEL) {
		p = pack_put_bin(p, m->label);
	}
	if (fields & F_AGE) {
		p = pack_put_uint(p, m->age_us);
	}
	if (fields & F_HAD) {
		p = pack_put_uint(p, m->had.w[0]);
		p = pack_put_uint(p, m->had.w[1]);
	}
	return p;
}

static bool peer_part_valid(uint32_t part, uint32_t parts) {
	return part < parts || (part == 0 && parts == 0);
}

/* Checks that every field is in the range that cluster/message_kinds.h gives it. Fields that the
 * kind does not have do not count. */
PEER_FOR_A_KIND bool peer_message_valid(uint32_t fields, const struct message *m) {
	bool empty = m->kind == MESSAGE_WAITERS || m->kind == MESSAGE_WAITERS_ANSWER ||
		m->kind == MESSAGE_FEED_WATCH_EVENT;
	return (!(fields & F_KEY) || (m->key.size >= (empty ? 0 : 1) && m->key.size <= KEY_MAX)) &&
		(!(fields & F_TOKEN) || m->token <= TOKEN_MAX) &&
		(!(fields & F_NOTED) || m->noted <= TOKEN_MAX) &&
		(!(fields & F_CLOCK) || m->clock <= TOKEN_MAX) &&
		(!(fields & F_OWNER) || m->owner.size <= OWNER_MAX) &&
		(!(fields & F_IDENTITY) || m->identity.size <= IDENTITY_MAX) &&
		(!(fields & F_VALUE) || m->value.size <= VALUE_MAX_HARD) &&
		(!(fields & F_BLOB) || m->blob.size <= BLOB_MAX) &&
		(!(fields & F_BALLOT) || m->ballot.clock <= TOKEN_MAX) &&
		(!(fields & F_PREPARED) || m->prepared.clock <= TOKEN_MAX) &&
		(!(fields & F_FLAGS) || (m->flags & ~(uint32_t)MESSAGE_FLAGS) == 0) &&
		(!(fields & F_STATUS) || (uint64_t)m->status <= STATUS_MAX) &&
		(!(fields & F_PART) || peer_part_valid(m->part, m->parts)) &&
		(!(fields & F_TERMS) || terms_valid(&m->terms)) &&
		(!(fields & F_LABEL) || m->label.size <= LABEL_MAX);
}

PEER_FOR_A_KIND size_t peer_message_bytes_max(uint32_t fields, const struct message *m) {
	size_t bytes = MESSAGE_FIXED_MAX;
	bytes += fields & F_KEY ? m->key.size : 0;
	bytes += fields & F_OWNER ? m->owner.size : 0;
	bytes += fields & F_IDENTITY ? m->identity.size : 0;
	bytes += fields & F_VALUE ? m->value.size : 0;
	bytes += fields & F_BLOB ? m->blob.size : 0;
	bytes += fields & F_LABEL ? m->label.size : 0;
	return bytes;
}

/* Appends a message of a kind that has these fields, and returns as peer_message_encode does. */
PEER_FOR_A_KIND int peer_encode(const struct message *m, uint32_t fields, struct buffer *out) {
	CHECK(peer_message_valid(fields, m));
	const int error = buffer_room(out, peer_message_bytes_max(fields, m));
	if (error) {
		return error;
	}
	uint8_t *start = out->data + out->size;
	uint8_t *p = pack_put_array(start, PEER_ELEMENTS(fields));
	p = pack_put_uint(p, (uint64_t)m->kind);
	p = peer_put_low(p, fields, m);
	p = peer_put_high(p, fields, m);
	buffer_commit(out, (size_t)(p - start));
	return 0;
}

/* ---- decoding ---- */

struct id128 peer_take_id(struct unpack *u) {
	struct id128 id = { { 0 } };
	if (!u->bad && unpack_left(u) >= 2 + sizeof id.b && u->p[0] == 0xc4 &&
		u->p[1] == sizeof id.b) {
		memcpy(id.b, u->p + 2, sizeof id.b);
		u->p += 2 + sizeof id.b;
		return id;
	}
	struct slice s = unpack_bin(u, sizeof id.b);
	if (s.size == sizeof id.b) {
		memcpy(id.b, s.data, sizeof id.b);
	} else {
		u->bad = true;
	}
	return id;
}

/* *b is all zero before. */
static void peer_take_ballot(struct unpack *u, struct ballot *b) {
	static const uint8_t none[3] = { 0 };
	if (!u->bad && unpack_left(u) >= sizeof none && memcmp(u->p, none, sizeof none) == 0) {
		u->p += sizeof none;
		return;
	}
	b->clock = unpack_uint(u, TOKEN_MAX);
	b->node = unpack_uint(u, UINT64_MAX);
	b->boot = (uint32_t)unpack_uint(u, UINT32_MAX);
}

/* *t is all zero before. Most locks are exclusive and without any of the other terms, so that seven
 * zeros stand here. */
static void peer_take_terms(struct unpack *u, struct terms *t) {
	static const uint8_t plain[7] = { 0 };
	if (!u->bad && unpack_left(u) >= sizeof plain && memcmp(u->p, plain, sizeof plain) == 0) {
		u->p += sizeof plain;
		return;
	}
	t->of = (uint16_t)unpack_uint(u, UINT16_MAX);
	t->count = (uint16_t)unpack_uint(u, UINT16_MAX);
	uint64_t priority = unpack_uint(u, UINT32_MAX);
	t->priority =
		priority & 1 ? (int32_t)(-(int64_t)(priority / 2) - 1) : (int32_t)(priority / 2);
	t->delay = (span_ns)unpack_uint(u, SPAN_MAX / SPAN_US) * SPAN_US;
	t->set.w[0] = unpack_uint(u, UINT64_MAX);
	t->set.w[1] = unpack_uint(u, UINT64_MAX);
	t->binding = (uint32_t)unpack_uint(u, UINT32_MAX);
}

PEER_FOR_A_KIND void peer_take_low(struct unpack *u, uint32_t fields,
	struct message *m) {
	if (fields & F_ROUND) {
		m->round = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_KEY) {
		m->key = unpack_bin(u, KEY_MAX);
	}
	if (fields & F_LOCK_ID) {
		m->lock_id = peer_take_id(u);
	}
	if (fields & F_ATTEMPT) {
		m->attempt = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_TICKET) {
		m->ticket.clock = unpack_uint(u, UINT64_MAX);
		m->ticket.seq = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_TOKEN) {
		m->token = unpack_uint(u, TOKEN_MAX);
	}
	if (fields & F_NOTED) {
		m->noted = unpack_uint(u, TOKEN_MAX);
	}
	if (fields & F_LEASE) {
		m->lease_us = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_LEFT) {
		m->left_us = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_OWNER) {
		m->owner = unpack_bin(u, OWNER_MAX);
	}
	if (fields & F_IDENTITY) {
		m->identity = unpack_bin(u, IDENTITY_MAX);
	}
}

PEER_FOR_A_KIND void peer_take_high(struct unpack *u, uint32_t fields,
	struct message *m) {
	if (fields & F_VALUE) {
		m->value = unpack_bin(u, VALUE_MAX_HARD);
	}
	if (fields & F_BALLOT) {
		peer_take_ballot(u, &m->ballot);
	}
	if (fields & F_PREPARED) {
		peer_take_ballot(u, &m->prepared);
	}
	if (fields & F_FLAGS) {
		m->flags = (uint32_t)unpack_uint(u, MESSAGE_FLAGS);
	}
	if (fields & F_STATUS) {
		m->status = (enum status)unpack_uint(u, STATUS_MAX);
	}
	if (fields & F_BY) {
		m->by = peer_take_id(u);
	}
	if (fields & F_PART) {
		m->part = (uint32_t)unpack_uint(u, UINT32_MAX);
		m->parts = (uint32_t)unpack_uint(u, UINT32_MAX);
	}
	if (fields & F_BLOB) {
		m->blob = unpack_bin(u, BLOB_MAX);
	}
	if (fields & F_CLOCK) {
		m->clock = unpack_uint(u, TOKEN_MAX);
	}
	if (fields & F_EPOCH) {
		m->epoch = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_NUMBER) {
		m->number = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_LOG) {
		m->log = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_ECHO) {
		m->echo = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_TERMS) {
		peer_take_terms(u, &m->terms);
	}
	if (fields & F_LABEL) {
		m->label = unpack_bin(u, LABEL_MAX);
	}
	if (fields & F_AGE) {
		m->age_us = unpack_uint(u, UINT64_MAX);
	}
	if (fields & F_HAD) {
		m->had.w[0] = unpack_uint(u, UINT64_MAX);
		m->had.w[1] = unpack_uint(u, UINT64_MAX);
	}
}

/* Reads what follows the kind in a message of `elements`. */
PEER_FOR_A_KIND void peer_take(struct unpack *u, uint32_t elements, uint32_t fields,
	struct message *m) {
	if (elements != PEER_ELEMENTS(fields)) {
		u->bad = true;
		return;
	}
	peer_take_low(u, fields, m);
	peer_take_high(u, fields, m);
	u->bad = u->bad || !peer_message_valid(fields, m);
}

/* ---- by kind ---- */

#define PEER_FUNCTIONS(name, number, room, handler, epochs, fields) \
	static int peer_encode_##name(const struct message *m, struct buffer *out) { \
		return peer_encode(m, fields, out); \
	} \
	static void peer_take_##name(struct unpack *u, uint32_t elements, struct message *m) { \
		peer_take(u, elements, fields, m); \
	}
MESSAGE_TABLE(PEER_FUNCTIONS)
#undef PEER_FUNCTIONS

/* The functions of each kind; NULL for a number that is no kind. */
static const struct peer_kind {
	int (*encode)(const struct message *m, struct buffer *out);
	void (*take)(struct unpack *u, uint32_t elements, struct message *m);
} peer_kinds[MESSAGE_KIND_MAX + 1] = {
#define PEER_KIND(name, number, room, handler, epochs, fields) \
	[number] = { peer_encode_##name, peer_take_##name },
	MESSAGE_TABLE(PEER_KIND)
#undef PEER_KIND
};

int peer_message_encode(const struct message *m, struct buffer *out) {
	CHECK((unsigned)m->kind <= MESSAGE_KIND_MAX && peer_kinds[m->kind].encode);
	return peer_kinds[m->kind].encode(m, out);
}

void peer_message_take(struct unpack *u, struct message *m) {
	message_clear(m);
	uint32_t elements = unpack_array(u);
	uint64_t number = unpack_uint(u, MESSAGE_KIND_MAX);
	if (u->bad || !peer_kinds[number].take) {
		u->bad = true;
		return;
	}
	m->kind = (enum message_kind)number;
	peer_kinds[number].take(u, elements, m);
}
