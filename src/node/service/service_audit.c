/* service_audit.c: what the audit file tells of requests, of their results, and of locks that end.
 */
#include <inttypes.h>
#include <stdio.h>

#include "pawl/error.h"
#include "service_impl.h"

/* ---- one line ---- */

/* What a line says, besides what every line has. What is zero or NULL is left out. */
struct said {
	const char *action;
	struct slice key, owner, identity, peer, subject, trace;
	struct id128 lock_id;
	uint64_t token;
	const struct terms *terms;
	span_ns valid;
	const char *result, *cause;
	unsigned rule;
	bool now, shorten;
	/* When the request began to be served; 0: the line is about no request. */
	int64_t begun;
};

static bool say(struct service *s, const struct said *w, struct audit_receipt *receipt) {
	struct audit_line line;
	audit_begin(s->audit, &line, w->action);
	audit_bytes(&line, "key", w->key);
	if (w->token) {
		audit_number(&line, "token", w->token);
	}
	audit_lock(&line, &w->lock_id);
	audit_bytes(&line, "owner", w->owner);
	audit_bytes(&line, "identity", w->identity);
	audit_bytes(&line, "peer", w->peer);
	if (w->terms) {
		audit_mode(&line, w->terms);
	}
	if (w->valid) {
		audit_number(&line, "valid_ms", span_ms_down(w->valid));
	}
	audit_text(&line, "result", w->result);
	audit_text(&line, "cause", w->cause);
	if (w->rule) {
		audit_number(&line, "rule", w->rule);
	}
	if (w->now) {
		audit_true(&line, "now");
	}
	if (w->shorten) {
		audit_true(&line, "shorten");
	}
	audit_bytes(&line, strcmp(w->action, "transfer") == 0 ? "to" : "target", w->subject);
	audit_bytes(&line, "trace", w->trace);
	if (w->begun) {
		const int64_t took = line.at - w->begun;
		audit_number(&line, "took_us", took > 0 ? (uint64_t)(took / SPAN_US) : 0);
	}
	line.denied = w->result && strcmp(w->result, pawl_error_code(PAWL_EDENIED)) == 0;
	return audit_end(s->audit, &line, receipt);
}

static struct said said_of(const struct request_note *n) {
	return (struct said){ .action = client_method_name(n->method), .key = n->key,
		.owner = n->owner, .identity = n->identity, .peer = n->peer,
		.subject = n->subject, .trace = n->trace, .lock_id = n->lock_id, .now = n->now,
		.shorten = n->shorten, .begun = n->begun };
}

/* ---- which requests ---- */

/* Returns whether lines are written about requests of this method. */
static bool audited(enum client_method method) {
	const enum right right = client_method_right(method);
	return right == RIGHT_ACQUIRE || right == RIGHT_BREAK || right == RIGHT_CLUSTER;
}

static enum audit_what level_of(const struct request_note *note, int error) {
	const enum client_method method = note->method;
	if (error == PAWL_EDENIED) {
		return AUDIT_DENIED;
	}
	if (client_method_right(method) != RIGHT_ACQUIRE) {
		return AUDIT_ADMIN;
	}
	const bool ends = method == CLIENT_RELEASE || method == CLIENT_TRANSFER
		|| method == CLIENT_DOWNGRADE || note->shorten;
	return ends || (method == CLIENT_ACQUIRE && !error) ? AUDIT_HOLDERS : AUDIT_ALL;
}

/* ---- what is remembered of a request ---- */

static void put_timing(char *out, size_t size, const struct core_change *c) {
	const struct {
		const char *name;
		uint64_t value;
	} all[] = { { "max_lease_ms", span_ms_down(c->max_lease) },
		{ "request_timeout_ms", span_ms_down(c->request_timeout) },
		{ "promise_timeout_ms", span_ms_down(c->promise_timeout) },
		{ "clock_drift_ppm", c->has_drift ? c->drift_ppm : 0 } };
	size_t used = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (all[i].value && used < size) {
			used += (size_t)snprintf(out + used, size - used, "%s%s=%" PRIu64,
				used ? " " : "", all[i].name, all[i].value);
		}
	}
}

static void put_nodes(char *out, size_t size, const struct core_change *c) {
	size_t used = 0;
	for (uint32_t i = 0; i < c->node_count && used < size; i++) {
		const struct core_change_node *n = &c->nodes[i];
		used += (size_t)snprintf(out + used, size - used, "%s%s%.*s", used ? " " : "",
			n->master ? "master:" : "replica:", (int)n->name.size,
			(const char *)n->name.data);
	}
}

/* Writes what the request is about, if that is no key. */
static struct slice subject_of(const struct client_request *r, char *out, size_t size) {
	const struct core_change *c = r->core.change;
	out[0] = '\0';
	if (r->method == CLIENT_TRANSFER) {
		return r->core.to;
	}
	if (r->method == CLIENT_KICK) {
		snprintf(out, size, "%" PRIu64, r->client);
	} else if (r->method == CLIENT_CLUSTER_SET_NODES) {
		put_nodes(out, size, c);
	} else if (r->method == CLIENT_CLUSTER_SET_TIMING) {
		put_timing(out, size, c);
	} else if (r->method == CLIENT_CLUSTER_REPLACE) {
		snprintf(out, size, "%.*s by %.*s", (int)c->name.size, (const char *)c->name.data,
			(int)c->other.size, (const char *)c->other.data);
	} else if (client_method_changes(r->method)) {
		return c->name;
	}
	return slice_str(out);
}

/* What is to be remembered, and the memory of those texts that the request does not have. */
struct about {
	char peer[AUDIT_PEER_BYTES], subject[AUDIT_TEXT_MAX];
	struct request_note note;
};

static void about_request(struct about *about, const struct client_request *r,
	const struct session_who *who, int64_t begun) {
	about->peer[0] = '\0';
	if (who) {
		audit_peer(who->from, about->peer);
	}
	about->note = (struct request_note){ .method = r->method, .lock_id = r->core.lock_id,
		.now = r->method == CLIENT_BREAK && r->core.now, .shorten = r->core.shorten,
		.begun = begun,
		.unaudited = !audited(r->method), .key = r->core.key, .owner = r->core.owner,
		.identity = who ? who->identity : slice_of(NULL, 0),
		.peer = slice_str(about->peer),
		.subject = subject_of(r, about->subject, sizeof about->subject),
		.trace = r->trace };
}

int service_note(const struct service_call *call, struct request *open,
	const struct core_request *asked) {
	struct service *s = call->service;
	struct about about;
	const struct allocator *alloc = sessions_alloc(s->sessions, call->client);
	about_request(&about, call->request, call->who, call->now.boot);
	if (asked) {
		about.note.key = asked->key;
		about.note.lock_id = asked->lock_id;
		about.note.shorten = asked->shorten;
	}
	open->note = request_note_new(alloc ? alloc : s->requests.client_alloc, &about.note);
	return open->note ? 0 : PAWL_ENOMEM;
}

/* ---- results ---- */

static void say_group(struct service *s, const struct said *common,
	const struct core_reply *reply) {
	for (size_t i = 0; i < reply->count; i++) {
		struct said one = *common;
		one.key = reply->got[i].key;
		one.lock_id = reply->got[i].lock_id;
		one.token = reply->got[i].token;
		one.terms = &reply->got[i].terms;
		(void)say(s, &one, NULL);
	}
}

static void say_answer(struct service *s, const struct request_note *note,
	const struct core_reply *reply) {
	static const struct terms shared = { .of = MODE_SHARED };
	struct said w = said_of(note);
	const bool got = !reply->error
		&& (note->method == CLIENT_ACQUIRE || note->method == CLIENT_EXTEND);
	w.result = pawl_error_code(reply->error);
	w.token = reply->error ? 0 : reply->token;
	w.valid = got ? reply->valid : 0;
	w.terms = got && (note->method == CLIENT_ACQUIRE || terms_semaphore(&reply->terms))
		? &reply->terms
		: !reply->error && note->method == CLIENT_DOWNGRADE ? &shared : NULL;
	if (reply->error == PAWL_EDENIED) {
		/* Without a field, the lock was broken (service_log_refusal). */
		w.cause = reply->op == CORE_EXTEND && !reply->field ? "broken" : "not_yours";
	} else if (!reply->error && !reply->released
		&& (note->method == CLIENT_RELEASE || note->method == CLIENT_TRANSFER)) {
		w.cause = "not_held";
	}
	if (got && reply->op == CORE_ACQUIRE_ALL) {
		say_group(s, &w, reply);
		return;
	}
	w.key = reply->op == CORE_ACQUIRE_ALL ? reply->failed_key : w.key;
	(void)say(s, &w, NULL);
}

void service_note_answered(struct service *s, const struct request *request,
	const struct core_reply *reply) {
	const struct request_note *note = request->note;
	if (reply->goes_on) {
		return;
	}
	if (!note->unaudited && audit_wants(s->audit, level_of(note, reply->error))) {
		say_answer(s, note, reply);
	}
	service_slow(s, request, reply);
}

static void say_result(struct service *s, const struct request_note *note, const char *result) {
	struct said w = said_of(note);
	w.result = result;
	(void)say(s, &w, NULL);
}

void service_note_done(struct service *s, const struct request *request, int error) {
	const struct request_note *note = request->note;
	if (!note->unaudited && audit_wants(s->audit, level_of(note, error))) {
		say_result(s, note, pawl_error_code(error));
	}
}

void service_note_gone(void *ctx, const struct request *request) {
	struct service *s = ctx;
	const struct request_note *note = request->note;
	/* That of an acquire has got nothing, as far as its client knows. */
	if (!note->unaudited && audit_wants(s->audit, level_of(note, PAWL_ECLOSED))) {
		say_result(s, note, "gone");
	}
}

/* ---- requests that are not open ---- */

void service_audit_at_once(const struct service_call *call, int error) {
	struct service *s = call->service;
	struct session_who who;
	struct about about;
	const bool told = s->told_denied;
	s->told_denied = false;
	if (told || !audited(call->request->method)) {
		return;
	}
	/* The client may have gone meanwhile. */
	const bool there = sessions_who(s->sessions, call->client, &who);
	about_request(&about, call->request, there ? &who : NULL, call->now.boot);
	if (audit_wants(s->audit, level_of(&about.note, error))) {
		say_result(s, &about.note, pawl_error_code(error));
	}
}

void service_audit_denied(const struct service_call *call, struct slice key, enum right right,
	unsigned line) {
	struct about about;
	about_request(&about, call->request, call->who, call->now.boot);
	struct said w = said_of(&about.note);
	w.key = key;
	w.result = pawl_error_code(PAWL_EDENIED);
	w.cause = right_name(right);
	w.rule = line;
	(void)say(call->service, &w, NULL);
	call->service->told_denied = true;
}

bool service_audit_asked(const struct service_call *call, struct audit_receipt *receipt) {
	struct about about;
	about_request(&about, call->request, call->who, call->now.boot);
	struct said w = said_of(&about.note);
	w.result = "asked";
	w.token = call->request->core.token;
	return say(call->service, &w, receipt);
}

void service_audit_left(struct service *s, const struct client_request *request) {
	struct about about;
	about_request(&about, request, NULL, 0);
	say_result(s, &about.note, "gone");
}

/* ---- the page of the admin port ---- */

bool service_page_forbids(const struct service *s, enum client_method method) {
	return s->audit && audit_settings(s->audit)->strict
		&& client_method_right(method) == RIGHT_BREAK;
}

static void about_page(struct about *about, const struct session_who *who,
	enum client_method method, const struct core_request *asked, struct instant now) {
	const struct client_request r = { .method = method,
		.core = { .key = asked->key, .token = asked->token, .to = asked->to } };
	about_request(about, &r, who, now.boot);
}

void service_page_denied(struct service *s, const struct session_who *who,
	enum client_method method, const struct core_request *asked, struct instant now) {
	struct about about;
	about_page(&about, who, method, asked, now);
	struct said w = said_of(&about.note);
	w.result = pawl_error_code(PAWL_EDENIED);
	w.cause = right_name(client_method_right(method));
	if (s->audit) {
		(void)say(s, &w, NULL);
	}
}

struct request_note *service_page_asked(struct service *s, const struct session_who *who,
	enum client_method method, const struct core_request *asked, struct instant now,
	const struct allocator *alloc) {
	struct about about;
	about_page(&about, who, method, asked, now);
	struct said w = said_of(&about.note);
	w.result = "asked";
	w.token = asked->token;
	if (client_method_right(method) == RIGHT_BREAK && audit_wants(s->audit, AUDIT_ADMIN)) {
		(void)say(s, &w, NULL);
	}
	return s->audit ? request_note_new(alloc, &about.note) : NULL;
}

void service_page_answered(struct service *s, const struct request_note *note,
	const struct core_reply *reply) {
	if (s->audit && audit_wants(s->audit, level_of(note, reply->error))) {
		say_answer(s, note, reply);
	}
}

/* ---- what happens to locks ---- */

bool service_audit_watches(const struct service *s) {
	return audit_wants(s->audit, AUDIT_HOLDERS);
}

void service_audit_unbound(struct service *s, const struct session_binding *bound) {
	const struct said w = { .action = client_method_name(CLIENT_RELEASE),
		.key = slice_of(bound->key, bound->size), .lock_id = bound->lock_id,
		.result = pawl_error_code(PAWL_OK), .cause = "disconnect" };
	if (service_audit_watches(s)) {
		(void)say(s, &w, NULL);
	}
}

void service_audit_kept(struct service *s, const struct kept_lock *kept,
	const struct core_reply *reply) {
	const struct said w = { .action = client_method_name(CLIENT_EXTEND), .key = kept->key,
		.identity = kept->holder.identity, .lock_id = kept->lock_id,
		.token = reply->error ? 0 : reply->token, .valid = reply->error ? 0 : reply->valid,
		.result = pawl_error_code(reply->error), .cause = "without_end",
		.begun = kept->asked.boot };
	const struct request_note note = { .method = CLIENT_EXTEND };
	if (audit_wants(s->audit, level_of(&note, reply->error))) {
		(void)say(s, &w, NULL);
	}
}

void service_audit_event(struct service *s, const struct core_watch_event *event) {
	const bool expired = event->kind == WATCH_EVENT_EXPIRED;
	/* A replica only repeats what its master tells. */
	if ((!expired && event->kind != WATCH_EVENT_LOST)
		|| strcmp(s->driver->context.role, "master") != 0) {
		return;
	}
	const struct said w = { .action = "lost", .key = event->key, .owner = event->owner,
		.identity = event->identity, .lock_id = event->lock_id, .token = event->token,
		.terms = &event->terms, .cause = expired ? "expired" : "taken" };
	(void)say(s, &w, NULL);
}
