/* service_answer.c: replies of the core become answers to clients, some of them put together from several replies. */
#include "pawl/error.h"
#include "service.h"

#define SPARED_BYTES ((size_t)1 << 20) /* of what may wait on a connection, by answers that show values */

struct service_view service_view_begin(const struct driver *d, uint64_t client, struct buffer *to) {
	struct service_view view = { .to = to, .max = to->max };
	uint64_t room = sessions_room(d->sessions, client);
	size_t spared = to->max - to->size > SPARED_BYTES ? to->max - SPARED_BYTES : to->size;
	view.crowded = to->capacity + room < spared;
	size_t most = view.crowded ? to->capacity + (size_t)room : spared;
	to->max = most > to->size ? most : to->size;
	return view;
}

int service_view_end(struct driver *d, uint64_t client, const struct service_view *view, uint32_t msgid, int error) {
	static const struct client_refusal crowded = { .error = PAWL_EBUSY, .message = "more answers wait on this connection than it takes: ask for fewer at once" };
	struct share_quota quota;
	view->to->max = view->max;
	if (error != PAWL_ETOOLARGE) {
		return error;
	}
	if (view->crowded) {
		sessions_say_full(d->sessions, client, &quota);
		service_note_quota(d, client, &quota);
	}
	error = client_refusal_encode(msgid, view->crowded ? &quota.refusal : &crowded, view->to);
	return error ? error : PAWL_EBUSY;
}

static bool service_shows_values(const struct core_reply *reply) {
	return !reply->error && (reply->op == CORE_GET || reply->op == CORE_LIST || reply->op == CORE_WAIT || reply->op == CORE_EXPLAIN);
}

static int service_put_reply(struct driver *d, const struct request *request, const struct core_reply *reply, struct buffer *to) {
	uint32_t msgid = request->msgid;
	if (!service_shows_values(reply)) {
		return client_reply_encode(msgid, reply, &d->facts, to);
	}
	uint64_t client = request->client;
	const struct service_view view = service_view_begin(d, client, to);
	int error = request->list ? client_list_encode(msgid, request->list, reply, &d->facts, to) : client_reply_encode(msgid, reply, &d->facts, to);
	error = service_view_end(d, client, &view, msgid, error);
	return error == PAWL_EBUSY ? 0 : error;
}

/* A list, for which its client has paid only a little so far. True: it is not whole yet, or there is no memory for it. */
static bool service_list_goes_on(struct driver *d, struct request *request, const struct core_reply *reply) {
	uint64_t client = request->client;
	uint32_t msgid = request->msgid;
	sessions_charge(d->sessions, client, reply->cost);
	bool kept = !reply->error && (reply->goes_on || request->list);
	if (kept && sessions_room(d->sessions, client) == 0) {
		struct share_quota quota;
		requests_close(&d->requests, request); /* what else comes for it finds nobody */
		sessions_say_full(d->sessions, client, &quota);
		service_refuse_quota(d, client, msgid, &quota);
		return true;
	}
	int error = kept ? requests_keep_list(&d->requests, request, reply, sessions_alloc(d->sessions, client)) : 0;
	if (error) {
		requests_close(&d->requests, request);
		service_refuse(d, client, msgid, PAWL_EBUSY, NULL, "the node has no memory left for this list");
	}
	return error || reply->goes_on;
}

static void service_answer_batch(struct driver *d, struct requests_batch *batch) {
	struct buffer *to = sessions_answer(d->sessions, batch->client);
	uint64_t client = batch->client;
	int error = to ? requests_batch_encode(batch, &d->facts, to) : 0;
	requests_batch_free(&d->requests, batch);
	if (error) {
		service_sever(d, client);
	}
}

static void service_close(struct driver *d, uint64_t id) {
	struct request *request = requests_find(&d->requests, id);
	if (request) { /* else it went with its client */
		requests_close(&d->requests, request);
	}
}

void driver_answer(struct driver *d, const struct core_reply *reply) {
	struct request *request = requests_find(&d->requests, reply->id);
	if (!request) {
		return; /* its client is gone */
	}
	service_leash_answered(d, request->client, reply);
	service_log_refusal(d, request->client, reply);
	service_share_answered(d, request, reply);
	if (request->batch) {
		const struct client_extended result = client_extended_of(reply);
		struct requests_batch *whole = requests_close_part(&d->requests, request, &result, &d->facts);
		if (whole) {
			service_answer_batch(d, whole);
		}
		return;
	}
	uint64_t client = request->client;
	if (reply->op == CORE_LIST && service_list_goes_on(d, request, reply)) {
		return;
	}
	if (request->watch && !reply->error) {
		service_watch_begin(d, client, request->msgid, request->watch, reply);
		service_close(d, reply->id);
		return;
	}
	struct buffer *to = sessions_answer(d->sessions, client);
	int error = to ? service_put_reply(d, request, reply, to) : 0;
	requests_close(&d->requests, request);
	if (error) {
		service_sever(d, client);
	}
}
