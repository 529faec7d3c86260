/* service.c: turns the requests of clients into events of the core. service_answer.c handles the
 * replies.
 */
#include <openssl/rand.h>

#include "check.h"
#include "config_file.h"
#include "pawl/error.h"
#include "roles.h"
#include "service_impl.h"

/* ---- answers of the node itself, and connections that are gone ---- */

static void service_tell_gone(struct service *s, uint64_t client) {
	const struct core_event gone = { .kind = CORE_CLIENT_GONE, .client = client };
	driver_step_now(s->driver, &gone);
}

/* The core hears of it first, so that it grants the client nothing more. */
static uint32_t service_forget(struct service *s, uint64_t client, uint32_t most) {
	service_tell_gone(s, client);
	uint32_t forgotten = requests_forget(&s->requests, client, most);
	return forgotten + service_watch_forget(s, client, most - forgotten);
}

static void service_gone(struct service *s, uint64_t client, bool closed_there) {
	service_forget(s, client, UINT32_MAX);
	service_binding_gone(s, client, closed_there);
}

void service_sever(struct service *s, uint64_t client) {
	service_tell_gone(s, client);
	sessions_drop(s->sessions, client);
}

static void service_refuse_as(struct service *s, uint64_t client, uint32_t msgid,
	const struct client_refusal *refusal) {
	struct buffer *to = sessions_answer(s->sessions, client);
	s->refused = refusal->error;
	if (to && client_refusal_encode(msgid, refusal, to) != 0) {
		service_sever(s, client);
	}
	driver_flush_later(s->driver);
}

void service_refuse(struct service *s, uint64_t client, uint32_t msgid, int error,
	const char *field, const char *message) {
	service_refuse_as(s, client, msgid,
		&(struct client_refusal){ .error = error, .field = log_slice(field),
		.message = message });
}

static void service_on_over(void *ctx, const struct session_who *who,
	const struct client_refusal *refusal) {
	struct service *s = ctx;
	log_untrusted(s->driver->log, "quota", LOG_BYTES("limit", refusal->field), LOG_WHO(who),
		LOG_TEXT("why", refusal->message));
}

void service_note_quota(struct service *s, uint64_t client, const struct share_quota *quota) {
	struct session_who who;
	sessions_count_refused(s->sessions);
	if (sessions_who(s->sessions, client, &who)) {
		service_on_over(s, &who, &quota->refusal);
	}
}

void service_refuse_quota(struct service *s, uint64_t client, uint32_t msgid,
	const struct share_quota *quota) {
	service_note_quota(s, client, quota);
	service_refuse_as(s, client, msgid, &quota->refusal);
}

void service_answer_done(struct service *s, uint64_t request_id, int error) {
	struct request *request = requests_find(&s->requests, request_id);
	if (!request) {
		return;
	}
	uint32_t msgid = request->msgid;
	uint64_t client = request->client;
	request_counts_answer(&s->requests.counts, &request->count, error, s->driver->last);
	if (request->note) {
		service_note_done(s, request, error);
	}
	requests_close(&s->requests, request);
	if (error) {
		service_refuse(s, client, msgid, error, NULL,
			"this node could not save its state; its next start recovers "
			"as after a crash");
		return;
	}
	struct buffer *to = sessions_answer(s->sessions, client);
	if (to && client_done_encode(msgid, to) != 0) {
		service_sever(s, client);
	}
	driver_flush_later(s->driver);
}

/* ---- requests for the core ---- */

void service_count(const struct service_call *call, struct request *open, struct slice key,
	span_ns wait) {
	struct service *s = call->service;
	uint32_t group = key_groups_find(&s->driver->config->admin.groups, key);
	request_counts_begin(&s->requests.counts, &open->count, call->request->method, group, wait,
		call->now);
}

void service_core_request(const struct service_call *call, struct core_request *out) {
	*out = call->request->core;
	out->client = call->client;
	out->identity = service_owner(call->service, call->who);
	out->admin = service_has(call->service, call->who, RIGHT_BREAK);
}

void service_step(const struct service_call *call, const struct core_request *request) {
	const struct core_event event = { .kind = CORE_REQUEST, .request = request,
		.client = call->client };
	driver_step(call->service->driver, &event, call->now);
	if (core_out_unheard(call->service->driver->out)) {
		const struct core_reply busy = { .id = request->id, .client = call->client,
			.op = request->op, .lock_id = request->lock_id, .error = PAWL_EBUSY,
			.field = "memory" };
		service_answer(call->service, &busy);
	}
}

static void service_draw(struct id128 *lock_id) {
	if (id128_zero(*lock_id)) {
		CHECK(RAND_bytes(lock_id->b, sizeof lock_id->b) == 1);
	}
}

/* Counts the values that are under way for the request: the one that it brings, for each of its
 * keys, because it is sent to the masters later; and those of the key, because they are copied into
 * the answer later, also when a lock is acquired that is held already. While a request waits for
 * others, no value is under way for it (docs/security.md, Values under way). */
static void service_value_begun(const struct service_call *call, struct core_request *request,
	struct request *open) {
	const struct core *core = call->service->driver->core;
	if (request->wait > 0) {
		return;
	}
	uint64_t bytes = request->value.size * (request->lock_count ? request->lock_count : 1);
	if (request->op == CORE_GET || request->op == CORE_ACQUIRE) {
		bytes += core_value_bytes(core, request);
	}
	if (bytes > 0) {
		open->values = bytes;
		sessions_value_begun(call->service->sessions, call->client, bytes);
	}
}

/* Returns whether something of the request is to be remembered until its answer. */
static bool service_notes(const struct service_call *call) {
	return call->service->noting || (call->request->present & CLIENT_HAS_TRACE);
}

static void service_call_core(const struct service_call *call) {
	struct service *s = call->service;
	struct request *open;
	struct core_request request;
	service_core_request(call, &request);
	if (request.op == CORE_ACQUIRE) {
		service_draw(&request.lock_id);
	}
	for (uint32_t i = 0; i < request.lock_count; i++) {
		/* This is the array that request.locks points to. */
		service_draw(&call->request->group[i].lock_id);
	}
	if (service_share_full(call, &request)) {
		return;
	}
	if (requests_open(&s->requests, call->client, call->request->msgid, &open) != 0) {
		service_refuse(s, call->client, call->request->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	request.id = open->id;
	if (service_notes(call) && service_note(call, open, &request) != 0) {
		requests_close(&s->requests, open);
		service_refuse(s, call->client, call->request->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	if (request.op == CORE_ACQUIRE || request.op == CORE_ACQUIRE_ALL
		|| (call->request->present & CLIENT_HAS_PARTY)) {
		requests_of_party(&s->requests, open, call->request->party);
	}
	service_count(call, open, request.lock_count ? request.locks[0].key : request.key,
		request.op == CORE_WAIT ? 0 : request.wait);
	service_share_take(call, &request, open);
	const struct allocator *kept = sessions_alloc(s->sessions, call->client);
	if ((request.wait > 0 && requests_keep_wait(&s->requests, open, &request, kept) != 0)
		|| service_binding_ask(call, &request) != 0) {
		requests_close(&s->requests, open);
		service_refuse(s, call->client, call->request->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	if (open->wait) {
		service_deadlock_waits(s, open->wait, call->now);
	}
	service_value_begun(call, &request, open);
	service_keep_asked(s, &request);
	service_step(call, &request);
}

static bool service_open_batch(const struct service_call *call) {
	const struct client_request *asked = call->request;
	struct requests_batch *batch;
	if (requests_open_batch(&call->service->requests, call->client, asked->msgid,
			(uint32_t)asked->lock_count,
		sessions_alloc(call->service->sessions, call->client), &batch) != 0) {
		service_refuse(call->service, call->client, asked->msgid, PAWL_EBUSY, NULL, NULL);
		return false;
	}
	call->progress->tag = batch->requests[0].id;
	return true;
}

static void service_call_part(const struct service_call *call, const struct client_lock *lock,
	uint64_t id) {
	const struct client_request *asked = call->request;
	struct core_request request;
	service_core_request(call, &request);
	request.id = id;
	request.key = lock->key;
	request.lock_id = lock->lock_id;
	request.lease = lock->lease;
	request.token = lock->token;
	request.binding = lock->binding;
	request.terms.set = lock->numbers;
	struct request *open = requests_find(&call->service->requests, id);
	open->held = holdings_hash(&call->service->holdings, lock->key, lock->lock_id);
	if (service_notes(call)) {
		/* Without memory, its lines are missing. */
		(void)service_note(call, open, &request);
	}
	if (asked->present & CLIENT_HAS_PARTY) {
		requests_of_party(&call->service->requests, open, asked->party);
	}
	service_count(call, open, lock->key, 0);
	/* Without memory, the lock lasts as long as its lease. */
	(void)service_binding_ask(call, &request);
	service_step(call, &request);
}

/* Passes the locks of an `extend` to the core one by one; what it sends to a master for all of them
 * leaves in one frame anyway. With the last lock, the batch may be answered and its client may be
 * gone. */
static void service_call_batch(const struct service_call *call) {
	const struct client_request *asked = call->request;
	size_t from = call->progress->done, left = asked->lock_count - from;
	size_t to = from + (left < call->progress->most ? left : call->progress->most);
	if (from == 0 && !service_open_batch(call)) {
		if (sessions_share(call->service->sessions, call->client)) {
			call->progress->done = asked->lock_count;
		}
		return;
	}
	uint64_t first = call->progress->tag;
	call->progress->done = to;
	for (size_t i = from; i < to; i++) {
		service_call_part(call, &asked->locks[i], first + i);
	}
}

/* ---- what the node answers itself ---- */

static void service_ping(const struct service_call *call) {
	struct service *s = call->service;
	struct buffer *to = sessions_answer(s->sessions, call->client);
	if (to && client_ping_encode(call->request->msgid, PAWL_VERSION,
			s->driver->context.node, to) != 0) {
		service_sever(s, call->client);
	}
	driver_flush_later(s->driver);
}

/* Remembers what an operator asks for. */
static void service_order(const struct service_call *call, struct slice subject) {
	orders_note(&call->service->orders, client_method_name(call->request->method), subject,
		call->who->identity, call->now);
}

static void service_drain(const struct service_call *call) {
	struct service *s = call->service;
	struct request *open;
	if (requests_open(&s->requests, call->client, call->request->msgid, &open) != 0) {
		service_refuse(s, call->client, call->request->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	if (service_notes(call)) {
		/* Without memory, the line of its result is missing. */
		(void)service_note(call, open, NULL);
	}
	service_count(call, open, slice_of(NULL, 0), 0);
	log_to(s->driver->log, LEVEL_NOTICE, "drain_asked", LOG_WHO(call->who));
	service_order(call, slice_of(NULL, 0));
	s->on_drain_request(s->ctx, open->id);
}

void service_note_order(struct service *s, const struct session_who *who, enum client_method method,
	const struct core_request *asked, struct instant now) {
	if (method == CLIENT_BREAK) {
		log_to(s->driver->log, LEVEL_WARNING, "break_asked", LOG_BYTES("key", asked->key),
			LOG_WHO(who), LOG_TEXT("now", asked->now ? "yes" : "no"));
	} else {
		log_to(s->driver->log, LEVEL_NOTICE, "release_asked", LOG_BYTES("key", asked->key),
			LOG_WHO(who), LOG_BYTES("to", asked->to));
	}
	orders_note(&s->orders, client_method_name(method), asked->key, who->identity, now);
}

/* A client deprives another of its lock, so the log says which client did. */
static void service_break(const struct service_call *call) {
	service_note_order(call->service, call->who, CLIENT_BREAK, &call->request->core, call->now);
	service_call_core(call);
}

static void service_change(const struct service_call *call) {
	const char *method = client_method_name(call->request->method);
	service_order(call, call->request->change.name);
	log_to(call->service->driver->log, LEVEL_NOTICE, "change_asked", LOG_TEXT("what", method),
		LOG_BYTES("node", call->request->change.name), LOG_WHO(call->who));
	char why[ROLES_WHY_BYTES];
	if (roles_forbid(call->service->driver, &call->request->change, why)) {
		log_to(call->service->driver->log, LEVEL_WARNING, "role_refused",
			LOG_BYTES("peer", call->request->change.name), LOG_TEXT("why", why));
		service_refuse(call->service, call->client, call->request->msgid,
			PAWL_EDENIED, NULL, why);
		return;
	}
	service_call_core(call);
}

static void service_extend(const struct service_call *call) {
	if (call->request->present & CLIENT_HAS_LOCKS) {
		service_call_batch(call);
	} else {
		service_call_core(call);
	}
}

/* The methods that the core does not simply answer. */
static void (*const service_methods[CLIENT_METHODS])(const struct service_call *call) = {
	[CLIENT_EXTEND] = service_extend,
	[CLIENT_BREAK] = service_break,
	[CLIENT_STATUS] = service_status,
	[CLIENT_PING] = service_ping,
	[CLIENT_DRAIN] = service_drain,
	[CLIENT_WATCH] = service_watch,
	[CLIENT_UNWATCH] = service_unwatch,
	[CLIENT_CLIENTS] = service_clients,
	[CLIENT_KICK] = service_kick,
	[CLIENT_CAN] = service_can,
	[CLIENT_TOP] = service_top,
};

static void service_dispatch(const struct service_call *call) {
	if (client_method_changes(call->request->method)) {
		service_change(call);
	} else if (service_methods[call->request->method]) {
		service_methods[call->request->method](call);
	} else {
		service_call_core(call);
	}
}

/* ---- the sessions' events ---- */

static void service_on_ready(void *ctx) {
	const struct service *s = ctx;
	driver_flush_later(s->driver);
}

static void service_on_request(void *ctx, uint64_t client, const struct session_who *who,
	const struct client_request *request, struct session_progress *progress,
	struct instant now) {
	struct service *s = ctx;
	const struct service_call call = { .service = s, .client = client, .who = who,
		.request = request, .progress = progress, .now = now };
	uint64_t opened = s->requests.last_id;
	bool begins = progress->done == 0;
	enum client_method method = request->method;
	s->refused = 0;
	if (!begins || service_may(&call)) {
		if (s->audit && begins && service_hold(&call)) {
			return;
		}
		service_dispatch(&call);
	} else if (sessions_share(s->sessions, client)) {
		/* A client that could not be told is gone, with the batch of the request. */
		progress->done = request->lock_count;
	}
	/* A request that stays open is counted when it is answered. */
	if (begins && (s->refused || s->requests.last_id == opened)) {
		request_counts_at_once(&s->requests.counts, method, s->refused);
		if (s->audit) {
			service_audit_at_once(&call, s->refused);
		}
	}
}

static uint32_t service_on_forget(void *ctx, uint64_t client, uint32_t most) {
	return service_forget(ctx, client, most);
}

static void service_on_gone(void *ctx, uint64_t client, bool closed_there) {
	service_gone(ctx, client, closed_there);
}

static void service_on_trouble(void *ctx, const struct session_who *who, const char *why) {
	struct service *s = ctx;
	log_untrusted(s->driver->log, "client_refused", LOG_WHO(who), LOG_TEXT("why", why));
}

static void service_on_refused(void *ctx) {
	const struct service *s = ctx;
	driver_flush_later(s->driver);
}

static bool service_on_own_limits(void *ctx, const struct session_who *who,
	struct share_limits *limits) {
	return service_own_limits(ctx, who, limits);
}

static void service_on_drained(void *ctx, uint64_t client) {
	struct service *s = ctx;
	events_room(&s->events, client);
	driver_flush_later(s->driver);
}

const struct sessions_handlers service_sessions_handlers = { service_on_ready, service_on_request,
	service_on_forget, service_on_gone, service_on_trouble, service_on_refused,
	service_on_drained, service_on_own_limits, service_on_over };
