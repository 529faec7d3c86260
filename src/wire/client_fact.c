#include "client_fact.h"

#include "check.h"

#define FACT(member, type_, bit_) { #member, type_, offsetof(struct client_entry, member), bit_ }
#define FACT_NAMED(name_, member, type_, bit_) { name_, type_, offsetof(struct client_entry, member), bit_ }
const struct client_fact client_entry_facts[] = {
	FACT(owner, FACT_BYTES, CLIENT_ENTRY_OWNER),
	FACT(value, FACT_BYTES, CLIENT_ENTRY_VALUE),
	FACT(value_seq, FACT_BALLOT, CLIENT_ENTRY_VALUE_SEQ),
	FACT(token, FACT_U64, CLIENT_ENTRY_TOKEN),
	FACT_NAMED("remaining_ms", remaining, FACT_MS_UP, CLIENT_ENTRY_REMAINING),
	FACT(lock_id, FACT_ID, CLIENT_ENTRY_LOCK_ID),
};
const size_t client_entry_fact_count = sizeof client_entry_facts / sizeof client_entry_facts[0];

/* ---- reading ---- */

static struct id128 fact_take_id(struct unpack *u) {
	struct id128 id = { { 0 } };
	bool text = unpack_peek(u) == UNPACK_STR;
	struct slice s = unpack_bytes(u, CLIENT_LOCK_ID_DIGITS);
	if (text) {
		u->bad = u->bad || !client_lock_id_parse(s, &id);
	} else if (s.size == sizeof id.b) {
		memcpy(id.b, s.data, sizeof id.b);
	} else {
		u->bad = true;
	}
	return id;
}

static uint64_t fact_be(const uint8_t *p, unsigned bytes) {
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++) {
		value = value << 8 | p[i];
	}
	return value;
}

static struct ballot fact_take_ballot(struct unpack *u) {
	struct slice s = unpack_bytes(u, CLIENT_VALUE_SEQ_BYTES);
	if (s.size != CLIENT_VALUE_SEQ_BYTES) {
		u->bad = true;
		return (struct ballot){ 0 };
	}
	return (struct ballot){ fact_be(s.data, 8), fact_be(s.data + 8, 8), (uint32_t)fact_be(s.data + 16, 4) };
}

static span_ns fact_take_span(struct unpack *u, span_ns unit) {
	uint64_t value = unpack_uint(u, UINT64_MAX), max = (uint64_t)(SPAN_MAX / unit);
	return value > max ? SPAN_MAX : (span_ns)value * unit;
}

static void fact_take_value(struct unpack *u, const struct client_fact *fact, void *at) {
	switch (fact->type) {
	case FACT_BOOL:
		*(bool *)at = unpack_bool(u);
		return;
	case FACT_U32:
		*(uint32_t *)at = (uint32_t)unpack_uint(u, UINT32_MAX);
		return;
	case FACT_U64:
		*(uint64_t *)at = unpack_uint(u, UINT64_MAX);
		return;
	case FACT_TEXT:
	case FACT_BYTES:
		*(struct slice *)at = unpack_bytes(u, SIZE_MAX);
		return;
	case FACT_MS:
	case FACT_MS_UP:
		*(span_ns *)at = fact_take_span(u, SPAN_MS);
		return;
	case FACT_US:
		*(span_ns *)at = fact_take_span(u, SPAN_US);
		return;
	case FACT_ID:
		*(struct id128 *)at = fact_take_id(u);
		return;
	case FACT_BALLOT:
		*(struct ballot *)at = fact_take_ballot(u);
		return;
	}
}

bool client_fact_take(const struct client_fact_set *set, struct slice name, struct unpack *u) {
	for (size_t i = 0; i < set->count; i++) {
		const struct client_fact *fact = &set->facts[i];
		if (!slice_equal(name, slice_str(fact->name))) {
			continue;
		}
		if (unpack_peek(u) == UNPACK_NIL) {
			unpack_skip(u);
			return true;
		}
		fact_take_value(u, fact, (char *)set->base + fact->offset);
		if (set->present) {
			*set->present |= fact->bit;
		}
		return true;
	}
	return false;
}

/* ---- writing ---- */

static void fact_put_id(struct pack *k, struct id128 id) {
	char digits[CLIENT_LOCK_ID_DIGITS];
	client_lock_id_format(id, digits);
	pack_str(k, slice_of(digits, sizeof digits));
}

static void fact_put_ballot(struct pack *k, struct ballot b) {
	uint8_t bytes[CLIENT_VALUE_SEQ_BYTES];
	pack_put_be(pack_put_be(pack_put_be(bytes, b.clock, 8), b.node, 8), b.boot, 4);
	pack_bin(k, slice_of(bytes, sizeof bytes));
}

static void fact_put_span(struct pack *k, span_ns span, span_ns unit, bool up) {
	span = span > 0 ? span : 0;
	pack_uint(k, (uint64_t)(span / unit) + (up && span % unit != 0));
}

static void fact_put_value(struct pack *k, enum client_fact_type type, const void *at) {
	switch (type) {
	case FACT_BOOL:
		pack_bool(k, *(const bool *)at);
		return;
	case FACT_U32:
		pack_uint(k, *(const uint32_t *)at);
		return;
	case FACT_U64:
		pack_uint(k, *(const uint64_t *)at);
		return;
	case FACT_TEXT:
		pack_str(k, *(const struct slice *)at);
		return;
	case FACT_BYTES:
		pack_bin(k, *(const struct slice *)at);
		return;
	case FACT_MS:
		fact_put_span(k, *(const span_ns *)at, SPAN_MS, false);
		return;
	case FACT_MS_UP:
		fact_put_span(k, *(const span_ns *)at, SPAN_MS, true);
		return;
	case FACT_US:
		fact_put_span(k, *(const span_ns *)at, SPAN_US, false);
		return;
	case FACT_ID:
		fact_put_id(k, *(const struct id128 *)at);
		return;
	case FACT_BALLOT:
		fact_put_ballot(k, *(const struct ballot *)at);
		return;
	}
}

void client_fact_put(struct pack *k, struct pack_open *map, const struct client_fact *fact, const void *base) {
	pack_key(k, map, fact->name);
	fact_put_value(k, fact->type, (const char *)base + fact->offset);
}

void client_fact_put_all(struct pack *k, struct pack_open *map, const struct client_fact *facts, size_t count, const void *base,
	uint32_t present) {
	for (size_t i = 0; i < count; i++) {
		if (facts[i].bit == 0 || (present & facts[i].bit)) {
			client_fact_put(k, map, &facts[i], base);
		}
	}
}
