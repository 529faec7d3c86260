/* metrics_core.c: the metrics of the cluster as this node sees it, and of its table. */
#include "exposition.h"
#include "monitor.h"

static const char *const metrics_states[] = { "unborn", "outside", "following", "handover",
	"recovering", "voting", "drained" };

_Static_assert(sizeof metrics_states / sizeof *metrics_states == CORE_DRAINED + 1,
	"a name for each state");

static void metrics_state(const struct metrics *m) {
	struct page *p = m->page;
	const struct driver *d = m->monitor->driver;
	const struct label info[] = { { "node", slice_str(d->context.node) },
		{ "cluster", slice_str(core_config(d->core)->cluster) },
		{ "role", slice_str(d->context.role) }, { 0 } };
	exposition_family(p, "pawl_build_info", METRIC_GAUGE, "The version of this node.");
	exposition_number(p, "pawl_build_info", LABEL("version", PAWL_VERSION), 1);
	exposition_family(p, "pawl_node_info", METRIC_GAUGE, "The node, its cluster and its role.");
	exposition_number(p, "pawl_node_info", info, 1);
	exposition_family(p, "pawl_node_state", METRIC_GAUGE, "1 for the state of the node.");
	for (unsigned i = 0; i <= CORE_DRAINED; i++) {
		exposition_number(p, "pawl_node_state", LABEL("state", metrics_states[i]),
			(unsigned)m->core.state == i);
	}
	exposition_gauge_seconds(p, "pawl_node_wait_seconds",
		"How long the node still waits at the longest before it votes.",
		(uint64_t)m->core.left);
}

static void metrics_quorum(const struct metrics *m) {
	struct page *p = m->page;
	uint32_t answered;
	enum probe_state probe = probe_state_at(&m->monitor->probe, m->now, &answered);
	exposition_gauge(p, "pawl_quorum_required", "How many masters are a quorum.",
		m->core.quorum);
	exposition_gauge(p, "pawl_masters", "The masters of the configuration.",
		config_masters(core_config(m->monitor->driver->core)));
	exposition_gauge(p, "pawl_voting_masters",
		"The masters that vote and are linked with this node, itself included.",
		m->core.voting_linked);
	/* Right after links were lost, the last probe is still a good one. */
	exposition_gauge(p, "pawl_quorum_reachable",
		"1 if a quorum is linked and answered the last probe within request_timeout.",
		probe == PROBE_OK && m->core.voting_linked >= m->core.quorum);
	exposition_histogram(p, "pawl_quorum_probe_seconds",
		"How long a read of a quorum took, once a second.", &m->monitor->probe.took);
	exposition_gauge(p, "pawl_epoch", "The epoch of the configuration.", m->core.epoch);
	exposition_gauge(p, "pawl_epoch_complete", "1 if all masters vote in the epoch.",
		m->core.complete);
}

/* Writes a sample for each result of a change that there has been. */
static void metrics_changes(const struct metrics *m) {
	const struct request_counts *counts = &m->monitor->service->requests.counts;
	const size_t before = strlen("cluster_");
	exposition_family(m->page, "pawl_changes_total", METRIC_COUNTER,
		"Changes of the cluster that this node was asked for.");
	for (unsigned i = 0; i < CLIENT_METHODS; i++) {
		const char *name = client_method_name((enum client_method)i);
		if (!client_method_changes((enum client_method)i)) {
			continue;
		}
		for (unsigned k = 0; k < REQUEST_RESULTS; k++) {
			if (counts->results[i][k] || k == 0) {
				exposition_number(m->page, "pawl_changes_total",
					LABELS("kind", name + before, "result",
						pawl_error_code(-(int)k)), counts->results[i][k]);
			}
		}
	}
}

static void metrics_table(const struct metrics *m) {
	struct page *p = m->page;
	const struct core_figures *f = &m->figures;
	exposition_family(p, "pawl_leases", METRIC_GAUGE, "Held leases in this node's table.");
	for (unsigned i = 0; i < FIGURE_MODES; i++) {
		exposition_number(p, "pawl_leases",
			LABEL("mode", figure_mode_name((enum figure_mode)i)), f->leases[i]);
	}
	exposition_gauge(p, "pawl_keys", "Keys in this node's table.", m->core.keys);
	exposition_gauge(p, "pawl_promises", "Promises of this node.", m->core.promises);
	exposition_gauge(p, "pawl_longest_queue",
		"Requests in the longest queue of a key whose home this node is.",
		f->longest_queue);
	exposition_gauge_seconds(p, "pawl_oldest_holder_seconds",
		"How long the lease that was acquired first has been held.",
		(uint64_t)f->oldest_holder);
	exposition_gauge(p, "pawl_contested_keys",
		"Keys of which masters know holders that exclude each other.", f->contested);
	exposition_counter(p, "pawl_releases_total", "Leases in this table that were released.",
		f->releases);
	exposition_family(p, "pawl_leases_lost_total", METRIC_COUNTER,
		"Leases in this table that ended without a release.");
	for (unsigned i = 0; i < FIGURE_LOSSES; i++) {
		exposition_number(p, "pawl_leases_lost_total",
			LABEL("cause", figure_lost_name((enum figure_lost)i)), f->lost[i]);
	}
	exposition_histogram(p, "pawl_hold_seconds",
		"How long leases had been held that were released or lost.", &f->holds);
	exposition_family(p, "pawl_paused_seconds_total", METRIC_COUNTER,
		"How long this process stood still in all.");
	exposition_seconds(p, "pawl_paused_seconds_total", NULL, f->stood_still);
	exposition_counter(p, "pawl_clock_refused_total",
		"Clocks of peers that were too far ahead and were refused.",
		core_counts(m->monitor->driver->core)[COUNT_clock_refused]);
	exposition_counter(p, "pawl_audit_violations_total",
		"Keys that were granted twice, as this replica has found ([audit] check).",
		core_counts(m->monitor->driver->core)[COUNT_audit_violations]);
}

void metrics_core(const struct metrics *m) {
	metrics_state(m);
	metrics_quorum(m);
	metrics_changes(m);
	metrics_table(m);
}

/* ---- peers ---- */

static void metrics_links(const struct metrics *m) {
	struct page *p = m->page;
	const struct driver *d = m->monitor->driver;
	uint32_t count = d->context.peer_count, self = core_self(d->core);
	exposition_family(p, "pawl_peer_up", METRIC_GAUGE, "1 if this node is linked with it.");
	for (uint32_t i = 0; i < count; i++) {
		if (i != self) {
			exposition_number(p, "pawl_peer_up", LABEL("peer", d->nodes[i]->name),
				m->core.peers[i].linked);
		}
	}
	exposition_family(p, "pawl_peer_round_trip_seconds", METRIC_GAUGE,
		"The round trip of the last ping.");
	for (uint32_t i = 0; i < count; i++) {
		if (i != self && m->core.peers[i].linked) {
			exposition_seconds(p, "pawl_peer_round_trip_seconds",
				LABEL("peer", d->nodes[i]->name),
				(uint64_t)m->core.peers[i].round_trip);
		}
	}
	exposition_family(p, "pawl_peer_link_resets_total", METRIC_COUNTER,
		"Links with it that were lost or reset.");
	for (uint32_t i = 0; i < count; i++) {
		if (i != self) {
			exposition_number(p, "pawl_peer_link_resets_total",
				LABEL("peer", d->nodes[i]->name), d->link_losses[i]);
		}
	}
}

void metrics_peers(const struct metrics *m) {
	struct page *p = m->page;
	const struct driver *d = m->monitor->driver;
	metrics_links(m);
	exposition_family(p, "pawl_replica_lag_entries", METRIC_GAUGE,
		"How many entries of this node's log a replica has not acknowledged.");
	for (uint32_t i = 0; i < d->context.peer_count; i++) {
		const struct core_peer_status *peer = &m->core.peers[i];
		if (peer->follows) {
			exposition_number(p, "pawl_replica_lag_entries",
				LABEL("replica", d->nodes[i]->name),
				m->core.log_next > peer->position
					? m->core.log_next - peer->position : 0);
		}
	}
	exposition_family(p, "pawl_replica_age_seconds", METRIC_GAUGE,
		"How old the view of this replica may be.");
	if (m->core.state == CORE_FOLLOWING && m->core.age < SPAN_MAX) {
		exposition_seconds(p, "pawl_replica_age_seconds", NULL, (uint64_t)m->core.age);
	} else if (m->core.state == CORE_FOLLOWING) {
		page_text(p, "pawl_replica_age_seconds +Inf\n");
	}
}
