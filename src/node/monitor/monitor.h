/* monitor.h: what the node shows on its admin port: metrics, health and status. It only reads what
 * the other parts have counted, except that it asks a quorum about once a second (probe.h). */
#ifndef PAWL_NODE_MONITOR_H
#define PAWL_NODE_MONITOR_H

#include "client_pieces.h"
#include "config_file.h"
#include "http_server.h"
#include "probe.h"
#include "service.h"
#include "tls_context.h"

/* Room for the identity of somebody who reads the admin port, in bytes with the 0 at the end. */
#define MONITOR_IDENTITY_BYTES (TLS_NAME_MAX + 1)
/* Somebody who reads the admin port, as the access rules see them. */
struct monitor_reader {
	struct origin from;
	bool local;
	char identity[MONITOR_IDENTITY_BYTES];
};

/* A request of somebody who reads the admin port, whose reply has not come. */
struct monitor_ask {
	/* The id of the request, which is also the number of the answer; 0 for none. */
	uint64_t id;
	/* The entries of a list that have come. */
	struct client_list list;
	/* Who asks for an explanation. */
	struct monitor_reader reader;
	/* What the line of its result in the audit file needs; NULL: there is none. */
	struct request_note *note;
	/* Its number among the orders of operators; 0 if it is none. */
	uint64_t order;
};

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
	/* What was asked for over the admin port, and the last number. */
	struct allocator alloc;
	struct monitor_ask asks[HTTP_READERS_MAX];
	uint64_t last_ask;
	/* Random bytes, the key of the tokens of act.c. */
	uint8_t secret[32];
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

/* ---- show.c: for monitor.c only ---- */

/* Fills in the answer to a path that begins with /v1/, or does nothing. */
void show_answer(struct monitor *m, const struct http_caller *caller,
	const struct http_request *request, struct instant now, struct http_answer *answer);
/* Takes a reply of the core to a request of show_answer. */
void show_heard(struct monitor *m, const struct core_reply *reply);
void show_done(struct monitor *m);
/* Writes the fields of a status as JSON. */
void show_status(const struct monitor *m, struct instant now, struct http_answer *answer);

/* Begin an answer in JSON, and one that says why there is none. */
void show_begin_json(struct http_answer *answer);
void show_refuse(struct http_answer *answer, enum http_status status, const char *why);
/* Asks the core, whose reply becomes the answer. Without an identity no lock_id is shown.
 * `reader`, which may be NULL, is who asks for an explanation. `take_note`, which may be NULL, is
 * freed with the request. `order` is the number of the order; 0 if it is none. */
void show_ask(struct monitor *m, const struct core_request *asked, struct instant now,
	const struct monitor_reader *reader, struct request_note *take_note, uint64_t order,
	struct http_answer *answer);

/* ---- act.c: for show.c and monitor.c only ---- */

#define ACT_TOKEN_BYTES 65
/* Returns whether the caller may take locks from their holders on the page: the configuration
 * allows it, and the certificate is an administrator's. */
bool act_permitted(const struct monitor *m, const struct http_caller *caller);
/* Writes what each POST of this caller must bring: hex digits that only this node can make, for
 * this certificate and until its next start. */
void act_token(const struct monitor *m, const struct http_caller *caller,
	char out[ACT_TOKEN_BYTES]);
/* Fills in the answer to a POST. */
void act_answer(struct monitor *m, const struct http_caller *caller,
	const struct http_request *request, struct instant now, struct http_answer *answer);

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
