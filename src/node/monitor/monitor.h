/* monitor.h: what the node shows on its admin port: metrics, health and status. It only reads what
 * the other parts have counted, except that it asks a quorum about once a second (probe.h). */
#ifndef PAWL_NODE_MONITOR_H
#define PAWL_NODE_MONITOR_H

#include "config_file.h"
#include "http_server.h"
#include "probe.h"
#include "service.h"
#include "tls_context.h"

struct monitor {
	struct driver *driver;
	struct service *service;
	/* NULL without an admin port. */
	struct http_server *http;
	/* The present certificates of the node, borrowed. */
	const struct tls_contexts *tls;
	struct probe probe;
	/* A planned stop has begun. */
	bool draining;
	/* Goes off several times a second. When it did so last, and when it last came too late. */
	struct event *beat;
	struct instant beat_at, late_at;
	unsigned beats;
	/* The names of the listeners for clients. */
	const char *listeners[LISTEN_CLIENT_MAX];
	uint32_t listener_count;
	/* When the node was started, in seconds since 1970. */
	int64_t started;
	/* How many files are open, as counted at an instant. */
	uint64_t open_files;
	struct instant files_at;
};

/* Everything is borrowed. Sets service->ready. */
void monitor_init(struct monitor *m, struct driver *driver, struct service *service,
	const struct tls_contexts *tls);
/* Opens the admin port: connections are to be passed to m->http from now on. Returns 0 or
 * PAWL_ENOMEM. */
int monitor_start(struct monitor *m, struct net_loop *loop);
/* Closes all connections. Accepts zeroed memory. */
void monitor_done(struct monitor *m);

/* A planned stop has begun: from now on the node is not ready. */
void monitor_drain(struct monitor *m);

/* Judges the node as it is at `now`. */
void monitor_health(const struct monitor *m, struct instant now, struct health *out);

/* ---- metrics.c and its neighbours: for monitor.c only ---- */

/* What the metrics of one answer are made of. */
struct metrics {
	struct monitor *monitor;
	struct page *page;
	struct instant now;
	struct core_status core;
	struct core_figures figures;
	struct strangers_counts strangers;
};

/* Writes all metrics. */
void metrics_write(struct monitor *m, struct instant now, struct page *p);
/* Write those of the core and the links, of the clients and their requests, and of the process. */
void metrics_core(const struct metrics *m);
void metrics_peers(const struct metrics *m);
void metrics_clients(const struct metrics *m);
void metrics_limits(const struct metrics *m);
void metrics_process(const struct metrics *m);

#endif
