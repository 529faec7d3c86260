/* random_draw.h: draws arguments for calls of libpawl, valid ones and others, and moods for fake
 * nodes; and reads all of a result. For test_client_random_calls.c. */
#ifndef PAWL_TESTS_RANDOM_DRAW_H
#define PAWL_TESTS_RANDOM_DRAW_H

#include <string.h>

#include "client_rig.h"
#include "unit.h"

struct draw {
	struct prng prng;
	/* Calls block, so durations are short. `forever`: somebody ends waits without an end. */
	bool short_waits, forever;
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static inline size_t draw_below(struct draw *d, size_t bound) {
	return (size_t)prng_below(&d->prng, bound);
}

static inline bool draw_one_in(struct draw *d, uint32_t n) {
	return prng_chance(&d->prng, 1, n);
}

static inline struct pawl_bytes draw_bytes(struct draw *d) {
	static const char large[70000] = "x";
	const size_t sizes[] = { 0, 1, 128, 129, 512, 513, sizeof(large) };
	return draw_one_in(d, 2) ? (struct pawl_bytes){ NULL, 0 }
		: draw_one_in(d, 100) ? (struct pawl_bytes){ NULL, 3 }
		: (struct pawl_bytes){ large,
			draw_one_in(d, 10) ? sizes[draw_below(d, LENGTH(sizes))] : 1 };
}

static inline struct pawl_bytes draw_key(struct draw *d) {
	static const char *const names[] = { "k", "p1", "p2", "k/1", "k/2" };
	return draw_one_in(d, 20) ? draw_bytes(d) : pawl_str(names[draw_below(d, LENGTH(names))]);
}

static inline struct pawl_bytes draw_name(struct draw *d) {
	static const char *const names[] = { "a", "b", "c", "\xff\n", "" };
	return pawl_str(names[draw_below(d, LENGTH(names))]);
}

static inline struct pawl_id draw_id(struct draw *d) {
	return (struct pawl_id){ { draw_one_in(d, 2) ? 0 : (uint8_t)(1 + draw_below(d, 3)) } };
}

static inline uint32_t draw_ms(struct draw *d) {
	static const uint32_t usual[] = { 0, 0, 1, 40, 1000, 6000, 30000, UINT32_MAX - 1 };
	static const uint32_t brief[] = { 0, 0, 1, 2, 5 };
	return d->short_waits ? brief[draw_below(d, LENGTH(brief))]
		: usual[draw_below(d, LENGTH(usual))];
}

static inline uint32_t draw_wait_ms(struct draw *d) {
	const bool endless = !d->short_waits || d->forever;
	return endless && draw_one_in(d, 4) ? PAWL_FOREVER : draw_ms(d);
}

static inline uint32_t draw_lease_ms(struct draw *d) {
	static const uint32_t leases[] = { 0, 0, 1, 20, 300, 3000, 30000, UINT32_MAX };
	return leases[draw_below(d, LENGTH(leases))];
}

static inline struct pawl_terms draw_terms(struct draw *d) {
	const bool permits = draw_one_in(d, 4);
	return (struct pawl_terms){
		.mode = draw_one_in(d, 30) ? PAWL_PERMITS
			: draw_one_in(d, 3) ? PAWL_SHARED : PAWL_EXCLUSIVE,
		.permits = permits ? (uint32_t)draw_below(d, 5) : 0,
		.of = permits ? (uint32_t)draw_below(d, 5) * 40 : 0,
		.priority = (int32_t)draw_below(d, 3) - 1,
		.lock_delay_ms = draw_one_in(d, 8) ? draw_lease_ms(d) : 0,
		.release_on_disconnect = draw_one_in(d, 4),
	};
}

static inline const char *draw_trace(struct draw *d) {
	static const char good[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	return draw_one_in(d, 12) ? draw_one_in(d, 4) ? "no trace" : good : NULL;
}

static inline size_t draw_keys(struct draw *d, struct pawl_key_item *items, size_t room) {
	static const char *const names[] = { "k", "p1", "p2", "k/1" };
	const size_t count = draw_one_in(d, 20) ? 0 : 1 + draw_below(d, room);
	const bool named = draw_one_in(d, 4);
	for (size_t i = 0; i < count; i++) {
		const struct pawl_terms terms = draw_terms(d);
		items[i] = (struct pawl_key_item){ .mode = terms.mode, .permits = terms.permits,
			.of = terms.of,
			.key = draw_one_in(d, 20) ? draw_key(d) : pawl_str(names[i % 4]) };
		items[i].lock_id.bytes[0] = named ? (uint8_t)(1 + i) : 0;
	}
	return count;
}

struct drawn_request {
	struct pawl_request request;
	struct pawl_change change;
	struct pawl_change_node nodes[3];
	struct pawl_key_item keys[3];
	struct pawl_extend_item locks[3];
};

static inline void draw_change(struct draw *d, struct drawn_request *r) {
	static const char *const names[] = { "n1", "n2", "", NULL };
	for (size_t i = 0; i < LENGTH(r->nodes); i++) {
		r->nodes[i] = (struct pawl_change_node){ names[draw_below(d, 4)],
			draw_one_in(d, 2) ? "h:1" : NULL, draw_one_in(d, 2) };
	}
	r->change = (struct pawl_change){ .kind = (enum pawl_change_kind)draw_below(d, 10),
		.name = names[draw_below(d, 4)], .other = names[draw_below(d, 4)],
		.address = draw_one_in(d, 2) ? "h:1" : NULL, .nodes = r->nodes,
		.node_count = draw_below(d, 4), .max_lease_ms = draw_ms(d),
		.request_timeout_ms = draw_ms(d), .promise_timeout_ms = draw_ms(d),
		.clock_drift_ppm = (uint32_t)draw_below(d, 20000),
		.has_clock_drift = draw_one_in(d, 2), .anyway = draw_one_in(d, 2) };
}

/* A change without a wait_ms waits for ten minutes. */
static inline uint32_t request_wait_ms(struct draw *d, enum pawl_method method) {
	const uint32_t wait_ms = draw_wait_ms(d);
	return method == PAWL_CHANGE && d->short_waits && wait_ms == 0 ? 1 : wait_ms;
}

static inline void draw_request(struct draw *d, struct drawn_request *r) {
	draw_change(d, r);
	for (size_t i = 0; i < LENGTH(r->locks); i++) {
		r->locks[i] = (struct pawl_extend_item){ .key = draw_key(d), .lock_id = draw_id(d),
			.lease_ms = draw_lease_ms(d), .bond = (uint32_t)draw_below(d, 3),
			.token = draw_below(d, 3), .slots = { draw_below(d, 5), 0 } };
	}
	const enum pawl_method method = (enum pawl_method)draw_below(d, PAWL_METHOD_LAST + 2);
	r->request = (struct pawl_request){ .method = method,
		.key = draw_key(d), .lock_id = draw_id(d), .lease_ms = draw_lease_ms(d),
		.wait_ms = request_wait_ms(d, method), .timeout_ms = draw_ms(d),
		.owner = draw_bytes(d), .value = draw_bytes(d), .expect = draw_bytes(d),
		.expect_seq = draw_one_in(d, 4) ? draw_bytes(d) : pawl_str(NULL),
		.token = draw_below(d, 3), .slots = { draw_below(d, 5), 0 },
		.deadline_kept = draw_one_in(d, 2), .locks = r->locks,
		.lock_count = draw_below(d, LENGTH(r->locks) + 1), .quorum = draw_one_in(d, 2),
		.now = draw_one_in(d, 2), .for_free = draw_one_in(d, 2),
		.shares = draw_one_in(d, 2), .limit = (uint32_t)draw_below(d, 4),
		.after = draw_bytes(d), .change = draw_one_in(d, 9) ? NULL : &r->change,
		.terms = draw_terms(d), .label = draw_bytes(d), .election = draw_one_in(d, 4),
		.to = draw_name(d), .keys = r->keys, .prefix = draw_one_in(d, 2),
		.client = draw_below(d, 3), .trace = draw_trace(d), .party = draw_id(d) };
	r->request.key_count = draw_one_in(d, 3) ? draw_keys(d, r->keys, LENGTH(r->keys)) : 0;
}

/* Makes a client, if the options allow it, and frees it. */
static inline void draw_client(struct draw *d) {
	static const char *const endpoints[] = { "", ",", "x", "tls://[::1", "unix:", "h:0",
		"127.0.0.1:1,127.0.0.1:1" };
	const struct pawl_options options = { .endpoints = endpoints[draw_below(d,
		LENGTH(endpoints))], .owner = draw_bytes(d), .label = draw_bytes(d),
		.trace = draw_trace(d), .ca_file = draw_one_in(d, 3) ? "/nowhere" : NULL };
	struct pawl *client = NULL;
	if (pawl_new(&options, &client, NULL) == 0) {
		pawl_free(client);
	}
}

/* ---- nodes ---- */

static inline void draw_node(struct draw *d, struct fake_node *n) {
	static const int errors[] = { PAWL_EHELD, PAWL_ETIMEOUT, PAWL_ENOQUORUM, PAWL_ELOST,
		PAWL_EUNSURE, PAWL_ENOTFOUND, PAWL_EMISMATCH, PAWL_ERECOVERING, PAWL_ETOOLONG,
		PAWL_ETOOLARGE, PAWL_EFULL, PAWL_EDENIED, PAWL_EBADREQUEST, PAWL_EBUSY,
		PAWL_EQUOTA, PAWL_EDEADLOCK, PAWL_EMOVED };
	n->mood = draw_one_in(d, 2) ? FAKE_ANSWERS
		: (enum fake_mood)draw_below(d, FAKE_WANTS_TLS + 1);
	n->error = draw_one_in(d, 6) ? errors[draw_below(d, LENGTH(errors))] : 0;
	n->acquire_error = draw_one_in(d, 6) ? errors[draw_below(d, LENGTH(errors))] : 0;
	n->error_of_item = draw_one_in(d, 4) ? errors[draw_below(d, LENGTH(errors))] : 0;
	/* Whoever goes there once more is told so once more, or is served. */
	n->moved_to[0] = n->endpoint;
	n->ping_error = draw_one_in(d, 20) ? PAWL_EBUSY : 0;
	n->retry_after = draw_one_in(d, 3) ? (span_ns)draw_below(d, 50) * SPAN_MS : 0;
	n->numbers_of_item = draw_one_in(d, 3) ? draw_below(d, 8) : 0;
	n->valid_permille = draw_one_in(d, 4) ? (uint32_t)draw_below(d, 991) : 990;
	n->waited = draw_one_in(d, 4) ? (span_ns)draw_below(d, 100) * SPAN_S : 0;
	n->lease_most = draw_one_in(d, 6) ? (span_ns)draw_lease_ms(d) * SPAN_MS : 0;
	n->watches_most = draw_one_in(d, 3) ? 1 : 0;
	n->waiter = draw_one_in(d, 3) ? "b" : NULL;
	n->held = draw_one_in(d, 2);
	n->ends = draw_one_in(d, 5) ? "p1" : NULL;
	n->unsure_binds = (unsigned)draw_below(d, 3);
	n->knows_no_elections = draw_one_in(d, 9);
	n->knows_no_parties = draw_one_in(d, 9);
	n->knows_no_traces = draw_one_in(d, 9);
}

/* Something happens at the node. */
static inline void draw_happening(struct draw *d, struct fake_node *n) {
	const bool heard = n->watch && n->watcher && n->watcher->fd >= 0;
	switch (draw_below(d, 6)) {
	case 0:
		fake_hang_up(n);
		break;
	case 1:
		fake_let_go(n);
		break;
	case 2:
		if (heard) {
			fake_ask(n, "b", draw_one_in(d, 2) ? "b" : "", (int32_t)draw_below(d, 3));
		}
		break;
	case 3:
		if (heard) {
			fake_overflow(n);
		}
		break;
	default:
		if (heard) {
			fake_event(n,
				draw_one_in(d, 2) ? WATCH_EVENT_ACQUIRED : WATCH_EVENT_RELEASED,
				"b", "v", ++n->token);
		}
		break;
	}
}

/* ---- results ---- */

/* A NUL follows the bytes that the library hands out. */
static inline void read_bytes(struct pawl_bytes b) {
	assert_int_equal(((const char *)b.data)[b.size], 0);
	assert_true(memchr(b.data, 0, b.size + 1) != NULL);
}

static inline void read_entry(const struct pawl_entry *e) {
	read_bytes(e->key);
	read_bytes(e->owner);
	read_bytes(e->value);
	read_bytes(e->value_seq);
	read_bytes(pawl_str(e->label));
	read_bytes(pawl_str(e->host));
	read_bytes(pawl_str(e->identity));
}

static inline void read_result(const struct pawl_result *r) {
	assert_in_range(-r->error, 0, 40);
	assert_string_not_equal(pawl_error_code(r->error), "unknown");
	const char *const texts[] = { r->message, r->endpoint, r->field, r->node, r->role,
		r->version, r->warning };
	for (size_t i = 0; i < LENGTH(texts); i++) {
		read_bytes(pawl_str(texts[i]));
	}
	read_bytes(r->key);
	read_bytes(r->value_seq);
	read_entry(&r->entry);
	for (size_t i = 0; i < r->entry_count; i++) {
		read_entry(&r->entries[i]);
	}
	for (size_t i = 0; i < r->holder_count; i++) {
		read_entry(&r->holders[i]);
	}
	for (size_t i = 0; i < r->waiter_count; i++) {
		read_bytes(r->waiters[i].owner);
	}
	for (size_t i = 0; i < r->got_count; i++) {
		read_bytes(r->got[i].key);
	}
	assert_true(pawl_result_valid_ms(r) >= 0);
}

#endif
