/* service.c: what is done for each method, and what the sessions tell. */
#include "pawl/error.h"
#include "roles.h"
#include "service_impl.h"

/* ---- what the node answers itself ---- */

static void service_ping(const struct service_call *call) {
	struct service *s = call->service;
	struct buffer *to = sessions_answer(s->sessions, call->client);
	service_told(s, call->client, to ? client_ping_encode(call->request->msgid, PAWL_VERSION,
			s->driver->context.node, to) : 0);
}

/* Remembers what an operator asks for. */
static void service_order(const struct service_call *call, struct slice subject) {
	struct service *s = call->service;
	s->order = orders_note(&s->orders, client_method_name(call->request->method), subject,
		call->who->identity, call->now);
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
	orders_answer(&s->orders, request->order, error);
	requests_close(&s->requests, request);
	if (error) {
		service_refuse(s, client, msgid, error, NULL,
			"this node could not save its state; its next start recovers "
			"as after a crash");
		return;
	}
	service_tell_done(s, client, msgid);
}

static void service_drain(const struct service_call *call) {
	struct service *s = call->service;
	struct request *open;
	if (requests_open(&s->requests, call->client, call->request->msgid, &open) != 0) {
		service_refuse(s, call->client, call->request->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	if (call->notes) {
		/* Without memory, the line of its result is missing. */
		(void)service_note(call, open, NULL);
	}
	service_count(call, open, slice_of(NULL, 0), 0);
	log_to(s->driver->log, LEVEL_NOTICE, "drain_asked", LOG_WHO(call->who));
	service_order(call, slice_of(NULL, 0));
	open->order = s->order;
	s->order = 0;
	s->on_drain_request(s->ctx, open->id);
}

uint64_t service_note_order(struct service *s, const struct session_who *who,
	enum client_method method, const struct core_request *asked, struct instant now) {
	if (method == CLIENT_BREAK) {
		log_to(s->driver->log, LEVEL_WARNING, "break_asked", LOG_BYTES("key", asked->key),
			LOG_WHO(who), LOG_TEXT("now", asked->now ? "yes" : "no"));
	} else {
		log_to(s->driver->log, LEVEL_NOTICE, "release_asked", LOG_BYTES("key", asked->key),
			LOG_WHO(who), LOG_BYTES("to", asked->to));
	}
	return orders_note(&s->orders, client_method_name(method), asked->key, who->identity, now);
}

/* A client deprives another of its lock, so the log says which client did. */
static void service_break(const struct service_call *call) {
	call->service->order = service_note_order(call->service, call->who, CLIENT_BREAK,
		&call->request->core, call->now);
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

/* Begins a watch of one key. The position is taken first, and then the key is read; so a change in
 * between is told again, and nothing is missed. What is told about the key waits until the read is
 * answered. */
static void watch_look(const struct service_call *call, const struct events_position *from) {
	struct service *s = call->service;
	struct request *open;
	struct core_request request;
	service_core_request(call, &request);
	int error = requests_open(&s->requests, call->client, call->request->msgid, &open);
	if (!error) {
		error = requests_keep_watch(&s->requests, open, request.key, from->log,
			from->number);
		if (error) {
			requests_close(&s->requests, open);
		}
	}
	if (error) {
		service_refuse(s, call->client, call->request->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	request.op = CORE_GET;
	request.id = open->id;
	service_count(call, open, request.key, 0);
	service_step(call, &request);
}

static void service_watch(const struct service_call *call) {
	struct service *s = call->service;
	const struct client_request *r = call->request;
	if (service_watch_open(s) != 0) {
		service_refuse(s, call->client, r->msgid, PAWL_EBUSY, NULL, NULL);
		return;
	}
	/* What is already known is not for the new watch. */
	service_take_events(s);
	const struct events_position now = events_position(&s->events);
	const struct events_position wanted = { r->from.log, r->from.sequence };
	const struct events_position *from = r->present & CLIENT_HAS_FROM ? &wanted : &now;
	if (r->present & CLIENT_HAS_PREFIX) {
		service_watch_begin(s, call->client, r->msgid, r->core.key, true, from, NULL);
	} else {
		watch_look(call, from);
	}
	service_watch_settle(s);
}

static void service_extend(const struct service_call *call) {
	if (call->request->present & CLIENT_HAS_LOCKS) {
		service_call_batch(call);
	} else {
		service_call_core(call);
	}
}

/* What serves each method. */
static void (*const service_methods[CLIENT_METHODS])(const struct service_call *call) = {
	[CLIENT_ACQUIRE] = service_call_core,
	[CLIENT_EXTEND] = service_extend,
	[CLIENT_UPDATE] = service_call_core,
	[CLIENT_RELEASE] = service_call_core,
	[CLIENT_GET] = service_call_core,
	[CLIENT_LIST] = service_call_core,
	[CLIENT_WAIT] = service_call_core,
	[CLIENT_WAITERS] = service_call_core,
	[CLIENT_BREAK] = service_break,
	[CLIENT_STATUS] = service_status,
	[CLIENT_PING] = service_ping,
	[CLIENT_DRAIN] = service_drain,
	[CLIENT_DOWNGRADE] = service_call_core,
	[CLIENT_TRANSFER] = service_call_core,
	[CLIENT_ASK_RELEASE] = service_call_core,
	[CLIENT_EXPLAIN] = service_call_core,
	[CLIENT_WATCH] = service_watch,
	[CLIENT_UNWATCH] = service_unwatch,
	[CLIENT_CLIENTS] = service_clients,
	[CLIENT_KICK] = service_kick,
	[CLIENT_CAN] = service_can,
	[CLIENT_TOP] = service_top,
	[CLIENT_CLUSTER_ADD_REPLICA] = service_change,
	[CLIENT_CLUSTER_PROMOTE] = service_change,
	[CLIENT_CLUSTER_DEMOTE] = service_change,
	[CLIENT_CLUSTER_REMOVE] = service_change,
	[CLIENT_CLUSTER_REPLACE] = service_change,
	[CLIENT_CLUSTER_SET_NODES] = service_change,
	[CLIENT_CLUSTER_SET_TIMING] = service_change,
	[CLIENT_CLUSTER_FORCE] = service_change,
};

/* ---- the sessions' events ---- */

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

static void service_on_ready(void *ctx) {
	const struct service *s = ctx;
	driver_flush_later(s->driver);
}

static void service_on_request(void *ctx, uint64_t client, const struct session_who *who,
	const struct client_request *request, struct session_progress *progress,
	struct instant now) {
	struct service *s = ctx;
	const struct service_call call = { .service = s, .client = client, .who = who,
		.request = request, .progress = progress, .now = now,
		.notes = s->noting || (request->present & CLIENT_HAS_TRACE) };
	uint64_t opened = s->requests.last_id;
	bool begins = progress->done == 0;
	enum client_method method = request->method;
	s->refused = 0;
	s->order = 0;
	if (!begins || service_may(&call)) {
		if (s->audit && begins && service_hold(&call)) {
			return;
		}
		service_methods[method](&call);
	} else if (sessions_share(s->sessions, client)) {
		/* A client that could not be told is gone, with the batch of the request. */
		progress->done = request->lock_count;
	}
	if (s->refused) {
		orders_answer(&s->orders, s->order, s->refused);
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
	service_on_drained, service_on_own_limits, service_log_quota };
