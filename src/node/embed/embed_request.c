/* embed_request.c: translates the program's requests to the core's. */
#include <openssl/rand.h>
#include <unistd.h>

#include "client_entry.h"
#include "embed.h"
#include "pawl/error.h"

#define LEASE_MS_DEFAULT 30000

/* Returns false if the method is not for a node inside a program. */
static bool ask_op(enum pawl_method method, enum core_op *out) {
	switch (method) {
	case PAWL_ACQUIRE:
		*out = CORE_ACQUIRE;
		return true;
	case PAWL_EXTEND:
		*out = CORE_EXTEND;
		return true;
	case PAWL_UPDATE:
		*out = CORE_UPDATE;
		return true;
	case PAWL_RELEASE:
		*out = CORE_RELEASE;
		return true;
	case PAWL_GET:
		*out = CORE_GET;
		return true;
	case PAWL_LIST:
		*out = CORE_LIST;
		return true;
	case PAWL_WAIT:
		*out = CORE_WAIT;
		return true;
	case PAWL_WAITERS:
		*out = CORE_WAITERS;
		return true;
	case PAWL_BREAK:
		*out = CORE_BREAK;
		return true;
	case PAWL_CHANGE:
		*out = CORE_CHANGE;
		return true;
	case PAWL_DOWNGRADE:
		*out = CORE_DOWNGRADE;
		return true;
	case PAWL_TRANSFER:
		*out = CORE_TRANSFER;
		return true;
	case PAWL_ASK_RELEASE:
		*out = CORE_ASK;
		return true;
	case PAWL_STATUS:
	case PAWL_PING:
	case PAWL_DRAIN:
	case PAWL_EXPLAIN:
	case PAWL_WATCH:
	case PAWL_UNWATCH:
	case PAWL_CLIENTS:
	case PAWL_KICK:
	case PAWL_CAN:
	case PAWL_TOP:
		return false;
	}
	return false;
}

static struct slice ask_slice(struct pawl_bytes b) {
	return slice_of(b.data, b.size);
}

static bool ask_bytes_valid(const struct pawl_request *r) {
	const struct pawl_bytes all[] = { r->key, r->owner, r->value, r->after, r->label, r->to };
	bool valid = r->label.size <= CLIENT_LABEL_MAX;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		valid = valid && (all[i].data || all[i].size == 0);
	}
	return valid;
}

/* Returns false if the terms make no sense. A lock of the program ends with the node by a session
 * binding (pawl_node_release_on_disconnect), not with a connection. */
static bool ask_terms(const struct pawl_terms *from, struct terms *out) {
	*out = (struct terms){ .of = from->mode == PAWL_SHARED ? MODE_SHARED : MODE_EXCLUSIVE,
		.priority = from->priority, .delay = (span_ns)from->lock_delay_ms * SPAN_MS };
	if (from->permits || from->of) {
		out->of = (uint16_t)from->of;
		out->count = (uint16_t)from->permits;
	}
	return !from->release_on_disconnect
		&& (from->mode == PAWL_EXCLUSIVE || from->mode == PAWL_SHARED || from->permits)
		&& from->of <= PERMITS_MAX && from->permits <= from->of
		&& (from->of == 0 || from->permits > 0);
}

/* Writes what the holder says about itself. */
static struct slice ask_label(const struct pawl_node *node, const struct pawl_request *r,
	uint8_t room[LABEL_MAX]) {
	const struct client_label label = { .text = ask_slice(r->label),
		.host = slice_str(node->host), .pid = (uint32_t)getpid() };
	return slice_of(room, client_label_pack(&label, room));
}

/* Returns the lease in nanoseconds. If it is left open, it is the default, or what the cluster
 * allows beside the lock delay, if that is less. */
static span_ns ask_lease(const struct pawl_node *node, uint32_t lease_ms, span_ns delay) {
	const span_ns most = core_config(node_driver(node->node)->core)->max_lease,
		room = most > delay ? most - delay : most,
		usual = (span_ns)LEASE_MS_DEFAULT * SPAN_MS;
	return lease_ms ? (span_ns)lease_ms * SPAN_MS : room < usual ? room : usual;
}

int embed_request_read(const struct pawl_node *node, const struct pawl_request *r,
	struct embed_request *room, struct core_request *out) {
	enum core_op op;
	struct terms terms;
	if (!ask_op(r->method, &op) || !ask_bytes_valid(r) || r->locks || r->lock_count || r->keys
		|| r->key_count || r->timeout_ms || !ask_terms(&r->terms, &terms)) {
		return PAWL_EINVAL;
	}
	*out = (struct core_request){ .op = op, .key = ask_slice(r->key),
		.owner = ask_slice(r->owner), .value = ask_slice(r->value),
		.identity = slice_str(node->identity), .admin = true,
		.lease = ask_lease(node, r->lease_ms, terms.delay),
		.wait = r->wait_ms == PAWL_FOREVER ? SPAN_MAX : (span_ns)r->wait_ms * SPAN_MS,
		.token = r->token,
		.deadline_kept = r->deadline_kept, .quorum = r->quorum, .now = r->now,
		.for_free = r->for_free, .expect_value = r->expect.data,
		.expect_seq = r->expect_seq.data, .expected = ask_slice(r->expect),
		.after = ask_slice(r->after), .limit = r->limit, .terms = terms,
		.to = ask_slice(r->to), .prefix = op == CORE_WAITERS && r->prefix };
	if (op == CORE_EXTEND) {
		memcpy(out->terms.set.w, r->slots, sizeof out->terms.set.w);
	}
	if (op == CORE_CHANGE) {
		out->change = &room->change.change;
		return embed_change_read(r->change, &room->change);
	}
	if (r->expect_seq.data && !embed_seq_parse(r->expect_seq, &out->expected_seq)) {
		return PAWL_EINVAL;
	}
	memcpy(out->lock_id.b, r->lock_id.bytes, sizeof out->lock_id.b);
	if ((op == CORE_ACQUIRE || op == CORE_ASK) && r->owner.size == 0) {
		out->owner = slice_str(node->config->name);
	}
	if (op == CORE_ACQUIRE) {
		out->label = ask_label(node, r, room->label);
	}
	if (op == CORE_ACQUIRE && id128_zero(out->lock_id)
		&& RAND_bytes(out->lock_id.b, sizeof out->lock_id.b) != 1) {
		return PAWL_EIO;
	}
	return 0;
}
