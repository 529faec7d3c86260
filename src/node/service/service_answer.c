/* service_answer.c: turns replies of the core into answers to clients. Some answers are put
 * together from several replies.
 */
#include "pawl/error.h"
#include "service_impl.h"

int service_explain_encode(const struct service *s, const struct session_who *who, uint32_t msgid,
	const struct core_reply *reply, struct buffer *to) {
	struct waits_ring rings[RINGS_KEPT];
	struct client_ring shown[RINGS_KEPT];
	struct client_ring_member members[RINGS_KEPT][RING_MEMBERS_MAX];
	struct client_context context = s->driver->context;
	context.ring_count = service_deadlock_rings(s, who, reply->entry.key, rings);
	context.rings = shown;
	for (uint32_t i = 0; i < context.ring_count; i++) {
		for (uint32_t m = 0; m < rings[i].count; m++) {
			const struct ring_member *member = &rings[i].members[m];
			members[i][m] = (struct client_ring_member){ member->owner, member->key,
				member->node };
		}
		shown[i] = (struct client_ring){ members[i], rings[i].count, rings[i].refused };
	}
	return client_reply_encode(msgid, reply, &context, to);
}

static int service_put_explained(struct service *s, const struct request *request,
	const struct core_reply *reply, struct buffer *to) {
	struct session_who who;
	const bool known = sessions_who(s->sessions, request->client, &who);
	return service_explain_encode(s, known ? &who : NULL, request->msgid, reply, to);
}

static int service_put_reply(struct service *s, const struct request *request,
	const struct core_reply *reply, struct buffer *to) {
	uint32_t msgid = request->msgid;
	const bool shows_values = reply->op == CORE_GET || reply->op == CORE_LIST
		|| reply->op == CORE_WAIT || reply->op == CORE_EXPLAIN;
	if (!shows_values || reply->error) {
		return client_reply_encode(msgid, reply, &s->driver->context, to);
	}
	uint64_t client = request->client;
	const struct service_view view = service_view_begin(s, client, to);
	const struct client_context *context = &s->driver->context;
	int error = request->list ? client_list_encode(msgid, request->list, reply, context, to)
		: reply->op == CORE_EXPLAIN ? service_put_explained(s, request, reply, to)
		: client_reply_encode(msgid, reply, context, to);
	error = service_view_end(s, client, &view, msgid, error);
	return error == PAWL_EBUSY ? 0 : error;
}

/* Keeps a piece of a list. Returns true if the list is not whole yet, or there is no memory for
 * it. */
static bool service_list_goes_on(struct service *s, struct request *request,
	const struct core_reply *reply) {
	uint64_t client = request->client;
	uint32_t msgid = request->msgid;
	bool kept = !reply->error && (reply->goes_on || request->list);
	if (kept && sessions_room(s->sessions, client) == 0) {
		struct share_quota quota;
		/* Further replies for it are ignored. */
		requests_close(&s->requests, request);
		sessions_say_full(s->sessions, client, &quota);
		service_refuse_quota(s, client, msgid, &quota);
		return true;
	}
	int error = kept ? requests_keep_list(&s->requests, request, reply,
		sessions_alloc(s->sessions, client)) : 0;
	if (error) {
		requests_close(&s->requests, request);
		service_refuse(s, client, msgid, PAWL_EBUSY, NULL,
			"this node has no memory left for this list");
	}
	return error || reply->goes_on;
}

static void service_answer_batch(struct service *s, struct requests_batch *batch) {
	struct buffer *to = sessions_answer(s->sessions, batch->client);
	uint64_t client = batch->client;
	int error = to ? requests_batch_encode(batch, &s->driver->context, to) : 0;
	requests_batch_free(&s->requests, batch);
	if (error) {
		service_sever(s, client);
	}
}

static void service_close(struct service *s, uint64_t id) {
	struct request *request = requests_find(&s->requests, id);
	/* A request that is not found went with its client. */
	if (request) {
		requests_close(&s->requests, request);
	}
}

/* On the way out: gives back all that was counted for the request, in one place, and counts what it
 * has got from now on. */
static void service_settle(struct service *s, struct request *request,
	const struct core_reply *reply) {
	struct request_counts *counts = &s->requests.counts;
	const bool acquires = reply->op == CORE_ACQUIRE || reply->op == CORE_ACQUIRE_ALL;
	if (request->values) {
		sessions_value_done(s->sessions, request->client, request->values);
		request->values = 0;
	}
	if (acquires && !reply->error && request->count.open) {
		request_counts_granted(counts, request->count.group, reply);
	}
	/* Of a list that comes in pieces, the last one counts. */
	if (!reply->goes_on) {
		request_counts_answer(counts, &request->count, reply->error, s->driver->last);
	}
	if (s->session_bindings.by_lock.count > 0) {
		service_binding_answered(s, request->client, reply);
	}
	if (reply->error) {
		service_log_refusal(s, request, reply);
	}
	service_share_answered(s, request, reply);
	if (request->note) {
		service_note_answered(s, request, reply);
	}
	if (request->order) {
		orders_answer(&s->orders, request->order, reply->error);
	}
	if (reply->cost && !request->batch) {
		sessions_charge(s->sessions, request->client, reply->cost);
	}
}

void service_answer(void *ctx, const struct core_reply *answer) {
	struct service *s = ctx;
	struct request *request = requests_find(&s->requests, answer->id);
	struct core_reply changed;
	if (s->kept.by_lock.count > 0) {
		service_keep_ended(s, answer);
	}
	if (!request) {
		/* The client is gone, or the node itself has asked. */
		service_keep_answered(s, answer);
		return;
	}
	const struct core_reply *reply = answer->wait_cut
		? service_deadlock_reply(request, answer, &changed) : answer;
	service_settle(s, request, reply);
	if (request->batch) {
		const struct client_extended result = client_extended_of(reply);
		struct requests_batch *whole = requests_close_part(&s->requests, request, &result,
			&s->driver->context);
		if (whole) {
			service_answer_batch(s, whole);
		}
		return;
	}
	uint64_t client = request->client;
	if (reply->op == CORE_LIST && service_list_goes_on(s, request, reply)) {
		return;
	}
	if (request->watch && !reply->error) {
		const struct requests_watch *watch = request->watch;
		const struct events_position from = { watch->log, watch->number };
		service_watch_begin(s, client, request->msgid,
			slice_of(watch->key, watch->size), false, &from, reply);
		service_close(s, reply->id);
		return;
	}
	struct buffer *to = sessions_answer(s->sessions, client);
	int error = to ? service_put_reply(s, request, reply, to) : 0;
	requests_close(&s->requests, request);
	if (error) {
		service_sever(s, client);
	}
}
