/* wire_answer.h: what tests of responses share: what the server writes goes the whole way to the
 * client's reader. */
#ifndef PAWL_TESTS_WIRE_ANSWER_H
#define PAWL_TESTS_WIRE_ANSWER_H

#include "unit.h"

#include "client.h"
#include "wire_random.h"

struct response_test {
	struct allocator alloc;
	struct prng prng;
	struct buffer bytes;
	struct client_decoder decoder;
	struct config_node nodes[3];
	const struct config_node *peers[3];
	struct client_context context;
	struct client_response got;
};

static inline int setup(void **state) {
	static struct response_test t;
	t = (struct response_test){ .alloc = alloc_libc(NULL) };
	prng_init(&t.prng, 13);
	wire_pool_fill(&t.prng);
	buffer_init(&t.bytes, &t.alloc, 32u << 20);
	client_decoder_init(&t.decoder, &t.alloc);
	for (uint8_t i = 0; i < 3; i++) {
		t.nodes[i] = (struct config_node){ .name = { 'n', (char)('1' + i) },
			.address = "h:1", .id = { { i } }, .master = i < 2 };
		t.nodes[i].id.b[0]++;
		t.peers[i] = &t.nodes[i];
	}
	t.context = (struct client_context){ .node = "n1", .role = "master", .peers = t.peers,
		.peer_count = 3 };
	*state = &t;
	return 0;
}

static inline int teardown(void **state) {
	struct response_test *t = *state;
	buffer_done(&t->bytes);
	client_decoder_done(&t->decoder);
	return 0;
}

/* Takes what stands in t->bytes the whole way to the client's reader. */
static inline int receive(struct response_test *t, enum client_method method) {
	struct client_scanner s = { 0 };
	enum client_kind kind;
	uint32_t msgid;
	size_t size = 0;
	assert_int_equal(client_scan(&s, &client_response_limits, buffer_slice(&t->bytes), &size),
		CLIENT_SCAN_COMPLETE);
	assert_int_equal(size, t->bytes.size);
	assert_int_equal(client_response_peek(buffer_slice(&t->bytes), &kind, &msgid), 0);
	assert_true(kind == CLIENT_RESPONSE && msgid == 5);
	return client_response_decode(&t->decoder, method, buffer_slice(&t->bytes), &t->got);
}

static inline void answer(struct response_test *t, enum client_method method,
	const struct core_reply *reply) {
	buffer_clear(&t->bytes);
	assert_int_equal(client_reply_encode(5, reply, &t->context, &t->bytes), 0);
	assert_int_equal(receive(t, method), 0);
	assert_int_equal(t->got.error, reply->error);
}

static inline struct core_entry random_entry(struct response_test *t) {
	struct prng *p = &t->prng;
	return (struct core_entry){ .key = wire_bytes(p, 1, KEY_MAX),
		.owner = wire_bytes(p, 0, OWNER_MAX), .value = wire_bytes(p, 0, 1000),
		.token = wire_number(p, TOKEN_MAX), .lock_id = wire_id(p),
		.show_lock_id = prng_chance(p, 1, 2),
		.remaining = prng_between(p, 0, 1000) * SPAN_MS, .weighed = prng_chance(p, 1, 2),
		.at_least = prng_between(p, 0, 1000) * SPAN_MS,
		.at_most = prng_between(p, 0, 1000) * SPAN_MS, .value_seq = wire_ballot(p),
		.terms = wire_terms(p), .identity = wire_bytes(p, 0, IDENTITY_MAX),
		.age = prng_between(p, 0, 1000) * SPAN_MS };
}

static inline void assert_entry(const struct core_entry *sent, const struct client_entry *got) {
	assert_true(slice_equal(sent->owner, got->owner) && slice_equal(sent->value, got->value));
	assert_true(sent->token == got->token && sent->remaining == got->remaining);
	assert_int_equal((got->present & CLIENT_ENTRY_WEIGHED) != 0, sent->weighed);
	assert_true(!sent->weighed || (sent->at_least == got->at_least
		&& sent->at_most == got->at_most));
	assert_int_equal(ballot_compare(sent->value_seq, got->value_seq), 0);
	assert_int_equal((got->present & CLIENT_ENTRY_LOCK_ID) != 0, sent->show_lock_id);
	assert_true(!sent->show_lock_id || id128_equal(sent->lock_id, got->lock_id));
	struct client_lock_mode mode = client_mode_of(&sent->terms);
	assert_true(got->mode.mode == mode.mode && got->mode.of == mode.of &&
		got->mode.permits == mode.permits);
	assert_true(got->mode.numbers.w[0] == mode.numbers.w[0] &&
		got->mode.numbers.w[1] == mode.numbers.w[1]);
	assert_true(slice_equal(sent->identity, got->identity) && sent->age == got->held_for &&
		!got->closing);
	assert_true(got->lock_delay >= sent->terms.delay &&
		got->lock_delay < sent->terms.delay + SPAN_MS);
}

#endif
