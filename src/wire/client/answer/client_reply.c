/* client_reply.c: the server's side of responses, which encodes what the core replies. */
#include <string.h>

#include "check.h"
#include "client_reply.h"

/* How many holders an error lists at most. */
#define HOLDERS_IN_ERROR_MAX 16

void client_reply_begin(struct pack *k, uint32_t msgid, struct buffer *out) {
	pack_begin(k, out);
	pack_array(k, 4);
	pack_uint(k, 1);
	pack_uint(k, msgid);
}

void client_reply_put_lock_id(struct pack *k, struct pack_open *map, struct id128 id) {
	char digits[CLIENT_LOCK_ID_DIGITS];
	client_lock_id_format(id, digits);
	pack_key(k, map, "lock_id");
	pack_str(k, slice_of(digits, sizeof digits));
}

/* ---- errors ---- */

static void reply_put_error_head(struct pack *k, struct pack_open *map, int error,
	struct slice field, struct slice message) {
	client_reply_put_text(k, map, "code", pawl_error_code(error));
	pack_key(k, map, "message");
	pack_str(k, message.size ? message : slice_str(pawl_error_message(error)));
	if (field.size) {
		pack_key(k, map, "field");
		pack_str(k, field);
	}
}

/* Writes a list of the names of the peers in a bit set. */
static void reply_put_names(struct pack *k, struct pack_open *map, const char *key, uint64_t set,
	const struct client_context *context) {
	pack_key(k, map, key);
	struct pack_open names = pack_array_open(k);
	for (uint32_t i = 0; i < context->peer_count && i < NODES_MAX; i++) {
		if (set & (1ull << i)) {
			pack_item(&names);
			pack_text(k, context->peers[i]->name);
		}
	}
	pack_array_close(k, &names);
}

static void reply_put_counts(struct pack *k, struct pack_open *map, uint32_t quorum, uint32_t votes,
	uint32_t acks) {
	client_reply_put_uint(k, map, "quorum", quorum);
	client_reply_put_uint(k, map, "votes", votes);
	client_reply_put_uint(k, map, "acks", acks);
}

/* The entry has the fields that are known. The lock_id is shown only to those to whom it
 * belongs. */
struct client_entry client_reply_entry(const struct core_entry *e, uint32_t without) {
	struct client_entry entry = {
		.key = e->key,
		.owner = e->owner,
		.value = e->value,
		.identity = e->identity,
		.value_seq = e->value_seq,
		.token = e->token,
		.remaining = e->remaining,
		.at_least = e->at_least,
		.at_most = e->at_most,
		.held_for = e->age,
		.lock_delay = e->terms.delay,
		.closing = e->closing,
		.closing_for = e->closed_for,
		.lock_id = e->lock_id,
		.order = e->terms.binding,
		.order_settled = e->order_settled,
		.holders = e->holders,
		.mode = client_mode_of(&e->terms)
	};
	uint32_t present = CLIENT_ENTRY_OWNER | CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ |
		CLIENT_ENTRY_TOKEN;
	/* Masters that refuse do not tell the age. */
	present |= e->age > 0 ? CLIENT_ENTRY_HELD_FOR : 0;
	present |= e->closing ? CLIENT_ENTRY_CLOSING : CLIENT_ENTRY_REMAINING;
	present |= e->weighed && !e->closing ? CLIENT_ENTRY_WEIGHED : 0;
	present |= e->show_lock_id ? CLIENT_ENTRY_LOCK_ID : 0;
	present |= e->show_lock_id && e->terms.binding ? CLIENT_ENTRY_ORDER : 0;
	present |= e->show_lock_id && e->weighed ? CLIENT_ENTRY_ORDER_SETTLED : 0;
	present |= e->identity.size ? CLIENT_ENTRY_IDENTITY : 0;
	present |= e->terms.delay ? CLIENT_ENTRY_LOCK_DELAY : 0;
	present |= e->holders ? CLIENT_ENTRY_HOLDERS : 0;
	present |= client_mode_present(&entry.mode);
	if (e->label.size) {
		entry.label = client_label_unpack(e->label);
		present |= client_label_present(&entry.label);
	}
	entry.present = present & ~without;
	return entry;
}

void client_reply_put_entry(struct pack *k, struct pack_open *map,
	const struct client_entry *entry) {
	client_field_put_all(k, map, client_entry_fields, client_entry_field_count, entry,
		entry->present);
}

/* Writes who holds the key, without the value, which a caller can read. Of many holders only some
 * are told. */
static void reply_put_holder(struct pack *k, struct pack_open *map,
	const struct core_reply *reply) {
	const uint32_t without = CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ;
	if (reply->other_of) {
		client_reply_put_uint(k, map, "other_of", reply->other_of);
	}
	if (reply->contested) {
		client_reply_put_bool(k, map, "contested", true);
	}
	if (reply->held || reply->entry.closing) {
		struct client_entry entry = client_reply_entry(&reply->entry, without);
		pack_key(k, map, "holder");
		struct pack_open holder = pack_map_open(k);
		client_reply_put_entry(k, &holder, &entry);
		pack_map_close(k, &holder);
	}
	client_reply_put_holders(k, map, reply, without, HOLDERS_IN_ERROR_MAX);
}

/* Returns whether the holder is told: the key is held, or was held to the end of the wait. */
static bool reply_has_holder(const struct core_reply *reply) {
	bool acquires = reply->op == CORE_ACQUIRE || reply->op == CORE_ACQUIRE_ALL;
	return reply->error == PAWL_EHELD || (reply->error == PAWL_ETIMEOUT && acquires);
}

static bool reply_is_about(const struct core_reply *reply, int error, const char *field) {
	return reply->error == error && reply->field && strcmp(reply->field, field) == 0;
}

/* Returns the message of an error that has a better one than its own text; "" for all others. */
static const char *reply_sentence(const struct core_reply *reply) {
	if (reply->error == PAWL_EDENIED && reply->op == CORE_EXTEND) {
		return "barred from extending by a break: what is left of the lease may be used, "
			"then take a new lock_id";
	}
	if (reply_is_about(reply, PAWL_EBADREQUEST, "lease_ms")) {
		return "is shorter than this cluster allows ([limits] lease_min of its nodes)";
	}
	if (reply_is_about(reply, PAWL_ETOOLONG, "lock_delay_ms")) {
		return "the lock delay is longer than the cluster allows a lease to be";
	}
	if (reply_is_about(reply, PAWL_ETOOLARGE, "value")) {
		return "is larger than [limits] value_bytes of this node: keep larger data "
			"elsewhere and its name here";
	}
	if (reply_is_about(reply, PAWL_EMISMATCH, "mode") && reply->op == CORE_DOWNGRADE) {
		return "is permits of a semaphore: only an exclusive lock can become a shared one";
	}
	if (reply_is_about(reply, PAWL_EMISMATCH, "mode")) {
		return "is another one than this lock_id has here: "
			"release it first, or take a new lock_id";
	}
	if (reply->error == PAWL_ENOTFOUND && reply->op == CORE_TRANSFER) {
		return "nobody of this name waits for the key: nothing was released";
	}
	if (reply->error == PAWL_ENOTFOUND && reply->op == CORE_BREAK) {
		return reply->token ? "no holder of this key has that token"
			: "nobody holds this key";
	}
	if (reply->error == PAWL_EFULL && !reply->field) {
		return "a master has no room for this: it has reached keys, memory, waiters or "
			"waiters_per_key of its [limits], and its log names which (full)";
	}
	return "";
}

static uint8_t *reply_number(uint8_t *to, uint32_t number) {
	char digits[10];
	size_t at = sizeof digits;
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return slice_put(to, slice_of(digits + at, sizeof digits - at));
}

#define REPLY_SIZE_BYTES 192
/* Writes what to ask for where the key is held as a semaphore of another size. */
static struct slice reply_other_size(const struct core_reply *reply,
	uint8_t text[REPLY_SIZE_BYTES]) {
	uint8_t *to = slice_put(text, slice_str(reply->error == PAWL_ETIMEOUT
		? "the wait has timed out: the key is held as a semaphore of "
		: "the key is held as a semaphore of "));
	to = slice_put(reply_number(to, reply->other_of), slice_str(" permits: all must name the "
		"same number, so ask for permits of "));
	return slice_of(text, (size_t)(reply_number(to, reply->other_of) - text));
}

static void reply_put_change(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_context *context) {
	client_reply_put_uint(k, map, "epoch", reply->epoch);
	client_reply_put_bool(k, map, "settled", reply->settled);
	client_reply_put_bool(k, map, "complete", reply->complete);
	reply_put_names(k, map, "missing", reply->missing, context);
}

void client_reply_put_error(struct pack *k, const struct core_reply *reply,
	const struct client_context *context) {
	struct pack_open map = pack_map_open(k);
	uint8_t text[REPLY_SIZE_BYTES];
	struct slice message = reply->why.size ? reply->why
		: reply_has_holder(reply) && reply->other_of ? reply_other_size(reply, text)
		: slice_str(reply_sentence(reply));
	reply_put_error_head(k, &map, reply->error, slice_str(reply->field ? reply->field : ""),
		message);
	if (reply->failed_key.size) {
		pack_key(k, &map, "key");
		pack_bin(k, reply->failed_key);
	}
	if (reply->quorum) {
		reply_put_counts(k, &map, reply->quorum, reply->votes, reply->acks);
	}
	if (reply->op == CORE_CHANGE && reply->epoch) {
		reply_put_change(k, &map, reply, context);
	}
	if (reply->error == PAWL_ENOQUORUM) {
		reply_put_names(k, &map, "silent", reply->silent, context);
		reply_put_names(k, &map, "not_voting", reply->not_voting, context);
	} else if (reply_has_holder(reply)) {
		reply_put_holder(k, &map, reply);
	} else if (reply->error == PAWL_EMISMATCH
		&& (reply->op == CORE_UPDATE || reply->op == CORE_RELEASE)) {
		struct client_entry entry = client_reply_entry(&reply->entry,
			~(uint32_t)(CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ));
		client_reply_put_entry(k, &map, &entry);
	} else if (reply->error == PAWL_ETOOLONG) {
		client_reply_put_uint(k, &map, "limit_ms", span_ms_down(reply->limit));
	} else if (reply_is_about(reply, PAWL_EBADREQUEST, "lease_ms")) {
		client_reply_put_uint(k, &map, "limit_ms", span_ms_up(reply->limit));
	}
	pack_map_close(k, &map);
}

int client_refusal_encode(uint32_t msgid, const struct client_refusal *refusal,
	struct buffer *out) {
	CHECK(refusal->error != 0);
	struct pack k;
	client_reply_begin(&k, msgid, out);
	struct pack_open map = pack_map_open(&k);
	reply_put_error_head(&k, &map, refusal->error, refusal->field,
		slice_str(refusal->message ? refusal->message : ""));
	if (refusal->retry_after > 0) {
		client_reply_put_uint(&k, &map, "retry_after_ms",
			span_ms_up(refusal->retry_after));
	}
	pack_map_close(&k, &map);
	pack_nil(&k);
	return pack_end(&k);
}

/* ---- results ---- */

/* Writes the mode of the lock, and the permit numbers of a semaphore. */
static void reply_put_mode(struct pack *k, struct pack_open *map, const struct terms *terms) {
	if (!terms_semaphore(terms)) {
		pack_key(k, map, "mode");
		pack_text(k, terms->of == MODE_SHARED ? "shared" : "exclusive");
		return;
	}
	struct client_lock_mode mode = client_mode_of(terms);
	client_field_put_all(k, map, client_mode_fields, CLIENT_MODE_FIELD_COUNT, &mode,
		client_mode_present(&mode));
}

static void reply_put_acquired(struct pack *k, struct pack_open *map,
	const struct core_reply *reply) {
	client_reply_put_lock_id(k, map, reply->lock_id);
	client_reply_put_uint(k, map, "token", reply->token);
	reply_put_mode(k, map, &reply->terms);
	client_reply_put_uint(k, map, "valid_ms", span_ms_down(reply->valid));
	reply_put_counts(k, map, reply->quorum, reply->votes, reply->acks);
	client_reply_put_uint(k, map, "waited_ms", span_ms_down(reply->waited));
}

/* Writes several locks that were acquired together. */
static void reply_put_group(struct pack *k, struct pack_open *map, const struct core_reply *reply) {
	pack_key(k, map, "locks");
	pack_array(k, (uint32_t)reply->count);
	for (size_t i = 0; i < reply->count; i++) {
		const struct core_lock_got *got = &reply->got[i];
		struct pack_open item = pack_map_open(k);
		pack_key(k, &item, "key");
		pack_bin(k, got->key);
		client_reply_put_lock_id(k, &item, got->lock_id);
		client_reply_put_uint(k, &item, "token", got->token);
		reply_put_mode(k, &item, &got->terms);
		pack_map_close(k, &item);
	}
	client_reply_put_uint(k, map, "valid_ms", span_ms_down(reply->valid));
	client_reply_put_uint(k, map, "waited_ms", span_ms_down(reply->waited));
}

static void reply_put_value_seq(struct pack *k, struct pack_open *map,
	const struct core_reply *reply) {
	static const struct client_field field = { "value_seq", FIELD_BALLOT,
		offsetof(struct core_reply, value_seq), 0 };
	client_field_put(k, map, &field, reply);
}

static void reply_put_broken(struct pack *k, struct pack_open *map,
	const struct core_reply *reply) {
	client_reply_put_bool(k, map, "broken", reply->released);
	if (reply->released && reply->forced) {
		client_reply_put_text(k, map, "warning",
			"the holder may still believe that it holds the key, "
			"until its lease ends");
	}
}

static void reply_put_rings(struct pack *k, struct pack_open *map,
	const struct client_context *context) {
	pack_key(k, map, "deadlocks");
	pack_array(k, context->ring_count);
	for (uint32_t i = 0; i < context->ring_count; i++) {
		const struct client_ring *ring = &context->rings[i];
		struct pack_open item = pack_map_open(k);
		client_reply_put_bool(k, &item, "refused", ring->refused);
		pack_key(k, &item, "ring");
		pack_array(k, ring->count);
		for (uint32_t m = 0; m < ring->count; m++) {
			struct pack_open member = pack_map_open(k);
			pack_key(k, &member, "owner");
			pack_bin(k, ring->members[m].owner);
			pack_key(k, &member, "key");
			pack_bin(k, ring->members[m].key);
			pack_key(k, &member, "node");
			pack_str(k, ring->members[m].node);
			pack_map_close(k, &member);
		}
		pack_map_close(k, &item);
	}
}

static void reply_put_result(struct pack *k, const struct core_reply *reply,
	const struct client_context *context) {
	struct pack_open map = pack_map_open(k);
	switch (reply->op) {
	case CORE_NONE:
		/* The core refuses such a request. */
		break;
	case CORE_ACQUIRE:
		reply_put_acquired(k, &map, reply);
		break;
	case CORE_EXTEND:
		client_reply_put_uint(k, &map, "valid_ms", span_ms_down(reply->valid));
		client_reply_put_uint(k, &map, "quorum", reply->quorum);
		client_reply_put_uint(k, &map, "acks", reply->acks);
		client_reply_put_uint(k, &map, "token", reply->token);
		if (terms_semaphore(&reply->terms)) {
			reply_put_mode(k, &map, &reply->terms);
		}
		break;
	case CORE_UPDATE:
		reply_put_value_seq(k, &map, reply);
		break;
	case CORE_RELEASE:
		client_reply_put_bool(k, &map, "released", reply->released);
		break;
	case CORE_GET:
	case CORE_WAIT:
		client_reply_put_read(k, &map, reply, context);
		break;
	case CORE_LIST:
		client_reply_put_list(k, &map, reply, context);
		break;
	case CORE_WAITERS:
		client_reply_put_waiters(k, &map, reply, context);
		break;
	case CORE_BREAK:
		reply_put_broken(k, &map, reply);
		break;
	case CORE_DOWNGRADE:
		client_reply_put_text(k, &map, "mode", "shared");
		break;
	case CORE_TRANSFER:
		client_reply_put_bool(k, &map, "transferred", reply->released);
		break;
	case CORE_ASK:
		client_reply_put_uint(k, &map, "reached", reply->reached);
		break;
	case CORE_EXPLAIN:
		client_reply_put_masters(k, &map, reply, context);
		reply_put_rings(k, &map, context);
		client_reply_put_read(k, &map, reply, context);
		break;
	case CORE_ACQUIRE_ALL:
		reply_put_group(k, &map, reply);
		break;
	case CORE_BINDING:
		/* No method of clients leads to it. */
		break;
	case CORE_CHANGE:
		reply_put_change(k, &map, reply, context);
		if (reply->why.size) {
			pack_key(k, &map, "warning");
			pack_str(k, reply->why);
		}
		break;
	}
	pack_map_close(k, &map);
}

int client_reply_encode(uint32_t msgid, const struct core_reply *reply,
	const struct client_context *context, struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	if (reply->error) {
		client_reply_put_error(&k, reply, context);
		pack_nil(&k);
	} else {
		pack_nil(&k);
		reply_put_result(&k, reply, context);
	}
	return pack_end(&k);
}
