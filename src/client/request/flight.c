/* flight.c: the sendings of calls, over the present session and over the one that the client has
 * left; and what becomes of them when a session is left or lost. */
#include "call.h"

struct flight *flight_find(const struct pawl *client, uint32_t msgid) {
	struct map_node *node = map_first(&client->by_msgid, msgid);
	return node ? CONTAINER_OF(node, struct flight, by_msgid) : NULL;
}

uint32_t flight_draw_msgid(struct pawl *client) {
	do {
		/* The msgid 0 belongs to the pings of the sessions themselves. A request with the
		 * msgid 1 looks to OpenSSL like the begin of an old SSL, so that a port with TLS
		 * waits for more instead of closing the connection. */
		client->msgid++;
	} while (client->msgid < 2 || flight_find(client, client->msgid));
	return client->msgid;
}

void flight_begin(struct pawl_call *call, uint32_t msgid, struct instant now) {
	struct pawl *client = call->client;
	call->last.call = call;
	call->last.session = client->session;
	call->last.msgid = msgid;
	call->last.sent_at = now;
	list_remove(&call->link);
	list_append(&client->flight, &call->link);
	map_insert(&client->by_msgid, &call->last.by_msgid, msgid);
	silence_sent(client->session, now, call->waits);
}

void flight_end(struct flight *flight) {
	struct session *session = flight->session;
	if (session) {
		map_remove(&session->client->by_msgid, &flight->by_msgid);
		session->flights--;
		session->waits -= flight->call->waits;
		flight->session = NULL;
	}
}

void flight_again(struct pawl_call *call) {
	flight_end(&call->last);
	list_remove(&call->link);
	list_append(&call->client->queue, &call->link);
	client_core_kick(call->client);
}

/* The answer to the last sending may still come, while the call is sent again. */
static void keep_as_before(struct pawl_call *call) {
	struct map *by_msgid = &call->client->by_msgid;
	flight_end(&call->before);
	map_remove(by_msgid, &call->last.by_msgid);
	call->before = call->last;
	call->last.session = NULL;
	map_insert(by_msgid, &call->before.by_msgid, call->before.msgid);
}

static struct pawl_call *call_at(struct list *at) {
	return CONTAINER_OF(at, struct pawl_call, link);
}

static bool repeatable(const struct pawl_call *call) {
	return !call->tied && request_copy_repeatable(call->request);
}

/* Moves the calls whose last sending went over the session out of `flight`, in the order in which
 * they were sent. */
static void take_out(struct session *session, struct list *out) {
	struct list *next;
	struct list *flight = &session->client->flight;
	for (struct list *at = list_first(flight); at; at = next) {
		next = list_after(flight, at);
		if (call_at(at)->last.session == session) {
			list_remove(at);
			list_append(out, at);
		}
	}
}

/* A callback may cancel any of these calls, so this always takes the first one. */
static void fail_all(struct pawl *client, struct list *lost) {
	struct list *at;
	while ((at = list_first(lost)) != NULL) {
		call_fail(call_at(at),
			request_copy_unsure(call_at(at)->request) ? PAWL_EUNSURE : PAWL_ECLOSED,
			client->last_problem);
	}
}

static void end_before(struct session *session, const struct list *calls) {
	for (struct list *at = list_first(calls); at; at = list_after(calls, at)) {
		if (call_at(at)->before.session == session) {
			flight_end(&call_at(at)->before);
		}
	}
}

/* The calls that may be repeated go back into the queue, before the calls that have not been sent
 * yet. */
void calls_connection_lost(struct session *session) {
	struct pawl *client = session->client;
	struct list back, lost, *at;
	list_init(&back);
	list_init(&lost);
	end_before(session, &client->flight);
	end_before(session, &client->queue);
	end_before(session, &client->resting);
	take_out(session, &back);
	/* If the queue is empty, this is its head. */
	struct list *behind = client->queue.next;
	while ((at = list_first(&back)) != NULL) {
		list_remove(at);
		flight_end(&call_at(at)->last);
		if (repeatable(call_at(at))) {
			list_insert_before(behind, at);
		} else {
			list_append(&lost, at);
		}
	}
	if (!list_empty(&client->queue)) {
		client_core_kick(client);
	}
	fail_all(client, &lost);
}

bool calls_may_return(const struct pawl *client) {
	bool binds = false;
	for (struct list *at = list_first(&client->flight); at && !binds;
		at = list_after(&client->flight, at)) {
		binds = call_binds(call_at(at));
	}
	return !binds;
}

size_t calls_session_left(struct session *session, bool repeat) {
	struct pawl *client = session->client;
	struct list out, lost, *at;
	size_t repeated = 0;
	list_init(&out);
	list_init(&lost);
	take_out(session, &out);
	struct list *behind = client->queue.next;
	while ((at = list_first(&out)) != NULL) {
		struct pawl_call *call = call_at(at);
		list_remove(at);
		if (call->tied) {
			flight_end(&call->last);
			list_append(&lost, at);
		} else if (repeat && repeatable(call)) {
			keep_as_before(call);
			list_insert_before(behind, at);
			repeated++;
		} else {
			list_append(&client->flight, at);
		}
	}
	fail_all(client, &lost);
	return repeated;
}
