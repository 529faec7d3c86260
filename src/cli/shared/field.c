/* field.c: reads the fields of an answer, and a status as a whole. A field that is missing, or of
 * another kind, counts as not given. */
#include "field.h"

#include <string.h>
#include <time.h>

const char *field_text(const struct pawl_value *map, const char *name) {
	const struct pawl_value *v = pawl_value_get(map, name);
	return v && (v->kind == PAWL_TEXT || v->kind == PAWL_BYTES) ? v->bytes.data : "";
}

int64_t field_int(const struct pawl_value *map, const char *name, int64_t otherwise) {
	const struct pawl_value *v = pawl_value_get(map, name);
	return v && v->kind == PAWL_INT ? v->integer : otherwise;
}

bool field_bool(const struct pawl_value *map, const char *name) {
	const struct pawl_value *v = pawl_value_get(map, name);
	return v && v->kind == PAWL_BOOL && v->boolean;
}

/* Returns the days until a time in s since 1970; 0 means that the time is not known. */
static int64_t days_left(int64_t ends) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return ends == 0 ? VIEW_UNKNOWN
		: ends > (int64_t)now.tv_sec ? (ends - (int64_t)now.tv_sec) / (24 * 3600)
		: 0;
}

static bool has_ended(int64_t ends) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return ends != 0 && ends <= (int64_t)now.tv_sec;
}

static void read_node(struct view_node *n, const struct pawl_value *peer) {
	*n = (struct view_node){
		.name = field_text(peer, "node"),
		.address = field_text(peer, "address"),
		.role = field_text(peer, "role"),
		.self = field_bool(peer, "self"),
		.linked = field_bool(peer, "linked"),
		.voting = field_bool(peer, "voting"),
		.stranger = field_bool(peer, "stranger"),
		.other_epoch = field_bool(peer, "other_epoch"),
		.epoch = field_int(peer, "epoch", 0),
		.round_trip_us = field_int(peer, "round_trip_us", 0),
		.lag = field_bool(peer, "follows") ? field_int(peer, "lag", VIEW_UNKNOWN)
			: VIEW_UNKNOWN,
		.state = "",
		.waits_for = "",
		.following = "",
		.version = field_text(peer, "version"),
		.age_ms = VIEW_UNKNOWN,
		.uptime_ms = VIEW_UNKNOWN,
		.trouble = field_text(peer, "trouble"),
		.audit_trouble = "",
		.rights = field_text(peer, "rights"),
		.serial = field_text(peer, "serial"),
		.certificate_days = days_left(field_int(peer, "certificate_ends", 0)),
		.certificate_ended = has_ended(field_int(peer, "certificate_ends", 0)),
	};
	n->master = strcmp(n->role, "master") == 0;
	n->replica = strcmp(n->role, "replica") == 0;
}

/* Reads the node's present certificate, which the node itself knows best. */
static void read_certificate(struct view_node *n, const struct pawl_value *status) {
	const struct pawl_value *peers = pawl_value_get(status, "peers");
	for (size_t i = 0; peers && peers->kind == PAWL_ARRAY && i < peers->count; i++) {
		const struct pawl_value *peer = &peers->items[i];
		if (field_bool(peer, "self")) {
			n->serial = field_text(peer, "serial");
			n->certificate_days = days_left(field_int(peer, "certificate_ends", 0));
			n->certificate_ended = has_ended(field_int(peer, "certificate_ends", 0));
		}
	}
}

static void read_limits(struct view_node *n, const struct pawl_value *status) {
	const struct pawl_value *limits = pawl_value_get(status, "limits");
	n->limit_count = 0;
	for (size_t i = 0; limits && limits->kind == PAWL_ARRAY && i < limits->count
		&& n->limit_count < VIEW_LIMITS_MAX; i++) {
		const struct pawl_value *limit = &limits->items[i];
		n->limits[n->limit_count++] = (struct view_limit){ field_text(limit, "name"),
			field_int(limit, "used", 0), field_int(limit, "limit", 0),
			field_bool(limit, "reached"), field_int(limit, "most", 0),
			field_text(limit, "whose") };
	}
}

/* Reads what a node says about itself. */
static void read_self(struct view_node *n, const struct pawl_value *status) {
	const struct pawl_value *following = pawl_value_get(status, "following");
	n->state = field_text(status, "state");
	n->waits_for = field_text(status, "waits_for");
	n->version = field_text(status, "version");
	n->rights = field_text(status, "rights");
	n->audit_trouble = field_text(status, "audit_trouble");
	n->left_ms = field_int(status, "left_ms", 0);
	n->uptime_ms = field_int(status, "uptime_ms", VIEW_UNKNOWN);
	n->following = field_text(following, "node");
	n->age_ms = field_int(following, "age_ms", VIEW_UNKNOWN);
	n->catching_up = field_bool(following, "catching_up");
	n->snapshot_done = field_int(following, "snapshot_done", 0);
}

static struct view_node *find(struct view *v, const char *name) {
	for (size_t i = 0; i < v->count; i++) {
		if (strcmp(v->nodes[i].name, name) == 0) {
			return &v->nodes[i];
		}
	}
	return NULL;
}

/* Only the master that a replica follows knows how far that replica is behind. */
static void add_lags(struct view *v, const struct pawl_value *status) {
	const struct pawl_value *peers = pawl_value_get(status, "peers");
	for (size_t i = 0; peers && peers->kind == PAWL_ARRAY && i < peers->count; i++) {
		struct view_node *n = find(v, field_text(&peers->items[i], "node"));
		if (n && field_bool(&peers->items[i], "follows")) {
			n->lag = field_int(&peers->items[i], "lag", VIEW_UNKNOWN);
		}
	}
}

void view_add(struct view *v, const struct pawl_value *status) {
	struct view_node *n = find(v, field_text(status, "node"));
	if (n) {
		read_self(n, status);
		read_certificate(n, status);
		read_limits(n, status);
	}
	add_lags(v, status);
}

void view_read(struct view *out, const struct pawl_value *status) {
	const struct pawl_value *peers = pawl_value_get(status, "peers"),
				*change = pawl_value_get(status, "change");
	*out = (struct view){
		.node = field_text(status, "node"),
		.role = field_text(status, "role"),
		.cluster = field_text(status, "cluster"),
		.state = field_text(status, "state"),
		.epoch = field_int(status, "epoch", 0),
		.quorum = field_int(status, "quorum", 0),
		.voting = field_int(status, "voting", 0),
		.max_lease_ms = field_int(status, "max_lease_ms", 0),
		.request_timeout_ms = field_int(status, "request_timeout_ms", 0),
		.promise_timeout_ms = field_int(status, "promise_timeout_ms", 0),
		.clock_drift_ppm = field_int(status, "clock_drift_ppm", 0),
		.settled = field_bool(status, "settled"),
		.complete = field_bool(status, "complete"),
		.change = { field_text(change, "step"), field_int(change, "done", 0),
			field_int(change, "total", 0), field_int(change, "epoch", 0) },
	};
	for (size_t i = 0;
		peers && peers->kind == PAWL_ARRAY && i < peers->count && i < VIEW_NODES_MAX; i++) {
		read_node(&out->nodes[out->count++], &peers->items[i]);
	}
	view_add(out, status);
}
