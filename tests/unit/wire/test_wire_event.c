/* The server writes events of what is watched, and the client reads them. */
#include "unit.h"

#include <msgpack.h>

#include "wire_answer.h"

static struct core_watch_event random_event(struct response_test *t,
	enum core_watch_event_kind kind, uint8_t label[LABEL_MAX]) {
	const struct client_label said = { slice_str("h"), slice_str("text"), 5, false,
		false };
	struct core_entry e = random_entry(t);
	return (struct core_watch_event){ .kind = kind, .key = e.key, .owner = e.owner,
		.identity = e.identity, .value = e.value,
		.label = slice_of(label, client_label_pack(&said, label)), .lock_id = e.lock_id,
		.token = e.token, .value_seq = e.value_seq, .terms = e.terms };
}

/* Takes an event over the wire, as one of watch 3. */
static struct client_event tell(struct response_test *t, const struct core_watch_event *watch_event,
	bool show_lock_id) {
	struct client_event sent = client_event_of(watch_event, show_lock_id), got;
	struct client_scanner s = { 0 };
	enum client_kind kind;
	uint32_t msgid;
	size_t size = 0;
	/* An event may be encoded once for many watches. */
	bool shared = prng_chance(&t->prng, 1, 2);
	sent.watch = shared ? CLIENT_EVENT_ANY_WATCH : 3;
	sent.position = (struct client_position){ 8, 9 };
	buffer_clear(&t->bytes);
	assert_int_equal(client_event_encode(&sent, &t->bytes), 0);
	if (shared) {
		client_event_address(buffer_slice(&t->bytes), 3);
	}
	assert_int_equal(client_scan(&s, &client_response_limits, buffer_slice(&t->bytes), &size),
		CLIENT_SCAN_COMPLETE);
	assert_int_equal(size, t->bytes.size);
	assert_int_equal(client_response_peek(buffer_slice(&t->bytes), &kind, &msgid), 0);
	assert_int_equal(kind, CLIENT_NOTIFICATION);
	assert_int_equal(client_event_decode(buffer_slice(&t->bytes), &got), 0);
	assert_true(got.type == sent.type && got.watch == 3 && got.position.log == 8 &&
		got.position.sequence == 9);
	return got;
}

static void changes_tell_whose_they_are(void **state) {
	struct response_test *t = *state;
	static const struct { enum core_watch_event_kind kind; enum client_event_type type;
		bool value; } rows[] = {
		{ WATCH_EVENT_ACQUIRED, CLIENT_EVENT_ACQUIRED, true },
			{ WATCH_EVENT_UPDATED, CLIENT_EVENT_UPDATED, true },
		{ WATCH_EVENT_DOWNGRADED, CLIENT_EVENT_DOWNGRADED, true },
			{ WATCH_EVENT_RELEASED, CLIENT_EVENT_RELEASED, false },
		{ WATCH_EVENT_EXPIRED, CLIENT_EVENT_EXPIRED, false },
			{ WATCH_EVENT_LOST, CLIENT_EVENT_LOST, false },
	};
	for (size_t n = 0; n < 60; n++) {
		uint8_t label[LABEL_MAX];
		bool show = prng_chance(&t->prng, 1, 2);
		struct core_watch_event watch_event = random_event(t, rows[n % 6].kind, label);
		struct client_event e = tell(t, &watch_event, show);
		assert_int_equal(e.type, rows[n % 6].type);
		assert_true(slice_equal(e.entry.key, watch_event.key) &&
			slice_equal(e.entry.owner, watch_event.owner) &&
			e.entry.token == watch_event.token);
		assert_true(e.entry.label.pid == 5 &&
			slice_equal(e.entry.identity, watch_event.identity));
		assert_true(e.entry.mode.mode == client_mode_of(&watch_event.terms).mode);
		assert_int_equal((e.entry.present & CLIENT_ENTRY_LOCK_ID) != 0, show);
		assert_int_equal((e.entry.present & CLIENT_ENTRY_VALUE) != 0, rows[n % 6].value);
		assert_true(!rows[n % 6].value || slice_equal(e.entry.value, watch_event.value));
		assert_false(e.entry.present & (CLIENT_ENTRY_REMAINING | CLIENT_ENTRY_HELD_FOR));
	}
}

static void asking_names_who_for_whom_and_how_urgently(void **state) {
	struct response_test *t = *state;
	struct core_watch_event watch_event = { .kind = WATCH_EVENT_ASKED, .key = slice_str("k"),
		.owner = slice_str("a"), .value = slice_str("b"),
		.terms = { .priority = INT32_MIN } };
	struct client_event e = tell(t, &watch_event, true);
	assert_true(e.type == CLIENT_EVENT_ASKED && slice_equal(e.by, slice_str("a")) &&
		slice_equal(e.to, slice_str("b")));
	assert_true(e.priority == INT32_MIN && slice_equal(e.entry.key, slice_str("k")) &&
		e.entry.present == 0);
}

static void missed_events_are_an_overflow_of_no_key(void **state) {
	struct response_test *t = *state;
	const struct core_watch_event watch_event = { .kind = WATCH_EVENT_MISSED };
	struct client_event e = tell(t, &watch_event, true);
	assert_true(e.type == CLIENT_EVENT_OVERFLOW && e.entry.key.size == 0);
}

static void missed_events_of_a_key_are_an_overflow_that_names_it(void **state) {
	struct response_test *t = *state;
	const struct core_watch_event watch_event = { .kind = WATCH_EVENT_MISSED,
		.key = slice_str("k") };
	struct client_event e = tell(t, &watch_event, true);
	assert_true(e.type == CLIENT_EVENT_OVERFLOW && slice_equal(e.entry.key, slice_str("k")) &&
		e.entry.present == 0);
}

static int decode_text(const char *data, size_t size, struct client_event *out) {
	uint8_t *exact = wire_exact((const uint8_t *)data, size);
	int error = client_event_decode(slice_of(exact, size), out);
	free(exact);
	return error;
}
#define DECODE(text, out) decode_text((text), sizeof(text) - 1, (out))
#define WATCH "\xa5watch\x01"
#define KEY "\xa3key\xa1k"

static void what_a_newer_server_tells_is_skipped(void **state) {
	(void)state;
	struct client_event e;
	assert_int_equal(DECODE("\x93\x02\xa3new\x05", &e), 0);
	assert_int_equal(e.type, CLIENT_EVENT_OTHER);
	assert_int_equal(DECODE("\x93\x02\xa5" "event\x91\x82" WATCH "\xa4type\xa5newer", &e), 0);
	assert_int_equal(e.type, CLIENT_EVENT_OTHER);
	assert_int_equal(DECODE("\x93\x02\xa5"
		"event\x91\x84" WATCH "\xa4type\xa4lost" KEY "\xa3new\x91\x80", &e), 0);
	assert_int_equal(e.type, CLIENT_EVENT_LOST);
}

static void an_event_without_what_it_must_tell_is_refused(void **state) {
	(void)state;
	struct client_event e;
	assert_int_equal(DECODE("\x93\x02\xa5" "event\x91\x82" WATCH KEY, &e), PAWL_EPROTOCOL);
	assert_int_equal(DECODE("\x93\x02\xa5" "event\x91\x82" WATCH "\xa4type\xa4lost", &e),
		PAWL_EPROTOCOL);
	assert_int_equal(DECODE("\x93\x02\xa5" "event\x91\x82\xa4type\xa4lost" KEY, &e),
		PAWL_EPROTOCOL);
	assert_int_equal(DECODE("\x93\x02\xa5" "event\x90", &e), PAWL_EPROTOCOL);
	assert_int_equal(DECODE("\x93\x02\xa5" "event\x91\x05", &e), PAWL_EPROTOCOL);
	assert_int_equal(DECODE("\x94\x01\x05\xc0\x80", &e), PAWL_EPROTOCOL);
	assert_int_equal(DECODE("", &e), PAWL_EPROTOCOL);
	assert_int_equal(DECODE("\x93\x02\xa5" "event\x91\x83" WATCH
		"\xa4type\xa8overflow\xa5slots\x91\xcc\x80", &e), PAWL_EPROTOCOL);
}

static void truncated_and_flipped_events_never_crash(void **state) {
	struct response_test *t = *state;
	for (int n = 0; n < 2000; n++) {
		uint8_t label[LABEL_MAX];
		struct client_event e;
		struct core_watch_event watch_event = random_event(t,
			(enum core_watch_event_kind)prng_below(&t->prng,
			WATCH_EVENT_MISSED + 1), label);
		tell(t, &watch_event, true);
		size_t size = prng_below(&t->prng, t->bytes.size);
		assert_int_equal(decode_text((const char *)t->bytes.data, size, &e),
			PAWL_EPROTOCOL);
		for (int i = 0; i < 10; i++) {
			t->bytes.data[prng_below(&t->prng, t->bytes.size)] ^=
				(uint8_t)(1u << prng_below(&t->prng, 8));
		}
		int error = decode_text((const char *)t->bytes.data, t->bytes.size, &e);
		assert_true(error == 0 || error == PAWL_EPROTOCOL);
	}
}

static void what_is_written_is_messagepack(void **state) {
	struct response_test *t = *state;
	for (int kind = 0; kind <= WATCH_EVENT_MISSED; kind++) {
		uint8_t label[LABEL_MAX];
		msgpack_unpacked result;
		size_t offset = 0;
		struct core_watch_event watch_event = random_event(t,
			(enum core_watch_event_kind)kind, label);
		tell(t, &watch_event, true);
		msgpack_unpacked_init(&result);
		assert_int_equal(msgpack_unpack_next(&result, (const char *)t->bytes.data,
			t->bytes.size, &offset), MSGPACK_UNPACK_SUCCESS);
		assert_true(offset == t->bytes.size && result.data.via.array.size == 3);
		msgpack_unpacked_destroy(&result);
	}
}

UNIT(wire_event) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(changes_tell_whose_they_are),
		TEST(asking_names_who_for_whom_and_how_urgently),
		TEST(missed_events_are_an_overflow_of_no_key),
		TEST(missed_events_of_a_key_are_an_overflow_that_names_it),
		TEST(what_a_newer_server_tells_is_skipped),
		TEST(an_event_without_what_it_must_tell_is_refused),
		TEST(truncated_and_flipped_events_never_crash),
		TEST(what_is_written_is_messagepack),
	};
#undef TEST
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
