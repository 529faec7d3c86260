/* service_review.c: judges by new access rules what clients watch and what they wait for. */
#include <event2/event.h>

#include "service_impl.h"
#include "time_source.h"

/* How much of a turn the review may take. */
#define REVIEW_SLICE (2 * SPAN_MS)
/* How many watches, or requests that wait, are judged before the clock is read again. */
#define REVIEW_AT_ONCE 8

#define REVIEW_WHY "the new access rules no longer allow this"

/* Ends the connection, and with it everything that it watches and waits for. The client then asks
 * again, and each request gets an answer of its own. */
static void review_withdraw(struct service *s, uint64_t client, const char *event) {
	struct session_who who;
	if (sessions_who(s->sessions, client, &who)) {
		log_to(s->driver->log, LEVEL_NOTICE, event, LOG_WHO(&who),
			LOG_TEXT("why", REVIEW_WHY));
	}
	service_sever(s, client);
}

/* ---- watches ---- */

static bool review_forbids_watch(void *ctx, const struct events_watcher *watcher,
	struct slice subject, bool prefix) {
	const struct service *s = ctx;
	struct session_who who;
	return sessions_who(s->sessions, watcher->client, &who)
		&& (!service_may_watch(s, &who, subject, prefix)
		|| (watcher->admin && !service_has(s, &who, RIGHT_BREAK)));
}

/* Returns false if all watches have been judged. */
static bool review_watches(struct service *s) {
	uint64_t client;
	enum events_reviewed reviewed = events_review(&s->events, REVIEW_AT_ONCE,
		review_forbids_watch, &client);
	if (reviewed == EVENTS_REVIEW_FORBIDDEN) {
		review_withdraw(s, client, "watch_withdrawn");
	}
	return reviewed != EVENTS_REVIEW_DONE;
}

/* ---- requests that wait ---- */

static bool review_forbids_key(const struct service *s, const struct session_who *who,
	const struct requests_wait *wait, struct slice key) {
	struct rights_verdict verdict;
	const struct rights_question question = { .right = wait->right, .key = key };
	const struct rights_question priority = { .right = RIGHT_PRIORITY, .key = key,
		.priority = wait->priority };
	return !service_judge(s, who, &question, &verdict)
		|| (wait->priority > 0 && !service_judge(s, who, &priority, &verdict));
}

static bool review_forbids_wait(const struct service *s, const struct requests_wait *wait) {
	struct session_who who;
	struct slice key;
	size_t at = 0;
	bool forbidden = false;
	if (!sessions_who(s->sessions, wait->request->client, &who)) {
		return false;
	}
	while (!forbidden && requests_wait_key(wait, &at, &key)) {
		forbidden = review_forbids_key(s, &who, wait, key);
	}
	return forbidden;
}

/* Returns false if all requests that wait have been judged. */
static bool review_waits(struct service *s) {
	const struct requests_wait *wait = requests_doubted(&s->requests);
	for (unsigned i = 0; i < REVIEW_AT_ONCE && wait;
		i++, wait = requests_doubted(&s->requests)) {
		if (review_forbids_wait(s, wait)) {
			review_withdraw(s, wait->request->client, "wait_withdrawn");
		} else {
			requests_trust(&s->requests, wait);
		}
	}
	return wait;
}

/* ---- a slice in each turn of the loop, so that connections are served in between ---- */

static void review(struct service *s) {
	static const struct timeval next_turn = { 0, 0 };
	struct instant begun = time_source_now();
	bool more = true;
	while (more && instant_elapsed_short(time_source_now(), begun) < REVIEW_SLICE) {
		more = review_watches(s) || review_waits(s);
	}
	driver_flush_later(s->driver);
	if (more) {
		/* A timer lets the loop poll the sockets first; event_active would not. */
		event_add(s->review, &next_turn);
	}
}

void service_on_review(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	review(ctx);
}

void service_rules_changed(struct service *s) {
	events_doubt(&s->events);
	requests_doubt(&s->requests);
	review(s);
}
