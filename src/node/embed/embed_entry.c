/* embed_entry.c: shows the program what the core says about holders and waiters. */
#include "client_entry.h"
#include "embed.h"

#include "pawl/error.h"

const struct pawl_bytes embed_no_bytes = { "", 0 };
const struct pawl_entry embed_no_entry = { .key = { "", 0 }, .owner = { "", 0 }, .value = { "", 0 },
	.value_seq = { "", 0 }, .held_ms = -1, .label = "", .host = "", .identity = "" };

int embed_bytes(struct arena *arena, struct slice from, struct pawl_bytes *out) {
	uint8_t *copy = arena_take(arena, from.size + 1, 1);
	if (!copy) {
		return PAWL_ENOMEM;
	}
	if (from.size > 0) {
		memcpy(copy, from.data, from.size);
	}
	copy[from.size] = 0;
	*out = (struct pawl_bytes){ copy, from.size };
	return 0;
}

int embed_text(struct arena *arena, struct slice from, const char **out) {
	struct pawl_bytes bytes;
	int error = from.size > 0 ? embed_bytes(arena, from, &bytes) : 0;
	if (!error) {
		*out = from.size > 0 ? bytes.data : "";
	}
	return error;
}

int embed_slots(struct arena *arena, const struct terms *terms, const uint32_t **out,
	size_t *out_count) {
	size_t count = permits_count(terms->set), at = 0;
	uint32_t *slots = arena_take(arena, count * sizeof *slots, _Alignof(uint32_t));
	if (!slots) {
		return PAWL_ENOMEM;
	}
	for (uint32_t n = 0; n < PERMITS_MAX; n++) {
		if (permits_has(terms->set, n)) {
			slots[at++] = n;
		}
	}
	*out = count ? slots : NULL;
	*out_count = count;
	return 0;
}

enum pawl_mode embed_mode(const struct terms *terms) {
	switch (client_mode_of(terms).mode) {
	case CLIENT_EXCLUSIVE:
		return PAWL_EXCLUSIVE;
	case CLIENT_SHARED:
		return PAWL_SHARED;
	case CLIENT_PERMITS:
		return PAWL_PERMITS;
	}
	return PAWL_EXCLUSIVE;
}

static int entry_about(struct arena *arena, const struct core_entry *from, struct pawl_entry *out) {
	const struct client_label label = client_label_unpack(from->label);
	size_t slots = 0;
	out->mode = embed_mode(&from->terms);
	int error = embed_text(arena, label.text, &out->label);
	error = error ? error : embed_text(arena, label.host, &out->host);
	error = error ? error : embed_text(arena, from->identity, &out->identity);
	if (!error && out->mode == PAWL_PERMITS) {
		error = embed_slots(arena, &from->terms, &out->slots, &slots);
		out->permits = (uint32_t)slots;
		out->of = from->terms.of;
	}
	out->pid = label.pid;
	return error;
}

int embed_entry(struct arena *arena, const struct core_entry *from, bool contested,
	struct pawl_entry *out) {
	struct pawl_entry entry = { .held = !from->closing, .contested = contested,
		.token = from->token, .remaining_ms = from->remaining / SPAN_MS,
		.held_ms = from->age / SPAN_MS, .lock_delay_ms = from->terms.delay / SPAN_MS,
		.closing = from->closing, .closing_ms = from->closed_for / SPAN_MS,
		.holders = from->holders ? from->holders : !from->closing };
	int error = embed_bytes(arena, from->key, &entry.key);
	error = error ? error : embed_bytes(arena, from->owner, &entry.owner);
	error = error ? error : embed_bytes(arena, from->value, &entry.value);
	error = error ? error : embed_seq_copy(arena, from->value_seq, &entry.value_seq);
	error = error ? error : entry_about(arena, from, &entry);
	if (from->show_lock_id) {
		memcpy(entry.lock_id.bytes, from->lock_id.b, sizeof entry.lock_id.bytes);
	}
	if (!error) {
		*out = entry;
	}
	return error;
}

int embed_waiter(struct arena *arena, const struct core_waiter *from, const char *node,
	struct pawl_waiter *out) {
	const struct client_label label = client_label_unpack(from->label);
	struct pawl_waiter w = { .since_ms = from->since / SPAN_MS,
		.priority = from->terms.priority, .pid = label.pid,
		.mode = embed_mode(&from->terms) };
	if (w.mode == PAWL_PERMITS) {
		w.permits = from->terms.count;
		w.of = from->terms.of;
	}
	int error = embed_bytes(arena, from->owner, &w.owner);
	error = error ? error : embed_bytes(arena, from->key, &w.key);
	error = error ? error : embed_text(arena, slice_str(node), &w.node);
	error = error ? error : embed_text(arena, label.text, &w.label);
	error = error ? error : embed_text(arena, label.host, &w.host);
	error = error ? error : embed_text(arena, from->identity, &w.identity);
	memcpy(w.lock_id.bytes, from->lock_id.b, sizeof w.lock_id.bytes);
	if (!error) {
		*out = w;
	}
	return error;
}
