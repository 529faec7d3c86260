/* daemon.c: a node as a process, which goes from starting to running, draining and stopped. A
 * signal while it drains stops it at once.
 */
#include "daemon.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "descriptors.h"
#include "endpoints.h"
#include "job.h"
#include "node.h"
#include "notify.h"
#include "pawl/error.h"

enum daemon_state { DAEMON_RUNNING, DAEMON_DRAINING, DAEMON_STOPPED };
enum { DAEMON_SIGNALS = 3 };

struct daemon {
	enum daemon_state state;
	struct event_base *base;
	struct event *signals[DAEMON_SIGNALS];
	/* Tells the watchdog of systemd that the loop turns; NULL without a watchdog. */
	struct event *alive;
	struct node *node;
	struct node_config *config;
	const char *config_path;
	/* Reads the configuration; NULL if nothing is being read. */
	struct job *reading;
	/* Another reload was asked for meanwhile. */
	bool read_again;
	/* For --dev: the endpoint has been printed. */
	bool announced;
	/* It is printed for a program. */
	bool prints_endpoints;
	/* The standard input, with which it ends then; NULL: it does not. */
	struct event *input;
	/* The error of the drain. */
	int error;
};

static void daemon_stop(struct daemon *d) {
	d->state = DAEMON_STOPPED;
	event_base_loopbreak(d->base);
}

static void daemon_on_drained(void *ctx, int error) {
	struct daemon *d = ctx;
	d->error = error;
	if (error) {
		log_event(LEVEL_ERROR, "drain_failed", LOG_TEXT("why", pawl_error_message(error)),
			LOG_TEXT("effect", "the next start recovers as after a crash"));
	} else {
		log_plain(LEVEL_NOTICE, "drained");
	}
	daemon_stop(d);
}

static void daemon_on_stop(int signal_number, short what, void *ctx) {
	(void)what;
	struct daemon *d = ctx;
	log_event(LEVEL_NOTICE, "stopping",
		LOG_TEXT("signal", signal_number == SIGINT ? "SIGINT" : "SIGTERM"));
	notify_stopping();
	/* A node of --dev keeps nothing, so there is nobody to write for. A second signal means to
	 * stop now. */
	if (d->state == DAEMON_DRAINING || !d->config_path) {
		daemon_stop(d);
		return;
	}
	d->state = DAEMON_DRAINING;
	int error = node_drain(d->node, daemon_on_drained, d);
	if (error) {
		daemon_on_drained(d, error);
	}
}

/* Warns an operator who made certificates, and may think that they say who may do what. */
static void daemon_log_rights(const struct node_config *c) {
	if (c->tls.on && !c->rights) {
		log_event(LEVEL_WARNING, "no_access_rules",
			LOG_TEXT("what",
				c->tls.client_auth == CLIENT_AUTH_REQUIRED
				? "everybody with a certificate of this authority may do "
					"everything with every key"
				: "everybody who can reach a client listener may do "
					"everything with every key"),
			LOG_TEXT("remedy",
				"write access rules, and name their file in [acl] file "
				"(docs/security.md, Rights)"));
	}
}

/* Lowers limits that cannot be kept with the files that this process may open, and warns of it. */
static void daemon_fit(struct node_config *c) {
	struct problem problem;
	if (!descriptors_fit(c, descriptors_most(), &problem)) {
		log_event(LEVEL_WARNING, "limits_lowered", LOG_TEXT("what", problem.text),
			LOG_TEXT("remedy",
				"raise the limit of open files (LimitNOFILE= of the unit, ulimit "
				"-Hn), or lower the limits"));
	}
}

/* ---- reload ----
 * A thread reads the files, because disks are slow, and so are names of accounts that come from the
 * network. */

struct daemon_reading {
	/* Borrowed from the daemon. */
	const char *path;
	struct node_config *config;
	struct problem problem;
	int error;
};

static void reading_run(void *data) {
	struct daemon_reading *r = data;
	r->error = node_config_read(r->path, &r->config, &r->problem);
}

static void reading_release(void *data) {
	struct daemon_reading *r = data;
	node_config_free(r->config);
	free(r);
}

static int daemon_take(struct daemon *d, struct daemon_reading *r, char why[NODE_WHY_BYTES]) {
	int error = r->error;
	if (error) {
		snprintf(why, NODE_WHY_BYTES, "%.*s", NODE_WHY_BYTES - 1, r->problem.text);
		return error;
	}
	daemon_fit(r->config);
	error = node_reload(d->node, r->config, why);
	if (!error) {
		node_config_free(d->config);
		d->config = r->config;
		r->config = NULL;
		log_level_set(d->config->log_level);
		log_format_set(d->config->log_format);
	}
	return error;
}

static void daemon_read(struct daemon *d);

static void reading_done(void *ctx, void *data) {
	struct daemon *d = ctx;
	char why[NODE_WHY_BYTES] = "";
	d->reading = NULL;
	if (d->state != DAEMON_RUNNING) {
		return;
	}
	const int error = daemon_take(d, data, why);
	node_reopen(d->node);
	if (error) {
		log_event(LEVEL_ERROR, "reload_refused", LOG_TEXT("why", why),
			LOG_TEXT("effect", "the previous configuration stays in effect"));
	} else {
		log_plain(LEVEL_NOTICE, "reloaded");
		daemon_log_rights(d->config);
	}
	notify_ready();
	if (d->read_again) {
		daemon_read(d);
	}
}

static void daemon_read(struct daemon *d) {
	static const struct job_work work = { reading_run, reading_done, reading_release };
	struct daemon_reading *r = calloc(1, sizeof *r);
	d->read_again = false;
	notify_reloading();
	if (r) {
		r->path = d->config_path;
	}
	if (!r || job_start(d->base, &work, r, d, &d->reading) != 0) {
		free(r);
		log_event(LEVEL_ERROR, "reload_refused", LOG_TEXT("why", "out of memory"),
			LOG_TEXT("effect", "the previous configuration stays in effect"));
		notify_ready();
	}
}

static void daemon_on_reload(int signal_number, short what, void *ctx) {
	(void)signal_number;
	(void)what;
	struct daemon *d = ctx;
	if (!d->config_path) {
		/* A node of --dev has nothing to read, and its terminal is gone. */
		daemon_stop(d);
	} else if (d->reading) {
		d->read_again = true;
	} else if (d->state == DAEMON_RUNNING) {
		daemon_read(d);
	}
}

static void daemon_announce_dev(struct daemon *d) {
	const char *address = node_client_address(d->node, 0);
	d->announced = true;
	if (d->prints_endpoints) {
		endpoints_print(d->node, d->config);
		return;
	}
	printf("a single master for a try-out: %s, no TLS, nothing is kept when it stops\n"
		"endpoint: %s\n"
		"try: PAWL_ENDPOINTS=%s pawl run my-job -- echo \"nobody else runs my-job now\"\n",
		d->config->insecure ? "INSECURE, everybody who can reach it may do everything"
			: "loopback only", address, address);
	for (uint32_t i = 0; i < d->config->listen_client_count; i++) {
		const struct listen_address *a = &d->config->listen_client[i];
		if (a->redis || a->memcached) {
			printf("clients of %s: %s\n", a->redis ? "Redis" : "memcached",
				node_client_address(d->node, i));
		}
	}
	fflush(stdout);
}

static void daemon_on_voting(void *ctx, bool voting) {
	struct daemon *d = ctx;
	notify_voting(voting);
	if (voting && !d->config_path && !d->announced) {
		daemon_announce_dev(d);
	}
}

static void daemon_log_start(const struct daemon *d) {
	const struct node_config *c = d->config;
	log_event(LEVEL_NOTICE, "started", LOG_TEXT("version", PAWL_VERSION),
		LOG_TEXT("node", c->name), LOG_TEXT("cluster", c->birth.cluster),
		LOG_TEXT("state_dir", c->state_dir), LOG_TEXT("tls", c->tls.on ? "yes" : "no"));
	if (node_peer_address(d->node)) {
		log_event(LEVEL_INFO, "listening", LOG_TEXT("for", "peers"),
			LOG_TEXT("address", node_peer_address(d->node)));
	}
	for (size_t i = 0; node_client_address(d->node, i); i++) {
		const struct listen_address *a = &c->listen_client[i];
		log_event(LEVEL_INFO, "listening",
			LOG_TEXT("for", a->redis ? "redis" : a->memcached ? "memcached"
				: "clients"),
			LOG_TEXT("address", node_client_address(d->node, i)));
	}
	if (node_admin_address(d->node)) {
		log_event(LEVEL_INFO, "listening", LOG_TEXT("for", "admin"),
			LOG_TEXT("address", node_admin_address(d->node)));
	}
	if (c->insecure) {
		log_event(LEVEL_WARNING, "insecure",
			LOG_TEXT("what",
				"listeners without TLS can be reached from other machines"));
	}
	daemon_log_rights(c);
}

static void daemon_on_alive(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	(void)ctx;
	notify_alive();
}

static void daemon_on_input_end(void *ctx) {
	struct daemon *d = ctx;
	log_event(LEVEL_NOTICE, "stopping", LOG_TEXT("why", "the standard input has ended"));
	daemon_stop(d);
}

/* Three times within the time that systemd allows, so that one late turn is not yet the end. */
static int daemon_start_watchdog(struct daemon *d) {
	const uint64_t us = notify_watchdog() / 3;
	const struct timeval between = { (time_t)(us / 1000000), (suseconds_t)(us % 1000000) };
	if (us == 0) {
		return 0;
	}
	d->alive = event_new(d->base, -1, EV_PERSIST, daemon_on_alive, NULL);
	return d->alive && event_add(d->alive, &between) == 0 ? 0 : PAWL_ENOMEM;
}

static int daemon_start(struct daemon *d, struct problem *problem) {
	/* The driver has a timer of its own for precise time. A precise timer of the loop would
	 * cost a system call in each turn. */
	d->base = event_base_new();
	problem_set(problem, "cannot create the event loop: out of memory, or too many open files");
	if (!d->base) {
		return PAWL_ENOMEM;
	}
	static const int numbers[DAEMON_SIGNALS] = { SIGTERM, SIGINT, SIGHUP };
	for (size_t i = 0; i < DAEMON_SIGNALS; i++) {
		d->signals[i] = evsignal_new(d->base, numbers[i],
			numbers[i] == SIGHUP ? daemon_on_reload : daemon_on_stop, d);
		if (!d->signals[i] || event_add(d->signals[i], NULL) != 0) {
			return PAWL_ENOMEM;
		}
	}
	if (daemon_start_watchdog(d)) {
		return PAWL_ENOMEM;
	}
	if (d->prints_endpoints
		&& endpoints_end_with_input(d->base, daemon_on_input_end, d, &d->input)) {
		return PAWL_ENOMEM;
	}
	char why[NODE_WHY_BYTES] = "";
	const struct node_options options = { .base = d->base, .config = d->config,
		.on_voting = daemon_on_voting, .ctx = d };
	int error = node_new(&options, &d->node, why);
	error = error ? error : node_start(d->node, why);
	problem_set(problem, "%s", why);
	return error;
}

static void daemon_done(struct daemon *d) {
	/* The process ends now, and a further signal must not kill it before it has. Without their
	 * events the signals would have their default effect again. */
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	job_give_up(d->reading);
	node_free(d->node);
	for (size_t i = 0; i < DAEMON_SIGNALS; i++) {
		if (d->signals[i]) {
			event_free(d->signals[i]);
		}
	}
	if (d->alive) {
		event_free(d->alive);
	}
	endpoints_input_free(d->input);
	if (d->base) {
		event_base_free(d->base);
	}
	node_config_free(d->config);
}

int daemon_run(const struct daemon_options *options, struct problem *problem) {
	struct daemon d = { .config = options->take_config, .config_path = options->config_path,
		.prints_endpoints = options->print_endpoints };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigaction(SIGPIPE, &ignore, NULL);
	log_level_set(d.config->log_level);
	log_format_set(d.config->log_format);
	descriptors_raise();
	problem_set(problem,
		"cannot start the thread that writes the log: out of memory, or "
		"too many processes");
	int error = log_begin();
	if (!error) {
		daemon_fit(d.config);
		error = daemon_start(&d, problem);
	}
	if (!error) {
		daemon_log_start(&d);
		notify_ready();
		if (event_base_dispatch(d.base) != 0 || d.state != DAEMON_STOPPED) {
			problem_set(problem, "the event loop ended unexpectedly");
			error = PAWL_EIO;
		}
		if (d.error) {
			problem_set(problem,
				"the drain failed: %s; the next start recovers as after a crash",
				pawl_error_message(d.error));
			error = d.error;
		}
		log_plain(LEVEL_NOTICE, "stopped");
	}
	daemon_done(&d);
	log_end();
	return error;
}
