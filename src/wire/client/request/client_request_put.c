/* client_request_put.c: the client's side of requests, which encodes them. */
#include "check.h"
#include "client.h"
#include "client_change.h"
#include "client_field.h"
#include "client_terms.h"
#include "pack.h"

static void request_put_lock_id(struct pack *k, struct id128 id) {
	pack_bin(k, slice_of(id.b, sizeof id.b));
}

static void request_put_locks(struct pack *k, const struct client_request *r) {
	if (r->method == CLIENT_ACQUIRE) {
		client_terms_put_group(k, r);
		return;
	}
	CHECK(r->lock_count <= CLIENT_LOCKS_MAX);
	pack_array(k, (uint32_t)r->lock_count);
	for (size_t i = 0; i < r->lock_count && !k->error; i++) {
		const struct client_lock *lock = &r->locks[i];
		pack_map(k,
			3 + (lock->token ? 1u : 0u) + (lock->binding ? 1u : 0u) +
				(permits_none(lock->numbers) ? 0u : 1u) +
				(lock->shorten ? 1u : 0u));
		pack_text(k, "key");
		pack_bin(k, lock->key);
		pack_text(k, "lock_id");
		request_put_lock_id(k, lock->lock_id);
		pack_text(k, "lease_ms");
		pack_uint(k, span_ms_down(lock->lease));
		if (lock->token) {
			pack_text(k, "token");
			pack_uint(k, lock->token);
		}
		if (lock->binding) {
			pack_text(k, lock->ordered ? "order" : "bond");
			pack_uint(k, lock->binding);
		}
		if (lock->shorten) {
			pack_text(k, "shorten");
			pack_bool(k, true);
		}
		if (!permits_none(lock->numbers)) {
			pack_text(k, "slots");
			client_permit_numbers_put(k, lock->numbers);
		}
	}
}

static void request_put_value_seq(struct pack *k, struct ballot b) {
	uint8_t bytes[CLIENT_VALUE_SEQ_BYTES];
	pack_put_be(pack_put_be(pack_put_be(bytes, b.clock, 8), b.node, 8), b.boot, 4);
	pack_bin(k, slice_of(bytes, sizeof bytes));
}

static void request_put_position(struct pack *k, struct client_position p) {
	uint8_t bytes[CLIENT_POSITION_BYTES];
	pack_put_be(pack_put_be(bytes, p.log, 8), p.sequence, 8);
	pack_bin(k, slice_of(bytes, sizeof bytes));
}

#define PARAMS_OF_TERMS \
	(CLIENT_HAS_MODE | CLIENT_HAS_PERMITS | CLIENT_HAS_OF | CLIENT_HAS_PRIORITY | \
		CLIENT_HAS_LOCK_DELAY | CLIENT_HAS_RELEASE_ON_DISCONNECT | CLIENT_HAS_LABEL | \
		CLIENT_HAS_HOST | CLIENT_HAS_PID | CLIENT_HAS_ELECTION | CLIENT_HAS_BINDING | \
		CLIENT_HAS_NUMBERS | CLIENT_HAS_ORDER)

static void request_put_param(struct pack *k, const struct client_request *r, uint64_t param) {
	const struct core_request *core = &r->core;
	switch (param) {
	case CLIENT_HAS_KEY:
	case CLIENT_HAS_PREFIX:
		pack_bin(k, core->key);
		return;
	case CLIENT_HAS_LEASE:
		pack_uint(k, span_ms_down(core->lease));
		return;
	case CLIENT_HAS_WAIT: case CLIENT_HAS_CLOSE:
		pack_uint(k, span_ms_up(param == CLIENT_HAS_WAIT ? core->wait : core->closes));
		return;
	case CLIENT_HAS_OWNER:
		pack_bin(k, core->owner);
		return;
	case CLIENT_HAS_VALUE:
		pack_bin(k, core->value);
		return;
	case CLIENT_HAS_LOCK_ID: case CLIENT_HAS_PARTY:
		request_put_lock_id(k, param == CLIENT_HAS_PARTY ? r->party : core->lock_id);
		return;
	case CLIENT_HAS_TOKEN:
		pack_uint(k, core->token);
		return;
	case CLIENT_HAS_DEADLINE_KEPT: case CLIENT_HAS_SHORTEN:
		pack_bool(k, param == CLIENT_HAS_SHORTEN ? core->shorten : core->deadline_kept);
		return;
	case CLIENT_HAS_LOCKS:
		request_put_locks(k, r);
		return;
	case CLIENT_HAS_TO:
		pack_bin(k, core->to);
		return;
	case CLIENT_HAS_FROM:
		request_put_position(k, r->from);
		return;
	case CLIENT_HAS_WATCH:
	case CLIENT_HAS_CLIENT:
		pack_uint(k, param == CLIENT_HAS_WATCH ? r->watch : r->client);
		return;
	case CLIENT_HAS_EXPECT:
		pack_bin(k, core->expected);
		return;
	case CLIENT_HAS_VALUE_SEQ:
		request_put_value_seq(k, core->expected_seq);
		return;
	case CLIENT_HAS_CONSISTENCY:
		pack_text(k, core->quorum ? "quorum" : "local");
		return;
	case CLIENT_HAS_LIMIT:
		pack_uint(k, core->limit);
		return;
	case CLIENT_HAS_AFTER:
		pack_bin(k, core->after);
		return;
	case CLIENT_HAS_FOR:
		pack_text(k, core->for_free ? "free" : "held");
		return;
	case CLIENT_HAS_NOW:
	case CLIENT_HAS_SHARES:
		pack_bool(k, param == CLIENT_HAS_NOW ? core->now : r->shares);
		return;
	}
	if (param & PARAMS_OF_TERMS) {
		client_terms_put(k, r, param);
	} else {
		client_change_put(k, core->change, param);
	}
}

int client_request_encode(const struct client_request *request, struct buffer *out) {
	struct pack k;
	pack_begin(&k, out);
	pack_array(&k, 4);
	pack_uint(&k, 0);
	pack_uint(&k, request->msgid);
	pack_text(&k, client_method_name(request->method));
	pack_array(&k, 1);
	struct pack_open map = pack_map_open(&k);
	/* The node serves a long list of locks while it reads it, and needs the trace before. */
	if (request->present & CLIENT_HAS_TRACE) {
		pack_key(&k, &map, "trace");
		pack_str(&k, request->trace);
	}
	for (uint64_t bits = request->present & ~CLIENT_HAS_TRACE; bits != 0; bits &= bits - 1) {
		uint64_t bit = bits & (~bits + 1);
		const char *name = client_param_name(request->method, bit);
		CHECK(name);
		pack_key(&k, &map, name);
		request_put_param(&k, request, bit);
	}
	pack_map_close(&k, &map);
	return pack_end(&k);
}
