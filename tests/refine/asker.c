/* asker.c: rounds of a coordinator and its answers (section 2). What is no longer remembered is not
 * judged. */
#include "asker.h"

/* ---- requests and rounds ---- */

void asker_asked(struct asker *a, const struct core_request *r, struct instant now) {
	const struct a_granted *g = a_granted_place(a, r->lock_id);
	const bool told = id128_equal(g->lock_id, r->lock_id) && g->client == r->client;
	a->requests[r->id % A_REQUESTS] = (struct a_request){ .id = r->id, .client = r->client,
		.op = r->op, .lock_id = r->lock_id, .arrived = now, .lease = r->lease,
		.deadline_kept = r->deadline_kept, .ordered = r->ordered,
		.told = told, .told_until = g->until,
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

const struct a_round *a_round_find(struct asker *a, uint64_t round) {
	return round_of(a, round);
}

static const message_set asked = MESSAGE_BIT(MESSAGE_PROMISE) | MESSAGE_BIT(MESSAGE_COMMIT) |
	MESSAGE_BIT(MESSAGE_EXTEND) | MESSAGE_BIT(MESSAGE_EXTEND_PERMITS) |
	MESSAGE_BIT(MESSAGE_RELEASE) | MESSAGE_BIT(MESSAGE_HAND_OVER) |
	MESSAGE_BIT(MESSAGE_PREPARE) | MESSAGE_BIT(MESSAGE_WRITE) | MESSAGE_BIT(MESSAGE_ENQUEUE) |
	MESSAGE_BIT(MESSAGE_DOWNGRADE);

static struct a_round *round_begins(struct asker *a, const struct m_node *node, uint32_t to,
	const struct message *m) {
	struct a_round *r = round_place(a, m->round);
	const bool acknowledged = r->round == m->round && r->kind == MESSAGE_RELEASE &&
		a_acknowledged(r);
	*r = (struct a_round){ .round = m->round, .kind = m->kind, .lock_id = m->lock_id,
		.key = m_hash(m->key), .epoch = node->epoch, .hash = node->hash,
		.sent = node->now, .token = m->token, .lease_us = m->lease_us,
		.ballot = m->ballot,
		.prepared = m->prepared, .masters = node->masters, .quorum = node->quorum,
		.number_seen = ++a->begun, .home = to,
		.delay = m->kind == MESSAGE_COMMIT ? m->terms.delay : 0,
		.acknowledged = acknowledged };
	a->words[r - a->rounds] = id128_word(m->lock_id);
	return r;
}

/* ---- what masters said ---- */

bool a_lacked(const struct a_vote *v, uint32_t drift_ppm) {
	if (!v->answered || v->learned || v->status == STATUS_OK || v->status == STATUS_LATER ||
		v->status == STATUS_RECOVERING || v->status == STATUS_EPOCH ||
		v->status == STATUS_FULL || v->status == STATUS_BALLOT ||
		v->status == STATUS_TOO_LONG) {
		return false;
	}
	const span_ns since = instant_elapsed_short(v->at, v->asked_at);
	return v->status == STATUS_RELEASED || v->status == STATUS_BARRED ||
		span_from_us(v->age_us) >= span_shrink(since, drift_ppm);
}

static void hears_of_repair(struct a_vote *v, const struct message *m, struct instant now) {
	if (m->status == STATUS_OK) {
		const bool more = v->status == STATUS_OK && v->token > v->sent_token;
		v->learned = true;
		v->at = now;
		v->token = more ? v->token : v->sent_token;
	} else if (v->status != STATUS_OK && m->status != STATUS_FULL) {
		/* Who has no memory for it goes on lacking it. */
		v->status = m->status;
	}
}

/* The message has arrived twice: the later answer may say more of how long the master lacks it. */
static void hears_twice(struct a_vote *v, const struct message *m, const struct m_node *node) {
	struct a_vote twice = *v;
	twice.status = m->status;
	twice.age_us = m->age_us;
	twice.at = node->now;
	if (v->status != STATUS_OK && a_lacked(&twice, node->drift_ppm)) {
		*v = twice;
	}
}

void asker_hears(struct asker *a, const struct m_node *node, uint32_t from,
	const struct message *m) {
	struct a_round *r = round_of(a, m->round);
	if (r == NULL || from >= node->masters || r->epoch != node->epoch ||
		r->hash != node->hash) {
		return;
	}
	struct a_vote *v = &r->votes[from];
	if (!v->asked && m->kind == MESSAGE_PROMISE_ANSWER) {
		/* A hand-over has given the turn: who only waited takes the promise for it. */
		v->asked = true;
		v->asked_at = node->now;
	}
	/* A turn of a master that is not the home any more is disregarded. */
	if (!v->asked || m->kind == MESSAGE_FETCH_ANSWER || m->kind == MESSAGE_ENQUEUE_ANSWER ||
		(m->kind == MESSAGE_TURN && from != r->home)) {
		return;
	}
	if (m->kind == MESSAGE_LEARN_ANSWER) {
		hears_of_repair(v, m, node->now);
		return;
	}
	if (m->kind == MESSAGE_TURN && r->kind == MESSAGE_PROMISE) {
		/* It has its turn already, so the home is asked again. */
		v->answered = false;
		return;
	}
	/* Who does not vote counts as silent. A master that was told to release the lock lacks it
	 * for good, whatever it said before. */
	v->released = v->released || m->status == STATUS_RELEASED;
	if (m->status == STATUS_RECOVERING || m->status == STATUS_EPOCH) {
		return;
	}
	/* An answer counts once, unless the master is asked again. What it promises it may say
	 * anew, because it is told again what is noted, or promises when a record has ended. */
	if (a_of_kind(r, MESSAGE_EXTEND) && v->answered && v->status == STATUS_OK &&
		m->status == STATUS_OK) {
		/* A message that arrives twice is answered twice, and both are true. */
		v->token = m->token > v->token ? m->token : v->token;
		v->flags |= m->flags & FLAG_HAD;
		return;
	}
	if (v->answered && r->kind != MESSAGE_PROMISE && r->kind != MESSAGE_ENQUEUE &&
		(v->status == STATUS_OK || r->kind == MESSAGE_COMMIT || !v->again) &&
		!(m->status == STATUS_OK && v->status != STATUS_OK)) {
		hears_twice(v, m, node);
		return;
	}
	/* If it has answered twice, because the message has arrived twice, both are true. */
	v->lacked = a_lacked(v, node->drift_ppm);
	v->again = false;
	v->answered = true;
	v->status = m->status;
	v->token = m->token;
	v->noted = m->noted;
	v->value = m_hash(m->value);
	v->ballot = m->ballot;
	v->flags = m->flags;
	v->age_us = m->age_us;
	v->at = node->now;
	/* A home that promises without being asked, with the turn or after it, lacks the lock_id at
	 * that moment. */
	v->asked_at = m->kind == MESSAGE_TURN || r->kind == MESSAGE_ENQUEUE ? node->now
		: v->asked_at;
}

void asker_lied(struct asker *a, const struct message *m) {
	struct a_round *r = round_of(a, m->round);
	if (r) {
		r->lied = true;
	}
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

/* Tells whether a master has reported this value under this ballot. A node that lies may have
 * given masters different values under one. */
static bool reported(const struct a_round *p, struct ballot ballot, uint64_t value) {
	for (uint32_t i = 0; i < p->masters; i++) {
		const struct a_vote *v = &p->votes[i];
		if (v->answered && v->status == STATUS_HELD_SELF && v->value == value &&
			ballot_compare(v->ballot, ballot) == 0) {
			return true;
		}
	}
	return false;
}

/* A repeat of a lock_id that is held brings the newest value that was reported, under its ballot.
 * */
static const char *value_is(const struct a_round *p, const struct message *m, bool asked_again) {
	const struct a_vote *newest = NULL;
	uint32_t lapsed = 0;
	for (uint32_t i = 0; i < p->masters; i++) {
		const struct a_vote *v = &p->votes[i];
		if (v->answered && v->status == STATUS_HELD_SELF && (asked_again || !v->again) &&
			(newest == NULL || ballot_compare(v->ballot, newest->ballot) > 0)) {
			newest = v;
		}
		lapsed += promises(v) && v->status == STATUS_OK &&
			span_from_us(v->age_us) >= instant_elapsed_short(v->at, v->asked_at);
	}
	/* If the coordinator has no memory for a value, the master that has it counts as silent. */
	const bool silent = m->prepared.clock == 0 && lapsed >= p->quorum &&
		ballot_compare(m->ballot, p->ballot) == 0;
	if (newest == NULL || silent) {
		/* What an earlier try was told is not followed. */
		return m->prepared.clock != 0 ? NULL
			: p->kind == MESSAGE_PROMISE && ballot_compare(m->ballot, p->ballot) != 0
				? "a first value has the ballot that was named with the promises"
			: lapsed < p->quorum ? "a first value is for a lock_id that has lapsed"
			: NULL;
	}
	return ballot_compare(m->prepared, newest->ballot) < 0
		? "a repeat brings the newest value that was reported"
		: m->prepared.clock && ballot_compare(m->prepared, newest->ballot) == 0 &&
			(!reported(p, newest->ballot, m_hash(m->value)) ||
			ballot_compare(m->ballot, newest->ballot) != 0)
			? "a repeat never changes the value of a lock_id that is held" : NULL;
}

/* A master that is asked again may count with what it said before, or not. */
static const char *value_right(const struct a_round *p, const struct message *m) {
	const char *wrong = value_is(p, m, true);
	return wrong ? value_is(p, m, false) : NULL;
}

static const char *commit_begins(const struct asker *a, const struct m_node *node,
	const struct message *m) {
	const struct a_round *p = promises_of(a, m);
	if (p == NULL || p->epoch != node->epoch || p->lied || m_is_numbers(&m->terms)) {
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
	if (p == NULL || p->epoch != node->epoch || p->lied) {
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

bool a_of_kind(const struct a_round *r, enum message_kind kind) {
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
	if (r == NULL || r->epoch != node->epoch || r->hash != node->hash || r->lied) {
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
	if (r && m->kind == MESSAGE_ENQUEUE) {
		r->home = to;
	}
	const char *wrong = NULL;
	if (m->kind == MESSAGE_LEARN && r) {
		r->votes[to].sent_token = m->token;
		r->votes[to].asked = true;
	}
	if (!(asked & MESSAGE_BIT(m->kind)) || (m->kind == MESSAGE_RELEASE && m->name)) {
		return NULL;
	}
	const bool entered = r && r->kind == MESSAGE_PROMISE && m->kind == MESSAGE_ENQUEUE;
	const bool same = r && r->epoch == node->epoch && r->hash == node->hash &&
		(a_of_kind(r, m->kind) || entered);
	if (!same) {
		wrong = m->kind == MESSAGE_COMMIT ? commit_begins(a, node, m)
			: m->kind == MESSAGE_WRITE ? write_begins(a, node, m)
			: m->kind == MESSAGE_PROMISE ? begins_again(a, node, m)
			: NULL;
		r = round_begins(a, node, to, m);
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
