/* asker_answers.c: what a coordinator may answer, given what the masters have said (section 2). */
#include "asker.h"

#include "pawl/error.h"

/* Section 1: for commits and extensions only before request_timeout has passed. */
static bool in_time(const struct m_node *node, const struct a_round *r, const struct a_vote *v) {
	return instant_elapsed_long(v->at, r->sent) < node->request_timeout;
}

static const struct a_request *request_of(const struct asker *a, const struct core_reply *reply) {
	const struct a_request *q = &a->requests[reply->id % A_REQUESTS];
	return q->id == reply->id && q->client == reply->client ? q : NULL;
}

struct a_granted *a_granted_place(struct asker *a, struct id128 lock_id) {
	return &a->granted[id128_word(lock_id) % A_GRANTED];
}

struct a_search {
	struct asker *asker;
	const struct m_node *node;
	const struct core_reply *reply;
	const struct a_request *request;
};

/* Looks for a round of the lock that justifies the answer. `any` says whether there is any round of
 * this kind since the request came. */
static bool found(const struct a_search *s, enum message_kind kind, bool *any,
	bool (*suffices)(const struct a_search *s, const struct a_round *r)) {
	*any = false;
	for (size_t i = 0; i < A_ROUNDS; i++) {
		const struct a_round *r = &s->asker->rounds[i];
		if (s->asker->words[i] != id128_word(s->reply->lock_id)) {
			continue;
		}
		if (r->round && a_of_kind(r, kind) && id128_equal(r->lock_id, s->reply->lock_id)) {
			*any = true;
			if (r->lied || suffices(s, r)) {
				return true;
			}
		}
	}
	return false;
}

static bool q_accepted(const struct a_search *s, const struct a_round *r) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		const struct a_vote *v = &r->votes[i];
		n += v->answered && v->status == STATUS_OK && in_time(s->node, r, v);
	}
	return n >= r->quorum;
}

/* Whoever joins an attempt has the lease that it asks for. */
static span_ns lease_of(const struct a_search *s, const struct a_round *r) {
	/* Microseconds are rounded down in messages. */
	const span_ns asked_for =
		clock_saturating_add(span_from_us(r->lease_us + 1), -r->delay);
	return asked_for > s->request->lease ? asked_for : s->request->lease;
}

/* The lock is believed until t0 + lease * (1 - drift), and valid counts from the request on. */
static bool commit_suffices(const struct a_search *s, const struct a_round *r) {
	const span_ns waited = instant_elapsed_long(r->sent, s->request->arrived);
	return r->token == s->reply->token && q_accepted(s, r) && s->reply->valid <=
		span_shrink(clock_saturating_add(waited, lease_of(s, r)), s->node->drift_ppm);
}

/* Of a caller that keeps no deadline only masters that had the lock count, unless this node itself
 * has told it over the same connection that it holds the lock, and its deadline is not past. */
static bool extension_suffices(const struct a_search *s, const struct a_round *r) {
	const struct a_granted *g = a_granted_place(s->asker, r->lock_id);
	const bool now_told = id128_equal(g->lock_id, r->lock_id) &&
		g->client == s->reply->client;
	const struct instant until = now_told ? g->until : s->request->told_until;
	const bool told = (now_told || s->request->told) && !s->request->ordered;
	uint32_t n = 0, under = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		const struct a_vote *v = &r->votes[i];
		const bool accepted = (v->answered && v->status == STATUS_OK) || v->learned;
		const bool had = v->answered && (v->flags & FLAG_HAD);
		const bool counts = s->request->deadline_kept || had ||
			(told && !instant_distrusted(v->at, until));
		n += accepted && counts && in_time(s->node, r, v);
		under += accepted && v->token >= s->reply->token;
	}
	return n >= r->quorum && under >= r->quorum &&
		s->reply->valid <= span_shrink(lease_of(s, r), s->node->drift_ppm);
}

/* Of each master that lacks it: it lacked it already when it was asked. */
static bool loss_is_certain(const struct a_search *s, const struct a_round *r) {
	uint32_t lacking = 0, answered = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		const struct a_vote *v = &r->votes[i];
		answered += v->answered;
		if (v->released) {
			lacking++;
			continue;
		}
		/* What came in the same step may have come after the node had answered. */
		lacking += a_lacked(v, s->node->drift_ppm) ||
			(v->lacked && m_instant_same(v->at, s->node->now));
	}
	return lacking > r->masters - r->quorum && answered >= r->quorum;
}

static bool q_answered(const struct a_round *r) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		n += r->votes[i].answered && r->votes[i].status == STATUS_OK;
	}
	return n >= r->quorum;
}

static bool write_suffices(const struct a_search *s, const struct a_round *r) {
	return q_answered(r) && (s->reply->op != CORE_UPDATE ||
		ballot_compare(s->reply->value_seq, r->ballot) == 0 || s->reply->error);
}

bool a_acknowledged(const struct a_round *r) {
	return r->acknowledged || q_answered(r);
}

static bool release_suffices(const struct a_search *s, const struct a_round *r) {
	(void)s;
	return a_acknowledged(r);
}

/* The node itself has released the lock, or was told to (section 2, Release). */
static bool was_released(const struct a_search *s, const struct a_round *r) {
	return instant_expired(r->sent, s->request->arrived);
}

static const char *held_right(const struct a_search *s) {
	bool any;
	return found(s, MESSAGE_COMMIT, &any, commit_suffices) || !any ? NULL
		: "held means that q masters accepted, and is valid from when they were asked";
}

static const char *extended_right(const struct a_search *s) {
	bool any;
	return found(s, MESSAGE_EXTEND, &any, extension_suffices) || !any ? NULL
		: "an extension needs q masters that have accepted it under one token";
}

static const char *lost_right(const struct a_search *s, enum message_kind kind) {
	bool any, released;
	if (found(s, kind, &any, loss_is_certain) || !any ||
		found(s, MESSAGE_RELEASE, &released, was_released)) {
		return NULL;
	}
	return "lost is said when more than n - q masters lacked the lock when they were asked";
}

static const char *written_right(const struct a_search *s) {
	bool any;
	return found(s, MESSAGE_WRITE, &any, write_suffices) || !any ? NULL
		: "an update, or a mismatch, is answered when q masters have the write";
}

static const char *released_right(const struct a_search *s) {
	bool any;
	return found(s, MESSAGE_RELEASE, &any, release_suffices) || !any ? NULL
		: "a release is answered once q masters have acknowledged it";
}

/* From now on this node vouches for the lock over this connection. */
static void grant(const struct a_search *s) {
	struct a_granted *g = a_granted_place(s->asker, s->reply->lock_id);
	const struct instant until = instant_add(s->node->now, s->reply->valid);
	const bool same = id128_equal(g->lock_id, s->reply->lock_id);
	*g = (struct a_granted){ s->reply->lock_id, s->reply->client,
		same ? instant_later(g->until, until) : until };
}

const char *asker_answers(struct asker *a, const struct m_node *node,
	const struct core_reply *reply) {
	const struct a_request *request = request_of(a, reply);
	const struct a_search s = { a, node, reply, request };
	if (request == NULL || reply->terms.of == 1 || m_is_numbers(&reply->terms)) {
		return NULL;
	}
	const char *wrong = NULL;
	if (reply->op == CORE_ACQUIRE && reply->error == 0) {
		wrong = held_right(&s);
		grant(&s);
	} else if (reply->op == CORE_EXTEND && reply->error == 0) {
		wrong = extended_right(&s);
		grant(&s);
	} else if (reply->op == CORE_EXTEND && reply->error == PAWL_ELOST) {
		wrong = lost_right(&s, MESSAGE_EXTEND);
	} else if (reply->op == CORE_UPDATE && reply->error == PAWL_ELOST) {
		wrong = lost_right(&s, MESSAGE_PREPARE);
	} else if (reply->op == CORE_UPDATE &&
		(reply->error == 0 || reply->error == PAWL_EMISMATCH)) {
		wrong = written_right(&s);
	} else if (reply->op == CORE_RELEASE && reply->error == 0 && reply->released) {
		/* One that finds a last value, or no lock, has released nothing. */
		wrong = released_right(&s);
	}
	return wrong;
}
