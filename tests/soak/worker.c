/* worker.c: one client among many. It takes keys, keeps them, writes to what they protect, gives
 * them back or lets them run out, and writes down everything that it asked, was answered and
 * believed.
 *
 *     worker ENDPOINTS CLIENT HISTORY RESOURCE KEYS SEED
 *
 * It runs until stdin ends. Now and then it stops itself between checking its lock and writing: it
 * prints "pause MS" and stands still until it is sent SIGCONT. The same seed makes the same
 * choices, as far as the answers are the same.
 */
#include "worker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many updates it makes of one lock: the judge's search has bounds. */
#define UPDATES_MAX 6

static void stamp(struct worker *w, struct history_event *e) {
	int64_t now = history_now();
	w->last = now > w->last ? now : w->last + 1;
	e->at = w->last;
	e->client = w->client;
}

void worker_note(struct worker *w, struct history_event *e) {
	stamp(w, e);
	history_write(w->history, e);
}

uint32_t worker_draw(struct worker *w, uint32_t below) {
	return (uint32_t)prng_below(&w->prng, below);
}

static void wait_for(struct contest *c, uint32_t ms) {
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000 };
	event_add(c->timer, &tv);
}

/* ---- beliefs ---- */

static int64_t left_ns(const struct contest *c) {
	struct timespec ts;
	int64_t boot = c->boot, raw = c->raw;
	if (c->lock) {
		pawl_lock_deadline(c->lock, &boot, &raw);
	}
	clock_gettime(CLOCK_BOOTTIME, &ts);
	boot -= (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	raw -= (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	int64_t left = boot < raw ? boot : raw;
	return left > 0 ? left : 0;
}

static struct history_event event_of(const struct contest *c, enum history_kind kind) {
	struct history_event e = { .kind = kind, .key = c->key, .op = c->worker->ops++,
		.expect = HISTORY_NO_VALUE, .value = HISTORY_NO_VALUE };
	pawl_id_format(&c->id, e.lock);
	return e;
}

static void believe(struct contest *c) {
	struct history_event e = event_of(c, HISTORY_BELIEVES);
	e.token = c->lock ? pawl_lock_token(c->lock) : c->token;
	stamp(c->worker, &e);
	/* This is read after the time was taken, so a stop in between makes the belief shorter. */
	e.left = left_ns(c);
	if (e.left > 0) {
		history_write(c->worker->history, &e);
	}
}

static void forget(struct contest *c, int cause) {
	struct history_event e = event_of(c, HISTORY_FORGETS);
	e.error = cause;
	worker_note(c->worker, &e);
}

/* It holds nothing, and makes the next try a little later. */
static void rest(struct contest *c) {
	pawl_lock_free(c->lock);
	c->lock = NULL;
	c->held = false;
	c->turn++;
	wait_for(c, 1 + worker_draw(c->worker, 300));
}

/* ---- requests ---- */

static struct request *request_new(struct contest *c, enum history_what what) {
	struct request *r = calloc(1, sizeof *r);
	if (!r) {
		abort();
	}
	*r = (struct request){ .contest = c, .turn = c->turn,
		.asked = event_of(c, HISTORY_INVOKED) };
	r->asked.what = what;
	snprintf(r->endpoint, sizeof r->endpoint, "%s", pawl_endpoint(c->worker->client_handle));
	return r;
}

static uint32_t value_number(struct pawl_bytes value) {
	return value.size > 1 ? (uint32_t)strtoul((const char *)value.data + 1, NULL, 10)
		: HISTORY_NO_VALUE;
}

/* Writes down the answer. False: the contest has gone on to another lock meanwhile. */
static bool answered(struct request *r, const struct pawl_result *result) {
	struct history_event e = r->asked;
	e.kind = HISTORY_RETURNED;
	e.error = result->error;
	e.token = result->token;
	if (e.what == HISTORY_READ || result->error == PAWL_EMISMATCH) {
		e.value = value_number(result->entry.value);
	}
	if (e.what == HISTORY_ACQUIRE) {
		e.again = strcmp(r->endpoint, result->endpoint) != 0;
	} else if (e.what == HISTORY_READ) {
		e.held = result->entry.held;
		pawl_id_format(&result->entry.lock_id, e.lock);
	}
	worker_note(r->contest->worker, &e);
	return r->turn == r->contest->turn;
}

static void send_off(struct request *r, struct pawl_request *request, pawl_done_fn *done) {
	request->key = pawl_str(r->contest->name);
	worker_note(r->contest->worker, &r->asked);
	if (pawl_start(r->contest->worker->client_handle, request, done, r, NULL) != 0) {
		abort();
	}
}

static void on_answered(struct pawl_result *take_result, void *arg) {
	answered(arg, take_result);
	free(arg);
	pawl_result_free(take_result);
}

static void read_key(struct contest *c) {
	struct request *r = request_new(c, HISTORY_READ);
	struct pawl_request request = { .method = PAWL_GET, .quorum = true };
	send_off(r, &request, on_answered);
}

static void value_text(char out[16], uint32_t value) {
	snprintf(out, 16, "v%" PRIu32, value);
}

static void update(struct contest *c) {
	char value[16], expect[16];
	struct request *r = request_new(c, HISTORY_UPDATE);
	r->asked.value = c->worker->values++;
	if (worker_draw(c->worker, 2)) {
		r->asked.expect = worker_draw(c->worker, 4) ? c->value : c->value + 1;
	}
	value_text(value, r->asked.value);
	value_text(expect, r->asked.expect);
	c->value = r->asked.value;
	c->updates++;
	struct pawl_request request = { .method = PAWL_UPDATE, .lock_id = c->id,
		.value = pawl_str(value) };
	if (r->asked.expect != HISTORY_NO_VALUE) {
		request.expect = pawl_str(expect);
	}
	send_off(r, &request, on_answered);
}

/* ---- extending and releasing without the library's lock ---- */

static void on_extended(struct pawl_result *take_result, void *arg) {
	struct request *r = arg;
	struct contest *c = r->contest;
	bool mine = answered(r, take_result);
	/* A client that keeps the deadline itself drops what comes after it. */
	if (mine && take_result->error == 0 && (left_ns(c) > 0 || !r->deadline_kept)) {
		worker_deadline(c, take_result);
		believe(c);
	} else if (mine &&
		(take_result->error == PAWL_ELOST || take_result->error == PAWL_EDENIED)) {
		forget(c, take_result->error);
		rest(c);
	}
	pawl_result_free(take_result);
	free(r);
}

static void extend(struct contest *c) {
	struct request *r = request_new(c, HISTORY_EXTEND);
	r->deadline_kept = worker_draw(c->worker, 2);
	struct pawl_request request = { .method = PAWL_EXTEND, .lock_id = c->id, .token = c->token,
		.lease_ms = c->lease_ms, .deadline_kept = r->deadline_kept };
	send_off(r, &request, on_extended);
}

static void on_released(struct pawl_result *take_result, void *arg) {
	on_answered(take_result, arg);
}

static void release(struct contest *c) {
	forget(c, 0);
	struct request *r = request_new(c, HISTORY_RELEASE);
	worker_note(c->worker, &r->asked);
	if (c->lock) {
		struct pawl_lock *lock = c->lock;
		c->lock = NULL;
		if (pawl_lock_release_start(lock, on_released, r) != 0) {
			free(r);
		}
	} else {
		struct pawl_request request = { .method = PAWL_RELEASE, .lock_id = c->id,
			.key = pawl_str(c->name) };
		if (pawl_start(c->worker->client_handle, &request, on_released, r, NULL) != 0) {
			abort();
		}
	}
	rest(c);
}

/* ---- taking ---- */

/* Sets the deadline of the answer, by both clocks. */
void worker_deadline(struct contest *c, const struct pawl_result *result) {
	struct timespec boot, raw;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
	/* This is read after the clocks, so a stop in between makes it shorter. */
	int64_t left = pawl_result_valid_ms(result) * 1000000;
	c->boot = (int64_t)boot.tv_sec * 1000000000 + boot.tv_nsec + left;
	c->raw = (int64_t)raw.tv_sec * 1000000000 + raw.tv_nsec + left;
	c->token = result->token > c->token ? result->token : c->token;
}

static void taken(struct contest *c, const struct request *r, const struct pawl_result *result) {
	c->held = true;
	c->token = 0;
	c->value = r->asked.value;
	c->updates = 0;
	worker_deadline(c, result);
	believe(c);
	wait_for(c, 1 + worker_draw(c->worker, 200));
}

static void on_taken(struct pawl_result *take_result, void *arg) {
	struct request *r = arg;
	answered(r, take_result);
	if (take_result->error == 0) {
		taken(r->contest, r, take_result);
	} else {
		rest(r->contest);
	}
	pawl_result_free(take_result);
	free(r);
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct request *r = arg;
	r->contest->lock = take_lock;
	on_taken(take_result, arg);
}

static void on_renewed(struct pawl_lock *lock, void *arg) {
	(void)lock;
	believe(arg);
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct contest *c = arg;
	if (cause == PAWL_ELOST || cause == PAWL_EDENIED) {
		forget(c, cause);
		rest(c);
	} else {
		/* The lock may be believed until its end, so the client makes use of it. */
		wait_for(c, (uint32_t)pawl_lock_valid_ms(lock) + 1);
	}
}

static void take(struct contest *c) {
	char value[16];
	struct worker *w = c->worker;
	c->lease_ms = 800 + worker_draw(w, 1800);
	uint32_t wait_ms = worker_draw(w, 4) ? 3000 : 0;
	if (pawl_id_new(&c->id) != 0) {
		abort();
	}
	struct request *r = request_new(c, HISTORY_ACQUIRE);
	r->asked.value = w->values++;
	value_text(value, r->asked.value);
	if (worker_draw(w, 2)) {
		struct pawl_request request = { .method = PAWL_ACQUIRE, .lock_id = c->id,
			.lease_ms = c->lease_ms, .wait_ms = wait_ms, .value = pawl_str(value) };
		send_off(r, &request, on_taken);
		return;
	}
	struct pawl_lock_options o = { .key = pawl_str(c->name), .lease_ms = c->lease_ms,
		.wait_ms = wait_ms, .value = pawl_str(value), .lock_id = c->id, .on_lost = on_lost,
		.on_renewed = on_renewed, .arg = c };
	worker_note(w, &r->asked);
	if (pawl_lock_start(w->client_handle, &o, on_locked, r, NULL) != 0) {
		abort();
	}
}

/* ---- what a holder does ---- */

static void act(struct contest *c) {
	uint32_t dice = worker_draw(c->worker, 100);
	if (dice < 30 && c->updates < UPDATES_MAX) {
		update(c);
	} else if (dice < 50 && !c->lock) {
		extend(c);
	} else if (dice < 75) {
		worker_write(c, c->lock ? pawl_lock_token(c->lock) : c->token);
	} else if (dice < 82) {
		read_key(c);
	} else if (dice < 95) {
		release(c);
		return;
	}
	wait_for(c, 1 + worker_draw(c->worker, c->lease_ms / 4));
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
	struct contest *c = arg;
	(void)fd;
	(void)what;
	if (c->held && left_ns(c) > 0) {
		act(c);
	} else if (c->held && worker_draw(c->worker, 2)) {
		/* The lock may have run out; the release is sent nevertheless. */
		release(c);
	} else if (c->held) {
		forget(c, c->lock ? pawl_lock_error(c->lock) : 0);
		rest(c);
	} else {
		if (worker_draw(c->worker, 4) == 0) {
			read_key(c);
		}
		take(c);
	}
}

static void on_stdin(evutil_socket_t fd, short what, void *arg) {
	char byte;
	(void)what;
	if (read(fd, &byte, 1) <= 0) {
		event_base_loopbreak(arg);
	}
}

static void open_contests(struct worker *w, uint32_t keys) {
	for (uint32_t i = 0; i < CONTESTS; i++) {
		struct contest *c = &w->contests[i];
		c->worker = w;
		/* No two contests have the same key. */
		c->key = (worker_draw(w, keys) / CONTESTS * CONTESTS + i) % keys;
		snprintf(c->name, sizeof c->name, "key%" PRIu32, c->key);
		c->timer = event_new(w->base, -1, 0, on_timer, c);
		wait_for(c, 1 + worker_draw(w, 200));
	}
}

int main(int argc, char **argv) {
	static struct worker w;
	if (argc != 7) {
		return 2;
	}
	history_ignore_signals();
	setvbuf(stdout, NULL, _IOLBF, 0);
	w.client = (uint32_t)strtoul(argv[2], NULL, 10);
	w.values = w.client << 20;
	w.history = fopen(argv[3], "ae");
	prng_init(&w.prng, strtoull(argv[6], NULL, 10));
	w.base = event_base_new();
	struct pawl_options options = { .endpoints = argv[1], .base = w.base, .timeout_ms = 2000,
		.connect_timeout_ms = 300, .silence_ms = 500, .prefer_first = true };
	if (!w.history || !w.base || pawl_new(&options, &w.client_handle, NULL) != 0 ||
		!worker_connect(&w, argv[4])) {
		return 2;
	}
	open_contests(&w, (uint32_t)strtoul(argv[5], NULL, 10));
	struct event *end = event_new(w.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_stdin, w.base);
	event_add(end, NULL);
	event_base_dispatch(w.base);
	/* What it holds runs out by itself, as when a client dies. */
	return 0;
}
