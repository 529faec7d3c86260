/* client_fact.c: reads and writes the fields of results by tables. */
#include "client_fact.h"

#include "check.h"

#define FACT(member, type_, bit_) { #member, type_, offsetof(struct client_entry, member), bit_ }
#define FACT_NAMED(name_, member, type_, bit_) \
	{ name_, type_, offsetof(struct client_entry, member), bit_ }
const struct client_fact client_entry_facts[] = {
	FACT(owner, FACT_BYTES, CLIENT_ENTRY_OWNER),
	FACT(value, FACT_BYTES, CLIENT_ENTRY_VALUE),
	FACT(value_seq, FACT_BALLOT, CLIENT_ENTRY_VALUE_SEQ),
	FACT(token, FACT_U64, CLIENT_ENTRY_TOKEN),
	FACT_NAMED("remaining_ms", remaining, FACT_MS_UP, CLIENT_ENTRY_REMAINING),
	FACT(lock_id, FACT_ID, CLIENT_ENTRY_LOCK_ID),
	FACT_NAMED("mode", mode.mode, FACT_MODE, CLIENT_ENTRY_MODE),
	FACT_NAMED("permits", mode.permits, FACT_U32, CLIENT_ENTRY_PERMITS),
	FACT_NAMED("of", mode.of, FACT_U32, CLIENT_ENTRY_OF),
	FACT_NAMED("slots", mode.slots, FACT_SLOTS, CLIENT_ENTRY_SLOTS),
	FACT_NAMED("held_ms", held_for, FACT_MS, CLIENT_ENTRY_HELD_FOR),
	FACT_NAMED("label", label.text, FACT_BYTES, CLIENT_ENTRY_LABEL),
	FACT_NAMED("host", label.host, FACT_BYTES, CLIENT_ENTRY_HOST),
	FACT_NAMED("pid", label.pid, FACT_U32, CLIENT_ENTRY_PID),
	FACT(identity, FACT_BYTES, CLIENT_ENTRY_IDENTITY),
	FACT_NAMED("lock_delay_ms", lock_delay, FACT_MS_UP, CLIENT_ENTRY_LOCK_DELAY),
	FACT(closing, FACT_BOOL, CLIENT_ENTRY_CLOSING),
	FACT_NAMED("closing_ms", closing_for, FACT_MS_UP, CLIENT_ENTRY_CLOSING),
	FACT(holders, FACT_U32, CLIENT_ENTRY_HOLDERS),
	FACT(barred, FACT_BOOL, CLIENT_ENTRY_BARRED),
};
const size_t client_entry_fact_count = sizeof client_entry_facts / sizeof client_entry_facts[0];

const struct client_fact client_mode_facts[CLIENT_MODE_FACT_COUNT] = {
	{ "mode", FACT_MODE, offsetof(struct client_mode_facts, mode), CLIENT_ENTRY_MODE },
	{ "permits", FACT_U32, offsetof(struct client_mode_facts, permits), CLIENT_ENTRY_PERMITS },
	{ "of", FACT_U32, offsetof(struct client_mode_facts, of), CLIENT_ENTRY_OF },
	{ "slots", FACT_SLOTS, offsetof(struct client_mode_facts, slots), CLIENT_ENTRY_SLOTS },
};

const struct client_fact client_label_facts[CLIENT_LABEL_FACT_COUNT] = {
	{ "label", FACT_BYTES, offsetof(struct client_label, text), CLIENT_ENTRY_LABEL },
	{ "host", FACT_BYTES, offsetof(struct client_label, host), CLIENT_ENTRY_HOST },
	{ "pid", FACT_U32, offsetof(struct client_label, pid), CLIENT_ENTRY_PID },
};

static const char *const fact_modes[] = { [CLIENT_EXCLUSIVE] = "exclusive",
	[CLIENT_SHARED] = "shared",
	[CLIENT_PERMITS] = "permits" };

struct client_mode_facts client_mode_of(const struct terms *terms) {
	if (terms_semaphore(terms)) {
		return (struct client_mode_facts){ CLIENT_PERMITS, terms->count, terms->of,
			terms->set };
	}
	return (struct client_mode_facts){
		.mode = terms->of == SHARE_SHARED ? CLIENT_SHARED : CLIENT_EXCLUSIVE
	};
}

/* A request that waits for permits has no permit numbers yet. */
uint32_t client_mode_present(const struct client_mode_facts *mode) {
	uint32_t present = CLIENT_ENTRY_MODE;
	present |= mode->mode == CLIENT_PERMITS ? CLIENT_ENTRY_PERMITS | CLIENT_ENTRY_OF : 0;
	present |= permits_count(mode->slots) ? CLIENT_ENTRY_SLOTS : 0;
	return present;
}

uint32_t client_label_present(const struct client_label *label) {
	uint32_t present = label->text.size ? CLIENT_ENTRY_LABEL : 0;
	present |= label->host.size ? CLIENT_ENTRY_HOST : 0;
	present |= label->pid ? CLIENT_ENTRY_PID : 0;
	return present;
}

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
	return (struct ballot){ fact_be(s.data, 8), fact_be(s.data + 8, 8),
		(uint32_t)fact_be(s.data + 16, 4) };
}

static struct client_position fact_take_position(struct unpack *u) {
	struct slice s = unpack_bytes(u, CLIENT_POSITION_BYTES);
	if (s.size != CLIENT_POSITION_BYTES) {
		u->bad = true;
		return (struct client_position){ 0 };
	}
	return (struct client_position){ fact_be(s.data, 8), fact_be(s.data + 8, 8) };
}

/* A mode that only a later version knows counts as exclusive, because it may exclude everything. */
static enum client_mode fact_take_mode(struct unpack *u) {
	struct slice name = unpack_bytes(u, SIZE_MAX);
	for (size_t i = 0; i < sizeof fact_modes / sizeof fact_modes[0]; i++) {
		if (slice_equal(name, slice_str(fact_modes[i]))) {
			return (enum client_mode)i;
		}
	}
	return CLIENT_EXCLUSIVE;
}

static struct permits fact_take_slots(struct unpack *u) {
	struct permits set = { { 0 } };
	uint32_t count = unpack_array(u);
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		uint64_t n = unpack_uint(u, PERMITS_MAX - 1);
		set.w[n / 64] |= (uint64_t)1 << (n % 64);
	}
	return set;
}

static int32_t fact_take_i32(struct unpack *u) {
	int64_t value = unpack_int(u);
	u->bad = u->bad || value < INT32_MIN || value > INT32_MAX;
	return u->bad ? 0 : (int32_t)value;
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
	case FACT_I32:
		*(int32_t *)at = fact_take_i32(u);
		return;
	case FACT_MODE:
		*(enum client_mode *)at = fact_take_mode(u);
		return;
	case FACT_SLOTS:
		*(struct permits *)at = fact_take_slots(u);
		return;
	case FACT_POSITION:
		*(struct client_position *)at = fact_take_position(u);
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

static void fact_put_position(struct pack *k, struct client_position p) {
	uint8_t bytes[CLIENT_POSITION_BYTES];
	pack_put_be(pack_put_be(bytes, p.log, 8), p.sequence, 8);
	pack_bin(k, slice_of(bytes, sizeof bytes));
}

void client_slots_put(struct pack *k, struct permits set) {
	pack_array(k, permits_count(set));
	for (uint32_t n = 0; n < PERMITS_MAX; n++) {
		if (permits_has(set, n)) {
			pack_uint(k, n);
		}
	}
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
	case FACT_I32:
		pack_int(k, *(const int32_t *)at);
		return;
	case FACT_MODE:
		pack_text(k, fact_modes[*(const enum client_mode *)at]);
		return;
	case FACT_SLOTS:
		client_slots_put(k, *(const struct permits *)at);
		return;
	case FACT_POSITION:
		fact_put_position(k, *(const struct client_position *)at);
		return;
	}
}

void client_fact_put(struct pack *k, struct pack_open *map, const struct client_fact *fact,
	const void *base) {
	pack_key(k, map, fact->name);
	fact_put_value(k, fact->type, (const char *)base + fact->offset);
}

void client_fact_put_all(struct pack *k, struct pack_open *map, const struct client_fact *facts,
	size_t count, const void *base, uint32_t present) {
	for (size_t i = 0; i < count; i++) {
		if (facts[i].bit == 0 || (present & facts[i].bit)) {
			client_fact_put(k, map, &facts[i], base);
		}
	}
}
