/* metrics_clients.c: the metrics of clients, their requests, and the limits. */
#include "config_file.h"
#include "exposition.h"
#include "monitor.h"

/* ---- requests ---- */

/* The methods that are always shown; the others are once they have been used. */
static bool metrics_shown(const struct request_counts *counts, unsigned method) {
	bool used = method == CLIENT_ACQUIRE || method == CLIENT_EXTEND
		|| method == CLIENT_RELEASE || method == CLIENT_GET;
	for (unsigned k = 0; k < REQUEST_RESULTS && !used; k++) {
		used = counts->results[method][k] > 0;
	}
	return used;
}

static void metrics_requests(const struct metrics *m) {
	struct page *p = m->page;
	const struct request_counts *counts = &m->monitor->service->requests.counts;
	exposition_family(p, "pawl_requests_total", METRIC_COUNTER,
		"Requests of clients that were answered. Each lock of an extend counts.");
	for (unsigned i = 0; i < CLIENT_METHODS; i++) {
		const char *name = client_method_name((enum client_method)i);
		for (unsigned k = 0; metrics_shown(counts, i) && k < REQUEST_RESULTS; k++) {
			if (counts->results[i][k] || k == 0) {
				exposition_number(p, "pawl_requests_total",
					LABELS("method", name, "result", pawl_error_code(-(int)k)),
					counts->results[i][k]);
			}
		}
	}
	exposition_family(p, "pawl_request_duration_seconds", METRIC_HISTOGRAM,
		"How long requests took, from when they were served to their answer.");
	for (unsigned i = 0; i < CLIENT_METHODS; i++) {
		if (metrics_shown(counts, i)) {
			exposition_buckets(p, "pawl_request_duration_seconds",
				LABEL("method", client_method_name((enum client_method)i)),
				&counts->durations[i]);
		}
	}
	exposition_histogram(p, "pawl_acquire_wait_seconds",
		"How long the requests had waited that were granted.", &counts->waits);
	exposition_family(p, "pawl_grants_total", METRIC_COUNTER,
		"Locks that this node has granted to its clients.");
	for (unsigned i = 0; i < FIGURE_MODES; i++) {
		exposition_number(p, "pawl_grants_total",
			LABEL("mode", figure_mode_name((enum figure_mode)i)), counts->grants[i]);
	}
	exposition_counter(p, "pawl_deadlocks_total",
		"Deadlocks between clients whose youngest waiter is a client of this node.",
		m->monitor->service->deadlocks.found);
	exposition_gauge(p, "pawl_waiters", "Requests of this node's clients that wait.",
		m->core.waiters);
	exposition_gauge_seconds(p, "pawl_oldest_waiter_seconds",
		"How long the oldest of those has waited that may wait for less than a day.",
		(uint64_t)request_counts_oldest(counts, m->now));
}

/* ---- groups of keys ---- */

typedef void metrics_group(struct page *p, const char *name, const struct label *labels,
	const struct metrics *m, uint32_t group);

static void metrics_group_waiters(struct page *p, const char *name, const struct label *labels,
	const struct metrics *m, uint32_t group) {
	exposition_number(p, name, labels,
		m->monitor->service->requests.counts.groups[group].waiters);
}

static void metrics_group_holders(struct page *p, const char *name, const struct label *labels,
	const struct metrics *m, uint32_t group) {
	exposition_number(p, name, labels, m->figures.groups[group].holders);
}

static void metrics_group_waits(struct page *p, const char *name, const struct label *labels,
	const struct metrics *m, uint32_t group) {
	exposition_buckets(p, name, labels,
		&m->monitor->service->requests.counts.groups[group].waits);
}

static void metrics_group_grants(struct page *p, const char *name, const struct label *labels,
	const struct metrics *m, uint32_t group) {
	exposition_number(p, name, labels,
		m->monitor->service->requests.counts.groups[group].grants);
}

static void metrics_group_lost(struct page *p, const char *name, const struct label *labels,
	const struct metrics *m, uint32_t group) {
	exposition_number(p, name, labels, m->figures.groups[group].lost);
}

static void metrics_groups(const struct metrics *m) {
	static const struct {
		const char *name, *help;
		enum metric_type type;
		metrics_group *write;
	} families[] = {
		{ "pawl_group_waiters", "Requests that may wait for keys of the group.",
			METRIC_GAUGE, metrics_group_waiters },
		{ "pawl_group_holders", "Held leases of the group in this node's table.",
			METRIC_GAUGE, metrics_group_holders },
		{ "pawl_group_acquire_wait_seconds",
			"How long the requests had waited that were granted.",
			METRIC_HISTOGRAM, metrics_group_waits },
		{ "pawl_group_grants_total", "Locks that this node has granted to its clients.",
			METRIC_COUNTER, metrics_group_grants },
		{ "pawl_group_lost_total", "Leases in this table that ended without a release.",
			METRIC_COUNTER, metrics_group_lost },
	};
	const struct key_groups *groups = &m->monitor->driver->config->admin.groups;
	for (size_t i = 0; groups->count && i < sizeof families / sizeof *families; i++) {
		exposition_family(m->page, families[i].name, families[i].type, families[i].help);
		for (uint32_t k = 0; k < groups->count; k++) {
			families[i].write(m->page, families[i].name,
				LABEL("group", groups->prefixes[k]), m, k);
		}
	}
}

/* ---- connections and watches ---- */

static void metrics_connections(const struct metrics *m) {
	struct page *p = m->page;
	const struct sessions *s = m->monitor->service->sessions;
	const struct events *events = &m->monitor->service->events;
	exposition_counter(p, "pawl_events_total", "Events that clients were told.", events->told);
	exposition_counter(p, "pawl_event_overflows_total",
		"How often a client was told that it has missed events.", events->overflows);
	exposition_gauge(p, "pawl_watches", "Watches of all clients.", events_count(events));
	exposition_family(p, "pawl_clients", METRIC_GAUGE, "Connections of clients.");
	for (uint32_t i = 0; i < m->monitor->listener_count; i++) {
		exposition_number(p, "pawl_clients",
			LABEL("listener", m->monitor->listeners[i]), sessions_count_at(s, i));
	}
	exposition_family(p, "pawl_clients_refused_total", METRIC_COUNTER,
		"Connections and requests of clients that were refused.");
	exposition_number(p, "pawl_clients_refused_total", LABEL("why", "evicted"),
		m->strangers.evicted);
	exposition_number(p, "pawl_clients_refused_total", LABEL("why", "full"),
		sessions_full(s));
	exposition_number(p, "pawl_clients_refused_total", LABEL("why", "handshake"),
		m->strangers.refused - sessions_full(s));
	exposition_number(p, "pawl_clients_refused_total", LABEL("why", "quota"),
		sessions_refused(s));
}

void metrics_clients(const struct metrics *m) {
	metrics_requests(m);
	metrics_groups(m);
	metrics_connections(m);
}

/* ---- limits ---- */

void metrics_limits(const struct metrics *m) {
	struct page *p = m->page;
	const struct driver *d = m->monitor->driver;
	const struct sessions *s = m->monitor->service->sessions;
	struct node_limits limits = d->config->limits;
	struct node_limit limit;
	const struct {
		const char *name;
		uint64_t used;
	} uses[] = { { "keys", m->core.keys }, { "memory", m->core.memory_bytes },
		{ "log", m->core.log_bytes }, { "waiters", m->core.waiters },
		{ "waiters_per_key", m->figures.longest_queue }, { "rounds", m->core.rounds },
		{ "lingering", m->core.catch_up_count },
		{ "clients", sessions_count(s) - m->strangers.now },
		{ "client_memory", sessions_memory(s) },
		{ "kept_locks", kept_locks_count(&m->monitor->service->kept) },
		{ "handshakes", m->strangers.now } };
	/* The core knows its defaults. */
	limits.core = *core_limits_of(d->core);
	exposition_family(p, "pawl_limit", METRIC_GAUGE, "The limits of [limits].");
	for (unsigned i = 0; node_config_limit(&limits, i, &limit); i++) {
		if (limit.seconds) {
			exposition_seconds(p, "pawl_limit", LABEL("name", limit.name), limit.value);
		} else {
			exposition_number(p, "pawl_limit", LABEL("name", limit.name), limit.value);
		}
	}
	exposition_family(p, "pawl_limit_used", METRIC_GAUGE, "How much of a limit is used.");
	for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
		exposition_number(p, "pawl_limit_used", LABEL("name", uses[i].name), uses[i].used);
	}
}
