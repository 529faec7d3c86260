/* asker.c: rounds of a coordinator and its answers (section 2). What is no longer remembered is not
 * judged. */
#include "asker.h"

#include "pawl/error.h"

/* ---- requests and rounds ---- */

void asker_asked(struct asker *a, const struct core_request *r, struct instant now) {
	a->requests[r->id % A_REQUESTS] = (struct a_request){ .id = r->id, .client = r->client,
		.op = r->op, .lock_id = r->lock_id, .arrived = now, .lease = r->lease,
		.deadline_kept = r->deadline_kept, .ordered = r->ordered,
		.expect_value = r->expect_value, .expect_seq = r->expect_seq,
		.expected = m_hash(r->expected), .expected_seq = r->expected_seq };
}

/* A round may be in one of so many places. A new one takes the place of the oldest. */
#define WAYS 4

static const struct a_round *round_seen(const struct asker *a, uint64_t round) {
	const size_t set = (round ^ round >> 16) * UINT64_C(0x9e3779b97f4a7c15) >> 40 &
		(A_ROUNDS / WAYS - 1);
	const struct a_round *oldest = &a->rounds[set * WAYS];
	for (size_t i = 0; i < WAYS; i++) {
		const struct a_round *r = &a->rounds[set * WAYS + i];
		if (r->round == round) {
			return r;
		}
		oldest = r->number_seen < oldest->number_seen ? r : oldest;
	}
	return oldest;
}

static struct a_round *round_place(struct asker *a, uint64_t round) {
	return a->rounds + (round_seen(a, round) - a->rounds);
}

static struct a_round *round_of(struct asker *a, uint64_t round) {
	struct a_round *r = round_place(a, round);
	return round && r->round == round ? r : NULL;
}

static const message_set asked = MESSAGE_BIT(MESSAGE_PROMISE) | MESSAGE_BIT(MESSAGE_COMMIT) |
	MESSAGE_BIT(MESSAGE_EXTEND) | MESSAGE_BIT(MESSAGE_EXTEND_PERMITS) |
	MESSAGE_BIT(MESSAGE_RELEASE) | MESSAGE_BIT(MESSAGE_HAND_OVER) |
	MESSAGE_BIT(MESSAGE_PREPARE) | MESSAGE_BIT(MESSAGE_WRITE) | MESSAGE_BIT(MESSAGE_ENQUEUE) |
	MESSAGE_BIT(MESSAGE_DOWNGRADE);

static struct a_round *round_begins(struct asker *a, const struct m_node *node,
	const struct message *m) {
	struct a_round *r = round_place(a, m->round);
	*r = (struct a_round){ .round = m->round, .kind = m->kind, .lock_id = m->lock_id,
		.key = m_hash(m->key), .epoch = node->epoch, .hash = node->hash,
		.sent = node->now, .token = m->token, .lease_us = m->lease_us,
		.number = m->number, .value = m_hash(m->value), .ballot = m->ballot,
		.prepared = m->prepared, .masters = node->masters, .quorum = node->quorum,
		.number_seen = ++a->begun,
		.delay = m->kind == MESSAGE_COMMIT ? m->terms.delay : 0 };
	a->words[r - a->rounds] = id128_word(m->lock_id);
	return r;
}

/* ---- what masters said ---- */

static uint32_t count(const struct a_round *r, bool (*is)(const struct a_round *r,
	const struct a_vote *v)) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		n += r->votes[i].answered && is(r, &r->votes[i]);
	}
	return n;
}

static bool is_any(const struct a_round *r, const struct a_vote *v) {
	(void)r, (void)v;
	return true;
}

/* Section 1: for commits and extensions only before request_timeout has passed. */
static bool in_time(const struct m_node *node, const struct a_round *r, const struct a_vote *v) {
	return instant_elapsed_long(v->at, r->sent) < node->request_timeout;
}

void asker_hears(struct asker *a, const struct m_node *node, uint32_t from,
	const struct message *m) {
	struct a_round *r = round_of(a, m->round);
	if (r == NULL || from >= node->masters || r->epoch != node->epoch ||
		r->hash != node->hash) {
		return;
	}
	struct a_vote *v = &r->votes[from];
	const bool learn = m->kind == MESSAGE_LEARN_ANSWER;
	if (!v->asked && m->kind == MESSAGE_PROMISE_ANSWER) {
		/* A hand-over has given the turn: who only waited takes the promise for it. */
		v->asked = true;
		v->asked_at = node->now;
	}
	if (!v->asked || m->kind == MESSAGE_FETCH_ANSWER || m->kind == MESSAGE_ENQUEUE_ANSWER) {
		return;
	}
	if (learn) {
		v->learned = v->learned || m->status == STATUS_OK;
		v->at = m->status == STATUS_OK ? node->now : v->at;
		if (m->status == STATUS_OK) {
			const bool more = v->status == STATUS_OK;
			v->token = more && v->token > v->sent_token ? v->token : v->sent_token;
			v->binding = more && v->binding > v->sent_binding ? v->binding
				: v->sent_binding;
		} else {
			v->status = v->status == STATUS_OK ? STATUS_OK : m->status;
		}
		return;
	}
	/* An answer counts once, unless the master is asked again. What it promises it may say anew,
	 * because it is told again what is noted, or promises when a record has ended. */
	if (v->answered && r->kind != MESSAGE_PROMISE && r->kind != MESSAGE_ENQUEUE &&
		(v->status == STATUS_OK || r->kind == MESSAGE_COMMIT || !v->again)) {
		return;
	}
	v->again = false;
	v->answered = true;
	v->status = m->status;
	v->token = m->token;
	v->noted = m->noted;
	v->value = m_hash(m->value);
	v->ballot = m->ballot;
	v->flags = m->flags;
	v->binding = m->terms.binding;
	v->age_us = m->age_us;
	v->at = node->now;
	/* A home that promises with the turn lacks the lock_id at that moment. */
	v->asked_at = m->kind == MESSAGE_TURN ? node->now : v->asked_at;
}

/* What the master has promised to the attempt does not count any more. */
static void promise_ends(struct asker *a, uint32_t master, uint64_t attempt) {
	struct a_round *r = round_of(a, attempt);
	if (r && (r->kind == MESSAGE_PROMISE || r->kind == MESSAGE_ENQUEUE) &&
		master < r->masters) {
		r->votes[master].answered = false;
	}
}

void asker_displaced(struct asker *a, uint32_t from, const struct message *m) {
	promise_ends(a, from, m->attempt);
}

/* ---- the commit ---- */

/* The latest round of promises of the attempt; its number is the one before, or a renewed one. */
static const struct a_round *promises_of(const struct asker *a, const struct message *m) {
	const struct a_round *best = NULL;
	for (uint64_t i = 1; i <= 3 && best == NULL; i++) {
		const uint64_t round = m->round - i;
		const struct a_round *r = round_seen(a, round);
		if (r->round == round &&
			(r->kind == MESSAGE_PROMISE || r->kind == MESSAGE_ENQUEUE) &&
			id128_equal(r->lock_id, m->lock_id)) {
			best = r;
		}
	}
	return best;
}

static bool promises(const struct a_vote *v) {
	return v->answered && (v->status == STATUS_OK || v->status == STATUS_HELD_SELF);
}

static const char *token_right(const struct m_node *node, const struct a_round *p,
	const struct message *m) {
	uint32_t above = 0, same = 0;
	bool higher = false;
	for (uint32_t i = 0; i < p->masters; i++) {
		const struct a_vote *v = &p->votes[i];
		if (!promises(v)) {
			continue;
		}
		const uint64_t token = v->status == STATUS_HELD_SELF ? v->token : 0;
		above += m->token > v->noted && m->token > token;
		same += token == m->token && m->token > v->noted;
		higher = higher || token > m->token;
	}
	if (above >= p->quorum && m->token > node->clock) {
		return NULL;
	}
	return same >= p->quorum && !higher ? NULL
		: above < p->quorum
			? "the token of a commit is above what q masters have reported, or theirs"
			: "the token of a commit is above the coordinator's clock";
}

/* A repeat of a lock_id that is held brings the newest value that was reported, under its ballot. */
static const char *value_right(const struct a_round *p, const struct message *m) {
	const struct a_vote *newest = NULL;
	uint32_t lapsed = 0;
	for (uint32_t i = 0; i < p->masters; i++) {
		const struct a_vote *v = &p->votes[i];
		if (v->answered && v->status == STATUS_HELD_SELF &&
			(newest == NULL || ballot_compare(v->ballot, newest->ballot) > 0)) {
			newest = v;
		}
		lapsed += promises(v) && v->status == STATUS_OK &&
			span_from_us(v->age_us) >= instant_elapsed_short(v->at, v->asked_at);
	}
	if (newest == NULL) {
		/* What an earlier try was told is not followed. */
		return m->prepared.clock != 0 ? NULL
			: p->kind == MESSAGE_PROMISE && ballot_compare(m->ballot, p->ballot) != 0
				? "a first value has the ballot that was named with the promises"
			: lapsed < p->quorum ? "a first value is for a lock_id that has lapsed"
			: NULL;
	}
	/* A master that is asked again may count with what it said before, or not. */
	return newest->again ? NULL
		: ballot_compare(m->prepared, newest->ballot) < 0
		? "a repeat brings the newest value that was reported"
		: m->prepared.clock && ballot_compare(m->prepared, newest->ballot) == 0 &&
			(m_hash(m->value) != newest->value ||
			ballot_compare(m->ballot, newest->ballot) != 0)
			? "a repeat never changes the value of a lock_id that is held" : NULL;
}

static const char *commit_begins(const struct asker *a, const struct m_node *node,
	const struct message *m) {
	const struct a_round *p = promises_of(a, m);
	if (p == NULL || p->epoch != node->epoch || m_is_numbers(&m->terms)) {
		return NULL;
	}
	uint32_t all = 0;
	for (uint32_t i = 0; i < p->masters; i++) {
		all += promises(&p->votes[i]);
	}
	if (all < p->quorum) {
		return "an attempt commits with the promises of q masters";
	}
	const char *wrong = token_right(node, p, m);
	return wrong ? wrong : value_right(p, m);
}

/* ---- the write of an update ---- */

static const struct a_round *prepares_of(const struct asker *a, const struct message *m) {
	const struct a_round *r = round_seen(a, m->round - 1);
	return r->round == m->round - 1 && r->kind == MESSAGE_PREPARE &&
		id128_equal(r->lock_id, m->lock_id) ? r : NULL;
}

static const char *write_begins(const struct asker *a, const struct m_node *node,
	const struct message *m) {
	const struct a_round *p = prepares_of(a, m);
	if (p == NULL || p->epoch != node->epoch) {
		return NULL;
	}
	uint32_t prepared = 0;
	const struct a_vote *newest = NULL;
	for (uint32_t i = 0; i < p->masters; i++) {
		const struct a_vote *v = &p->votes[i];
		if (v->answered && v->status == STATUS_OK) {
			prepared++;
			newest = newest == NULL || ballot_compare(v->ballot, newest->ballot) > 0
				? v : newest;
		}
	}
	struct ballot plain = m->ballot;
	plain.boot &= ~BALLOT_LAST;
	if (ballot_compare(plain, p->ballot) != 0) {
		return "a write is under the ballot of its Prepare";
	}
	if (prepared < p->quorum || newest == NULL) {
		return "a write follows q answers to its Prepare";
	}
	return (newest->ballot.boot & BALLOT_LAST) && !(m->ballot.boot & BALLOT_LAST)
		? "whoever finds a last value writes it back as a last one" : NULL;
}

static bool of_kind(const struct a_round *r, enum message_kind kind) {
	return r->kind == kind ||
		(kind == MESSAGE_EXTEND && r->kind == MESSAGE_EXTEND_PERMITS) ||
		(kind == MESSAGE_RELEASE && r->kind == MESSAGE_HAND_OVER) ||
		(kind == MESSAGE_HAND_OVER && r->kind == MESSAGE_RELEASE);
}

static void rolls_back(struct asker *a, uint64_t name) {
	for (uint32_t i = 0; i < A_COMMITS; i++) {
		if (a->commits[i].name == name) {
			a->commits[i].name = 0;
		}
	}
}

/* Section 2, Acquire: what a commit has left elsewhere is rolled back under its name, before the
 * attempt begins again. */
static const char *begins_again(struct asker *a, const struct m_node *node,
	const struct message *m) {
	const struct a_commit *c = &a->commits[(m->round >> 16) % A_COMMITS];
	const struct a_round *r = c->op == m->round >> 16 && c->name ? round_of(a, c->round) : NULL;
	if (r == NULL || r->epoch != node->epoch || r->hash != node->hash) {
		return NULL;
	}
	for (uint32_t i = 0; i < r->masters; i++) {
		if (r->votes[i].answered && r->votes[i].status == STATUS_OK) {
			return "what a refused commit has left is rolled back under its name";
		}
	}
	return NULL;
}

const char *asker_says(struct asker *a, const struct m_node *node, uint32_t to,
	const struct message *m) {
	struct a_commit *commit = &a->commits[(m->round >> 16) % A_COMMITS];
	if (m->kind == MESSAGE_WITHDRAW) {
		promise_ends(a, to, m->attempt);
	} else if (m->kind == MESSAGE_RELEASE && m->name) {
		rolls_back(a, m->name);
	} else if (m->kind == MESSAGE_COMMIT) {
		*commit = (struct a_commit){ m->round >> 16, m->name, m->round };
	}
	if (to >= node->masters || m->round == 0) {
		return NULL;
	}
	struct a_round *r = round_of(a, m->round);
	if (r && r->kind == MESSAGE_ENQUEUE && m->kind == MESSAGE_PROMISE) {
		/* The home has given the turn, and counts with what it said, or will say. */
		r->kind = MESSAGE_PROMISE;
	}
	if (r && r->kind == MESSAGE_PROMISE && m->kind == MESSAGE_PROMISE) {
		r->ballot = m->ballot;
	}
	const char *wrong = NULL;
	if (m->kind == MESSAGE_LEARN && r) {
		r->votes[to].sent_token = m->token;
		r->votes[to].sent_binding = m->terms.binding;
		r->votes[to].asked = true;
	}
	if (!(asked & MESSAGE_BIT(m->kind)) || (m->kind == MESSAGE_RELEASE && m->name)) {
		return NULL;
	}
	const bool entered = r && r->kind == MESSAGE_PROMISE && m->kind == MESSAGE_ENQUEUE;
	if (r == NULL || !(of_kind(r, m->kind) || entered) || r->epoch != node->epoch || r->hash != node->hash) {
		wrong = m->kind == MESSAGE_COMMIT ? commit_begins(a, node, m)
			: m->kind == MESSAGE_WRITE ? write_begins(a, node, m)
			: m->kind == MESSAGE_PROMISE ? begins_again(a, node, m)
			: NULL;
		r = round_begins(a, node, m);
	}
	if (m->kind == MESSAGE_COMMIT && r->token != m->token) {
		wrong = wrong ? wrong : "all masters are asked for the same token";
	}
	struct a_vote *v = &r->votes[to];
	v->again = v->asked;
	v->asked = true;
	v->asked_at = node->now;
	return wrong;
}

/* ---- answers ---- */

static const struct a_request *request_of(const struct asker *a, const struct core_reply *reply) {
	const struct a_request *q = &a->requests[reply->id % A_REQUESTS];
	return q->id == reply->id && q->client == reply->client ? q : NULL;
}

static struct a_granted *granted_place(struct asker *a, struct id128 lock_id) {
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
		if (r->round && of_kind(r, kind) && id128_equal(r->lock_id, s->reply->lock_id)) {
			*any = true;
			if (suffices(s, r)) {
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

/* Of a caller that keeps no deadline only masters that had the lock count, unless this node itself has
 * told it over the same connection that it holds the lock, and its deadline is not past. */
static bool extension_suffices(const struct a_search *s, const struct a_round *r) {
	const struct a_granted *g = granted_place(s->asker, r->lock_id);
	const bool told = id128_equal(g->lock_id, r->lock_id) &&
		g->client == s->reply->client && !s->request->ordered;
	uint32_t n = 0, under = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		const struct a_vote *v = &r->votes[i];
		const bool accepted = (v->answered && v->status == STATUS_OK) || v->learned;
		const bool had = v->answered && (v->flags & FLAG_HAD);
		const bool counts = s->request->deadline_kept || had ||
			(told && !instant_distrusted(v->at, g->until));
		n += accepted && counts && in_time(s->node, r, v);
		under += accepted && v->token >= s->reply->token;
	}
	return n >= r->quorum && under >= r->quorum &&
		s->reply->valid <= span_shrink(lease_of(s, r), s->node->drift_ppm);
}

/* Of each master that lacks it: it lacked it already when it was asked. */
static bool loss_is_certain(const struct a_search *s, const struct a_round *r) {
	uint32_t lacking = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		const struct a_vote *v = &r->votes[i];
		if (!v->answered || v->learned || v->status == STATUS_OK ||
			v->status == STATUS_LATER || v->status == STATUS_RECOVERING ||
			v->status == STATUS_EPOCH || v->status == STATUS_FULL ||
			v->status == STATUS_BALLOT || v->status == STATUS_TOO_LONG) {
			continue;
		}
		const span_ns since = instant_elapsed_short(v->at, v->asked_at);
		lacking += v->status == STATUS_RELEASED || v->status == STATUS_BARRED ||
			span_from_us(v->age_us) >= span_shrink(since, s->node->drift_ppm);
	}
	return lacking > r->masters - r->quorum && count(r, is_any) >= r->quorum;
}

static bool write_suffices(const struct a_search *s, const struct a_round *r) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		n += r->votes[i].answered && r->votes[i].status == STATUS_OK;
	}
	return n >= r->quorum && (s->reply->op != CORE_UPDATE ||
		ballot_compare(s->reply->value_seq, r->ballot) == 0 || s->reply->error);
}

static bool release_suffices(const struct a_search *s, const struct a_round *r) {
	(void)s;
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->masters; i++) {
		n += r->votes[i].answered && r->votes[i].status == STATUS_OK;
	}
	return n >= r->quorum;
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

/* From now on this node vouches for the lock over this connection. */
static void grant(const struct a_search *s) {
	struct a_granted *g = granted_place(s->asker, s->reply->lock_id);
	const struct instant until = instant_add(s->node->now, s->reply->valid);
	const bool same = id128_equal(g->lock_id, s->reply->lock_id);
	*g = (struct a_granted){ s->reply->lock_id, s->reply->client,
		same ? instant_later(g->until, until) : until };
}

const char *asker_answers(struct asker *a, const struct m_node *node,
	const struct core_reply *reply) {
	const struct a_request *request = request_of(a, reply);
	const struct a_search s = { a, node, reply, request };
	bool any;
	if (request == NULL || reply->terms.of == 1 || m_is_numbers(&reply->terms)) {
		return NULL;
	}
	const char *wrong = NULL;
	switch ((int)reply->op) {
	case CORE_ACQUIRE:
		wrong = reply->error == 0 ? held_right(&s) : NULL;
		if (reply->error == 0) {
			grant(&s);
		}
		return wrong;
	case CORE_EXTEND:
		wrong = reply->error == 0 ? extended_right(&s) : NULL;
		if (reply->error == 0) {
			grant(&s);
		}
		return wrong ? wrong
			: reply->error == PAWL_ELOST ? lost_right(&s, MESSAGE_EXTEND)
			: NULL;
	case CORE_UPDATE:
		return reply->error == PAWL_ELOST ? lost_right(&s, MESSAGE_PREPARE)
			: (reply->error == 0 || reply->error == PAWL_EMISMATCH) &&
				!found(&s, MESSAGE_WRITE, &any, write_suffices) && any
				? "an update, or a mismatch, is answered when q masters have the write"
			: NULL;
	case CORE_RELEASE:
		/* One that finds a last value, or no lock, has released nothing. */
		return reply->error == 0 && reply->released && !found(&s, MESSAGE_RELEASE, &any, release_suffices) &&
			any ? "a release is answered once q masters have acknowledged it" : NULL;
	default:
		return NULL;
	}
}
