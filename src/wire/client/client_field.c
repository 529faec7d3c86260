/* client_field.c: reads and writes the fields of results by tables. */
#include "client_field.h"

#include "check.h"

#define FIELD(member, type_, bit_) { #member, type_, offsetof(struct client_entry, member), bit_ }
#define FIELD_NAMED(name_, member, type_, bit_) \
	{ name_, type_, offsetof(struct client_entry, member), bit_ }
const struct client_field client_entry_fields[] = {
	FIELD(owner, FIELD_BYTES, CLIENT_ENTRY_OWNER),
	FIELD(value, FIELD_BYTES, CLIENT_ENTRY_VALUE),
	FIELD(value_seq, FIELD_BALLOT, CLIENT_ENTRY_VALUE_SEQ),
	FIELD(token, FIELD_U64, CLIENT_ENTRY_TOKEN),
	FIELD_NAMED("remaining_ms", remaining, FIELD_MS_UP, CLIENT_ENTRY_REMAINING),
	FIELD_NAMED("valid_at_least_ms", at_least, FIELD_MS, CLIENT_ENTRY_WEIGHED),
	FIELD_NAMED("held_at_most_ms", at_most, FIELD_MS_UP, CLIENT_ENTRY_WEIGHED),
	FIELD(lock_id, FIELD_ID, CLIENT_ENTRY_LOCK_ID),
	FIELD_NAMED("mode", mode.mode, FIELD_MODE, CLIENT_ENTRY_MODE),
	FIELD_NAMED("permits", mode.permits, FIELD_U32, CLIENT_ENTRY_PERMITS),
	FIELD_NAMED("of", mode.of, FIELD_U32, CLIENT_ENTRY_OF),
	FIELD_NAMED("slots", mode.numbers, FIELD_NUMBERS, CLIENT_ENTRY_NUMBERS),
	FIELD_NAMED("held_ms", held_for, FIELD_MS, CLIENT_ENTRY_HELD_FOR),
	FIELD_NAMED("label", label.text, FIELD_BYTES, CLIENT_ENTRY_LABEL),
	FIELD_NAMED("host", label.host, FIELD_BYTES, CLIENT_ENTRY_HOST),
	FIELD_NAMED("pid", label.pid, FIELD_U32, CLIENT_ENTRY_PID),
	FIELD(order, FIELD_U32, CLIENT_ENTRY_ORDER),
	FIELD(order_settled, FIELD_BOOL, CLIENT_ENTRY_ORDER_SETTLED),
	FIELD(identity, FIELD_BYTES, CLIENT_ENTRY_IDENTITY),
	FIELD_NAMED("lock_delay_ms", lock_delay, FIELD_MS_UP, CLIENT_ENTRY_LOCK_DELAY),
	FIELD(closing, FIELD_BOOL, CLIENT_ENTRY_CLOSING),
	FIELD_NAMED("closing_ms", closing_for, FIELD_MS_UP, CLIENT_ENTRY_CLOSING),
	FIELD(holders, FIELD_U32, CLIENT_ENTRY_HOLDERS),
	FIELD(barred, FIELD_BOOL, CLIENT_ENTRY_BARRED),
	FIELD_NAMED("election", label.election, FIELD_BOOL, CLIENT_ENTRY_ELECTION),
	FIELD_NAMED("without_end", label.without_end, FIELD_BOOL, CLIENT_ENTRY_WITHOUT_END),
};
const size_t client_entry_field_count = sizeof client_entry_fields / sizeof client_entry_fields[0];

const struct client_field client_mode_fields[CLIENT_MODE_FIELD_COUNT] = {
	{ "mode", FIELD_MODE, offsetof(struct client_lock_mode, mode), CLIENT_ENTRY_MODE },
	{ "permits", FIELD_U32, offsetof(struct client_lock_mode, permits), CLIENT_ENTRY_PERMITS },
	{ "of", FIELD_U32, offsetof(struct client_lock_mode, of), CLIENT_ENTRY_OF },
	{ "slots", FIELD_NUMBERS, offsetof(struct client_lock_mode, numbers),
		CLIENT_ENTRY_NUMBERS },
};

const struct client_field client_label_fields[CLIENT_LABEL_FIELD_COUNT] = {
	{ "label", FIELD_BYTES, offsetof(struct client_label, text), CLIENT_ENTRY_LABEL },
	{ "host", FIELD_BYTES, offsetof(struct client_label, host), CLIENT_ENTRY_HOST },
	{ "pid", FIELD_U32, offsetof(struct client_label, pid), CLIENT_ENTRY_PID },
	{ "election", FIELD_BOOL, offsetof(struct client_label, election), CLIENT_ENTRY_ELECTION },
};

static const char *const field_modes[] = { [CLIENT_EXCLUSIVE] = "exclusive",
	[CLIENT_SHARED] = "shared",
	[CLIENT_PERMITS] = "permits" };

struct client_lock_mode client_mode_of(const struct terms *terms) {
	if (terms_semaphore(terms)) {
		return (struct client_lock_mode){ CLIENT_PERMITS, terms->count, terms->of,
			terms->set };
	}
	return (struct client_lock_mode){
		.mode = terms->of == MODE_SHARED ? CLIENT_SHARED : CLIENT_EXCLUSIVE
	};
}

/* A request that waits for permits has no permit numbers yet. */
uint32_t client_mode_present(const struct client_lock_mode *mode) {
	uint32_t present = CLIENT_ENTRY_MODE;
	present |= mode->mode == CLIENT_PERMITS ? CLIENT_ENTRY_PERMITS | CLIENT_ENTRY_OF : 0;
	present |= permits_count(mode->numbers) ? CLIENT_ENTRY_NUMBERS : 0;
	return present;
}

uint32_t client_label_present(const struct client_label *label) {
	uint32_t present = label->text.size ? CLIENT_ENTRY_LABEL : 0;
	present |= label->host.size ? CLIENT_ENTRY_HOST : 0;
	present |= label->pid ? CLIENT_ENTRY_PID : 0;
	present |= label->election ? CLIENT_ENTRY_ELECTION : 0;
	present |= label->without_end ? CLIENT_ENTRY_WITHOUT_END : 0;
	return present;
}

/* ---- reading ---- */

static struct id128 field_take_id(struct unpack *u) {
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

static struct ballot field_take_ballot(struct unpack *u) {
	struct slice s = unpack_bytes(u, CLIENT_VALUE_SEQ_BYTES);
	if (s.size != CLIENT_VALUE_SEQ_BYTES) {
		u->bad = true;
		return (struct ballot){ 0 };
	}
	return (struct ballot){ unpack_be(s.data, 8), unpack_be(s.data + 8, 8),
		(uint32_t)unpack_be(s.data + 16, 4) };
}

static struct client_position field_take_position(struct unpack *u) {
	struct slice s = unpack_bytes(u, CLIENT_POSITION_BYTES);
	if (s.size != CLIENT_POSITION_BYTES) {
		u->bad = true;
		return (struct client_position){ 0 };
	}
	return (struct client_position){ unpack_be(s.data, 8), unpack_be(s.data + 8, 8) };
}

/* A mode that only a later version knows counts as exclusive, because it may exclude everything. */
static enum client_mode field_take_mode(struct unpack *u) {
	struct slice name = unpack_bytes(u, SIZE_MAX);
	for (size_t i = 0; i < sizeof field_modes / sizeof field_modes[0]; i++) {
		if (slice_equal(name, slice_str(field_modes[i]))) {
			return (enum client_mode)i;
		}
	}
	return CLIENT_EXCLUSIVE;
}

static struct permits field_take_permit_numbers(struct unpack *u) {
	struct permits set = { { 0 } };
	uint32_t count = unpack_array(u);
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		uint64_t n = unpack_uint(u, PERMITS_MAX - 1);
		set.w[n / 64] |= (uint64_t)1 << (n % 64);
	}
	return set;
}

static int32_t field_take_i32(struct unpack *u) {
	int64_t value = unpack_int(u);
	u->bad = u->bad || value < INT32_MIN || value > INT32_MAX;
	return u->bad ? 0 : (int32_t)value;
}

static span_ns field_take_span(struct unpack *u, span_ns unit) {
	uint64_t value = unpack_uint(u, UINT64_MAX), max = (uint64_t)(SPAN_MAX / unit);
	return value > max ? SPAN_MAX : (span_ns)value * unit;
}

static void field_take_value(struct unpack *u, const struct client_field *field, void *at) {
	switch (field->type) {
	case FIELD_BOOL:
		*(bool *)at = unpack_bool(u);
		return;
	case FIELD_U32:
		*(uint32_t *)at = (uint32_t)unpack_uint(u, UINT32_MAX);
		return;
	case FIELD_U64:
		*(uint64_t *)at = unpack_uint(u, UINT64_MAX);
		return;
	case FIELD_TEXT:
	case FIELD_BYTES:
		*(struct slice *)at = unpack_bytes(u, SIZE_MAX);
		return;
	case FIELD_MS:
	case FIELD_MS_UP:
		*(span_ns *)at = field_take_span(u, SPAN_MS);
		return;
	case FIELD_US:
		*(span_ns *)at = field_take_span(u, SPAN_US);
		return;
	case FIELD_ID:
		*(struct id128 *)at = field_take_id(u);
		return;
	case FIELD_BALLOT:
		*(struct ballot *)at = field_take_ballot(u);
		return;
	case FIELD_I32:
		*(int32_t *)at = field_take_i32(u);
		return;
	case FIELD_MODE:
		*(enum client_mode *)at = field_take_mode(u);
		return;
	case FIELD_NUMBERS:
		*(struct permits *)at = field_take_permit_numbers(u);
		return;
	case FIELD_POSITION:
		*(struct client_position *)at = field_take_position(u);
		return;
	}
}

bool client_field_take(const struct client_field_set *set, struct slice name, struct unpack *u) {
	for (size_t i = 0; i < set->count; i++) {
		const struct client_field *field = &set->fields[i];
		if (!slice_equal(name, slice_str(field->name))) {
			continue;
		}
		if (unpack_nil(u)) {
			return true;
		}
		field_take_value(u, field, (char *)set->base + field->offset);
		if (set->present) {
			*set->present |= field->bit;
		}
		return true;
	}
	return false;
}

/* ---- writing ---- */

static void field_put_id(struct pack *k, struct id128 id) {
	char digits[CLIENT_LOCK_ID_DIGITS];
	client_lock_id_format(id, digits);
	pack_str(k, slice_of(digits, sizeof digits));
}

static void field_put_ballot(struct pack *k, struct ballot b) {
	uint8_t bytes[CLIENT_VALUE_SEQ_BYTES];
	pack_put_be(pack_put_be(pack_put_be(bytes, b.clock, 8), b.node, 8), b.boot, 4);
	pack_bin(k, slice_of(bytes, sizeof bytes));
}

static void field_put_position(struct pack *k, struct client_position p) {
	uint8_t bytes[CLIENT_POSITION_BYTES];
	pack_put_be(pack_put_be(bytes, p.log, 8), p.sequence, 8);
	pack_bin(k, slice_of(bytes, sizeof bytes));
}

void client_permit_numbers_put(struct pack *k, struct permits set) {
	pack_array(k, permits_count(set));
	for (uint32_t n = 0; n < PERMITS_MAX; n++) {
		if (permits_has(set, n)) {
			pack_uint(k, n);
		}
	}
}

static void field_put_span(struct pack *k, span_ns span, span_ns unit, bool up) {
	span = span > 0 ? span : 0;
	pack_uint(k, (uint64_t)(span / unit) + (up && span % unit != 0));
}

static void field_put_value(struct pack *k, enum client_field_type type, const void *at) {
	switch (type) {
	case FIELD_BOOL:
		pack_bool(k, *(const bool *)at);
		return;
	case FIELD_U32:
		pack_uint(k, *(const uint32_t *)at);
		return;
	case FIELD_U64:
		pack_uint(k, *(const uint64_t *)at);
		return;
	case FIELD_TEXT:
		pack_str(k, *(const struct slice *)at);
		return;
	case FIELD_BYTES:
		pack_bin(k, *(const struct slice *)at);
		return;
	case FIELD_MS:
		field_put_span(k, *(const span_ns *)at, SPAN_MS, false);
		return;
	case FIELD_MS_UP:
		field_put_span(k, *(const span_ns *)at, SPAN_MS, true);
		return;
	case FIELD_US:
		field_put_span(k, *(const span_ns *)at, SPAN_US, false);
		return;
	case FIELD_ID:
		field_put_id(k, *(const struct id128 *)at);
		return;
	case FIELD_BALLOT:
		field_put_ballot(k, *(const struct ballot *)at);
		return;
	case FIELD_I32:
		pack_int(k, *(const int32_t *)at);
		return;
	case FIELD_MODE:
		pack_text(k, field_modes[*(const enum client_mode *)at]);
		return;
	case FIELD_NUMBERS:
		client_permit_numbers_put(k, *(const struct permits *)at);
		return;
	case FIELD_POSITION:
		field_put_position(k, *(const struct client_position *)at);
		return;
	}
}

void client_field_put(struct pack *k, struct pack_open *map, const struct client_field *field,
	const void *base) {
	pack_key(k, map, field->name);
	field_put_value(k, field->type, (const char *)base + field->offset);
}

void client_field_put_all(struct pack *k, struct pack_open *map, const struct client_field *fields,
	size_t count, const void *base, uint32_t present) {
	for (size_t i = 0; i < count; i++) {
		if (fields[i].bit == 0 || (present & fields[i].bit)) {
			client_field_put(k, map, &fields[i], base);
		}
	}
}
