/* monitor.c: the beat of the monitor, and what it answers to which path. */
#include "monitor.h"

#include <event2/event.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <time.h>

#include "check.h"
#include "config_file.h"
#include "exposition.h"
#include "log.h"
#include "pawl/error.h"
#include "time_source.h"

/* The monitor beats every 225 ms, and every fourth beat asks a quorum. That is a little more often
 * than once a second, so that a node that has lost its quorum knows it within a second and the time
 * that a request may take. */
#define BEAT_US 225000
#define BEATS_A_PROBE 4
/* A beat that is later than this has come too late. */
#define BEAT_LATE (HEALTH_LOOP_MAX + BEAT_US * SPAN_US)

/* ---- health ---- */

static bool monitor_loop_turns(const struct monitor *m, struct instant now) {
	return !m->http || (instant_elapsed_long(now, m->beat_at) < HEALTH_LOOP_MAX
		&& instant_elapsed_long(now, m->late_at) > HEALTH_LOOP_MAX);
}

void monitor_health(const struct monitor *m, struct instant now, struct health *out) {
	struct core_status core;
	core_status(m->driver->core, now, &core);
	struct health_facts facts = { .state = core.state, .waits_for = core.waits_for,
		.left = core.left,
		.draining = m->draining, .loop = monitor_loop_turns(m, now),
		.quorum = core.quorum, .voting = core.voting_linked,
		.follows = core.following >= 0, .catching_up = core.catching_up,
		.age = core.age };
	facts.probe = probe_state_at(&m->probe, now, &facts.answered);
	health_judge(&facts, out);
}

static bool monitor_ready(void *ctx, char why[SERVICE_WHY_BYTES]) {
	const struct monitor *m = ctx;
	struct health health;
	monitor_health(m, time_source_now(), &health);
	why[0] = '\0';
	for (uint32_t i = 0; i < health.count; i++) {
		const struct health_check *check = &health.checks[i];
		if (!check->ok && !why[0]) {
			snprintf(why, SERVICE_WHY_BYTES, "%s: %s", check->name, check->why);
		}
	}
	return health.ready;
}

/* ---- answers ---- */

static void monitor_say(struct http_answer *answer, bool ok) {
	buffer_clear(answer->body.to);
	answer->status = ok ? HTTP_OK : HTTP_UNAVAILABLE;
}

static void monitor_answer_live(const struct monitor *m, struct instant now,
	struct http_answer *answer) {
	bool ok = monitor_loop_turns(m, now);
	monitor_say(answer, ok);
	page_text(&answer->body, ok ? "ok\n" : "the loop stood still for more than a second\n");
}

static void monitor_answer_ready(const struct monitor *m, const struct http_request *request,
	struct instant now, struct http_answer *answer) {
	struct health health;
	monitor_health(m, now, &health);
	monitor_say(answer, health.ready);
	bool verbose = http_query_has(request->query, "verbose") || !health.ready;
	for (uint32_t i = 0; verbose && i < health.count; i++) {
		const struct health_check *check = &health.checks[i];
		page_text(&answer->body, check->ok ? "[+]" : "[-]");
		page_text(&answer->body, check->name);
		page_text(&answer->body, check->ok ? " ok" : " failed: ");
		page_text(&answer->body, check->why);
		page_text(&answer->body, "\n");
	}
	page_text(&answer->body, health.ready ? "ready\n" : "not ready\n");
}

static void monitor_answer_metrics(struct monitor *m, struct instant now,
	struct http_answer *answer) {
	monitor_say(answer, true);
	answer->type = EXPOSITION_TYPE;
	metrics_write(m, now, &answer->body);
}

static bool monitor_is_live(const struct http_request *request) {
	return slice_equal(request->path, slice_str("/livez"))
		|| slice_equal(request->path, slice_str("/healthz"));
}

static bool monitor_is_ready(const struct http_request *request) {
	return slice_equal(request->path, slice_str("/readyz"));
}

static bool monitor_is_probe(const struct http_request *request) {
	return !request->post && (monitor_is_live(request) || monitor_is_ready(request));
}

static void monitor_answer(void *ctx, const struct http_caller *caller,
	const struct http_request *request, struct http_answer *answer) {
	struct monitor *m = ctx;
	struct instant now = time_source_now();
	if (request->post) {
		act_answer(m, caller, request, now, answer);
	} else if (slice_equal(request->path, slice_str("/metrics"))) {
		monitor_answer_metrics(m, now, answer);
	} else if (monitor_is_live(request)) {
		monitor_answer_live(m, now, answer);
	} else if (monitor_is_ready(request)) {
		monitor_answer_ready(m, request, now, answer);
	} else if (slice_equal(request->path, slice_str("/status"))) {
		show_status(m, now, answer);
	} else {
		show_answer(m, caller, request, now, answer);
	}
}

/* ---- the right to read ---- */

/* From other machines, administrators may read, and those that the configuration names. */
static bool monitor_may(void *ctx, struct slice name) {
	const struct monitor *m = ctx;
	const struct admin_config *admin = &m->driver->config->admin;
	if (name.size == 0 || rights_name_reserved(name)) {
		return false;
	}
	for (uint32_t i = 0; i < admin->reader_count; i++) {
		if (slice_equal(name, slice_str(admin->readers[i]))) {
			return true;
		}
	}
	return service_is_admin(m->service, name);
}

static void monitor_on_trouble(void *ctx, const struct origin *from, const char *why) {
	const struct monitor *m = ctx;
	log_untrusted(m->driver->log, "admin_refused", LOG_TEXT("from", from->address),
		LOG_TEXT("why", why));
}

static const struct http_handlers monitor_http_handlers = { monitor_answer, monitor_is_probe,
	monitor_may, monitor_on_trouble };

/* ---- life ---- */

static void monitor_on_reply(void *ctx, const struct core_reply *reply) {
	struct monitor *m = ctx;
	probe_heard(&m->probe, reply);
	show_heard(m, reply);
}

static void monitor_on_beat(evutil_socket_t fd, short what, void *ctx) {
	struct monitor *m = ctx;
	struct instant now = time_source_now();
	(void)fd;
	(void)what;
	if (instant_elapsed_long(now, m->beat_at) > BEAT_LATE) {
		m->late_at = now;
	}
	m->beat_at = now;
	if (m->beats++ % BEATS_A_PROBE == 0) {
		probe_start(&m->probe);
	}
}

void monitor_init(struct monitor *m, struct driver *driver, struct service *service,
	const struct tls_contexts *tls) {
	struct timespec now = { .tv_sec = 0 };
	clock_gettime(CLOCK_REALTIME, &now);
	*m = (struct monitor){ .driver = driver, .service = service, .tls = tls,
		.started = now.tv_sec, .alloc = alloc_libc(NULL) };
	CHECK(RAND_bytes(m->secret, sizeof m->secret) == 1);
	probe_init(&m->probe, driver);
	service->ready = monitor_ready;
	service->ready_ctx = m;
}

int monitor_start(struct monitor *m, struct net_loop *loop) {
	static const struct timeval between = { 0, BEAT_US };
	const struct http_options options = { .loop = loop, .handlers = &monitor_http_handlers,
		.ctx = m };
	m->beat_at = time_source_now();
	m->beat = event_new(loop->base, -1, EV_PERSIST, monitor_on_beat, m);
	if (!m->beat || event_add(m->beat, &between) != 0
		|| http_server_new(&options, &m->http) != 0) {
		return PAWL_ENOMEM;
	}
	m->driver->on_probe = monitor_on_reply;
	m->driver->probe_ctx = m;
	core_want_figures(m->driver->core);
	m->probe.found = PROBE_NONE;
	return 0;
}

void monitor_drain(struct monitor *m) {
	m->draining = true;
}

void monitor_done(struct monitor *m) {
	if (m->beat) {
		event_free(m->beat);
	}
	http_server_free(m->http);
	show_done(m);
	*m = (struct monitor){ 0 };
}
