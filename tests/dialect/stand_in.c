/* stand_in.c: see stand_in.h. */
#include "stand_in.h"

#include <stdio.h>

#include "check.h"
#include "pawl/error.h"

static int64_t stand_in_unix_ms(void *ctx) {
	const struct stand_in *s = ctx;
	return s->unix_ms;
}

static struct id128 stand_in_draw(void *ctx) {
	struct stand_in *s = ctx;
	return (struct id128){ { ++s->drawn } };
}

static uint32_t stand_in_masters(void *ctx) {
	(void)ctx;
	return 3;
}

static struct instant stand_in_now(void *ctx) {
	struct stand_in *s = ctx;
	s->now += s->passes;
	return (struct instant){ s->now, s->now };
}

static struct slice stand_in_identity(void *ctx, uint64_t number) {
	const struct stand_in *s = ctx;
	CHECK(number == STAND_IN_NUMBER);
	return slice_str(s->identity);
}

static int stand_in_keep(void *ctx, uint64_t number, struct slice key, struct id128 lock_id,
	struct instant until) {
	struct stand_in *s = ctx;
	CHECK(number == STAND_IN_NUMBER && key.size > 0 && key.size <= KEY_MAX);
	*slice_put((uint8_t *)s->kept_key, key) = '\0';
	s->kept = lock_id;
	s->kept_until = until;
	return s->refuses && s->asked++ % s->refuses == 0 ? PAWL_EFULL : s->keep_error;
}

static void stand_in_reached_at(void *ctx, uint64_t number, char out[ADDRESS_MAX + 1]) {
	const struct stand_in *s = ctx;
	CHECK(number == STAND_IN_NUMBER);
	snprintf(out, ADDRESS_MAX + 1, "%s", s->reached_at);
}

static void stand_in_unknown_script(void *ctx, uint64_t number, const char *sha1) {
	struct stand_in *s = ctx;
	CHECK(number == STAND_IN_NUMBER && strlen(sha1) == 40);
	snprintf(s->unknown, sizeof s->unknown, "%s", sha1);
}

void stand_in_init(struct stand_in *s) {
	static const struct config cluster = { .max_lease = STAND_IN_LEASE, .drift_ppm = 10000 };
	*s = (struct stand_in){ .now = SPAN_S, .identity = "", .reached_at = "10.0.0.9:6379" };
	s->node = (struct dialect_node){ .unix_ms = stand_in_unix_ms, .draw = stand_in_draw,
		.cluster = &cluster, .masters = stand_in_masters, .now = stand_in_now,
		.identity = stand_in_identity,
		.keep = stand_in_keep, .reached_at = stand_in_reached_at,
		.unknown_script = stand_in_unknown_script, .ctx = s };
}

void stand_in_reply(const struct core_reply *core, struct buffer *out) {
	static const struct client_context context = { .node = "n1", .role = "master" };
	CHECK(client_reply_encode(DIALECT_MSGID, core, &context, out) == 0);
}

void stand_in_refuse(int error, struct buffer *out) {
	const struct client_refusal refusal = { .error = error, .message = "so it is" };
	CHECK(client_refusal_encode(DIALECT_MSGID, &refusal, out) == 0);
}
