/* moved.c: asks another cluster, once, where the node says that it serves a request, or some of the
 * locks that are extended together (docs/client-protocol.md, Moved). Each of these errands is made
 * by a guest: a client of its own with the endpoints that the node has named. It is gone when the
 * errand is over, and the client itself stays where it is.
 */
#include <stdio.h>
#include <string.h>

#include "call.h"

#define MOVED_ENDPOINTS_MAX 16
#define MOVED_TEXT_MAX (MOVED_ENDPOINTS_MAX * (ENDPOINT_TEXT_MAX + 1))

struct errand {
	/* In call->errands. */
	struct list link;
	struct pawl_call *call;
	struct pawl *guest;

	/* What the guest asks. */
	struct pawl_call *asks;

	/* An extension of some of the locks, and their places in that of the call; NULL: the guest
	 * makes the request of the call itself. */
	struct request_copy *part;
	size_t count;
	uint32_t places[];
};

static size_t errand_bytes(size_t count) {
	return sizeof(struct errand) + count * sizeof(uint32_t);
}

static void errand_free(struct errand *errand) {
	struct pawl *client = errand->call->client;
	list_remove(&errand->link);
	client->handlers->guest_free(errand->guest);
	request_copy_free(errand->part);
	alloc_free(client->env.alloc, errand, errand_bytes(errand->count));
}

/* ---- where to ask ---- */

/* Methods about one node or one connection are not followed. */
static bool method_moves(enum pawl_method method) {
	switch (method) {
	case PAWL_ACQUIRE:
	case PAWL_EXTEND:
	case PAWL_UPDATE:
	case PAWL_RELEASE:
	case PAWL_DOWNGRADE:
	case PAWL_TRANSFER:
	case PAWL_ASK_RELEASE:
	case PAWL_GET:
	case PAWL_LIST:
	case PAWL_WAIT:
	case PAWL_WAITERS:
	case PAWL_EXPLAIN:
	case PAWL_BREAK:
		return true;
	case PAWL_STATUS:
	case PAWL_PING:
	case PAWL_DRAIN:
	case PAWL_CHANGE:
	case PAWL_WATCH:
	case PAWL_UNWATCH:
	case PAWL_CLIENTS:
	case PAWL_KICK:
	case PAWL_CAN:
	case PAWL_TOP:
		return false;
	}
	return false;
}

/* Nothing that came encrypted may lead to where it would not be. */
static bool endpoint_allowed(const struct session *session, struct slice text) {
	struct endpoint e;
	if (endpoint_parse(text, &e) != NULL
		|| (e.kind != ENDPOINT_ADDRESS && e.kind != ENDPOINT_NAME)) {
		return false;
	}
	return e.tls ? session->client->tls.context != NULL : !session->endpoint.tls;
}

/* Writes the endpoints that the error names, as options have them. Returns false if they are none,
 * or if any of them may not be used. */
static bool write_endpoints(const struct session *session, const struct pawl_value *error,
	char *text) {
	const struct pawl_value *list = pawl_value_get(error, "endpoints");
	size_t size = 0;
	if (!list || list->kind != PAWL_ARRAY || list->count < 1
		|| list->count > MOVED_ENDPOINTS_MAX) {
		return false;
	}
	for (size_t i = 0; i < list->count; i++) {
		const struct pawl_value *v = &list->items[i];
		const bool is_text = v->kind == PAWL_TEXT || v->kind == PAWL_BYTES;
		if (!is_text || v->bytes.size >= ENDPOINT_TEXT_MAX
			|| !endpoint_allowed(session,
				slice_of(v->bytes.data, v->bytes.size))) {
			return false;
		}
		size += (size_t)snprintf(text + size, MOVED_TEXT_MAX - size, "%s%.*s",
			size ? "," : "", (int)v->bytes.size, (const char *)v->bytes.data);
	}
	return true;
}

/* ---- errands ---- */

static void errand_over(struct pawl_call *asks, struct pawl_result *take_result, void *ctx);

/* The guest makes the request in the time that the call has left. Returns NULL without memory. */
static struct pawl_call *call_for_guest(struct errand *errand,
	struct request_copy *request) {
	struct pawl *guest = errand->guest;
	const struct pawl_call *call = errand->call;
	struct pawl_call *asks = alloc_new(guest->env.alloc, sizeof(*asks));
	struct result_box *box = result_new(&guest->env, request->method);
	if (!asks || !box) {
		pawl_result_free(box ? &box->result : NULL);
		alloc_free(guest->env.alloc, asks, sizeof(*asks));
		return NULL;
	}
	*asks = (struct pawl_call){ .client = guest, .request = request, .box = box,
		.alarm.ring = call->alarm.ring, .internal = true, .borrows = true,
		.end = errand_over, .ctx = errand, .wait_end = call->wait_end, .waits = call->waits,
		.deadline = call->deadline };
	list_init(&asks->errands);
	guest->call_count++;
	list_append(&guest->queue, &asks->link);
	agenda_set(&guest->agenda, &asks->alarm, asks->deadline);
	client_core_kick(guest);
	return asks;
}

/* Lets a guest ask. Takes over `take_part`, also if it fails. */
static struct errand *errand_begin(struct pawl_call *call, const char *endpoints,
	struct request_copy *take_part, size_t count) {
	struct pawl *client = call->client;
	struct errand *errand = alloc_new(client->env.alloc, errand_bytes(count));
	if (!errand) {
		request_copy_free(take_part);
		return NULL;
	}
	errand->call = call;
	errand->part = take_part;
	errand->count = count;
	errand->guest = client->handlers->guest_new(client, endpoints);
	if (errand->guest) {
		client_core_enter(errand->guest);
		errand->asks = call_for_guest(errand,
			take_part ? take_part : call->request);
		client_core_leave(errand->guest);
	}
	if (!errand->asks) {
		errand_free(errand);
		return NULL;
	}
	list_append(&call->errands, &errand->link);
	return errand;
}

/* The call waits for its errands, which have its deadline. */
static void wait_for_errands(struct pawl_call *call) {
	struct pawl *client = call->client;
	agenda_clear(&client->agenda, &call->alarm);
	flight_end(&call->last);
	flight_end(&call->before);
	list_remove(&call->link);
	list_append(&client->resting, &call->link);
}

static void forget(struct pawl_call *asks, struct pawl_result *take_result, void *ctx) {
	(void)asks;
	(void)ctx;
	pawl_result_free(take_result);
}

/* A guest that ends with its host sends the release of what it was about to acquire: nobody else
 * can do so any more. */
void call_follow_no_more(struct pawl_call *call) {
	struct list *at;
	while ((at = list_first(&call->errands)) != NULL) {
		struct errand *errand = CONTAINER_OF(at, struct errand, link);
		errand->asks->end = forget;
		if (!call->client->dying) {
			call_cancel(errand->asks);
		}
		errand_free(errand);
	}
}

/* ---- a request as a whole ---- */

static bool follow_whole(struct pawl_call *call, const struct session *session,
	const struct pawl_value *error) {
	char endpoints[MOVED_TEXT_MAX];
	if (!write_endpoints(session, error, endpoints)
		|| !errand_begin(call, endpoints, NULL, 0)) {
		return false;
	}
	/* The refusal had no effect, so this send does not count. */
	call->sends--;
	return true;
}

static void take_whole(struct pawl_call *call, const struct pawl_call *asks,
	struct pawl_result *take_result) {
	pawl_result_free(&call->box->result);
	call->box = result_box(take_result);
	call->sent_at = asks->sent_at;
	call->sends += asks->sends;
}

/* ---- some of the locks of an extension ---- */

/* Returns the error of item i of the answer; NULL: it is not `moved`, or the lock is to be bound to
 * this connection. (An order binds it to none.) */
static const struct pawl_value *item_moved(const struct pawl_call *call,
	const struct pawl_result *said, size_t i) {
	const struct pawl_value *locks = pawl_value_get(said->tree, "locks");
	const struct client_lock *lock = &call->request->wire.locks[i];
	return said->extended[i].error == PAWL_EMOVED && (!lock->binding || lock->ordered)
		&& locks && locks->kind == PAWL_ARRAY && i < locks->count
		? pawl_value_get(&locks->items[i], "error")
		: NULL;
}

/* Makes an extension of the locks at those places, which is otherwise that of the call. */
static struct request_copy *make_part(const struct pawl_call *call, const uint32_t *places,
	size_t count) {
	const struct client_request *wire = &call->request->wire;
	struct pawl *client = call->client;
	struct pawl_extend_item *items = alloc_new(client->env.alloc, count * sizeof(*items));
	struct request_copy *part = NULL;
	for (size_t i = 0; items && i < count; i++) {
		const struct client_lock *lock = &wire->locks[places[i]];
		items[i] = (struct pawl_extend_item){ .key = { lock->key.data, lock->key.size },
			.lease_ms = call->request->lease_open[places[i]] ? 0
				: (uint32_t)(lock->lease / SPAN_MS),
			.token = lock->token, .bond = lock->binding,
			.slots = { lock->numbers.w[0], lock->numbers.w[1] } };
		memcpy(items[i].lock_id.bytes, lock->lock_id.b, sizeof(items[i].lock_id.bytes));
	}
	struct pawl_request request = { .method = PAWL_EXTEND, .locks = items, .lock_count = count,
		.deadline_kept = wire->core.deadline_kept };
	if (wire->present & CLIENT_HAS_PARTY) {
		memcpy(request.party.bytes, wire->party.b, sizeof(request.party.bytes));
	}
	if (items && request_copy_new(client->env.alloc, &request, &client->self, &part) == 0) {
		request_copy_orders(part);
		part->wire.trace = wire->trace;
		part->wire.present |= wire->present & CLIENT_HAS_TRACE;
	}
	alloc_free(client->env.alloc, items, count * sizeof(*items));
	return part;
}

/* Sends the locks from place `first` on that have moved to the same endpoints as this one, and are
 * not sent yet. Returns whether it does. */
static bool follow_alike(struct pawl_call *call, const struct session *session,
	const struct pawl_result *said, size_t first, bool *sent) {
	char endpoints[MOVED_TEXT_MAX], others[MOVED_TEXT_MAX];
	uint32_t places[REQUEST_COPY_LOCKS_MAX];
	size_t count = 0;
	if (!write_endpoints(session, item_moved(call, said, first), endpoints)) {
		return false;
	}
	for (size_t i = first; i < said->extended_count; i++) {
		if (!sent[i] && write_endpoints(session, item_moved(call, said, i), others)
			&& strcmp(endpoints, others) == 0) {
			sent[i] = true;
			places[count++] = (uint32_t)i;
		}
	}
	struct request_copy *part = make_part(call, places, count);
	struct errand *errand = part ? errand_begin(call, endpoints, part, count) : NULL;
	if (errand) {
		memcpy(errand->places, places, count * sizeof(places[0]));
	}
	return errand != NULL;
}

/* The answer is the outcome of the call, but for the locks that have moved. */
static bool follow_items(struct pawl_call *call, const struct session *session,
	const struct pawl_result *said) {
	bool sent[REQUEST_COPY_LOCKS_MAX] = { false };
	bool follows = false;
	if (said->extended_count > call->request->wire.lock_count) {
		return false;
	}
	for (size_t i = 0; i < said->extended_count; i++) {
		if (!sent[i] && item_moved(call, said, i)) {
			follows |= follow_alike(call, session, said, i, sent);
		}
	}
	return follows;
}

/* The outcomes count from the sending by the guest, and those of the call from its own, which was
 * earlier. */
static void take_items(const struct errand *errand, const struct pawl_call *asks,
	struct pawl_result *take_result) {
	struct pawl_call *call = errand->call;
	/* The list is in the arena of the call's result. */
	struct pawl_extended *to = (struct pawl_extended *)(uintptr_t)call->box->result.extended;
	const span_ns later = instant_elapsed_short(asks->sent_at, call->sent_at);
	call->box->denied_together |= take_result->error == PAWL_EDENIED && errand->count > 1;
	for (size_t i = 0; i < errand->count; i++) {
		struct pawl_extended *item = &to[errand->places[i]];
		if (take_result->error || i >= take_result->extended_count) {
			*item = (struct pawl_extended){ .error = take_result->error
				? take_result->error : PAWL_EPROTOCOL };
		} else {
			*item = take_result->extended[i];
			item->valid_ms += item->error ? 0 : later / SPAN_MS;
		}
	}
	pawl_result_free(take_result);
}

/* ---- the outcome ---- */

/* A grant that has come too late after a long wait says nothing here, either; the call asks again,
 * at its own endpoints (see ask_again_after_wait). */
static void call_followed(struct pawl_call *call) {
	struct pawl *client = call->client;
	const struct pawl_result *result = &call->box->result;
	const bool answered = *result->endpoint != '\0';
	if (call->request->method == PAWL_ACQUIRE && !call->asked_again && !result->error
		&& result->waited_ms * SPAN_MS > call->request->wire.core.lease
		&& instant_distrusted(client_core_now(client), call->box->valid_until)) {
		call->asked_again = true;
		result_fail(call->box, PAWL_ETIMEOUT, NULL);
		agenda_set(&client->agenda, &call->alarm, call->deadline);
		flight_again(call);
		return;
	}
	/* It was answered over no connection of this client. */
	call->connection = 0;
	if (call->request->method == PAWL_UPDATE && !result->error) {
		client->handlers->call_updated(client, call->request);
	}
	call_end(call, answered);
}

static void errand_over(struct pawl_call *asks, struct pawl_result *take_result, void *ctx) {
	struct errand *errand = ctx;
	struct pawl_call *call = errand->call;
	struct pawl *client = call->client;
	client_core_enter(client);
	if (errand->part) {
		take_items(errand, asks, take_result);
	} else {
		take_whole(call, asks, take_result);
	}
	errand_free(errand);
	if (list_empty(&call->errands)) {
		call_followed(call);
	}
	client_core_leave(client);
}

static bool any_moved(const struct client_response *r) {
	bool moved = r->error == PAWL_EMOVED;
	for (size_t i = 0; !r->error && r->extended && i < r->count; i++) {
		moved = moved || r->extended[i].error == PAWL_EMOVED;
	}
	return moved;
}

/* Returns whether the request is about the connection over which it is made. */
static bool about_connection(const struct client_request *wire) {
	bool about = wire->present & CLIENT_HAS_RELEASE_ON_DISCONNECT;
	for (size_t i = 0; i < wire->lock_count; i++) {
		about = about || wire->locks[i].binding;
	}
	return about;
}

bool call_follow(struct pawl_call *call, struct session *session, const struct client_response *r,
	struct slice message) {
	struct pawl *client = call->client;
	if (client->guest_of || !any_moved(r) || !method_moves(call->request->method)
		|| (r->error && about_connection(&call->request->wire))) {
		return false;
	}
	struct result_box *said = result_new(&client->env, call->request->method);
	if (!said) {
		return false;
	}
	result_answer(said, r, message, session_endpoint_text(session), call->sent_at);
	const bool whole = r->error != 0, read = said->result.error == r->error;
	const bool follows = read && (whole ? follow_whole(call, session, said->result.tree)
		: follow_items(call, session, &said->result));
	if (follows && !whole) {
		pawl_result_free(&call->box->result);
		call->box = said;
	} else {
		pawl_result_free(&said->result);
	}
	if (follows) {
		wait_for_errands(call);
	}
	return follows;
}
