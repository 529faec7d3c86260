/* sessions_cost.c: charges connections, and notes which of them costs most in a turn of the loop,
 * so that the log can name it when the turn was long.
 */
#include "sessions_impl.h"

#include <stdio.h>

/* How many requests under way or watches cost as much to forget as a simple request. */
#define FORGOTTEN_A_COST 8

static void session_begin_turn(struct session *session) {
	if (session->cost_turn != session->all->loop_turn) {
		session->cost_turn = session->all->loop_turn;
		session->cost = 0;
		session->method = NULL;
	}
}

void session_note_cost(struct session *session, int64_t cost) {
	struct sessions *s = session->all;
	session_begin_turn(session);
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

void session_note_method(struct session *session, enum client_method method) {
	session_begin_turn(session);
	session->method = client_method_name(method);
}

void session_note_end(struct session *session) {
	struct sessions *s = session->all;
	session_note_cost(session, (int64_t)(session_weight(session) / FORGOTTEN_A_COST));
	if (s->costliest == session->id) {
		snprintf(s->gone.identity, sizeof s->gone.identity, "%s", session->identity);
		s->gone.from = session->from;
		s->gone.method = session->method;
		s->gone.local = session->local;
		s->gone.inside = session->inside;
	}
}

static void sessions_fill_cost(const struct sessions *s, struct session_cost *out) {
	const struct session *session = sessions_find(s, s->costliest);
	if (session) {
		*out = (struct session_cost){ session_who(session), session->method, s->most_cost };
		return;
	}
	*out = (struct session_cost){ { .identity = slice_str(s->gone.identity),
		.local = s->gone.local, .inside = s->gone.inside, .from = &s->gone.from },
		s->gone.method, s->most_cost };
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
