/* service_life.c: the service's tables from the start to the end, and the handlers that the driver
 * calls.
 */
#include <openssl/rand.h>

#include "check.h"
#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"

/* ---- the driver's handlers ---- */

static bool service_serve(void *ctx) {
	struct service *s = ctx;
	bool leave = !list_empty(&s->session_bindings.gone) && service_binding_serve(s);
	return (s->sessions && sessions_serve(s->sessions)) || leave;
}

static void service_on_events(void *ctx) {
	struct service *s = ctx;
	if (s->wants_events) {
		events_turn(&s->events, s->sessions && sessions_turns_are_short(s->sessions));
		service_take_events(s);
	}
}

static void service_flushed(void *ctx) {
	struct service *s = ctx;
	if (s->sessions) {
		sessions_flush(s->sessions);
		if (s->wants_events && !events_is_idle(&s->events)) {
			service_serve_watches(s);
		}
		service_turn_over(s);
	}
}

static const struct driver_handlers service_driver_handlers = { service_serve, service_answer,
	service_on_events, service_flushed, service_deadlock_packet };

/* ---- life ---- */

static int service_init_tables(struct service *s, const struct allocator *alloc,
	const struct allocator *client_alloc) {
	struct siphash_key key;
	uint64_t log;
	CHECK(RAND_bytes((unsigned char *)&key, sizeof key) == 1
		&& RAND_bytes((unsigned char *)&log, sizeof log) == 1);
	for (int i = 0; i < 2; i++) {
		buffer_init(&s->last_events[i].bytes, client_alloc, SESSIONS_OUT_BYTES_MAX);
	}
	int error = requests_init(&s->requests, alloc, client_alloc, key);
	s->requests.forgotten = service_note_gone;
	s->requests.ctx = s;
	error = error ? error : service_deadlock_init(s, alloc, key);
	error = error ? error : events_init(&s->events, client_alloc, key, log,
		&service_events_port, s);
	error = error ? error : full_init(&s->full, s);
	error = error ? error : service_shares_init(s, alloc, key);
	error = error ? error : service_keep_init(s, alloc);
	return error ? error : session_bindings_init(&s->session_bindings, client_alloc, key);
}

void service_set_audit(struct service *s, struct audit *audit) {
	s->audit = audit;
	service_settings_changed(s);
}

void service_settings_changed(struct service *s) {
	const uint32_t slow_ms = s->driver->config->slow_ms;
	s->noting = s->audit || slow_ms;
	core_time_slow(s->driver->core, (span_ns)slow_ms * SPAN_MS);
	service_want_events(s);
	service_deadlock_settings(s);
}

int service_init(struct service *s, struct driver *driver, const struct allocator *alloc,
	const struct allocator *client_alloc) {
	*s = (struct service){ .driver = driver };
	driver->handlers = &service_driver_handlers;
	driver->handlers_ctx = s;
	s->unwatched = evtimer_new(driver->base, service_on_unwatched, s);
	s->review = evtimer_new(driver->base, service_on_review, s);
	return service_hold_init(s) == 0 && s->unwatched && s->review
		? service_init_tables(s, alloc, client_alloc) : PAWL_ENOMEM;
}

/* The requests are freed before the sessions, because they count for them. */
static void service_done_requests(struct service *s) {
	if (s->sweep) {
		event_free(s->sweep);
		s->sweep = NULL;
	}
	service_deadlock_done(s);
	service_keep_done(s);
	holdings_done(&s->holdings);
	session_bindings_done(&s->session_bindings);
	if (s->requests.alloc) {
		requests_done(&s->requests);
	}
}

void service_done(struct service *s) {
	if (!s->driver) {
		return;
	}
	service_hold_done(s);
	service_done_requests(s);
	sessions_free(s->sessions);
	if (s->unwatched) {
		event_free(s->unwatched);
	}
	if (s->review) {
		event_free(s->review);
	}
	full_done(&s->full);
	events_done(&s->events);
	for (int i = 0; i < 2; i++) {
		buffer_done(&s->last_events[i].bytes);
	}
	*s = (struct service){ 0 };
}
