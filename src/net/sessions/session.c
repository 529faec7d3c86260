/* session.c: one connection: who it is, what it is told, and what it costs. All other files of the
 * sessions may call this one, and it calls none of them.
 */
#include "sessions_impl.h"

#include "pawl/error.h"

/* ---- who it is ---- */

struct session *sessions_find(const struct sessions *s, uint64_t client) {
	if (s->latest && s->latest->id == client) {
		return s->latest;
	}
	struct map_node *node = map_first_number(&s->by_id, client);
	return node ? CONTAINER_OF(node, struct session, node) : NULL;
}

struct session_who session_who(const struct session *session) {
	return (struct session_who){ .identity = slice_str(session->identity),
		.local = session->local, .inside = session->inside, .from = &session->from,
		.share = &session->share };
}

/* ---- what it is told ---- */

void session_mark(struct session *session) {
	if (!list_linked(&session->dirty)) {
		list_append(&session->all->dirty, &session->dirty);
	}
}

void session_trouble(const struct session *session, const char *why) {
	struct sessions *s = session->all;
	s->evicted += why == strangers_evicted;
	s->refused += why != strangers_evicted && list_linked(&session->stranger.in);
	const struct session_who who = session_who(session);
	s->handlers->trouble(s->ctx, &who, why);
}

void sessions_trouble(struct sessions *s, const struct origin *from, const char *why) {
	const struct session_who who = { .from = from };
	s->refused++;
	s->handlers->trouble(s->ctx, &who, why);
}

static void session_dialect_refuse(struct session *session) {
	session->use->dialect->refuse(session->dialect, buffer_slice(&session->answers),
		stream_out(session->stream));
	buffer_clear(&session->answers);
}

int session_refuse(struct session *session, uint32_t msgid, const struct client_refusal *refusal) {
	session_mark(session);
	session->all->handlers->refused(session->all->ctx);
	return client_refusal_encode(msgid, refusal, session->out);
}

void session_refuse_and_close(struct session *session, uint32_t msgid,
	const struct client_refusal *refusal) {
	/* Without memory, the client gets no refusal. */
	session_refuse(session, msgid, refusal);
	if (session->use) {
		session_dialect_refuse(session);
	}
	list_remove(&session->dirty);
	session->closing = true;
	stream_close(session->stream);
	session_trouble(session,
		refusal->message ? refusal->message : pawl_error_message(refusal->error));
}

/* ---- what a request costs, in simple requests ---- */

/* The costs that are not 1. These requests make every master search or send, or they read much. */
static const uint8_t request_costs[CLIENT_METHODS] = {
	[CLIENT_CLIENTS] = 16,
	[CLIENT_EXPLAIN] = 16,
	[CLIENT_LIST] = 16,
	[CLIENT_WAITERS] = 16,
	[CLIENT_STATUS] = 8,
	[CLIENT_TOP] = 16,
	[CLIENT_WATCH] = 4,
	[CLIENT_UNWATCH] = 4,
};

int64_t session_cost_of(const struct client_request *request, size_t size) {
	int64_t cost = request_costs[request->method];
	int64_t parts = (int64_t)request->core.lock_count;
	return (cost > parts ? cost : parts > 0 ? parts : 1)
		+ (int64_t)(size / SESSIONS_BYTES_A_COST);
}

void session_note_cost(struct session *session, int64_t cost) {
	struct sessions *s = session->all;
	if (session->cost_turn != s->loop_turn) {
		session->cost_turn = s->loop_turn;
		session->cost = 0;
		session->method = CLIENT_METHODS;
	}
	session->cost += cost;
	if (session->cost > s->most_cost) {
		s->most_cost = session->cost;
		s->costliest = session->id;
	}
}

void session_charge(struct session *session, int64_t cost) {
	session->all->unlooked += cost;
	session_note_cost(session, cost);
	fair_charge(&session->flow, cost);
	if (session->share.identity) {
		fair_charge(&session->share.identity->flow, cost);
	}
}

void sessions_charge(struct sessions *s, uint64_t client, int64_t cost) {
	struct session *session = sessions_find(s, client);
	if (session) {
		session_charge(session, cost);
	}
}

static void sessions_fill_cost(const struct sessions *s, struct session_cost *out) {
	const struct session *session = sessions_find(s, s->costliest);
	const enum client_method method = session ? session->method : s->gone.method;
	const struct session_who gone = { .identity = slice_str(s->gone.identity),
		.local = s->gone.local, .inside = s->gone.inside, .from = &s->gone.from };
	*out = (struct session_cost){ session ? session_who(session) : gone,
		method < CLIENT_METHODS ? client_method_name(method) : NULL, s->most_cost };
}

bool sessions_costliest(struct sessions *s, struct session_cost *out) {
	bool any = s->most_cost > 0;
	if (any && out) {
		sessions_fill_cost(s, out);
	}
	s->most_cost = 0;
	s->loop_turn++;
	return any;
}
