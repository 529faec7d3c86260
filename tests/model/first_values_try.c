/* first_values_try.c: attempts and updates in the model of first values (first_values_walk.c). */
#include "first_values.h"

/* ---- an attempt ---- */

bool attempt_begin(int a) {
	struct attempt *at = &w.attempts[a];
	if (at->stage != IDLE) {
		return false;
	}
	at->stage = ASKING;
	at->node = (uint8_t)throw_of(MASTERS);
	at->ballot = (uint16_t)(++w.masters[at->node].clock * 16 + a);
	for (int i = 0; i < MASTERS; i++) {
		at->promise[i] = (struct answer){ .state = ASKED, .had = w.masters[i].has };
	}
	say("attempt %d begins at n%d, ballot %d\n", a, at->node + 1, at->ballot);
	return true;
}

bool attempt_promise(int a, int i) {
	struct attempt *at = &w.attempts[a];
	struct answer *p = &at->promise[i];
	struct master *m = &w.masters[i];
	if (p->state != ASKED) {
		return false;
	}
	p->state = ANSWERED;
	p->own = m->has;
	if (m->has) {
		p->noted = m->noted;
		p->version = m->version;
		p->wrote = m->wrote;
	} else {
		m->promise_noted = m->promised ? m->promise_noted : m->clock;
		m->first = !m->promised || !rule(RULE_HIGHEST) || at->ballot > m->first ? at->ballot
			: m->first;
		m->promised = true;
		p->noted = m->promise_noted;
		p->lacked = !p->had;
	}
	raise_to(&m->clock, at->ballot / 16);
	say("n%d answers attempt %d: %s\n", i + 1, a,
		p->own ? "held by yourself" : p->lacked ? "promised, has lacked it" : "promised");
	return true;
}

bool attempt_hear(int a, int i) {
	struct attempt *at = &w.attempts[a];
	if (at->stage != ASKING || at->promise[i].state != ANSWERED) {
		return false;
	}
	at->promise[i].state = HEARD;
	int heard = 0, lacked = 0;
	uint16_t highest = w.masters[at->node].clock;
	at->brings = (uint8_t)a;
	at->reported = 0;
	for (int x = 0; x < MASTERS; x++) {
		const struct answer *p = &at->promise[x];
		if (p->state == HEARD) {
			heard++;
			lacked += p->lacked;
			raise_to(&highest, p->noted);
			at->brings = p->own && p->wrote > at->reported ? p->version : at->brings;
			raise_to(&at->reported, p->own ? p->wrote : 0);
		}
	}
	if (heard < QUORUM) {
		return true;
	}
	if (at->reported == 0 && lacked < QUORUM && rule(RULE_LAPSED)) {
		/* It would ask again, as another attempt. */
		at->stage = heard == MASTERS ? FAILED : ASKING;
		return true;
	}
	at->token = w.masters[at->node].clock = (uint16_t)(highest + 1);
	at->ballot = rule(RULE_BEFORE) ? at->ballot : (uint16_t)(at->token * 16 + a);
	at->stage = COMMITTING;
	for (int x = 0; x < MASTERS; x++) {
		at->commit[x] = (struct answer){ .state = ASKED };
	}
	say("attempt %d commits version %d with token %d\n", a, at->brings, at->token);
	return true;
}

static bool accepts(const struct master *m, const struct attempt *at, uint16_t ballot) {
	const bool first = at->reported == 0;
	if (at->token <= (m->has ? m->noted : m->promised ? m->promise_noted : m->clock) ||
		(m->has && m->version != at->brings && m->wrote > at->reported)) {
		return false;
	}
	return !first || !((rule(RULE_LOST) && ballot < m->lost) ||
		(rule(RULE_NOTED) && m->has && ballot < m->prepared) ||
		(rule(RULE_PROMISED) && !m->has && m->promised && ballot < m->first));
}

bool attempt_commit(int a, int i) {
	struct attempt *at = &w.attempts[a];
	struct master *m = &w.masters[i];
	/* Messages come in order. */
	if (at->commit[i].state != ASKED || at->promise[i].state == ASKED) {
		return false;
	}
	const uint16_t ballot = at->reported ? at->reported : at->ballot;
	at->commit[i].state = ANSWERED;
	at->commit[i].yes = accepts(m, at, ballot);
	say("n%d %s attempt %d\n", i + 1, at->commit[i].yes ? "accepts" : "refuses", a);
	if (!at->commit[i].yes) {
		return true;
	}
	if (!m->has) {
		make_record(i, at->brings, ballot, ballot >= m->lost);
	}
	raise_to(&m->prepared, ballot);
	raise_to(&m->clock, at->token);
	raise_to(&m->clock, ballot / 16);
	return true;
}

bool attempt_granted(int a, int i) {
	struct attempt *at = &w.attempts[a];
	if (at->stage != COMMITTING || at->commit[i].state != ANSWERED) {
		return false;
	}
	at->commit[i].state = HEARD;
	int yes = 0;
	for (int x = 0; x < MASTERS; x++) {
		yes += at->commit[x].state == HEARD && at->commit[x].yes;
	}
	if (yes >= QUORUM) {
		at->stage = DONE;
		say("attempt %d is granted\n", a);
		if (at->reported == 0) {
			answered((uint8_t)a);
		} else if (holders() >= QUORUM) {
			w.held = true;
		}
	}
	return true;
}

/* ---- an update ---- */

bool update_begin(int u) {
	struct update *up = &w.updates[u];
	if (up->stage != IDLE || holders() == 0) {
		return false;
	}
	up->stage = ASKING;
	up->node = (uint8_t)throw_of(MASTERS);
	up->blind = throw_of(4) == 0;
	up->ballot = (uint16_t)(++w.masters[up->node].clock * 16 + ATTEMPTS + u);
	up->must_see = w.newest;
	for (int i = 0; i < MASTERS; i++) {
		up->prepare[i] = (struct answer){ .state = ASKED };
	}
	say("update %d begins at n%d, ballot %d\n", u + ATTEMPTS, up->node + 1, up->ballot);
	return true;
}

bool update_prepare(int u, int i) {
	struct update *up = &w.updates[u];
	struct answer *p = &up->prepare[i];
	struct master *m = &w.masters[i];
	if (p->state != ASKED) {
		return false;
	}
	p->state = ANSWERED;
	if (m->has && up->ballot / 16 > m->noted && up->ballot >= m->prepared) {
		m->prepared = up->ballot;
		raise_to(&m->clock, up->ballot / 16);
		*p = (struct answer){ .state = ANSWERED, .yes = true, .counts = m->counts ||
			m->wrote / 16 > m->noted, .wrote = m->wrote, .version = m->version };
	}
	say("n%d %s update %d: version %d\n", i + 1, p->yes ? p->counts ? "prepares"
		: "prepares, and does not count," : "refuses", u + ATTEMPTS, p->version);
	return true;
}

bool update_write(int u, int i) {
	struct update *up = &w.updates[u];
	if (up->stage != ASKING || up->prepare[i].state != ANSWERED) {
		return false;
	}
	up->prepare[i].state = HEARD;
	int counting = 0;
	uint16_t best = 0;
	uint8_t base = NOBODY;
	for (int x = 0; x < MASTERS; x++) {
		const struct answer *p = &up->prepare[x];
		if (p->state == HEARD && p->yes && (p->counts || up->blind)) {
			counting++;
			base = p->counts && p->wrote > best ? p->version : base;
			raise_to(&best, p->counts ? p->wrote : 0);
		}
	}
	if (counting >= QUORUM) {
		up->stage = COMMITTING;
		w.base[ATTEMPTS + u] = up->blind ? NOBODY : base;
		for (int x = 0; x < MASTERS; x++) {
			up->write[x] = (struct answer){ .state = ASKED };
		}
		say("update %d is written on version %d\n", u + ATTEMPTS, base);
		if (!up->blind) {
			check_read(base, up->must_see, "an update");
		}
	}
	return true;
}

bool update_written(int u, int i) {
	struct update *up = &w.updates[u];
	struct master *m = &w.masters[i];
	if (up->write[i].state != ASKED) {
		return false;
	}
	up->write[i].state = ANSWERED;
	if (m->has && up->ballot / 16 > m->noted && up->ballot >= m->prepared) {
		m->wrote = m->prepared = up->ballot;
		m->version = (uint8_t)(ATTEMPTS + u);
		up->write[i].yes = true;
		say("n%d has version %d\n", i + 1, m->version);
	}
	return true;
}

bool update_done(int u, int i) {
	struct update *up = &w.updates[u];
	if (up->stage != COMMITTING || up->write[i].state != ANSWERED) {
		return false;
	}
	up->write[i].state = HEARD;
	int yes = 0;
	for (int x = 0; x < MASTERS; x++) {
		yes += up->write[x].state == HEARD && up->write[x].yes;
	}
	if (yes >= QUORUM) {
		up->stage = DONE;
		say("update %d is answered\n", u + ATTEMPTS);
		if (!up->before) {
			answered((uint8_t)(ATTEMPTS + u));
		}
	}
	return true;
}
