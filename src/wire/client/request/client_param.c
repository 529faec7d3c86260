/* client_param.c: the tables that say which parameters each method takes, and which of them it
 * needs. */
#include "client_change.h"
#include "client_param.h"
#include "client_terms.h"

#define METHOD_BIT(method) (1u << (method))

/* Sets of methods: those that take a key, those that take a lease, those that take the mode of a
 * lock, and those that take a lock_id. */
#define M_KEYED \
	(METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_EXTEND) | METHOD_BIT(CLIENT_UPDATE) | \
		METHOD_BIT(CLIENT_RELEASE) | METHOD_BIT(CLIENT_DOWNGRADE) | \
		METHOD_BIT(CLIENT_TRANSFER) | METHOD_BIT(CLIENT_ASK_RELEASE) | \
		METHOD_BIT(CLIENT_EXPLAIN) | METHOD_BIT(CLIENT_WATCH) | METHOD_BIT(CLIENT_CAN) | \
		METHOD_BIT(CLIENT_PARAM_GROUP) | METHOD_BIT(CLIENT_GET) | \
		METHOD_BIT(CLIENT_WAIT) | METHOD_BIT(CLIENT_WAITERS) | METHOD_BIT(CLIENT_BREAK) | \
		METHOD_BIT(CLIENT_PARAM_LOCK))
#define M_LEASED \
	(METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_EXTEND) | METHOD_BIT(CLIENT_PARAM_LOCK))
#define M_TERMS (METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_PARAM_GROUP))
#define M_HELD \
	(M_LEASED | METHOD_BIT(CLIENT_PARAM_GROUP) | METHOD_BIT(CLIENT_UPDATE) | \
		METHOD_BIT(CLIENT_RELEASE) | METHOD_BIT(CLIENT_DOWNGRADE) | \
		METHOD_BIT(CLIENT_TRANSFER))

/* The changes of the set that take the name of a node, and those that take `anyway`. */
#define M_NAMED \
	(METHOD_BIT(CLIENT_CLUSTER_ADD_REPLICA) | METHOD_BIT(CLIENT_CLUSTER_PROMOTE) | \
		METHOD_BIT(CLIENT_CLUSTER_DEMOTE) | METHOD_BIT(CLIENT_CLUSTER_REMOVE))
#define M_ANYWAY \
	(METHOD_BIT(CLIENT_CLUSTER_PROMOTE) | METHOD_BIT(CLIENT_CLUSTER_DEMOTE) | \
		METHOD_BIT(CLIENT_CLUSTER_REMOVE) | METHOD_BIT(CLIENT_CLUSTER_REPLACE) | \
		METHOD_BIT(CLIENT_CLUSTER_SET_NODES))

#define NAME(text) text, sizeof text - 1

/* libpawl sends parameters in the order of their bits. The first ones stand here in that order, so
 * that the search for the next one is short. */
static const struct client_param_rule param_rules[] = {
	{ NAME("key"), CLIENT_HAS_KEY, M_KEYED, client_take_key },
	{ NAME("lease_ms"), CLIENT_HAS_LEASE, M_LEASED, client_take_lease },
	{ NAME("to"), CLIENT_HAS_TO, METHOD_BIT(CLIENT_TRANSFER) | METHOD_BIT(CLIENT_ASK_RELEASE),
		client_take_to },
	{ NAME("watch"), CLIENT_HAS_WATCH, METHOD_BIT(CLIENT_UNWATCH), client_take_watch },
	{ NAME("wait_ms"), CLIENT_HAS_WAIT, METHOD_BIT(CLIENT_ACQUIRE), client_take_wait },
	{ NAME("owner"), CLIENT_HAS_OWNER,
		METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_ASK_RELEASE), client_take_owner },
	{ NAME("value"), CLIENT_HAS_VALUE, METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_UPDATE),
		client_take_value },
	{ NAME("lock_id"), CLIENT_HAS_LOCK_ID, M_HELD, client_take_lock_id },
	{ NAME("token"), CLIENT_HAS_TOKEN,
		METHOD_BIT(CLIENT_EXTEND) | METHOD_BIT(CLIENT_BREAK) |
			METHOD_BIT(CLIENT_PARAM_LOCK),
		client_take_token },
	{ NAME("deadline_kept"), CLIENT_HAS_DEADLINE_KEPT, METHOD_BIT(CLIENT_EXTEND),
		client_take_deadline_kept },
	{ NAME("locks"), CLIENT_HAS_LOCKS, METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_EXTEND),
		NULL },
	{ NAME("mode"), CLIENT_HAS_MODE, M_TERMS, client_take_mode },
	{ NAME("permits"), CLIENT_HAS_PERMITS, M_TERMS, client_take_permits },
	{ NAME("of"), CLIENT_HAS_OF, M_TERMS, client_take_of },
	{ NAME("priority"), CLIENT_HAS_PRIORITY,
		METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_ASK_RELEASE) |
			METHOD_BIT(CLIENT_CAN),
		client_take_priority },
	{ NAME("lock_delay_ms"), CLIENT_HAS_LOCK_DELAY, METHOD_BIT(CLIENT_ACQUIRE),
		client_take_lock_delay },
	{ NAME("release_on_disconnect"), CLIENT_HAS_RELEASE_ON_DISCONNECT,
		METHOD_BIT(CLIENT_ACQUIRE), client_take_release_on_disconnect },
	{ NAME("label"), CLIENT_HAS_LABEL, METHOD_BIT(CLIENT_ACQUIRE), client_take_label },
	{ NAME("host"), CLIENT_HAS_HOST, METHOD_BIT(CLIENT_ACQUIRE), client_take_host },
	{ NAME("pid"), CLIENT_HAS_PID, METHOD_BIT(CLIENT_ACQUIRE), client_take_pid },
	{ NAME("party"), CLIENT_HAS_PARTY, METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_EXTEND),
		client_take_party },
	{ NAME("election"), CLIENT_HAS_ELECTION, METHOD_BIT(CLIENT_ACQUIRE), client_take_election },
	{ NAME("bond"), CLIENT_HAS_BINDING,
		METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_EXTEND) |
			METHOD_BIT(CLIENT_PARAM_LOCK),
		client_take_binding },
	{ NAME("order"), CLIENT_HAS_ORDER,
		METHOD_BIT(CLIENT_ACQUIRE) | METHOD_BIT(CLIENT_EXTEND) |
			METHOD_BIT(CLIENT_PARAM_LOCK),
		client_take_order },
	{ NAME("shorten"), CLIENT_HAS_SHORTEN,
		METHOD_BIT(CLIENT_EXTEND) | METHOD_BIT(CLIENT_PARAM_LOCK), client_take_shorten },
	{ NAME("close_ms"), CLIENT_HAS_CLOSE, METHOD_BIT(CLIENT_RELEASE), client_take_close },
	{ NAME("slots"), CLIENT_HAS_NUMBERS,
		METHOD_BIT(CLIENT_EXTEND) | METHOD_BIT(CLIENT_PARAM_LOCK),
		client_take_permit_numbers },
	{ NAME("from"), CLIENT_HAS_FROM, METHOD_BIT(CLIENT_WATCH), client_take_from },
	{ NAME("expect"), CLIENT_HAS_EXPECT,
		METHOD_BIT(CLIENT_UPDATE) | METHOD_BIT(CLIENT_RELEASE), client_take_expect },
	{ NAME("value_seq"), CLIENT_HAS_VALUE_SEQ,
		METHOD_BIT(CLIENT_UPDATE) | METHOD_BIT(CLIENT_RELEASE), client_take_value_seq },
	{ NAME("consistency"), CLIENT_HAS_CONSISTENCY, METHOD_BIT(CLIENT_GET),
		client_take_consistency },
	{ NAME("prefix"), CLIENT_HAS_PREFIX,
		METHOD_BIT(CLIENT_LIST) | METHOD_BIT(CLIENT_WAITERS) | METHOD_BIT(CLIENT_WATCH) |
			METHOD_BIT(CLIENT_CAN) | METHOD_BIT(CLIENT_TOP),
		client_take_prefix },
	{ NAME("limit"), CLIENT_HAS_LIMIT,
		METHOD_BIT(CLIENT_LIST) | METHOD_BIT(CLIENT_WAITERS) | METHOD_BIT(CLIENT_CLIENTS),
		client_take_limit },
	{ NAME("after"), CLIENT_HAS_AFTER, METHOD_BIT(CLIENT_LIST), client_take_after },
	{ NAME("after"), CLIENT_HAS_CLIENT, METHOD_BIT(CLIENT_CLIENTS), client_take_client },
	{ NAME("shares"), CLIENT_HAS_SHARES, METHOD_BIT(CLIENT_CLIENTS), client_take_shares },
	{ NAME("client"), CLIENT_HAS_CLIENT, METHOD_BIT(CLIENT_KICK), client_take_client },
	{ NAME("identity"), CLIENT_HAS_OWNER, METHOD_BIT(CLIENT_CAN), client_take_owner },
	{ NAME("method"), CLIENT_HAS_TO, METHOD_BIT(CLIENT_CAN), client_take_to },
	{ NAME("gids"), CLIENT_HAS_VALUE, METHOD_BIT(CLIENT_CAN), client_take_value },
	{ NAME("for"), CLIENT_HAS_FOR, METHOD_BIT(CLIENT_WAIT), client_take_for },
	{ NAME("timeout_ms"), CLIENT_HAS_WAIT, METHOD_BIT(CLIENT_WAIT), client_take_wait },
	{ NAME("now"), CLIENT_HAS_NOW, METHOD_BIT(CLIENT_BREAK), client_take_now },
	{ NAME("name"), CLIENT_HAS_NAME, M_NAMED, client_take_name },
	{ NAME("address"), CLIENT_HAS_ADDRESS, METHOD_BIT(CLIENT_CLUSTER_ADD_REPLICA),
		client_take_address },
	{ NAME("old"), CLIENT_HAS_OLD, METHOD_BIT(CLIENT_CLUSTER_REPLACE), client_take_old },
	{ NAME("new"), CLIENT_HAS_NEW, METHOD_BIT(CLIENT_CLUSTER_REPLACE), client_take_new },
	{ NAME("masters"), CLIENT_HAS_MASTERS, METHOD_BIT(CLIENT_CLUSTER_SET_NODES), NULL },
	{ NAME("replicas"), CLIENT_HAS_REPLICAS, METHOD_BIT(CLIENT_CLUSTER_SET_NODES), NULL },
	{ NAME("anyway"), CLIENT_HAS_ANYWAY, M_ANYWAY, client_take_anyway },
	{ NAME("yes"), CLIENT_HAS_YES, METHOD_BIT(CLIENT_CLUSTER_FORCE), client_take_yes },
	{ NAME("max_lease_ms"), CLIENT_HAS_MAX_LEASE, METHOD_BIT(CLIENT_CLUSTER_SET_TIMING),
		client_take_max_lease },
	{ NAME("request_timeout_ms"), CLIENT_HAS_REQUEST_TIMEOUT,
		METHOD_BIT(CLIENT_CLUSTER_SET_TIMING), client_take_request_timeout },
	{ NAME("promise_timeout_ms"), CLIENT_HAS_PROMISE_TIMEOUT,
		METHOD_BIT(CLIENT_CLUSTER_SET_TIMING), client_take_promise_timeout },
	{ NAME("clock_drift_ppm"), CLIENT_HAS_DRIFT, METHOD_BIT(CLIENT_CLUSTER_SET_TIMING),
		client_take_drift },
	{ NAME("trace"), CLIENT_HAS_TRACE, METHOD_BIT(CLIENT_METHODS) - 1, client_take_trace },
};
#define PARAM_RULES (sizeof param_rules / sizeof param_rules[0])

struct param_method {
	/* The bits CLIENT_HAS_... of the parameters that the method needs. */
	uint64_t required;
	/* The answer to a parameter that the method does not take. */
	const char *unknown;
};

static const struct param_method param_methods[CLIENT_PARAM_SETS] = {
	[CLIENT_ACQUIRE] = { CLIENT_HAS_KEY | CLIENT_HAS_LEASE,
		"unknown parameter: acquire takes key, lease_ms, wait_ms, owner, value, lock_id, "
		"mode or permits and of, priority, lock_delay_ms, release_on_disconnect, bond, "
		"order, label, host, pid, election, party; or locks instead of key, lock_id, "
		"mode, permits, of" },
	[CLIENT_EXTEND] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_LEASE,
		"unknown parameter: extend takes key, lock_id, lease_ms, token, slots, bond, "
		"order, shorten, deadline_kept, party, or locks, deadline_kept and party" },
	[CLIENT_UPDATE] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_VALUE,
		"unknown parameter: update takes key, lock_id, value, and expect or value_seq" },
	[CLIENT_RELEASE] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID,
		"unknown parameter: release takes key, lock_id, and close_ms, expect or "
		"value_seq" },
	[CLIENT_GET] = { CLIENT_HAS_KEY, "unknown parameter: get takes key, consistency" },
	[CLIENT_LIST] = { 0, "unknown parameter: list takes prefix, limit, after" },
	[CLIENT_WAIT] = { CLIENT_HAS_KEY | CLIENT_HAS_FOR,
		"unknown parameter: wait takes key, for, timeout_ms" },
	[CLIENT_WAITERS] = { 0, "unknown parameter: waiters takes key, or prefix and limit" },
	[CLIENT_BREAK] = { CLIENT_HAS_KEY, "unknown parameter: break takes key, token, now" },
	[CLIENT_STATUS] = { 0, "unknown parameter: status takes none" },
	[CLIENT_PING] = { 0, "unknown parameter: ping takes none" },
	[CLIENT_DRAIN] = { 0, "unknown parameter: drain takes none" },
	[CLIENT_DOWNGRADE] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID,
		"unknown parameter: downgrade takes key, lock_id" },
	[CLIENT_TRANSFER] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_TO,
		"unknown parameter: transfer takes key, lock_id, to" },
	[CLIENT_ASK_RELEASE] = { CLIENT_HAS_KEY,
		"unknown parameter: ask_release takes key, owner, to, priority" },
	[CLIENT_EXPLAIN] = { CLIENT_HAS_KEY, "unknown parameter: explain takes key" },
	[CLIENT_WATCH] = { 0, "unknown parameter: watch takes key or prefix, and from" },
	[CLIENT_UNWATCH] = { CLIENT_HAS_WATCH, "unknown parameter: unwatch takes watch" },
	[CLIENT_CLIENTS] = { 0, "unknown parameter: clients takes limit, after, shares" },
	[CLIENT_KICK] = { CLIENT_HAS_CLIENT, "unknown parameter: kick takes client" },
	[CLIENT_CAN] = { CLIENT_HAS_TO,
		"unknown parameter: can takes method, key or prefix, identity, gids, priority" },
	[CLIENT_TOP] = { 0, "unknown parameter: top takes prefix" },
	[CLIENT_CLUSTER_ADD_REPLICA] = { CLIENT_HAS_NAME,
		"unknown parameter: cluster_add_replica takes name, address" },
	[CLIENT_CLUSTER_PROMOTE] = { CLIENT_HAS_NAME,
		"unknown parameter: cluster_promote takes name, anyway" },
	[CLIENT_CLUSTER_DEMOTE] = { CLIENT_HAS_NAME,
		"unknown parameter: cluster_demote takes name, anyway" },
	[CLIENT_CLUSTER_REMOVE] = { CLIENT_HAS_NAME,
		"unknown parameter: cluster_remove takes name, anyway" },
	[CLIENT_CLUSTER_REPLACE] = { CLIENT_HAS_OLD | CLIENT_HAS_NEW,
		"unknown parameter: cluster_replace takes old, new, anyway" },
	[CLIENT_CLUSTER_SET_NODES] = { CLIENT_HAS_MASTERS,
		"unknown parameter: cluster_set_nodes takes masters, replicas, anyway" },
	[CLIENT_CLUSTER_SET_TIMING] = { 0,
		"unknown parameter: cluster_set_timing takes max_lease_ms, request_timeout_ms, "
		"promise_timeout_ms, clock_drift_ppm" },
	[CLIENT_CLUSTER_FORCE] = { CLIENT_HAS_YES, "unknown parameter: cluster_force takes yes" },
	[CLIENT_PARAM_LOCK] = { CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_LEASE,
		"unknown parameter: each of locks takes "
		"key, lock_id, lease_ms, token, slots, bond, order, shorten" },
	[CLIENT_PARAM_GROUP] = { CLIENT_HAS_KEY,
		"unknown parameter: each of locks takes key, lock_id, mode or permits and of" },
};

/* Names of 8 to 16 bytes, and of 4 to 7, are compared as two words that may overlap, which costs
 * less than a call. */
static inline bool param_named(const struct client_param_rule *rule, struct slice name) {
	uint64_t a[2], b[2];
	const size_t size = rule->size;
	const uint8_t *own = (const uint8_t *)rule->name;
	if (name.size != size) {
		return false;
	}
	if (size >= sizeof *a && size <= sizeof a) {
		memcpy(&a[0], own, sizeof *a);
		memcpy(&a[1], own + size - sizeof *a, sizeof *a);
		memcpy(&b[0], name.data, sizeof *b);
		memcpy(&b[1], name.data + size - sizeof *b, sizeof *b);
		return a[0] == b[0] && a[1] == b[1];
	}
	if (size >= sizeof(uint32_t) && size < sizeof *a) {
		uint32_t c[2], d[2];
		memcpy(&c[0], own, sizeof *c);
		memcpy(&c[1], own + size - sizeof *c, sizeof *c);
		memcpy(&d[0], name.data, sizeof *d);
		memcpy(&d[1], name.data + size - sizeof *d, sizeof *d);
		return c[0] == d[0] && c[1] == d[1];
	}
	return memcmp(own, name.data, size) == 0;
}

const struct client_param_rule *client_param_find(unsigned method, struct slice name,
	const struct client_param_rule *after) {
	const struct client_param_rule *rule = after ? after + 1 : param_rules;
	for (size_t tried = 0; tried < PARAM_RULES; tried++, rule++) {
		if (rule == param_rules + PARAM_RULES) {
			rule = param_rules;
		}
		if ((rule->methods & METHOD_BIT(method)) && param_named(rule, name)) {
			return rule;
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
