/* copy.c: copies what a node says into the memory of a result. Nothing of a result points into the
 * message. */
#include "copy.h"

#include <string.h>

#include "request_copy.h"
#include "value.h"

const struct pawl_entry copy_no_entry = { .key = { "", 0 }, .owner = { "", 0 }, .value = { "", 0 },
	.value_seq = { "", 0 }, .held_ms = -1, .label = "", .host = "", .identity = "" };

static struct pawl_id id_of(struct id128 from) {
	struct pawl_id id;
	memcpy(id.bytes, from.b, sizeof(id.bytes));
	return id;
}

enum pawl_mode copy_mode(enum client_mode mode) {
	switch (mode) {
	case CLIENT_EXCLUSIVE:
		return PAWL_EXCLUSIVE;
	case CLIENT_SHARED:
		return PAWL_SHARED;
	case CLIENT_PERMITS:
		return PAWL_PERMITS;
	}
	return PAWL_EXCLUSIVE;
}

int copy_seq(struct arena *arena, struct ballot ballot, struct pawl_bytes *out) {
	uint8_t bytes[SEQ_BYTES];
	seq_write(ballot, bytes);
	return value_bytes(arena, slice_of(bytes, sizeof(bytes)), out);
}

int copy_slots(struct arena *arena, struct permits from, const uint32_t **out, size_t *out_count) {
	uint32_t count = permits_count(from);
	if (count == 0) {
		return 0;
	}
	uint32_t *slots = arena_take(arena, count * sizeof(*slots), _Alignof(uint32_t));
	if (!slots) {
		return PAWL_ENOMEM;
	}
	size_t used = 0;
	for (uint32_t n = 0; n < PERMITS_MAX; n++) {
		if (permits_has(from, n)) {
			slots[used++] = n;
		}
	}
	*out = slots;
	*out_count = used;
	return 0;
}

static int copy_label(struct arena *arena, const struct client_label *from, const char **label,
	const char **host, int64_t *pid) {
	int error = value_text(arena, from->text, label);
	*pid = from->pid;
	return error ? error : value_text(arena, from->host, host);
}

static int copy_texts_of(struct arena *arena, const struct client_entry *from,
	struct pawl_entry *to) {
	int error = value_bytes(arena, from->key, &to->key);
	error = error ? error : value_bytes(arena, from->owner, &to->owner);
	error = error ? error : value_bytes(arena, from->value, &to->value);
	error = error ? error : copy_label(arena, &from->label, &to->label, &to->host, &to->pid);
	error = error ? error : value_text(arena, from->identity, &to->identity);
	if (!error && (from->present & CLIENT_ENTRY_VALUE_SEQ)) {
		error = copy_seq(arena, from->value_seq, &to->value_seq);
	}
	return error;
}

int copy_entry(struct arena *arena, const struct client_entry *from, struct pawl_entry *to) {
	size_t slots = 0;
	*to = copy_no_entry;
	int error = copy_texts_of(arena, from, to);
	error = error ? error : copy_slots(arena, from->mode.numbers, &to->slots, &slots);
	to->held = !from->closing;
	to->token = from->token;
	to->remaining_ms = from->remaining / SPAN_MS;
	to->lock_id = id_of(from->lock_id);
	to->mode = copy_mode(from->mode.mode);
	to->permits = from->mode.permits;
	to->of = from->mode.of;
	to->held_ms = from->present & CLIENT_ENTRY_HELD_FOR ? from->held_for / SPAN_MS : -1;
	to->lock_delay_ms = from->lock_delay / SPAN_MS;
	to->closing = from->closing;
	to->closing_ms = from->closing_for / SPAN_MS;
	to->holders = from->present & CLIENT_ENTRY_HOLDERS ? from->holders : to->held;
	return error;
}

static int copy_entries(struct arena *arena, const struct client_entry *from, size_t count,
	const struct pawl_entry **out, size_t *out_count) {
	struct pawl_entry *items = arena_take(arena, count * sizeof(*items),
		_Alignof(struct pawl_entry));
	int error = items ? 0 : PAWL_ENOMEM;
	for (size_t i = 0; !error && i < count; i++) {
		error = copy_entry(arena, &from[i], &items[i]);
	}
	if (!error) {
		*out = items;
		*out_count = count;
	}
	return error;
}

static int copy_waiter(struct arena *arena, const struct client_waiter *from,
	struct pawl_waiter *to) {
	*to = (struct pawl_waiter){ .node = "", .label = "", .host = "", .identity = "",
		.since_ms = from->since / SPAN_MS, .priority = from->priority,
		.mode = copy_mode(from->mode.mode), .permits = from->mode.permits,
		.of = from->mode.of };
	if (from->has_lock_id) {
		to->lock_id = id_of(from->lock_id);
	}
	int error = value_bytes(arena, from->owner, &to->owner);
	error = error ? error : value_bytes(arena, from->key, &to->key);
	error = error ? error : value_text(arena, from->node, &to->node);
	error = error ? error : value_text(arena, from->identity, &to->identity);
	return error ? error : copy_label(arena, &from->label, &to->label, &to->host, &to->pid);
}

static int copy_waiters(struct arena *arena, const struct client_response *r,
	struct pawl_result *to) {
	struct pawl_waiter *items = arena_take(arena, r->count * sizeof(*items),
		_Alignof(struct pawl_waiter));
	int error = items ? 0 : PAWL_ENOMEM;
	for (size_t i = 0; !error && i < r->count; i++) {
		error = copy_waiter(arena, &r->waiters[i], &items[i]);
	}
	if (!error) {
		to->waiters = items;
		to->waiter_count = r->count;
	}
	return error;
}

static int copy_got(struct arena *arena, const struct client_response *r, struct pawl_result *to) {
	struct pawl_got *items = arena_take(arena, r->count * sizeof(*items),
		_Alignof(struct pawl_got));
	int error = items ? 0 : PAWL_ENOMEM;
	for (size_t i = 0; !error && i < r->count; i++) {
		const struct client_acquired *from = &r->acquired[i];
		items[i] = (struct pawl_got){ .lock_id = id_of(from->lock_id), .token = from->token,
			.mode = copy_mode(from->mode.mode) };
		error = value_bytes(arena, from->key, &items[i].key);
		error = error ? error
			: copy_slots(arena, from->mode.numbers, &items[i].slots,
				&items[i].slot_count);
	}
	if (!error) {
		to->got = items;
		to->got_count = r->count;
	}
	return error;
}

static int copy_extended(struct arena *arena, const struct client_response *r,
	struct pawl_result *to) {
	struct pawl_extended *items = arena_take(arena, r->count * sizeof(*items),
		_Alignof(struct pawl_extended));
	if (!items) {
		return PAWL_ENOMEM;
	}
	for (size_t i = 0; i < r->count; i++) {
		const struct client_extended *from = &r->extended[i];
		items[i] = (struct pawl_extended){ .error = from->error, .token = from->token,
			.acks = from->acks, .valid_ms = from->error ? 0 : from->valid / SPAN_MS,
			.slots = { from->mode.numbers.w[0], from->mode.numbers.w[1] } };
	}
	to->extended = items;
	to->extended_count = r->count;
	return 0;
}

int copy_lists(struct arena *arena, const struct client_response *r, struct pawl_result *to) {
	int error = 0;
	if (r->holders) {
		error = copy_entries(arena, r->holders, r->holder_count, &to->holders,
			&to->holder_count);
	}
	if (!error && r->entries) {
		error = copy_entries(arena, r->entries, r->count, &to->entries, &to->entry_count);
	}
	if (!error && r->waiters) {
		error = copy_waiters(arena, r, to);
	}
	if (!error && r->acquired) {
		error = copy_got(arena, r, to);
	}
	return !error && r->extended ? copy_extended(arena, r, to) : error;
}
