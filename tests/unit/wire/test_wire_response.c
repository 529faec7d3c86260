/* The server writes responses, and the client reads them. */
#include "unit.h"

#include <msgpack.h>

#include "client_connections.h"
#include "client_pieces.h"
#include "wire_answer.h"

static void acquire_tells_everything(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_ACQUIRE, .lock_id = wire_id(&t->prng),
		.token = TOKEN_MAX, .valid = 1999999999, .quorum = 2, .votes = 3, .acks = 2,
		.waited = 7 * SPAN_MS };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(id128_equal(t->got.lock_id, r.lock_id) && t->got.token == TOKEN_MAX);
	/* A lease is never said to be longer than it is. */
	assert_true(t->got.valid == 1999 * SPAN_MS);
	assert_true(t->got.quorum == 2 && t->got.votes == 3 && t->got.acks == 2 &&
		t->got.waited == 7 * SPAN_MS);
	assert_false(t->got.present & CLIENT_RESULT_ENTRY);
}

static void extend_update_release_and_break_tell_their_part(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_EXTEND, .valid = 5 * SPAN_S, .token = 9, .acks = 3 };
	answer(t, CLIENT_EXTEND, &r);
	assert_true(t->got.valid == 5 * SPAN_S && t->got.token == 9 && t->got.acks == 3);
	r = (struct core_reply){ .op = CORE_UPDATE, .value_seq = wire_ballot(&t->prng) };
	answer(t, CLIENT_UPDATE, &r);
	assert_int_equal(ballot_compare(t->got.value_seq, r.value_seq), 0);
	r = (struct core_reply){ .op = CORE_RELEASE, .released = true };
	answer(t, CLIENT_RELEASE, &r);
	assert_true(t->got.released);
	r = (struct core_reply){ .op = CORE_BREAK, .released = true };
	for (int forced = 0; forced < 2; forced++, r.forced = true) {
		answer(t, CLIENT_BREAK, &r);
		/* Otherwise the holder stops in time. */
		assert_true(t->got.released && (t->got.warning.size > 0) == forced);
	}
}

static void reads_show_the_holder_and_the_lock_id_only_to_whom_it_belongs(void **state) {
	struct response_test *t = *state;
	for (int n = 0; n < 200; n++) {
		struct core_reply r = { .op = n % 2 ? CORE_GET : CORE_WAIT, .held = true,
			.entry = random_entry(t), .recovering = n % 3 == 0 };
		answer(t, n % 2 ? CLIENT_GET : CLIENT_WAIT, &r);
		assert_true(t->got.held && t->got.recovering == r.recovering &&
			(t->got.present & CLIENT_RESULT_ENTRY));
		assert_entry(&r.entry, &t->got.entry);
		assert_true(slice_equal(t->got.node, slice_str("n1")) &&
			slice_equal(t->got.role, slice_str("master")));
		assert_false(t->got.present & CLIENT_RESULT_AGE);
	}
}

static void a_free_key_has_no_holder_and_a_replica_tells_its_age(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_GET, .contested = true };
	t->context.replica = true;
	t->context.age = SPAN_MS + 1;
	answer(t, CLIENT_GET, &r);
	assert_true(!t->got.held && t->got.contested && !(t->got.present & CLIENT_RESULT_ENTRY));
	assert_true((t->got.present & CLIENT_RESULT_AGE) && t->got.age == 2 * SPAN_MS);
}

/* The core knows what the node is at the moment of the answer. */
static void what_the_core_says_of_itself_wins(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_GET, .replica = true, .age = 5 * SPAN_MS };
	answer(t, CLIENT_GET, &r);
	assert_true(slice_equal(t->got.role, slice_str("replica")) && t->got.age == 5 * SPAN_MS);
	/* Nobody was followed yet. */
	r.age = SPAN_MAX;
	answer(t, CLIENT_GET, &r);
	assert_true(slice_equal(t->got.role, slice_str("replica")) &&
		!(t->got.present & CLIENT_RESULT_AGE));
}

static void lists_come_back_in_order(void **state) {
	struct response_test *t = *state;
	static struct core_entry entries[300];
	for (size_t i = 0; i < 300; i++) {
		entries[i] = random_entry(t);
	}
	struct core_reply r = { .op = CORE_LIST, .entries = entries, .count = 300, .more = true };
	answer(t, CLIENT_LIST, &r);
	assert_true(t->got.count == 300 && t->got.more);
	for (size_t i = 0; i < 300; i++) {
		assert_true(slice_equal(entries[i].key, t->got.entries[i].key));
		assert_entry(&entries[i], &t->got.entries[i]);
	}
}

static void a_list_that_is_too_large_is_cut_short(void **state) {
	struct response_test *t = *state;
	static struct core_entry entries[1000];
	for (size_t i = 0; i < 1000; i++) {
		entries[i] = random_entry(t);
		entries[i].value = wire_bytes(&t->prng, 30000, 60000);
	}
	struct core_reply r = { .op = CORE_LIST, .entries = entries, .count = 1000 };
	answer(t, CLIENT_LIST, &r);
	assert_true(t->got.more && t->got.count > 100 && t->got.count < 1000);
	assert_true(t->bytes.size <= client_response_limits.bytes &&
		t->bytes.size > client_response_limits.bytes / 2);
	struct buffer small;
	buffer_init(&small, &t->alloc, 20000);
	/* Not even one entry fits. */
	assert_int_equal(client_reply_encode(5, &r, &t->context, &small), PAWL_ETOOLARGE);
	assert_int_equal(small.size, 0);
	buffer_done(&small);
}

static void the_queue_names_nodes(void **state) {
	struct response_test *t = *state;
	struct core_waiter waiters[2] = {
		{ .owner = slice_str("a"), .lock_id = wire_id(&t->prng),
			.node = t->nodes[2].id, .show_lock_id = true, .since = SPAN_S },
		{ .owner = slice_str("b"), .lock_id = wire_id(&t->prng), .node = { { 77 } } },
	};
	struct core_reply r = { .op = CORE_WAITERS, .waiters = waiters, .count = 2 };
	answer(t, CLIENT_WAITERS, &r);
	assert_int_equal(t->got.count, 2);
	assert_true(slice_equal(t->got.waiters[0].node, slice_str("n3")) &&
		t->got.waiters[0].since == SPAN_S);
	assert_true(t->got.waiters[0].has_lock_id &&
		id128_equal(t->got.waiters[0].lock_id, waiters[0].lock_id));
	assert_true(!t->got.waiters[1].has_lock_id && t->got.waiters[1].node.size == 0);
}

static void errors_carry_what_helps(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_ACQUIRE, .error = PAWL_EHELD, .held = true,
		.entry = random_entry(t) };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true((t->got.present & CLIENT_RESULT_ENTRY) && t->got.entry.token == r.entry.token &&
		t->got.entry.value.size == 0);
	assert_true(slice_equal(t->got.entry.owner, r.entry.owner) && t->got.message.size > 0);
	r.other_of = 3;
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(t->got.entry.token == r.entry.token);
	assert_true(slice_equal(t->got.message, slice_str("the key is held as a semaphore of 3 "
		"permits: all must name the same number, so ask for permits of 3")));
	r.error = PAWL_ETIMEOUT;
	r.other_of = 128;
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(slice_equal(t->got.message, slice_str("the wait has timed out: the key is held "
		"as a semaphore of 128 permits: all must name the same number, so ask for permits "
		"of 128")));
	r = (struct core_reply){ .op = CORE_ACQUIRE, .error = PAWL_EHELD, .contested = true };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(t->got.contested && !(t->got.present & CLIENT_RESULT_ENTRY));
	r = (struct core_reply){ .op = CORE_EXTEND, .error = PAWL_ENOQUORUM, .silent = 5,
		.votes = 1, .quorum = 2 };
	answer(t, CLIENT_EXTEND, &r);
	assert_true(t->got.silent_count == 2 && t->got.votes == 1 && t->got.quorum == 2);
	assert_true(slice_equal(t->got.silent[0], slice_str("n1")) &&
		slice_equal(t->got.silent[1], slice_str("n3")));
	r = (struct core_reply){ .op = CORE_UPDATE, .error = PAWL_EMISMATCH,
		.entry = random_entry(t) };
	answer(t, CLIENT_UPDATE, &r);
	assert_true(slice_equal(t->got.entry.value, r.entry.value) &&
		ballot_compare(t->got.entry.value_seq, r.entry.value_seq) == 0);
	r = (struct core_reply){ .op = CORE_ACQUIRE, .error = PAWL_ETOOLONG, .limit = 60 * SPAN_S };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true((t->got.present & CLIENT_RESULT_LIMIT) && t->got.limit == 60 * SPAN_S);
	r = (struct core_reply){ .op = CORE_ACQUIRE, .error = PAWL_EFULL, .field = "waiters" };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(slice_equal(t->got.field, slice_str("waiters")));
}

static void every_error_code_comes_back(void **state) {
	struct response_test *t = *state;
#define CODE(name, number, code, text) \
	{ \
		struct client_refusal refusal = { .error = name, .message = NULL }; \
		buffer_clear(&t->bytes); \
		assert_int_equal(client_refusal_encode(5, &refusal, &t->bytes), 0); \
		assert_int_equal(receive(t, CLIENT_GET), 0); \
		assert_int_equal(t->got.error, name); \
		assert_true(slice_equal(t->got.message, slice_str(text))); \
	}
	PAWL_ERROR_TABLE(CODE)
#undef CODE
}

static int batch(struct response_test *t, const struct client_extended *items, uint32_t count) {
	struct buffer encoded;
	int error = 0;
	buffer_init(&encoded, &t->alloc, client_response_limits.bytes);
	for (uint32_t i = 0; !error && i < count; i++) {
		error = client_batch_add(&encoded, &items[i], &t->context);
	}
	error = error ? error : client_batch_encode(5, &encoded, count, &t->bytes);
	buffer_done(&encoded);
	return error;
}

static void a_batch_has_a_result_for_each_lock(void **state) {
	struct response_test *t = *state;
	struct core_reply replies[3] = {
		{ .op = CORE_EXTEND, .lock_id = wire_id(&t->prng), .valid = SPAN_S,
			.token = 4, .acks = 2, .quorum = 2 },
		{ .op = CORE_EXTEND, .lock_id = wire_id(&t->prng), .error = PAWL_ELOST },
		{ .op = CORE_EXTEND, .lock_id = wire_id(&t->prng), .error = PAWL_ENOQUORUM,
			.votes = 1, .acks = 1, .quorum = 2, .silent = 2 },
	};
	struct client_extended items[3];
	for (size_t i = 0; i < 3; i++) {
		items[i] = client_extended_of(&replies[i]);
	}
	assert_int_equal(batch(t, items, 3), 0);
	assert_int_equal(receive(t, CLIENT_EXTEND), 0);
	assert_int_equal(t->got.count, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct client_extended *e = &t->got.extended[i];
		assert_true(e->error == items[i].error &&
			id128_equal(e->lock_id, items[i].lock_id));
		assert_true(e->valid == items[i].valid && e->token == items[i].token &&
			e->acks == items[i].acks);
	}
	assert_int_equal(t->got.extended[2].votes, 1);
}

static void ping_and_drain_answer(void **state) {
	struct response_test *t = *state;
	assert_int_equal(client_ping_encode(5, "0.1.0", "n1", &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_PING), 0);
	assert_true(slice_equal(t->got.version, slice_str("0.1.0")) &&
		slice_equal(t->got.node, slice_str("n1")));
	buffer_clear(&t->bytes);
	assert_int_equal(client_done_encode(5, &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_DRAIN), 0);
}

static int decode_text(struct response_test *t, enum client_method method, const char *data,
	size_t size) {
	uint8_t *exact = wire_exact((const uint8_t *)data, size);
	int error = client_response_decode(&t->decoder, method, slice_of(exact, size), &t->got);
	free(exact);
	return error;
}
#define DECODE(t, method, text) decode_text((t), (method), (text), sizeof(text) - 1)

static void connections_are_told_with_what_is_known_of_them(void **state) {
	struct response_test *t = *state;
	struct client_connections page;
	const struct client_connection one = { .client = 7, .present = CLIENT_CONNECTION_PROCESS,
		.identity = slice_str("alice"), .address = slice_str("unix:/s"), .uid = 3, .pid = 4,
		.age = SPAN_S, .requests = 9, .open = 2, .waits = 1, .watches = 5, .received = 6,
		.sent = 8, .unsent = 10 };
	const struct client_connection other = { .client = 8, .present = CLIENT_CONNECTION_OWN,
		.own = true };
	client_connections_begin(&page, 5, &t->bytes);
	client_connections_put(&page, &one);
	client_connections_put(&page, &other);
	assert_int_equal(client_connections_end(&page, "n1", true), 0);
	assert_int_equal(receive(t, CLIENT_CLIENTS), 0);
	assert_true(t->got.more && slice_equal(t->got.node, slice_str("n1")));
	const struct client_share share = { .present = CLIENT_SHARE_USED | CLIENT_SHARE_IDENTITY |
		CLIENT_SHARE_LIMITED(SHARE_RATE), .share = 3, .identity = slice_str("alice"),
		.used = { [SHARE_MEMORY] = 77 }, .max = { [SHARE_RATE] = 5, [SHARE_LOCKS] = 6 } };
	buffer_clear(&t->bytes);
	client_shares_begin(&page, 5, &t->bytes);
	client_shares_put(&page, &share);
	assert_int_equal(client_connections_end(&page, "n1", false), 0);
	assert_non_null(memmem(t->bytes.data, t->bytes.size, "\xad" "client_memory\x4d", 15));
	assert_non_null(memmem(t->bytes.data, t->bytes.size, "\xaarate_limit\x05", 12));
	assert_null(memmem(t->bytes.data, t->bytes.size, "locks_limit", 11));
	assert_null(memmem(t->bytes.data, t->bytes.size, "\xa4rate", 5));
	assert_int_equal(receive(t, CLIENT_CLIENTS), 0);
	assert_false(t->got.more);
	/* Without `more` a caller would not know whether to go on. */
	assert_int_equal(DECODE(t, CLIENT_CLIENTS, "\x94\x01\x05\xc0\x80"), PAWL_EPROTOCOL);
	assert_int_equal(DECODE(t, CLIENT_KICK, "\x94\x01\x05\xc0\x80"), 0);
}

/* ---- by hand ---- */

static void what_a_newer_server_adds_is_skipped(void **state) {
	struct response_test *t = *state;
	assert_int_equal(DECODE(t, CLIENT_RELEASE,
		"\x94\x01\x05\xc0\x82\xa3new\x92\x01\x81\xa1x\xcb\0\0\0\0\0\0\0\0\xa8released\xc3"),
		0);
	assert_true(t->got.released);
	assert_int_equal(DECODE(t, CLIENT_RELEASE,
		"\x94\x01\x05\x82\xa4" "code\xa5newer\xa3new\x01\xc0"), 0);
	assert_int_equal(t->got.error, PAWL_EPROTOCOL);
}

static void an_answer_without_what_it_must_tell_is_refused(void **state) {
	struct response_test *t = *state;
	assert_int_equal(DECODE(t, CLIENT_ACQUIRE, "\x94\x01\x05\xc0\x80"), PAWL_EPROTOCOL);
	assert_int_equal(DECODE(t, CLIENT_RELEASE, "\x94\x01\x05\xc0\x80"), PAWL_EPROTOCOL);
	assert_int_equal(DECODE(t, CLIENT_RELEASE, "\x94\x01\x05\xc0\x81\xa8released\x01"),
		PAWL_EPROTOCOL);
	assert_int_equal(DECODE(t, CLIENT_RELEASE, "\x94\x01\x05\xc0\x81\xa8released\xc0"),
		PAWL_EPROTOCOL);
	/* This is an error without a code. */
	assert_int_equal(DECODE(t, CLIENT_RELEASE, "\x94\x01\x05\x80\xc0"), PAWL_EPROTOCOL);
	assert_int_equal(DECODE(t, CLIENT_LIST, "\x94\x01\x05\xc0\x80"), PAWL_EPROTOCOL);
	assert_int_equal(DECODE(t, CLIENT_LIST, "\x94\x01\x05\xc0\x81\xa4keys\xdd\x00\xff\xff\xff"),
		PAWL_EPROTOCOL);
	assert_int_equal(DECODE(t, CLIENT_DRAIN, "\x94\x01\x05\xc0\xc0"), PAWL_EPROTOCOL);
	assert_int_equal(DECODE(t, CLIENT_DRAIN, "\x94\x01\x05\xc0\x80\x00"), PAWL_EPROTOCOL);
}

static void notifications_are_told_from_responses(void **state) {
	(void)state;
	enum client_kind kind;
	uint32_t msgid;
	assert_int_equal(client_response_peek(slice_of("\x93\x02\xa5" "event\x90", 9), &kind,
		&msgid), 0);
	assert_int_equal(kind, CLIENT_NOTIFICATION);
	assert_int_equal(client_response_peek(slice_of("\x94\x00\x05\xc0\x80", 5), &kind, &msgid),
		PAWL_EPROTOCOL);
	assert_int_equal(client_response_peek(slice_of("\x93\x01\x05\xc0\x80", 5), &kind, &msgid),
		PAWL_EPROTOCOL);
	assert_int_equal(client_response_peek(slice_of("", 0), &kind, &msgid), PAWL_EPROTOCOL);
}

/* Encodes some response of each method into t->bytes. */
static void encode_connections(struct response_test *t) {
	struct client_connections page;
	const struct client_connection one = { .client = 7, .present = CLIENT_CONNECTION_PROCESS,
		.identity = slice_str("alice") };
	client_connections_begin(&page, 5, &t->bytes);
	client_connections_put(&page, &one);
	assert_int_equal(client_connections_end(&page, "n1", false), 0);
}

static void encode_some(struct response_test *t, enum client_method method) {
	struct core_entry entries[3] = { random_entry(t), random_entry(t), random_entry(t) };
	struct core_waiter waiters[2] = { { .owner = slice_str("a"), .node = t->nodes[1].id },
		{ .owner = slice_str("b") } };
	struct core_reported reported[2] = { { REPORTED_RECORD, entries[1], true },
		{ .kind = REPORTED_PROMISE } };
	struct core_report reports[2] = { { .status = STATUS_OK, .home = true,
		.items = reported, .count = 2 }, { .peer = 1, .status = STATUS_ABSENT } };
	struct client_extended items[2] = { { .lock_id = wire_id(&t->prng), .valid = SPAN_S },
		{ .error = PAWL_ELOST } };
	struct core_reply r = { .lock_id = wire_id(&t->prng), .token = 5, .valid = SPAN_S,
		.quorum = 2, .held = true, .entry = entries[0], .silent = 3 };
	struct client_status status = { .peer_count = 2,
		.peers = { [1] = { .follows = true, .lag = 1000 } },
		.replica = prng_chance(&t->prng, 1, 2), .following = { .node = slice_str("n1"),
		.age = prng_chance(&t->prng, 1, 2) ? SPAN_MAX : SPAN_S },
		.change = { .step = slice_str("deciding") }, .missing_count = 2 };
	buffer_clear(&t->bytes);
	r.op = CORE_GET;
	client_method_op(method, &r.op);
	r.missing = 3;
	r.epoch = 2;
	r.entries = method == CLIENT_LIST ? entries : NULL;
	r.waiters = method == CLIENT_WAITERS ? waiters : NULL;
	r.reports = method == CLIENT_EXPLAIN ? reports : NULL;
	r.count = method == CLIENT_LIST ? 3 : 2;
	if (prng_chance(&t->prng, 1, 3)) {
		r.error = prng_chance(&t->prng, 1, 2) ? PAWL_ENOQUORUM : PAWL_EHELD;
	}
	if (method == CLIENT_STATUS) {
		assert_int_equal(client_status_encode(5, &status, &t->bytes), 0);
	} else if (method == CLIENT_WATCH) {
		assert_int_equal(client_watch_encode(5, 9, (struct client_position){ 1, 2 },
			prng_chance(&t->prng, 1, 2) ? &r : NULL, &t->context, &t->bytes), 0);
	} else if (method == CLIENT_CLIENTS) {
		encode_connections(t);
	} else if (method == CLIENT_EXTEND && prng_chance(&t->prng, 1, 2)) {
		assert_int_equal(batch(t, items, 2), 0);
	} else {
		assert_int_equal(client_reply_encode(5, &r, &t->context, &t->bytes), 0);
	}
}

static void every_truncation_is_refused(void **state) {
	struct response_test *t = *state;
	for (int n = 0; n < 3 * CLIENT_METHODS; n++) {
		enum client_method method = (enum client_method)(n % CLIENT_METHODS);
		encode_some(t, method);
		for (size_t size = 0; size < t->bytes.size; size++) {
			assert_int_equal(decode_text(t, method, (const char *)t->bytes.data, size),
				PAWL_EPROTOCOL);
		}
		assert_int_equal(receive(t, method), 0);
	}
}

static void flipped_bytes_never_crash(void **state) {
	struct response_test *t = *state;
	for (int n = 0; n < 20000; n++) {
		enum client_method method = (enum client_method)prng_below(&t->prng,
			CLIENT_METHODS);
		encode_some(t, method);
		for (int i = 0; i < 10; i++) {
			t->bytes.data[prng_below(&t->prng, t->bytes.size)] ^=
				(uint8_t)(1u << prng_below(&t->prng, 8));
		}
		int error = decode_text(t, method, (const char *)t->bytes.data, t->bytes.size);
		assert_true(error == 0 || error == PAWL_EPROTOCOL);
	}
}

static void what_is_written_is_messagepack(void **state) {
	struct response_test *t = *state;
	for (int n = 0; n < 10 * CLIENT_METHODS; n++) {
		msgpack_unpacked result;
		size_t offset = 0;
		encode_some(t, (enum client_method)(n % CLIENT_METHODS));
		msgpack_unpacked_init(&result);
		assert_int_equal(msgpack_unpack_next(&result, (const char *)t->bytes.data,
			t->bytes.size, &offset), MSGPACK_UNPACK_SUCCESS);
		assert_int_equal(offset, t->bytes.size);
		assert_int_equal(result.data.via.array.size, 4);
		msgpack_unpacked_destroy(&result);
	}
}

UNIT(wire_response) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(acquire_tells_everything),
		TEST(extend_update_release_and_break_tell_their_part),
		TEST(reads_show_the_holder_and_the_lock_id_only_to_whom_it_belongs),
		TEST(a_free_key_has_no_holder_and_a_replica_tells_its_age),
		TEST(what_the_core_says_of_itself_wins),
		TEST(lists_come_back_in_order),
		TEST(a_list_that_is_too_large_is_cut_short),
		TEST(the_queue_names_nodes),
		TEST(errors_carry_what_helps),
		TEST(every_error_code_comes_back),
		TEST(a_batch_has_a_result_for_each_lock),
		TEST(ping_and_drain_answer),
		TEST(connections_are_told_with_what_is_known_of_them),
		TEST(what_a_newer_server_adds_is_skipped),
		TEST(an_answer_without_what_it_must_tell_is_refused),
		TEST(notifications_are_told_from_responses),
		TEST(every_truncation_is_refused),
		TEST(flipped_bytes_never_crash),
		TEST(what_is_written_is_messagepack),
	};
#undef TEST
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
