/* machine_accept.c: promises, commits and records that are learned (section 2, What a master
 * accepts, and Acquire). */
#include "machine.h"

/* R4 for whatever a master answers as accepted. */
static const char *may_accept(const struct m_step *s) {
	return !s->node->votes ? "R4: a master that does not vote accepts nothing"
		: !s->in_epoch ? "R4: nothing is accepted under another epoch or hash"
		: NULL;
}

/* ---- promise ---- */

/* R1, as far as promises go. Those for locks that do not exclude each other go together if masters,
 * or one coordinator, ask for them (section 5). */
static bool promised_to_another(const struct m_step *s) {
	for (uint32_t i = 0; i < s->before->promise_count; i++) {
		const struct m_promise *p = &s->before->promises[i];
		const struct terms *t = &s->m->terms;
		if (id128_equal(p->lock_id, s->m->lock_id)) {
			continue;
		}
		if (t->of != p->terms.of || t->of == MODE_EXCLUSIVE ||
			(p->from != s->from && !s->from_master)) {
			return true;
		}
	}
	return false;
}

static const char *promised(const struct m_step *s) {
	const struct message *m = s->m;
	const struct m_promise *was = m_promise_of(s->before, m->lock_id);
	const struct m_promise *now = m_promise_of(s->after, m->lock_id);
	const bool numbers = m_is_numbers(&m->terms);
	if (m_r3(s, 0) || s->ended.barred) {
		return "R3: the lock_id was released";
	}
	if (m_record_of(s->before, m->lock_id)) {
		return "a held record never becomes a promise";
	}
	if (m_contested(s->before) && !(numbers && m_numbered(s->before))) {
		return "section 4: a contested key accepts no promise";
	}
	if (!numbers && m_in_the_way(s->before, m->lock_id, &m->terms)) {
		return "R1: a promise while the record of another lock_id is live";
	}
	if (promised_to_another(s)) {
		return "R1: a promise while another lock_id is promised";
	}
	if (now == NULL || (!s->promised_between &&
		(now->from != s->from || now->attempt != m->attempt))) {
		return "a promise has the name of the attempt that asked last";
	}
	const struct instant end = instant_add(s->node->now, s->node->promise_timeout);
	if (!m_instant_same(now->end, was ? instant_later(was->end, end) : end)) {
		return "a promise lasts for promise_timeout, or has the later end";
	}
	if (was ? now->noted != was->noted : !m_notes_clock(s, now->noted)) {
		return "a promise notes the clock, and keeps what it noted if asked for again";
	}
	if (numbers ? s->answer->noted < now->noted : s->answer->noted != now->noted) {
		return "a master reports what it noted";
	}
	if (ballot_compare(now->first, m->ballot) < 0 ||
		(was && ballot_compare(now->first, was->first) < 0)) {
		return "a promise keeps the highest ballot that was named for its lock_id";
	}
	/* The home names the one that it has drawn, if it gives the turn. */
	if (m->ballot.clock && !s->promised_between &&
		ballot_compare(s->answer->ballot, m->ballot) != 0 &&
		!((m->flags & FLAG_HOME) &&
			ballot_compare(s->answer->ballot, now->first) == 0)) {
		return "a promise is answered with the ballot that was named for it";
	}
	return NULL;
}

static const char *held_by_yourself(const struct m_step *s) {
	const struct m_record *own = m_record_of(s->before, s->m->lock_id);
	if (own == NULL) {
		return "a master said 'held by yourself' without the record";
	}
	if (m_promise_of(s->after, s->m->lock_id)) {
		return "a held record never becomes a promise";
	}
	if (s->answer->token != own->token || s->answer->noted != own->noted ||
		ballot_compare(s->answer->ballot, own->wrote) != 0 ||
		m_hash(s->answer->value) != own->value) {
		return "'held by yourself' reports the record's token, noted, value and ballot";
	}
	return NULL;
}

const char *machine_promise(const struct m_step *s) {
	const struct message *m = s->m;
	const struct message *a = s->answer;
	const bool grants = a && (a->status == STATUS_OK || a->status == STATUS_HELD_SELF);
	const char *wrong = grants ? may_accept(s) : NULL;
	if (wrong == NULL && a && a->status == STATUS_OK) {
		wrong = promised(s);
	} else if (wrong == NULL && a && a->status == STATUS_HELD_SELF) {
		wrong = held_by_yourself(s);
	} else if (wrong == NULL) {
		const struct m_promise *now = m_promise_of(s->after, m->lock_id);
		if (now && now->from == s->from && m_promise_of(s->before, m->lock_id) && a) {
			wrong = "a refusal drops what was promised to the same request";
		}
	}
	wrong = wrong ? wrong : m_own_kept(s);
	return wrong ? wrong : m_others_kept(s->node, s->before, s->after, m->lock_id, NULL);
}

/* ---- withdraw ---- */

const char *machine_withdraw(const struct m_step *s) {
	const struct m_promise *was = m_promise_of(s->before, s->m->lock_id);
	const struct m_promise *now = m_promise_of(s->after, s->m->lock_id);
	const char *wrong = m_own_kept(s);
	if (wrong) {
		return "a withdraw drops no held record";
	}
	if (was && now == NULL && (was->from != s->from || was->attempt != s->m->attempt)) {
		return "a withdraw drops the promise of another attempt";
	}
	/* If the request has a second entry, that one may have the turn. */
	if (was && now && s->m->attempt && was->from == s->from && was->attempt == s->m->attempt &&
		now->from == was->from && now->attempt == was->attempt && s->in_epoch &&
		s->node->votes) {
		return "a withdraw drops the promise that the attempt made";
	}
	return m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}

/* ---- commit ---- */

static bool within(struct permits a, struct permits all) {
	return (a.w[0] & ~all.w[0]) == 0 && (a.w[1] & ~all.w[1]) == 0;
}

/* R2. For permits, what was noted depends on the numbers (section 10), so that the promise's first
 * noted is the least that counts. */
static bool in_order(const struct m_step *s, const struct m_record *own,
	const struct m_promise *promise) {
	const bool known = own && within(s->m->terms.set, own->terms.set);
	uint64_t floor = known ? own->noted : own ? s->node->clock
		: promise ? promise->noted : s->node->clock;
	for (uint32_t i = 0; i < s->before->record_count; i++) {
		const struct m_record *other = &s->before->records[i];
		if (other == own) {
			continue;
		}
		if (own && s->m->token > own->token && other->token > floor) {
			floor = other->token;
		} else if (!own && other->token == s->m->token) {
			return false;
		}
	}
	return s->m->token > floor;
}

static const char *commit_rules(const struct m_step *s, const struct m_record *own,
	const struct m_promise *promise) {
	const struct message *m = s->m;
	const struct terms *t = &m->terms;
	if (span_from_us(m->lease_us) > s->node->max_lease) {
		return "R5: the duration is above max_lease";
	}
	if (m_r3(s, own && own->terms.binding > t->binding ? own->terms.binding : t->binding) ||
		s->ended.barred) {
		return "R3: the lock_id was released, or ended with its connection";
	}
	if (m_contested(s->before) && !(m_is_numbers(t) && m_numbered(s->before))) {
		return "section 4: a contested key accepts no commit";
	}
	if (m_in_the_way(s->before, m->lock_id, t)) {
		return "R1: a commit while the record of another lock_id is live";
	}
	if (!in_order(s, own, promise)) {
		return "R2: the token is not above what was noted";
	}
	if (own && own->identity != m_hash(m->identity)) {
		return "a lock_id belongs to the identity that came first";
	}
	if (own && ballot_compare(own->wrote, m->prepared) > 0 && own->value != m_hash(m->value)) {
		return "a repeat never changes the value: the value has been updated since";
	}
	if (m->prepared.clock == 0) {
		const struct ballot first = promise ? promise->first : (struct ballot){ 0, 0, 0 };
		const struct ballot noted = ballot_later(s->lost,
			own ? ballot_later(own->prepared, first) : first);
		if (ballot_compare(m->ballot, noted) < 0) {
			return "a commit with a first value below a ballot that was noted is stale";
		}
	}
	return NULL;
}

/* What every acceptance does to the record: it keeps the higher token, the later end and the
 * greater binding. */
static const char *merged(const struct m_step *s, const struct m_record *own,
	const struct m_record *now) {
	const struct message *m = s->m;
	const struct instant end = m_end_of(s->node, m->lease_us);
	if (now == NULL) {
		return m->lease_us == 0 && own == NULL ? NULL
			: "an acceptance makes the record held";
	}
	if (now->token != (own && own->token > m->token ? own->token : m->token)) {
		return "an acceptance raises the record's token to that of the message";
	}
	if (s->clock_after < now->token) {
		return "an acceptance raises the clock to the token";
	}
	if (!m_instant_same(now->end, own ? instant_later(own->end, end) : end)) {
		return "an acceptance keeps the later end";
	}
	if (now->terms.binding != (own && own->terms.binding > m->terms.binding
		? own->terms.binding : m->terms.binding)) {
		return "where copies meet, the greater binding counts";
	}
	if (now->barred && !(own && own->barred) && !(m->flags & FLAG_BARRED)) {
		return "an acceptance bars nothing";
	}
	return now->name != (own == NULL || own->name == m->name ? m->name : 0)
		? "a record rests on a name as long as all that was accepted had it" : NULL;
}

static const char *noted_right(const struct m_step *s, const struct m_record *own,
	const struct m_promise *promise, const struct m_record *now) {
	if (m_is_numbers(&now->terms)) {
		return NULL;
	}
	if (own || promise ? now->noted != (own ? own->noted : promise->noted)
		: !m_notes_clock(s, now->noted)) {
		return "a record keeps what was noted for its lock_id, or notes the clock";
	}
	if (promise && ballot_compare(now->prepared, promise->first) < 0) {
		return "the record that takes a promise's place has noted its ballot";
	}
	if (own && ballot_compare(now->prepared, own->prepared) < 0) {
		return "the highest ballot that was noted stays";
	}
	return ballot_compare(now->prepared, now->wrote) < 0
		? "a master that takes a value has noted its ballot" : NULL;
}

static const char *refused_commit(const struct m_step *s, const struct m_record *own,
	const struct m_promise *promise) {
	const char *wrong = m_own_kept(s);
	if (wrong == NULL && s->answer && s->answer->status == STATUS_STALE) {
		if (s->answer->token < s->node->clock || s->answer->token > s->clock_after) {
			wrong = "a commit that is refused as stale is told the clock";
		}
	} else if (wrong == NULL && s->answer && s->answer->status == STATUS_HELD &&
		!m_in_the_way(s->before, s->m->lock_id, &s->m->terms)) {
		wrong = "a commit is refused for a record that is not there";
	} else if (wrong == NULL && s->answer && s->answer->status == STATUS_HELD_SELF && !own) {
		wrong = "a commit is refused for a value that is not there";
	}
	(void)promise;
	return wrong ? wrong : m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}

const char *machine_commit(const struct m_step *s) {
	const struct message *m = s->m;
	const struct m_record *own = m_record_of(s->before, m->lock_id);
	const struct m_promise *promise = m_promise_of(s->before, m->lock_id);
	if (s->answer == NULL || s->answer->status != STATUS_OK) {
		return refused_commit(s, own, promise);
	}
	const struct m_record *now = m_record_of(s->after, m->lock_id);
	const char *wrong = may_accept(s);
	wrong = wrong ? wrong : commit_rules(s, own, promise);
	wrong = wrong ? wrong : merged(s, own, now);
	if (wrong == NULL && now == NULL) {
		/* Nothing was left of it. */
		return m_others_kept(s->node, s->before, s->after, m->lock_id, &m->terms);
	}
	wrong = wrong ? wrong : noted_right(s, own, promise, now);
	if (wrong == NULL && own &&
		(now->value != own->value || ballot_compare(now->wrote, own->wrote) < 0)) {
		wrong = "a commit never changes the value of a record that is there";
	} else if (wrong == NULL && !own && (now->value != m_hash(m->value) ||
		ballot_compare(now->wrote, m->ballot) != 0)) {
		wrong = "a commit brings its value under its ballot";
	} else if (wrong == NULL && m_promise_of(s->after, m->lock_id)) {
		wrong = "a held record takes the place of the promise";
	}
	return wrong ? wrong : m_others_kept(s->node, s->before, s->after, m->lock_id, &now->terms);
}

/* ---- learn ---- */

static const char *learn_rules(const struct m_step *s, const struct m_record *own) {
	const struct message *m = s->m;
	struct terms more = m->terms;
	if (span_from_us(m->lease_us) > s->node->max_lease) {
		return "R5: the duration is above max_lease";
	}
	if (m_r3(s, own && own->terms.binding > more.binding ? own->terms.binding : more.binding)) {
		return "R3: the lock_id was released, or ended with its connection";
	}
	if ((own && own->barred) || s->ended.barred) {
		return "section 9: a lock_id that is barred is not lengthened";
	}
	if (own && m_is_numbers(&more)) {
		more.set.w[0] &= ~own->terms.set.w[0];
		more.set.w[1] &= ~own->terms.set.w[1];
	}
	if (!own && m_in_the_way(s->before, m->lock_id, &more)) {
		return "R1: a record is learned while that of another lock_id is live";
	}
	return own && m_doubted(s->before, own) && !m_numbered(s->before) &&
		instant_left_long(s->node->now, instant_add(s->node->vote_began,
		span_grow(s->node->request_timeout, s->node->drift_ppm))) > 0
		? "section 4: a contested key is not lengthened yet" : NULL;
}

static const char *newer_value(const struct m_step *s, const struct m_record *own,
	const struct m_record *now) {
	const bool newer = own == NULL || ballot_compare(s->m->ballot, own->wrote) > 0;
	const struct ballot wrote = newer ? s->m->ballot : own->wrote;
	const uint64_t value = newer ? m_hash(s->m->value) : own->value;
	return ballot_compare(now->wrote, wrote) != 0 || now->value != value
		? "of two values the newer one is kept" : NULL;
}

const char *machine_learn(const struct m_step *s) {
	const struct message *m = s->m;
	const struct m_record *own = m_record_of(s->before, m->lock_id);
	const struct m_promise *promise = m_promise_of(s->before, m->lock_id);
	const char *wrong;
	if (s->answer == NULL || s->answer->status != STATUS_OK) {
		wrong = m_own_kept(s);
		return wrong ? wrong
			: m_others_kept(s->node, s->before, s->after, m->lock_id, NULL);
	}
	const struct m_record *now = m_record_of(s->after, m->lock_id);
	wrong = may_accept(s);
	wrong = wrong ? wrong : learn_rules(s, own);
	wrong = wrong ? wrong : merged(s, own, now);
	if (wrong == NULL && now == NULL) {
		/* Nothing was left of it. */
		return m_others_kept(s->node, s->before, s->after, m->lock_id, &m->terms);
	}
	wrong = wrong ? wrong : noted_right(s, own, promise, now);
	wrong = wrong ? wrong : newer_value(s, own, now);
	/* It displaces promises only if it is new, raises the token, or has more permits (section
	 * 10). */
	const bool displaces = own == NULL || now->token > own->token ||
		(now->terms.set.w[0] & ~own->terms.set.w[0]) ||
		(now->terms.set.w[1] & ~own->terms.set.w[1]);
	return wrong ? wrong : m_others_kept(s->node, s->before, s->after, m->lock_id,
		displaces ? &now->terms : NULL);
}

/* What ended with a connection, as the other master says, lasts here for its lock delay. */
static bool ends_delayed(const struct m_step *s, const struct m_record *own,
	const struct m_record *now) {
	struct m_record r = *own;
	r.end = now->end;
	return own->terms.binding && own->terms.binding <= s->ended_after.binding &&
		m_delayed(now, s->node->now) && m_record_same(&r, now);
}

/* A record that is learned because the masters have compared their tables (section 7): nothing is
 * answered, so the record says whether it was taken. What was remembered there is remembered here,
 * and may end the record. */
const char *machine_sync(const struct m_step *s) {
	const struct m_record *own = m_record_of(s->before, s->m->lock_id);
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	if (now == NULL || (own && m_record_same(own, now)) ||
		(own && now->barred && !own->barred) || (own && ends_delayed(s, own, now))) {
		return m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
	}
	struct message m = *s->m;
	/* The source may still have a longer lease, from before an epoch allowed less. */
	const uint64_t longest = (uint64_t)(s->node->max_lease / SPAN_US);
	m.lease_us = m.left_us < longest ? m.left_us : longest;
	const struct message answer = { .kind = MESSAGE_LEARN_ANSWER, .status = STATUS_OK };
	struct m_step step = *s;
	step.m = &m;
	step.answer = &answer;
	return machine_learn(&step);
}
