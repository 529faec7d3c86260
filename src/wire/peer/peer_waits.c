/* peer_waits.c: encodes and decodes what nodes ask and tell each other about clients that wait. */
#include "peer_waits.h"

#include "pack.h"
#include "pawl/error.h"
#include "peer.h"
#include "unpack.h"

#define WAITS_KEY "waits"
/* Facts of each sort may take this much of a packet; the rest is for the other sort and the
 * heads. */
#define FACTS_BYTES_MAX (WAITS_BYTES_MAX / 2 - 256)

/* ---- encoding ---- */

static size_t packet_begin(struct pack *k, struct buffer *out, enum waits_kind kind,
	uint64_t round, uint32_t items) {
	static const uint8_t prefix[PEER_PREFIX_BYTES];
	size_t start = out->size;
	pack_begin(k, out);
	pack_raw(k, slice_of(prefix, sizeof prefix));
	pack_map(k, 1);
	pack_text(k, WAITS_KEY);
	pack_array(k, 2 + items);
	pack_uint(k, kind);
	pack_uint(k, round);
	return start;
}

static int packet_end(struct pack *k, struct buffer *out, size_t start) {
	int error = pack_end(k);
	if (!error) {
		pack_put_be(out->data + start, out->size - start - PEER_PREFIX_BYTES,
			PEER_PREFIX_BYTES);
	}
	return error;
}

static void put_id(struct pack *k, struct id128 id) {
	pack_bin(k, slice_of(id.b, sizeof id.b));
}

int waits_ask_encode(uint64_t round, const struct waits_ask *ask, struct buffer *out) {
	struct pack k;
	size_t start = packet_begin(&k, out, WAITS_ASK, round, 2);
	pack_array(&k, ask->key_count);
	for (uint32_t i = 0; i < ask->key_count; i++) {
		pack_bin(&k, ask->keys[i]);
	}
	pack_array(&k, ask->party_count);
	for (uint32_t i = 0; i < ask->party_count; i++) {
		put_id(&k, ask->parties[i]);
	}
	return packet_end(&k, out, start);
}

int waits_ring_encode(uint64_t number, const struct waits_ring *ring, struct buffer *out) {
	struct pack k;
	size_t start = packet_begin(&k, out, WAITS_RING, number, 2);
	pack_bool(&k, ring->refused);
	pack_array(&k, ring->count);
	for (uint32_t i = 0; i < ring->count; i++) {
		pack_array(&k, 3);
		pack_bin(&k, ring->members[i].owner);
		pack_bin(&k, ring->members[i].key);
		pack_str(&k, ring->members[i].node);
	}
	return packet_end(&k, out, start);
}

void waits_answer_init(struct waits_answer *a, const struct allocator *alloc) {
	*a = (struct waits_answer){ .cut = false };
	buffer_init(&a->waits, alloc, FACTS_BYTES_MAX);
	buffer_init(&a->holds, alloc, FACTS_BYTES_MAX);
}

void waits_answer_done(struct waits_answer *a) {
	buffer_done(&a->waits);
	buffer_done(&a->holds);
}

void waits_answer_wait(struct waits_answer *a, const struct wait_fact *fact) {
	struct pack k;
	pack_begin(&k, &a->waits);
	pack_array(&k, 9);
	put_id(&k, fact->party);
	put_id(&k, fact->lock_id);
	pack_bin(&k, fact->key);
	pack_uint(&k, fact->of);
	pack_uint(&k, fact->count);
	pack_bin(&k, fact->owner);
	pack_uint(&k, fact->request);
	pack_uint(&k, fact->since_ms);
	pack_bool(&k, fact->free);
	if (pack_end(&k)) {
		a->cut = true;
	} else {
		a->wait_count++;
	}
}

void waits_answer_hold(struct waits_answer *a, const struct hold_fact *fact) {
	struct pack k;
	pack_begin(&k, &a->holds);
	pack_array(&k, 5);
	put_id(&k, fact->party);
	put_id(&k, fact->lock_id);
	pack_bin(&k, fact->key);
	pack_uint(&k, fact->of);
	pack_uint(&k, fact->count);
	if (pack_end(&k)) {
		a->cut = true;
	} else {
		a->hold_count++;
	}
}

int waits_answer_encode(uint64_t round, const struct waits_answer *a, struct buffer *out) {
	struct pack k;
	size_t start = packet_begin(&k, out, WAITS_FACTS, round, 3);
	pack_bool(&k, a->cut);
	pack_array(&k, a->wait_count);
	pack_raw(&k, buffer_slice(&a->waits));
	pack_array(&k, a->hold_count);
	pack_raw(&k, buffer_slice(&a->holds));
	return packet_end(&k, out, start);
}

/* ---- decoding ---- */

bool waits_is_packet(struct slice body) {
	struct unpack u = unpack_of(body);
	return unpack_map(&u) == 1 &&
		slice_equal(unpack_str(&u, sizeof WAITS_KEY - 1), slice_str(WAITS_KEY)) && !u.bad;
}

static struct id128 take_id(struct unpack *u) {
	struct id128 id = { { 0 } };
	struct slice s = unpack_bin(u, sizeof id.b);
	if (s.size == sizeof id.b) {
		memcpy(id.b, s.data, s.size);
	} else {
		u->bad = true;
	}
	return id;
}

static struct slice take_key(struct unpack *u) {
	struct slice key = unpack_bin(u, KEY_MAX);
	u->bad = u->bad || key.size == 0;
	return key;
}

static void take_head(struct unpack *u, uint32_t items) {
	u->bad = unpack_array(u) != items || u->bad;
}

/* Takes the head of a list of at most `most` items. */
static uint32_t take_list(struct unpack *u, uint32_t most) {
	uint32_t count = unpack_array(u);
	u->bad = u->bad || count > most;
	return u->bad ? 0 : count;
}

static void take_mode(struct unpack *u, uint16_t *of, uint16_t *count) {
	struct terms terms = { .of = (uint16_t)unpack_uint(u, UINT16_MAX) };
	terms.count = (uint16_t)unpack_uint(u, PERMITS_MAX);
	u->bad = u->bad || !terms_valid(&terms);
	*of = terms.of;
	*count = terms.count;
}

static struct wait_fact take_wait(struct unpack *u) {
	struct wait_fact fact = { .free = false };
	take_head(u, 9);
	fact.party = take_id(u);
	fact.lock_id = take_id(u);
	fact.key = take_key(u);
	take_mode(u, &fact.of, &fact.count);
	fact.owner = unpack_bin(u, OWNER_MAX);
	fact.request = unpack_uint(u, UINT64_MAX);
	fact.since_ms = unpack_uint(u, UINT64_MAX);
	fact.free = unpack_bool(u);
	return fact;
}

static struct hold_fact take_hold(struct unpack *u) {
	struct hold_fact fact = { .of = 0 };
	take_head(u, 5);
	fact.party = take_id(u);
	fact.lock_id = take_id(u);
	fact.key = take_key(u);
	take_mode(u, &fact.of, &fact.count);
	return fact;
}

/* Takes all facts. Without a reader it only finds out whether they are good. */
static void take_facts(struct unpack *u, const struct waits_reader *reader) {
	uint32_t count = take_list(u, WAITS_BYTES_MAX);
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		const struct wait_fact fact = take_wait(u);
		if (reader) {
			reader->wait(reader->ctx, &fact);
		}
	}
	count = take_list(u, WAITS_BYTES_MAX);
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		const struct hold_fact fact = take_hold(u);
		if (reader) {
			reader->hold(reader->ctx, &fact);
		}
	}
}

static void take_ask(struct unpack *u, struct waits_ask *ask) {
	ask->key_count = take_list(u, WAITS_ASKED_MAX);
	for (uint32_t i = 0; i < ask->key_count; i++) {
		ask->keys[i] = take_key(u);
	}
	ask->party_count = take_list(u, WAITS_ASKED_MAX);
	for (uint32_t i = 0; i < ask->party_count; i++) {
		ask->parties[i] = take_id(u);
	}
}

/* The name gets into logs, so it must not have control characters. */
static struct slice take_name(struct unpack *u) {
	struct slice name = unpack_str(u, NODE_NAME_MAX);
	for (size_t i = 0; i < name.size; i++) {
		u->bad = u->bad || name.data[i] < 0x20 || name.data[i] == 0x7f;
	}
	return name;
}

static void take_ring(struct unpack *u, struct waits_ring *ring) {
	ring->refused = unpack_bool(u);
	ring->count = take_list(u, RING_MEMBERS_MAX);
	for (uint32_t i = 0; i < ring->count; i++) {
		take_head(u, 3);
		ring->members[i].owner = unpack_bin(u, OWNER_MAX);
		ring->members[i].key = take_key(u);
		ring->members[i].node = take_name(u);
	}
}

int waits_decode(struct slice body, struct waits_packet *out) {
	struct unpack u = unpack_of(body);
	uint32_t pairs = unpack_map(&u);
	(void)unpack_str(&u, sizeof WAITS_KEY - 1);
	uint32_t items = unpack_array(&u);
	uint64_t kind = unpack_uint(&u, WAITS_RING);
	*out = (struct waits_packet){ .kind = (enum waits_kind)kind };
	out->round = unpack_uint(&u, UINT64_MAX);
	if (u.bad || pairs != 1 || body.size > WAITS_BYTES_MAX || kind < WAITS_ASK ||
		items != (kind == WAITS_FACTS ? 5 : 4)) {
		return PAWL_EPROTOCOL;
	}
	if (kind == WAITS_ASK) {
		take_ask(&u, &out->ask);
	} else if (kind == WAITS_RING) {
		take_ring(&u, &out->ring);
	} else {
		out->cut = unpack_bool(&u);
		out->facts = slice_of(u.p, unpack_left(&u));
		take_facts(&u, NULL);
	}
	return u.bad || unpack_left(&u) != 0 ? PAWL_EPROTOCOL : 0;
}

void waits_read(const struct waits_packet *packet, const struct waits_reader *reader) {
	struct unpack u = unpack_of(packet->facts);
	take_facts(&u, reader);
}
