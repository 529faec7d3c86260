/* These tests have round trips of requests, and every refusal by its name. */
#include <stdio.h>

#include "unit.h"

#include <msgpack.h>

#include "client.h"
#include "wire_random.h"

struct request_test {
	struct allocator alloc;
	struct prng prng;
	struct buffer bytes;
	struct client_decoder decoder;
	struct client_request got;
	struct client_refusal refusal;
};

static int setup(void **state) {
	static struct request_test t;
	t.alloc = alloc_libc(NULL);
	prng_init(&t.prng, 11);
	wire_pool_fill(&t.prng);
	buffer_init(&t.bytes, &t.alloc, client_request_limits.bytes);
	client_decoder_init(&t.decoder, &t.alloc);
	*state = &t;
	return 0;
}

static int teardown(void **state) {
	struct request_test *t = *state;
	buffer_done(&t->bytes);
	client_decoder_done(&t->decoder);
	return 0;
}

/* Reads what the bytes begin with, without looking for its end before. */
static size_t decode_short(struct request_test *t, struct slice in) {
	return client_request_decode_short(&t->decoder, in, &t->got);
}

static int decode(struct request_test *t, const void *data, size_t size) {
	struct client_scanner s = { 0 };
	size_t end = 0;
	assert_int_equal(decode_short(t, slice_of(data, size)), size <= 1024 ? size : 0);
	assert_int_equal(client_scan(&s, &client_request_limits, slice_of(data, size), &end),
		CLIENT_SCAN_COMPLETE);
	assert_int_equal(end, size);
	return client_request_decode(&t->decoder, slice_of(data, size), &t->got, &t->refusal);
}

/* These are the fields that a method may have in addition to those that it needs. */
#define OF_TAKER \
	(CLIENT_HAS_PRIORITY | CLIENT_HAS_LOCK_DELAY | CLIENT_HAS_RELEASE_ON_DISCONNECT | \
		CLIENT_HAS_LABEL | CLIENT_HAS_HOST | CLIENT_HAS_PID | CLIENT_HAS_ELECTION | \
		CLIENT_HAS_BINDING)
static const struct { enum client_method method; uint64_t needs, may; } methods[] = {
	{ CLIENT_ACQUIRE, CLIENT_HAS_KEY | CLIENT_HAS_LEASE, OF_TAKER | CLIENT_HAS_MODE },
	{ CLIENT_ACQUIRE,
		CLIENT_HAS_KEY | CLIENT_HAS_LEASE | CLIENT_HAS_PERMITS | CLIENT_HAS_OF,
		OF_TAKER | CLIENT_HAS_LOCK_ID },
	{ CLIENT_ACQUIRE, CLIENT_HAS_LOCKS | CLIENT_HAS_LEASE,
		OF_TAKER | CLIENT_HAS_WAIT | CLIENT_HAS_OWNER | CLIENT_HAS_VALUE },
	{ CLIENT_DOWNGRADE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID, 0 },
	{ CLIENT_TRANSFER, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_TO, 0 },
	{ CLIENT_ASK_RELEASE, CLIENT_HAS_KEY,
		CLIENT_HAS_OWNER | CLIENT_HAS_TO | CLIENT_HAS_PRIORITY },
	{ CLIENT_EXPLAIN, CLIENT_HAS_KEY, 0 },
	{ CLIENT_TOP, 0, CLIENT_HAS_PREFIX },
	{ CLIENT_WAITERS, CLIENT_HAS_PREFIX, CLIENT_HAS_LIMIT },
	{ CLIENT_WATCH, CLIENT_HAS_KEY, CLIENT_HAS_FROM },
	{ CLIENT_WATCH, CLIENT_HAS_PREFIX, CLIENT_HAS_FROM },
	{ CLIENT_UNWATCH, CLIENT_HAS_WATCH, 0 },
	{ CLIENT_CLIENTS, 0, CLIENT_HAS_LIMIT | CLIENT_HAS_CLIENT },
	{ CLIENT_KICK, CLIENT_HAS_CLIENT, 0 },
	{ CLIENT_ACQUIRE, CLIENT_HAS_KEY | CLIENT_HAS_LEASE,
		CLIENT_HAS_WAIT | CLIENT_HAS_OWNER | CLIENT_HAS_VALUE | CLIENT_HAS_LOCK_ID |
			CLIENT_HAS_PARTY },
	{ CLIENT_EXTEND, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_LEASE,
		CLIENT_HAS_TOKEN | CLIENT_HAS_DEADLINE_KEPT | CLIENT_HAS_BINDING |
			CLIENT_HAS_PARTY },
	{ CLIENT_EXTEND, CLIENT_HAS_LOCKS, CLIENT_HAS_DEADLINE_KEPT | CLIENT_HAS_PARTY },
	{ CLIENT_UPDATE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_VALUE,
		CLIENT_HAS_EXPECT },
	{ CLIENT_UPDATE,
		CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_VALUE | CLIENT_HAS_VALUE_SEQ, 0 },
	{ CLIENT_RELEASE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID, CLIENT_HAS_CLOSE },
	{ CLIENT_GET, CLIENT_HAS_KEY, CLIENT_HAS_CONSISTENCY },
	{ CLIENT_LIST, 0, CLIENT_HAS_PREFIX | CLIENT_HAS_LIMIT | CLIENT_HAS_AFTER },
	{ CLIENT_WAIT, CLIENT_HAS_KEY | CLIENT_HAS_FOR, CLIENT_HAS_WAIT },
	{ CLIENT_WAITERS, CLIENT_HAS_KEY, 0 },
	{ CLIENT_BREAK, CLIENT_HAS_KEY, CLIENT_HAS_TOKEN | CLIENT_HAS_NOW },
	{ CLIENT_STATUS, 0, 0 },
	{ CLIENT_PING, 0, 0 },
	{ CLIENT_DRAIN, 0, 0 },
	{ CLIENT_CLUSTER_ADD_REPLICA, CLIENT_HAS_NAME, CLIENT_HAS_ADDRESS },
	{ CLIENT_CLUSTER_PROMOTE, CLIENT_HAS_NAME, CLIENT_HAS_ANYWAY },
	{ CLIENT_CLUSTER_DEMOTE, CLIENT_HAS_NAME, CLIENT_HAS_ANYWAY },
	{ CLIENT_CLUSTER_REMOVE, CLIENT_HAS_NAME, CLIENT_HAS_ANYWAY },
	{ CLIENT_CLUSTER_REPLACE, CLIENT_HAS_OLD | CLIENT_HAS_NEW, CLIENT_HAS_ANYWAY },
	{ CLIENT_CLUSTER_SET_NODES, CLIENT_HAS_MASTERS, CLIENT_HAS_REPLICAS | CLIENT_HAS_ANYWAY },
	{ CLIENT_CLUSTER_SET_TIMING, CLIENT_HAS_MAX_LEASE,
		CLIENT_HAS_REQUEST_TIMEOUT | CLIENT_HAS_PROMISE_TIMEOUT | CLIENT_HAS_DRIFT },
	{ CLIENT_CLUSTER_FORCE, CLIENT_HAS_YES, 0 },
};
#define METHODS (sizeof methods / sizeof methods[0])

static span_ns random_ms(struct prng *p) {
	return prng_between(p, 1, 100000) * SPAN_MS;
}

static struct slice node_name(size_t i) {
	static char names[8][NODE_NAME_MAX + 1];
	snprintf(names[i], sizeof names[i], "node-%zu%.*s", i, (int)i * 7,
		".of_some.very_long-name.that.is_still.allowed..63.letters");
	return slice_str(names[i]);
}

static struct slice node_address(struct prng *p) {
	static const char *const addresses[] = { "127.0.0.1:1", "[::1]:65535", "db-1.example:7100",
		"h:7" };
	return slice_str(addresses[prng_below(p, 4)]);
}

/* The change has one place for all requests: a test has one request at a time. */
static const struct core_change *random_change(struct prng *p, enum client_method method,
	uint64_t has) {
	static struct core_change c;
	static struct core_change_node nodes[8];
	c = (struct core_change){ .kind = (enum change_kind)(method - CLIENT_CLUSTER_ADD_REPLICA) };
	c.name = has & (CLIENT_HAS_NAME | CLIENT_HAS_OLD) ? node_name(prng_below(p, 8)) : c.name;
	c.other = has & CLIENT_HAS_NEW ? node_name(prng_below(p, 8)) : c.other;
	c.address = has & CLIENT_HAS_ADDRESS ? node_address(p) : c.address;
	c.anyway = has & CLIENT_HAS_YES || (has & CLIENT_HAS_ANYWAY && prng_chance(p, 1, 2));
	c.max_lease = has & CLIENT_HAS_MAX_LEASE ? prng_between(p, 1, 100000) * SPAN_MS : 0;
	c.request_timeout = has & CLIENT_HAS_REQUEST_TIMEOUT ? prng_between(p, 1,
		100000) * SPAN_MS : 0;
	c.promise_timeout = has & CLIENT_HAS_PROMISE_TIMEOUT ? prng_between(p, 1,
		100000) * SPAN_MS : 0;
	c.has_drift = (has & CLIENT_HAS_DRIFT) != 0;
	c.drift_ppm = c.has_drift ? (uint32_t)prng_below(p, 100001) : 0;
	if (has & CLIENT_HAS_MASTERS) {
		uint32_t masters = 1 + (uint32_t)prng_below(p, 4),
			replicas = has & CLIENT_HAS_REPLICAS ? (uint32_t)prng_below(p, 5) : 0;
		c.nodes = nodes;
		c.node_count = masters + replicas;
		for (uint32_t i = 0; i < c.node_count; i++) {
			nodes[i] = (struct core_change_node){ node_name(i), prng_chance(p, 1, 2)
				? node_address(p) : slice_of(NULL, 0), i < masters };
		}
	}
	return &c;
}

static uint16_t random_permits(struct prng *p, uint16_t max) {
	return (uint16_t)(1 + prng_below(p, max));
}

/* Makes a request for several keys, without the fields that these exclude. */
static void random_group(struct prng *p, struct client_request *r) {
	static struct core_lock group[CORE_LOCKS_MAX];
	r->core.locks = group;
	r->core.lock_count = (uint32_t)(1 + prng_below(p, CORE_LOCKS_MAX));
	for (uint32_t i = 0; i < r->core.lock_count; i++) {
		group[i] = (struct core_lock){ .key = wire_bytes(p, 1, KEY_MAX),
			.of = prng_chance(p, 1, 2) ? MODE_SHARED : MODE_EXCLUSIVE };
		group[i].lock_id = prng_chance(p, 1, 2) ? wire_id(p) : group[i].lock_id;
		/* Each key has a lock_id of its own. */
		group[i].lock_id.b[1] = id128_zero(group[i].lock_id) ? 0 : (uint8_t)i;
		if (prng_chance(p, 1, 3)) {
			group[i].of = random_permits(p, PERMITS_MAX);
			group[i].count = random_permits(p, group[i].of);
		}
	}
}

/* What follows says how the lock is acquired, and who acquires it. */
static struct permits random_numbers(struct prng *p) {
	return (struct permits){ { prng_next(p) | 1, prng_next(p) } };
}

static void random_terms(struct prng *p, struct client_request *r, uint8_t label[LABEL_MAX]) {
	struct terms *terms = &r->core.terms;
	uint64_t has = r->present;
	terms->of = has & CLIENT_HAS_MODE && prng_chance(p, 1, 2) ? MODE_SHARED : MODE_EXCLUSIVE;
	terms->of = has & CLIENT_HAS_OF ? random_permits(p, PERMITS_MAX) : terms->of;
	terms->count = has & CLIENT_HAS_PERMITS ? random_permits(p, terms->of) : 0;
	terms->priority = has & CLIENT_HAS_PRIORITY ? wire_terms(p).priority : 0;
	terms->delay = has & CLIENT_HAS_LOCK_DELAY ? random_ms(p) : 0;
	r->release_on_disconnect = has & CLIENT_HAS_RELEASE_ON_DISCONNECT && prng_chance(p, 1, 2);
	r->core.terms.set =
		has & CLIENT_HAS_NUMBERS ? random_numbers(p) : (struct permits){ { 0, 0 } };
	r->core.binding =
		has & CLIENT_HAS_BINDING ? 1 + (uint32_t)wire_number(p, UINT32_MAX - 1) : 0;
	terms->binding = !r->release_on_disconnect ? 0 : r->core.binding ? r->core.binding : 1;
	r->label.text = has & CLIENT_HAS_LABEL ? wire_bytes(p, 0, CLIENT_LABEL_MAX) : r->label.text;
	r->label.host = has & CLIENT_HAS_HOST ? wire_bytes(p, 0, CLIENT_HOST_MAX) : r->label.host;
	r->label.pid = has & CLIENT_HAS_PID ? 1 + (uint32_t)wire_number(p, UINT32_MAX - 1) : 0;
	r->label.election = has & CLIENT_HAS_ELECTION && prng_chance(p, 1, 2);
	r->core.label = slice_of(label, client_label_pack(&r->label, label));
	r->core.to = has & CLIENT_HAS_TO ? wire_bytes(p, 0, OWNER_MAX) : r->core.to;
	r->client = has & CLIENT_HAS_CLIENT ? 1 + wire_number(p, UINT64_MAX - 1) : 0;
	r->watch = has & CLIENT_HAS_WATCH ? 1 + wire_number(p, UINT64_MAX - 1) : 0;
	r->from = (struct client_position){ has & CLIENT_HAS_FROM ? prng_next(p) : 0,
		has & CLIENT_HAS_FROM ? prng_next(p) : 0 };
}

static struct client_request random_request(struct request_test *t, size_t row,
	struct client_lock *locks) {
	static uint8_t label[LABEL_MAX];
	struct prng *p = &t->prng;
	uint64_t has = methods[row].needs | (methods[row].may & prng_next(p));
	has |= prng_chance(p, 1, 4) ? CLIENT_HAS_TRACE : 0;
	struct client_request r = { .msgid = (uint32_t)wire_number(p, UINT32_MAX),
		.method = methods[row].method, .present = has };
	struct core_request *c = &r.core;
	client_method_op(r.method, &c->op);
	c->key = has & (CLIENT_HAS_KEY | CLIENT_HAS_PREFIX) ? wire_bytes(p, 1, KEY_MAX) : c->key;
	c->lease = has & CLIENT_HAS_LEASE ? random_ms(p) : 0;
	c->wait = r.method == CLIENT_WAIT ? (span_ns)CLIENT_MS_MAX * SPAN_MS : 0;
	c->wait = has & CLIENT_HAS_WAIT ? random_ms(p) : c->wait;
	c->owner = has & CLIENT_HAS_OWNER ? wire_bytes(p, 0, OWNER_MAX) : c->owner;
	c->value = has & CLIENT_HAS_VALUE ? wire_bytes(p, 0, 40000) : c->value;
	c->lock_id = has & CLIENT_HAS_LOCK_ID ? wire_id(p) : c->lock_id;
	r.party = has & CLIENT_HAS_PARTY ? wire_id(p) : r.party;
	c->token = has & CLIENT_HAS_TOKEN ? 1 + wire_number(p, TOKEN_MAX - 1) : 0;
	c->deadline_kept = has & CLIENT_HAS_DEADLINE_KEPT && prng_chance(p, 1, 2);
	c->closes = has & CLIENT_HAS_CLOSE ? random_ms(p) : 0;
	c->expect_value = (has & CLIENT_HAS_EXPECT) != 0;
	c->expected = c->expect_value ? wire_bytes(p, 0, 300) : c->expected;
	/* A value of this size would be read as a value_seq. */
	c->expected.size -= c->expected.size == CLIENT_VALUE_SEQ_BYTES;
	c->expect_seq = (has & CLIENT_HAS_VALUE_SEQ) != 0;
	c->expected_seq = c->expect_seq ? wire_ballot(p) : c->expected_seq;
	c->quorum = has & CLIENT_HAS_CONSISTENCY && prng_chance(p, 1, 2);
	c->limit = has & CLIENT_HAS_LIMIT ? 1 + (uint32_t)prng_below(p,
		1000) : r.method == CLIENT_LIST || r.method == CLIENT_CLIENTS ||
		(has & CLIENT_HAS_PREFIX && r.method == CLIENT_WAITERS) ? 100 : 0;
	c->prefix = has & CLIENT_HAS_PREFIX && r.method != CLIENT_LIST;
	c->after = has & CLIENT_HAS_AFTER ? wire_bytes(p, 0, KEY_MAX) : c->after;
	c->for_free = has & CLIENT_HAS_FOR && prng_chance(p, 1, 2);
	c->now = has & CLIENT_HAS_NOW && prng_chance(p, 1, 2);
	if (client_method_changes(r.method)) {
		c->change = random_change(p, r.method, has);
	}
	if (has & CLIENT_HAS_TRACE) {
		r.trace = slice_str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
	}
	random_terms(p, &r, label);
	if (has & CLIENT_HAS_LOCKS && r.method == CLIENT_ACQUIRE) {
		c->op = CORE_ACQUIRE_ALL;
		random_group(p, &r);
	} else if (has & CLIENT_HAS_LOCKS) {
		r.locks = locks;
		r.lock_count = 1 + prng_below(p, 50);
		for (size_t i = 0; i < r.lock_count; i++) {
			locks[i] = (struct client_lock){ wire_bytes(p, 1, KEY_MAX), wire_id(p),
				random_ms(p), wire_number(p, TOKEN_MAX),
				(uint32_t)wire_number(p, UINT32_MAX), random_numbers(p), false,
				false };
		}
	}
	return r;
}

static void assert_changes_equal(const struct core_change *a, const struct core_change *b) {
	assert_true(a->kind == b->kind && slice_equal(a->name, b->name) &&
		slice_equal(a->other, b->other));
	assert_true(slice_equal(a->address, b->address) && a->anyway == b->anyway);
	assert_true(a->max_lease == b->max_lease && a->request_timeout == b->request_timeout &&
		a->promise_timeout == b->promise_timeout);
	assert_true(a->has_drift == b->has_drift && a->drift_ppm == b->drift_ppm);
	assert_int_equal(a->node_count, b->node_count);
	for (uint32_t i = 0; i < a->node_count; i++) {
		const struct core_change_node *x = &a->nodes[i], *y = &b->nodes[i];
		assert_true(slice_equal(x->name, y->name) && slice_equal(x->address, y->address) &&
			x->master == y->master);
	}
}

static void assert_terms_equal(const struct client_request *a, const struct client_request *b) {
	const struct core_request *x = &a->core, *y = &b->core;
	assert_true(x->terms.of == y->terms.of && x->terms.count == y->terms.count &&
		x->terms.priority == y->terms.priority);
	assert_true(x->terms.delay == y->terms.delay && x->terms.binding == y->terms.binding &&
		x->binding == y->binding);
	assert_true(a->release_on_disconnect == b->release_on_disconnect && a->watch == b->watch &&
		a->client == b->client);
	assert_true(a->from.log == b->from.log && a->from.sequence == b->from.sequence);
	assert_true(slice_equal(a->label.text, b->label.text) &&
		slice_equal(a->label.host, b->label.host) && a->label.pid == b->label.pid);
	assert_true(slice_equal(x->label, y->label) && slice_equal(x->to, y->to) &&
		x->prefix == y->prefix);
	assert_int_equal(x->lock_count, y->lock_count);
	for (uint32_t i = 0; i < x->lock_count; i++) {
		const struct core_lock *l = &x->locks[i], *m = &y->locks[i];
		assert_true(slice_equal(l->key, m->key) && id128_equal(l->lock_id, m->lock_id) &&
			l->of == m->of && l->count == m->count);
	}
}

static void assert_requests_equal(const struct client_request *a, const struct client_request *b) {
	const struct core_request *x = &a->core, *y = &b->core;
	assert_true(a->msgid == b->msgid && a->method == b->method && a->present == b->present);
	assert_true(x->op == y->op && slice_equal(x->key, y->key) &&
		slice_equal(x->owner, y->owner));
	assert_true(slice_equal(x->value, y->value) && id128_equal(x->lock_id, y->lock_id));
	assert_true(id128_equal(a->party, b->party));
	assert_true(x->lease == y->lease && x->wait == y->wait && x->token == y->token);
	assert_memory_equal(&x->terms.set, &y->terms.set, sizeof x->terms.set);
	assert_true(x->deadline_kept == y->deadline_kept && x->quorum == y->quorum &&
		x->now == y->now);
	assert_true(x->for_free == y->for_free && x->expect_value == y->expect_value &&
		x->expect_seq == y->expect_seq);
	assert_true(slice_equal(x->expected, y->expected) &&
		ballot_compare(x->expected_seq, y->expected_seq) == 0);
	assert_true(slice_equal(x->after, y->after) && x->limit == y->limit);
	assert_true(slice_equal(a->trace, b->trace));
	assert_terms_equal(a, b);
	assert_int_equal(a->lock_count, b->lock_count);
	assert_int_equal(x->change != NULL, y->change != NULL);
	if (x->change) {
		assert_changes_equal(x->change, y->change);
	}
	for (size_t i = 0; i < a->lock_count; i++) {
		assert_true(slice_equal(a->locks[i].key, b->locks[i].key) &&
			id128_equal(a->locks[i].lock_id, b->locks[i].lock_id));
		assert_true(a->locks[i].lease == b->locks[i].lease &&
			a->locks[i].token == b->locks[i].token &&
			a->locks[i].binding == b->locks[i].binding);
		assert_memory_equal(&a->locks[i].numbers, &b->locks[i].numbers,
			sizeof a->locks[i].numbers);
	}
}

static void every_method_comes_back_as_it_was(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	for (int n = 0; n < 200; n++) {
		for (size_t row = 0; row < METHODS; row++) {
			struct client_request sent = random_request(t, row, locks);
			buffer_clear(&t->bytes);
			assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
			assert_int_equal(decode(t, t->bytes.data, t->bytes.size), 0);
			assert_requests_equal(&sent, &t->got);
		}
	}
}

static void what_is_written_is_messagepack_rpc(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	for (size_t row = 0; row < METHODS; row++) {
		struct client_request sent = random_request(t, row, locks);
		msgpack_unpacked result;
		size_t offset = 0;
		buffer_clear(&t->bytes);
		assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
		msgpack_unpacked_init(&result);
		assert_int_equal(msgpack_unpack_next(&result, (const char *)t->bytes.data,
			t->bytes.size, &offset), MSGPACK_UNPACK_SUCCESS);
		assert_int_equal(offset, t->bytes.size);
		assert_int_equal(result.data.via.array.size, 4);
		const msgpack_object *parts = result.data.via.array.ptr;
		assert_int_equal(parts[0].via.u64, 0);
		assert_int_equal(parts[1].via.u64, sent.msgid);
		assert_int_equal(parts[3].via.array.size, 1);
		assert_int_equal(parts[3].via.array.ptr[0].type, MSGPACK_OBJECT_MAP);
		msgpack_unpacked_destroy(&result);
	}
}

static void every_truncation_is_refused(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	for (size_t row = 0; row < METHODS; row++) {
		struct client_request sent = random_request(t, row, locks);
		sent.core.value.size = sent.core.value.size > 40 ? 40 : sent.core.value.size;
		sent.lock_count = sent.lock_count > 2 ? 2 : sent.lock_count;
		buffer_clear(&t->bytes);
		assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
		for (size_t size = 0; size < t->bytes.size; size++) {
			uint8_t *cut = wire_exact(t->bytes.data, size);
			struct client_scanner s = { 0 };
			size_t end;
			assert_int_equal(decode_short(t, slice_of(cut, size)), 0);
			assert_int_equal(client_scan(&s, &client_request_limits,
				slice_of(cut, size), &end), CLIENT_SCAN_MORE);
			assert_int_not_equal(client_request_decode(&t->decoder, slice_of(cut, size),
				&t->got, &t->refusal), 0);
			free(cut);
		}
	}
}

static void what_follows_a_short_request_stays_for_the_next(void **state) {
	static const char two[] = "\x94\x00\x07\xa4ping\x91\x80\x94\x00\x08";
	const size_t first = 10;
	struct request_test *t = *state;
	assert_int_equal(decode_short(t, slice_of(two, sizeof two - 1)), first);
	assert_int_equal(t->got.msgid, 7);
	assert_int_equal(t->got.method, CLIENT_PING);
	assert_int_equal(client_request_decode(&t->decoder, slice_of(two, first + 1), &t->got,
		&t->refusal), PAWL_EPROTOCOL);
}

static void a_list_in_pieces_is_not_read_as_a_short_request(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	struct client_request sent = { .method = CLIENT_EXTEND, .present = CLIENT_HAS_LOCKS,
		.locks = locks, .lock_count = 2 };
	for (size_t i = 0; i < sent.lock_count; i++) {
		locks[i] = (struct client_lock){ .key = slice_str("k"), .lease = SPAN_S,
			.lock_id = { { 1 } } };
	}
	assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
	assert_int_equal(decode_short(t, buffer_slice(&t->bytes)), t->bytes.size);
	t->decoder.piece = 1;
	assert_int_equal(decode_short(t, buffer_slice(&t->bytes)), 0);
}

static void flipped_bytes_never_crash(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	for (int n = 0; n < 20000; n++) {
		struct client_request sent = random_request(t,
			prng_below(&t->prng, METHODS), locks);
		buffer_clear(&t->bytes);
		assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
		uint8_t *copy = wire_exact(t->bytes.data, t->bytes.size);
		for (int i = 0; i < 10; i++) {
			copy[prng_below(&t->prng, t->bytes.size)] ^=
				(uint8_t)(1u << prng_below(&t->prng, 8));
		}
		struct slice bytes = slice_of(copy, t->bytes.size);
		struct client_scanner s = { 0 };
		size_t end = 0, short_end = decode_short(t, bytes);
		client_scan(&s, &client_request_limits, bytes, &end);
		assert_true(short_end == 0 || short_end == end);
		int error = client_request_decode(&t->decoder, bytes, &t->got, &t->refusal);
		assert_true(error == 0 || t->refusal.error != 0);
		free(copy);
	}
}

UNIT(wire_request) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_method_comes_back_as_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_written_is_messagepack_rpc, setup,
			teardown),
		cmocka_unit_test_setup_teardown(every_truncation_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(what_follows_a_short_request_stays_for_the_next,
			setup, teardown),
		cmocka_unit_test_setup_teardown(a_list_in_pieces_is_not_read_as_a_short_request,
			setup, teardown),
		cmocka_unit_test_setup_teardown(flipped_bytes_never_crash, setup, teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
