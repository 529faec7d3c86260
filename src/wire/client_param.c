/* The parameters of requests: the table, and a reader for each. What is wrong is said with the remedy. */
#include "client_change.h"
#include "client_param.h"

#define METHOD_BIT(method) (1u << (method))

/* ---- readers ---- */

static const char *take_bytes(struct unpack *u, size_t max, const char *too_long, struct slice *out, int *error) {
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

static const char *take_key_bytes(struct unpack *u, struct slice *out, int *error) {
	_Static_assert(KEY_MAX == 512, "the text below says it");
	return take_bytes(u, KEY_MAX, "must be at most 512 bytes", out, error);
}

static const char *take_value_bytes(struct unpack *u, struct slice *out, int *error) {
	_Static_assert(VALUE_MAX_HARD == 1 << 20, "the text below says it");
	return take_bytes(u, VALUE_MAX_HARD, "must be at most 1048576 bytes: keep larger data elsewhere and its name here", out, error);
}

static const char *take_ms(struct unpack *u, uint64_t min, span_ns *out) {
	uint64_t ms = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : UINT64_MAX;
	if (ms < min || ms > CLIENT_MS_MAX) {
		return min ? "must be a whole number of milliseconds, at least 1 and at most 1000000000000"
			   : "must be a whole number of milliseconds, 0 to 1000000000000";
	}
	*out = (span_ns)ms * SPAN_MS;
	return NULL;
}

static const char *take_bool(struct unpack *u, bool *out) {
	if (unpack_peek(u) != UNPACK_BOOL) {
		return "must be true or false";
	}
	*out = unpack_bool(u);
	return NULL;
}

/* The text, if it is one of two: 0 or 1; -1: neither. */
static int take_choice(struct unpack *u, const char *zero, const char *one) {
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

static const char *take_key(struct unpack *u, struct client_request *r, int *error) {
	const char *problem = take_key_bytes(u, &r->core.key, error);
	return !problem && r->core.key.size == 0 ? "must not be empty" : problem;
}

static const char *take_prefix(struct unpack *u, struct client_request *r, int *error) {
	return take_key_bytes(u, &r->core.key, error);
}

static const char *take_after(struct unpack *u, struct client_request *r, int *error) {
	return take_key_bytes(u, &r->core.after, error);
}

static const char *take_owner(struct unpack *u, struct client_request *r, int *error) {
	_Static_assert(OWNER_MAX == 256, "the text below says it");
	return take_bytes(u, OWNER_MAX, "must be at most 256 bytes", &r->core.owner, error);
}

static const char *take_to(struct unpack *u, struct client_request *r, int *error) {
	return take_bytes(u, OWNER_MAX, "must be at most 256 bytes", &r->core.to, error);
}

static const char *take_watch(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t watch = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	r->watch = watch;
	return watch ? NULL : "must be the number that watch answered";
}

static const char *take_value(struct unpack *u, struct client_request *r, int *error) {
	return take_value_bytes(u, &r->core.value, error);
}

static uint64_t param_be(const uint8_t *p, unsigned bytes) {
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++) {
		value = value << 8 | p[i];
	}
	return value;
}

/* True: the bytes may be a value_seq, and are now also expected as one. */
static bool take_seq(struct slice s, struct client_request *r) {
	if (s.size != CLIENT_VALUE_SEQ_BYTES) {
		return false;
	}
	struct ballot b = { param_be(s.data, 8), param_be(s.data + 8, 8), (uint32_t)param_be(s.data + 16, 4) };
	if (b.clock > TOKEN_MAX) {
		return false;
	}
	r->core.expect_seq = true;
	r->core.expected_seq = b;
	return true;
}

/* The present value, or a value_seq: bytes that may be either are met by either. */
static const char *take_expect(struct unpack *u, struct client_request *r, int *error) {
	const char *problem = take_value_bytes(u, &r->core.expected, error);
	r->core.expect_value = true;
	if (!problem) {
		take_seq(r->core.expected, r);
	}
	return problem;
}

static const char *take_value_seq(struct unpack *u, struct client_request *r, int *error) {
	struct slice s = { 0 };
	if (take_bytes(u, SIZE_MAX, NULL, &s, error) || !take_seq(s, r)) {
		return "must be a value_seq as it was answered (20 bytes, bin)";
	}
	return NULL;
}

static const char *take_lock_id(struct unpack *u, struct client_request *r, int *error) {
	static const char *const wrong = "must be 16 random bytes (bin) or 32 hex digits (str), not all zero";
	bool text = unpack_peek(u) == UNPACK_STR;
	struct slice s = { 0 };
	if (take_bytes(u, SIZE_MAX, NULL, &s, error)) {
		return wrong;
	}
	if (text) {
		return client_lock_id_parse(s, &r->core.lock_id) ? NULL : wrong;
	}
	if (s.size != sizeof r->core.lock_id.b) {
		return wrong;
	}
	memcpy(r->core.lock_id.b, s.data, s.size);
	return id128_zero(r->core.lock_id) ? wrong : NULL;
}

static const char *take_lease(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return take_ms(u, 1, &r->core.lease);
}

static const char *take_wait(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return take_ms(u, 0, &r->core.wait);
}

static const char *take_token(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t token = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	if (token == 0 || token > TOKEN_MAX) {
		return "must be a token as it was answered (a whole number above 0); leave it out if there is none";
	}
	r->core.token = token;
	return NULL;
}

static const char *take_limit(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t limit = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	if (limit < 1 || limit > CLIENT_LIST_MAX) {
		return "must be a whole number from 1 to 1000";
	}
	r->core.limit = (uint32_t)limit;
	return NULL;
}

static const char *take_deadline_kept(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return take_bool(u, &r->core.deadline_kept);
}

static const char *take_now(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return take_bool(u, &r->core.now);
}

static const char *take_consistency(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	int choice = take_choice(u, "local", "quorum");
	r->core.quorum = choice == 1;
	return choice < 0 ? "must be \"local\" or \"quorum\"" : NULL;
}

static const char *take_for(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	int choice = take_choice(u, "held", "free");
	r->core.for_free = choice == 1;
	return choice < 0 ? "must be \"held\" or \"free\"" : NULL;
}

/* ---- parameters and methods ---- */

#define M_KEYED \
	(METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_EXTEND) | METHOD_BIT(CLIENT_UPDATE) | METHOD_BIT(CLIENT_RELEASE) | \
		METHOD_BIT(CLIENT_DOWNGRADE) | METHOD_BIT(CLIENT_TRANSFER) | METHOD_BIT(CLIENT_ASK_RELEASE) | METHOD_BIT(CLIENT_EXPLAIN) | \
		METHOD_BIT(CLIENT_GET) | METHOD_BIT(CLIENT_WAIT) | METHOD_BIT(CLIENT_WAITERS) | METHOD_BIT(CLIENT_BREAK) | \
		METHOD_BIT(CLIENT_PARAM_LOCK))
#define M_LEASED (METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_EXTEND) | METHOD_BIT(CLIENT_PARAM_LOCK))
#define M_HELD (M_LEASED | METHOD_BIT(CLIENT_UPDATE) | METHOD_BIT(CLIENT_RELEASE) | METHOD_BIT(CLIENT_DOWNGRADE) | METHOD_BIT(CLIENT_TRANSFER))

#define M_NAMED \
	(METHOD_BIT(CLIENT_CLUSTER_ADD_REPLICA) | METHOD_BIT(CLIENT_CLUSTER_PROMOTE) | METHOD_BIT(CLIENT_CLUSTER_DEMOTE) | \
		METHOD_BIT(CLIENT_CLUSTER_REMOVE))
#define M_ANYWAY \
	(METHOD_BIT(CLIENT_CLUSTER_PROMOTE) | METHOD_BIT(CLIENT_CLUSTER_DEMOTE) | METHOD_BIT(CLIENT_CLUSTER_REMOVE) | \
		METHOD_BIT(CLIENT_CLUSTER_REPLACE) | METHOD_BIT(CLIENT_CLUSTER_SET_NODES))

static const struct client_param_rule param_rules[] = {
	{ "key", CLIENT_HAS_KEY, M_KEYED, take_key },
	{ "lock_id", CLIENT_HAS_LOCK_ID, M_HELD, take_lock_id },
	{ "lease_ms", CLIENT_HAS_LEASE, M_LEASED, take_lease },
	{ "to", CLIENT_HAS_TO, METHOD_BIT(CLIENT_TRANSFER) | METHOD_BIT(CLIENT_ASK_RELEASE), take_to },
	{ "watch", CLIENT_HAS_WATCH, METHOD_BIT(CLIENT_UNWATCH), take_watch },
	{ "wait_ms", CLIENT_HAS_WAIT, METHOD_BIT(CLIENT_ACQUIRE), take_wait },
	{ "owner", CLIENT_HAS_OWNER, METHOD_BIT(CLIENT_ACQUIRE), take_owner },
	{ "value", CLIENT_HAS_VALUE, METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_UPDATE), take_value },
	{ "token", CLIENT_HAS_TOKEN, METHOD_BIT(CLIENT_EXTEND) | METHOD_BIT(CLIENT_BREAK) | METHOD_BIT(CLIENT_PARAM_LOCK), take_token },
	{ "deadline_kept", CLIENT_HAS_DEADLINE_KEPT, METHOD_BIT(CLIENT_EXTEND), take_deadline_kept },
	{ "locks", CLIENT_HAS_LOCKS, METHOD_BIT(CLIENT_EXTEND), NULL },
	{ "expect", CLIENT_HAS_EXPECT, METHOD_BIT(CLIENT_UPDATE), take_expect },
	{ "value_seq", CLIENT_HAS_VALUE_SEQ, METHOD_BIT(CLIENT_UPDATE), take_value_seq },
	{ "consistency", CLIENT_HAS_CONSISTENCY, METHOD_BIT(CLIENT_GET), take_consistency },
	{ "prefix", CLIENT_HAS_PREFIX, METHOD_BIT(CLIENT_LIST), take_prefix },
	{ "limit", CLIENT_HAS_LIMIT, METHOD_BIT(CLIENT_LIST), take_limit },
	{ "after", CLIENT_HAS_AFTER, METHOD_BIT(CLIENT_LIST), take_after },
	{ "for", CLIENT_HAS_FOR, METHOD_BIT(CLIENT_WAIT), take_for },
	{ "timeout_ms", CLIENT_HAS_WAIT, METHOD_BIT(CLIENT_WAIT), take_wait },
	{ "now", CLIENT_HAS_NOW, METHOD_BIT(CLIENT_BREAK), take_now },
	{ "name", CLIENT_HAS_NAME, M_NAMED, client_take_name },
	{ "address", CLIENT_HAS_ADDRESS, METHOD_BIT(CLIENT_CLUSTER_ADD_REPLICA), client_take_address },
	{ "old", CLIENT_HAS_OLD, METHOD_BIT(CLIENT_CLUSTER_REPLACE), client_take_old },
	{ "new", CLIENT_HAS_NEW, METHOD_BIT(CLIENT_CLUSTER_REPLACE), client_take_new },
	{ "masters", CLIENT_HAS_MASTERS, METHOD_BIT(CLIENT_CLUSTER_SET_NODES), NULL },
	{ "replicas", CLIENT_HAS_REPLICAS, METHOD_BIT(CLIENT_CLUSTER_SET_NODES), NULL },
	{ "anyway", CLIENT_HAS_ANYWAY, M_ANYWAY, client_take_anyway },
	{ "yes", CLIENT_HAS_YES, METHOD_BIT(CLIENT_CLUSTER_FORCE), client_take_yes },
	{ "max_lease_ms", CLIENT_HAS_MAX_LEASE, METHOD_BIT(CLIENT_CLUSTER_SET_TIMING), client_take_max_lease },
	{ "request_timeout_ms", CLIENT_HAS_REQUEST_TIMEOUT, METHOD_BIT(CLIENT_CLUSTER_SET_TIMING), client_take_request_timeout },
	{ "promise_timeout_ms", CLIENT_HAS_PROMISE_TIMEOUT, METHOD_BIT(CLIENT_CLUSTER_SET_TIMING), client_take_promise_timeout },
	{ "clock_drift_ppm", CLIENT_HAS_DRIFT, METHOD_BIT(CLIENT_CLUSTER_SET_TIMING), client_take_drift },
};
#define PARAM_RULES (sizeof param_rules / sizeof param_rules[0])

struct param_method {
	uint64_t required;
	const char *unknown; /* the answer to a parameter that it does not take */
};

static const struct param_method param_methods[CLIENT_METHODS + 1] = {
	[CLIENT_ACQUIRE] = { CLIENT_HAS_KEY | CLIENT_HAS_LEASE,
		"unknown parameter: acquire takes key, lease_ms, wait_ms, owner, value, lock_id" },
	[CLIENT_EXTEND] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_LEASE,
		"unknown parameter: extend takes key, lock_id, lease_ms, token, deadline_kept, or locks and deadline_kept" },
	[CLIENT_UPDATE] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_VALUE,
		"unknown parameter: update takes key, lock_id, value, and expect or value_seq" },
	[CLIENT_RELEASE] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID, "unknown parameter: release takes key, lock_id" },
	[CLIENT_GET] = { CLIENT_HAS_KEY, "unknown parameter: get takes key, consistency" },
	[CLIENT_LIST] = { 0, "unknown parameter: list takes prefix, limit, after" },
	[CLIENT_WAIT] = { CLIENT_HAS_KEY | CLIENT_HAS_FOR, "unknown parameter: wait takes key, for, timeout_ms" },
	[CLIENT_WAITERS] = { CLIENT_HAS_KEY, "unknown parameter: waiters takes key" },
	[CLIENT_BREAK] = { CLIENT_HAS_KEY, "unknown parameter: break takes key, token, now" },
	[CLIENT_STATUS] = { 0, "unknown parameter: status takes none" },
	[CLIENT_PING] = { 0, "unknown parameter: ping takes none" },
	[CLIENT_DRAIN] = { 0, "unknown parameter: drain takes none" },
	[CLIENT_DOWNGRADE] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID, "unknown parameter: downgrade takes key, lock_id" },
	[CLIENT_TRANSFER] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_TO, "unknown parameter: transfer takes key, lock_id, to" },
	[CLIENT_ASK_RELEASE] = { CLIENT_HAS_KEY, "unknown parameter: ask_release takes key, owner, to, priority" },
	[CLIENT_EXPLAIN] = { CLIENT_HAS_KEY, "unknown parameter: explain takes key" },
	[CLIENT_WATCH] = { 0, "unknown parameter: watch takes key or prefix, and from" },
	[CLIENT_UNWATCH] = { CLIENT_HAS_WATCH, "unknown parameter: unwatch takes watch" },
	[CLIENT_CLUSTER_ADD_REPLICA] = { CLIENT_HAS_NAME, "unknown parameter: cluster_add_replica takes name, address" },
	[CLIENT_CLUSTER_PROMOTE] = { CLIENT_HAS_NAME, "unknown parameter: cluster_promote takes name, anyway" },
	[CLIENT_CLUSTER_DEMOTE] = { CLIENT_HAS_NAME, "unknown parameter: cluster_demote takes name, anyway" },
	[CLIENT_CLUSTER_REMOVE] = { CLIENT_HAS_NAME, "unknown parameter: cluster_remove takes name, anyway" },
	[CLIENT_CLUSTER_REPLACE] = { CLIENT_HAS_OLD | CLIENT_HAS_NEW, "unknown parameter: cluster_replace takes old, new, anyway" },
	[CLIENT_CLUSTER_SET_NODES] = { CLIENT_HAS_MASTERS, "unknown parameter: cluster_set_nodes takes masters, replicas, anyway" },
	[CLIENT_CLUSTER_SET_TIMING] = { 0,
		"unknown parameter: cluster_set_timing takes max_lease_ms, request_timeout_ms, promise_timeout_ms, clock_drift_ppm" },
	[CLIENT_CLUSTER_FORCE] = { CLIENT_HAS_YES, "unknown parameter: cluster_force takes yes" },
	[CLIENT_PARAM_LOCK] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_LEASE,
		"unknown parameter: each of locks takes key, lock_id, lease_ms, token" },
};

const struct client_param_rule *client_param_find(unsigned method, struct slice name) {
	for (size_t i = 0; i < PARAM_RULES; i++) {
		if ((param_rules[i].methods & METHOD_BIT(method)) && slice_equal(name, slice_str(param_rules[i].name))) {
			return &param_rules[i];
		}
	}
	return NULL;
}

const char *client_param_name(unsigned method, uint64_t bit) {
	for (size_t i = 0; i < PARAM_RULES; i++) {
		if ((param_rules[i].methods & METHOD_BIT(method)) && param_rules[i].bit == bit) {
			return param_rules[i].name;
		}
	}
	return NULL;
}

uint64_t client_param_required(unsigned method) {
	return param_methods[method].required;
}

const char *client_param_unknown(unsigned method) {
	return param_methods[method].unknown;
}
