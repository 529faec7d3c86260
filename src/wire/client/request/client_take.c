/* client_take.c: the readers of parameters. Each answer to a wrong value also says what to do about
 * it. */
#include "client_param.h"
#include "trace.h"

const char *client_take_bytes(struct unpack *u, size_t max, const char *too_long, struct slice *out,
	int *error) {
	enum unpack_type type = unpack_peek(u);
	if (type != UNPACK_STR && type != UNPACK_BIN) {
		return "must be a byte string (str or bin)";
	}
	struct slice s = unpack_bytes(u, SIZE_MAX);
	if (s.size > max) {
		*error = PAWL_ETOOLARGE;
		return too_long;
	}
	*out = s;
	return NULL;
}

_Static_assert(KEY_MAX == 512, "the text below says it");
static const char key_is_too_long[] = "must be at most 512 bytes";

static const char *take_value_bytes(struct unpack *u, struct slice *out, int *error) {
	_Static_assert(VALUE_MAX_HARD == 1 << 20, "the text below says it");
	return client_take_bytes(u, VALUE_MAX_HARD,
		"must be at most 1048576 bytes: keep larger data elsewhere and its name here", out,
		error);
}

const char *client_take_ms(struct unpack *u, uint64_t min, span_ns *out) {
	uint64_t ms = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : UINT64_MAX;
	if (ms < min || ms > CLIENT_MS_MAX) {
		return min
			? "must be a whole number of milliseconds, "
				"at least 1 and at most 1000000000000"
			: "must be a whole number of milliseconds, 0 to 1000000000000";
	}
	*out = (span_ns)ms * SPAN_MS;
	return NULL;
}

const char *client_take_bool(struct unpack *u, bool *out) {
	if (unpack_peek(u) != UNPACK_BOOL) {
		return "must be true or false";
	}
	*out = unpack_bool(u);
	return NULL;
}

int client_take_choice(struct unpack *u, const char *zero, const char *one) {
	enum unpack_type type = unpack_peek(u);
	if (type != UNPACK_STR && type != UNPACK_BIN) {
		return -1;
	}
	struct slice s = unpack_bytes(u, SIZE_MAX);
	if (slice_equal(s, slice_str(zero))) {
		return 0;
	}
	return slice_equal(s, slice_str(one)) ? 1 : -1;
}

const char *client_take_key(struct unpack *u, struct client_request *r, int *error) {
	const char *problem =
		client_take_bytes(u, KEY_MAX, key_is_too_long, &r->core.key, error);
	return !problem && r->core.key.size == 0 ? "must not be empty" : problem;
}

const char *client_take_prefix(struct unpack *u, struct client_request *r, int *error) {
	/* A list takes nothing but a prefix, so the core needs no flag for it. */
	r->core.prefix = r->method != CLIENT_LIST;
	return client_take_bytes(u, KEY_MAX, key_is_too_long, &r->core.key, error);
}

const char *client_take_after(struct unpack *u, struct client_request *r, int *error) {
	return client_take_bytes(u, KEY_MAX, key_is_too_long, &r->core.after, error);
}

const char *client_take_owner(struct unpack *u, struct client_request *r, int *error) {
	_Static_assert(OWNER_MAX == 256, "the text below says it");
	return client_take_bytes(u, OWNER_MAX, "must be at most 256 bytes", &r->core.owner, error);
}

const char *client_take_to(struct unpack *u, struct client_request *r, int *error) {
	return client_take_bytes(u, OWNER_MAX, "must be at most 256 bytes", &r->core.to, error);
}

const char *client_take_watch(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t watch = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	r->watch = watch;
	return watch ? NULL : "must be the number that watch answered";
}

const char *client_take_client(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t client = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	r->client = client;
	return client ? NULL : "must be the number of a connection, as clients tells it";
}

const char *client_take_value(struct unpack *u, struct client_request *r, int *error) {
	return take_value_bytes(u, &r->core.value, error);
}

/* Returns true if the bytes may be a value_seq; then the request expects it. */
static bool take_seq(struct slice s, struct client_request *r) {
	if (s.size != CLIENT_VALUE_SEQ_BYTES) {
		return false;
	}
	struct ballot b = { unpack_be(s.data, 8), unpack_be(s.data + 8, 8),
		(uint32_t)unpack_be(s.data + 16, 4) };
	if (b.clock > TOKEN_MAX) {
		return false;
	}
	r->core.expect_seq = true;
	r->core.expected_seq = b;
	return true;
}

/* `expect` is the present value, or its value_seq. If the bytes may be either, the update goes
 * through if either is what is there. */
const char *client_take_expect(struct unpack *u, struct client_request *r, int *error) {
	const char *problem = take_value_bytes(u, &r->core.expected, error);
	r->core.expect_value = true;
	if (!problem) {
		take_seq(r->core.expected, r);
	}
	return problem;
}

const char *client_take_value_seq(struct unpack *u, struct client_request *r, int *error) {
	struct slice s = { 0 };
	if (client_take_bytes(u, SIZE_MAX, NULL, &s, error) || !take_seq(s, r)) {
		return "must be a value_seq as it was answered (20 bytes, bin)";
	}
	return NULL;
}

/* The head of a bin of 16 bytes. */
#define ID_HEAD "\xc4\x10"
#define ID_HEAD_BYTES (sizeof ID_HEAD - 1)

static const char *take_id(struct unpack *u, struct id128 *out, int *error) {
	static const char *const wrong =
		"must be 16 random bytes (bin) or 32 hex digits (str), not all zero";
	/* Nearly every request has an id in this form, which needs no parser. */
	if (!u->bad && unpack_left(u) >= ID_HEAD_BYTES + sizeof out->b
		&& memcmp(u->p, ID_HEAD, ID_HEAD_BYTES) == 0) {
		memcpy(out->b, u->p + ID_HEAD_BYTES, sizeof out->b);
		u->p += ID_HEAD_BYTES + sizeof out->b;
		return id128_zero(*out) ? wrong : NULL;
	}
	bool text = unpack_peek(u) == UNPACK_STR;
	struct slice s = { 0 };
	if (client_take_bytes(u, SIZE_MAX, NULL, &s, error)) {
		return wrong;
	}
	if (text) {
		return client_lock_id_parse(s, out) ? NULL : wrong;
	}
	if (s.size != sizeof out->b) {
		return wrong;
	}
	memcpy(out->b, s.data, s.size);
	return id128_zero(*out) ? wrong : NULL;
}

const char *client_take_lock_id(struct unpack *u, struct client_request *r, int *error) {
	return take_id(u, &r->core.lock_id, error);
}

const char *client_take_party(struct unpack *u, struct client_request *r, int *error) {
	return take_id(u, &r->party, error);
}

const char *client_take_lease(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_ms(u, 1, &r->core.lease);
}

const char *client_take_wait(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_ms(u, 0, &r->core.wait);
}

const char *client_take_token(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t token = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	if (token == 0 || token > TOKEN_MAX) {
		return "must be a token as it was answered (a whole number above 0); "
			"leave it out if there is none";
	}
	r->core.token = token;
	return NULL;
}

const char *client_take_limit(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t limit = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	if (limit < 1 || limit > CLIENT_LIST_MAX) {
		return "must be a whole number from 1 to 1000";
	}
	r->core.limit = (uint32_t)limit;
	return NULL;
}

const char *client_take_shorten(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_bool(u, &r->core.shorten);
}

const char *client_take_close(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_ms(u, 0, &r->core.closes);
}

const char *client_take_deadline_kept(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_bool(u, &r->core.deadline_kept);
}

const char *client_take_now(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_bool(u, &r->core.now);
}

const char *client_take_shares(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_bool(u, &r->shares);
}

const char *client_take_consistency(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	int choice = client_take_choice(u, "local", "quorum");
	r->core.quorum = choice == 1;
	return choice < 0 ? "must be \"local\" or \"quorum\"" : NULL;
}

const char *client_take_for(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	int choice = client_take_choice(u, "held", "free");
	r->core.for_free = choice == 1;
	return choice < 0 ? "must be \"held\" or \"free\"" : NULL;
}

const char *client_take_trace(struct unpack *u, struct client_request *r, int *error) {
	struct slice s = { 0 };
	if (client_take_bytes(u, SIZE_MAX, NULL, &s, error) || !trace_valid(s)) {
		return "must be a traceparent of W3C Trace Context, as in "
			"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	}
	r->trace = s;
	return NULL;
}

/* A position is opaque to callers, so any 16 bytes may be one that a node has answered. */
const char *client_take_from(struct unpack *u, struct client_request *r, int *error) {
	struct slice s = { 0 };
	if (client_take_bytes(u, SIZE_MAX, NULL, &s, error) || s.size != CLIENT_POSITION_BYTES) {
		return "must be a position as it was answered (16 bytes, bin)";
	}
	r->from = (struct client_position){ unpack_be(s.data, 8), unpack_be(s.data + 8, 8) };
	return NULL;
}
