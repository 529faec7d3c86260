/* service_answer.c: replies of the core become answers to clients, some of them put together from several replies. */
#include "pawl/error.h"
#include "service.h"

#define SPARED_BYTES ((size_t)1 << 20) /* of what may wait on a connection, by answers that show values */

size_t service_view_begin(struct buffer *to) {
	size_t max = to->max;
	to->max = max - to->size > SPARED_BYTES ? max - SPARED_BYTES : to->size;
	return max;
}

int service_view_end(struct buffer *to, size_t begun, uint32_t msgid, int error) {
	const struct client_refusal crowded = { .error = PAWL_EBUSY, .message = "more answers wait on this connection than it takes: ask for fewer at once" };
	to->max = begun;
	if (error != PAWL_ETOOLARGE) {
		return error;
	}
	error = client_refusal_encode(msgid, &crowded, to);
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
	size_t begun = service_view_begin(to);
	int error = request->list ? client_list_encode(msgid, request->list, reply, &d->facts, to) : client_reply_encode(msgid, reply, &d->facts, to);
	error = service_view_end(to, begun, msgid, error);
	return error == PAWL_EBUSY ? 0 : error;
}

/* A list, for which its client has paid only a little so far. True: it is not whole yet, or there is no memory for it. */
static bool service_list_goes_on(struct driver *d, struct request *request, const struct core_reply *reply) {
	uint64_t client = request->client;
	uint32_t msgid = request->msgid;
	sessions_charge(d->sessions, client, reply->cost);
	int error = !reply->error && (reply->goes_on || request->list) ? requests_keep_list(&d->requests, request, reply) : 0;
	if (error) {
		requests_close(&d->requests, request); /* what else comes for it finds nobody */
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
