/* dialect_rig.c: see dialect_rig.h. */
#include "dialect_rig.h"

#include <stdio.h>

int rig_open(void **state, const struct dialect *dialect, void *server, int64_t unix_ms) {
	static struct connection c;
	c = (struct connection){ .alloc = alloc_libc(NULL), .dialect = dialect, .holder = "" };
	stand_in_init(&c.node);
	c.node.unix_ms = unix_ms;
	buffer_init(&c.out, &c.alloc, 1 << 20);
	buffer_init(&c.answer, &c.alloc, 1 << 20);
	c.state = dialect->open(&c.alloc, &c.node.node, server, STAND_IN_NUMBER, "10.0.0.1:5");
	assert_non_null(c.state);
	*state = &c;
	return 0;
}

int rig_disconnect(void **state) {
	struct connection *c = *state;
	c->dialect->close(c->state);
	buffer_done(&c->out);
	buffer_done(&c->answer);
	return 0;
}

/* What was written has left. */
static void rig_sent(struct connection *c) {
	if (c->step == DIALECT_TOLD) {
		c->dialect->sent(c->state);
	}
	c->step = DIALECT_DONE;
}

enum dialect_step rig_command(struct connection *c, const char *text) {
	char bytes[2048];
	size_t taken;
	const int size = snprintf(bytes, sizeof bytes, "%s\r\n", text);
	buffer_clear(&c->out);
	rig_sent(c);
	const enum dialect_step step = c->dialect->serve(c->state, slice_of(bytes, (size_t)size),
		&taken, &c->out, &c->request);
	if (step != DIALECT_CLOSE) {
		assert_int_equal(taken, step == DIALECT_MORE ? 0 : size);
	}
	/* What the task has is its own. */
	memset(bytes, 'X', sizeof bytes);
	return step;
}

/* Hands over the answer in c->answer. */
static enum dialect_step rig_answered(struct connection *c) {
	c->step = c->dialect->answer(c->state, buffer_slice(&c->answer), &c->out, &c->request);
	buffer_clear(&c->answer);
	return c->step;
}

enum dialect_step rig_reply(struct connection *c, const struct core_reply *core) {
	stand_in_reply(core, &c->answer);
	return rig_answered(c);
}

enum dialect_step rig_refused(struct connection *c, int error) {
	stand_in_refuse(error, &c->answer);
	return rig_answered(c);
}

enum dialect_step rig_read(struct connection *c, const char *value, const char *label,
	int64_t left_ms) {
	uint8_t packed[LABEL_MAX];
	const struct client_label says = { .text = slice_str(label), .without_end = c->endless };
	struct core_entry entry = { .owner = slice_str("o"), .token = 42, .show_lock_id = true,
		.lock_id = { { 9 } }, .weighed = true, .remaining = 3 * left_ms * SPAN_MS,
		.at_least = left_ms * SPAN_MS, .at_most = 4 * left_ms * SPAN_MS,
		.value_seq = { .clock = c->written ? c->written : 40,
			.boot = c->written ? 1 : BALLOT_FIRST },
		.identity = slice_str(c->holder),
		.terms.binding = c->order, .order_settled = c->settled,
		.label = slice_of(packed, client_label_pack(&says, packed)) };
	assert_int_equal(c->request->method, CLIENT_GET);
	assert_true(c->request->core.quorum);
	entry.value = value ? slice_str(value) : slice_of(NULL, 0);
	return rig_reply(c, &(struct core_reply){ .op = CORE_GET, .held = value != NULL,
		.entry = entry });
}

enum dialect_step rig_taken(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_ACQUIRE);
	return rig_reply(c, &(struct core_reply){ .op = CORE_ACQUIRE,
		.lock_id = c->request->core.lock_id, .token = 42, .valid = SPAN_S });
}

enum dialect_step rig_extended(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_EXTEND);
	assert_int_equal(c->request->core.lock_id.b[0], 9);
	return rig_reply(c, &(struct core_reply){ .op = CORE_EXTEND, .token = 42,
		.valid = SPAN_S });
}

enum dialect_step rig_updated(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_UPDATE);
	assert_int_equal(c->request->core.lock_id.b[0], 9);
	return rig_reply(c, &(struct core_reply){ .op = CORE_UPDATE, .token = 42,
		.value_seq = { .clock = 50 } });
}

enum dialect_step rig_released(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	return rig_reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true });
}

enum dialect_step rig_broken(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_BREAK);
	assert_int_equal(c->request->core.token, 42);
	return rig_reply(c, &(struct core_reply){ .op = CORE_BREAK, .released = true });
}

void rig_assert_said(struct connection *c, const char *expected) {
	assert_int_equal(buffer_append(&c->out, "", 1), 0);
	assert_string_equal((const char *)c->out.data, expected);
}

bool rig_starts_with(const struct connection *c, const char *text) {
	return c->out.size >= strlen(text) && memcmp(c->out.data, text, strlen(text)) == 0;
}
