/* first_values.c: what has to hold in the model of first values, and what its masters do
 * (first_values_walk.c). */
#include "first_values.h"

struct world w;

bool rule(enum rule r) {
	return without != (int)r;
}

void raise_to(uint16_t *value, uint16_t to) {
	*value = to > *value ? to : *value;
}

/* ---- what has to hold ---- */

int holders(void) {
	int n = 0;
	for (int i = 0; i < MASTERS; i++) {
		n += w.masters[i].has;
	}
	return n;
}

/* A client that read this version has seen the other one, or what was written in its place without
 * reading first. */
static bool has_seen(uint8_t version, uint8_t other) {
	for (int i = 0; i <= VERSIONS && version != NOBODY; i++) {
		if (version == other ||
			(version >= ATTEMPTS && w.updates[version - ATTEMPTS].blind)) {
			return true;
		}
		version = version < ATTEMPTS ? NOBODY : w.base[version];
	}
	return version == other;
}

static uint16_t ballot_of(uint8_t version) {
	return version == NOBODY ? 0 : version < ATTEMPTS ? w.attempts[version].ballot
		: w.updates[version - ATTEMPTS].ballot;
}

void answered(uint8_t version) {
	if (holders() >= QUORUM) {
		w.held = true;
		w.newest = ballot_of(version) > ballot_of(w.newest) ? version : w.newest;
	}
}

static void ended_somewhere(void) {
	if (holders() < QUORUM) {
		w.held = false;
		w.newest = NOBODY;
		for (int i = 0; i < UPDATES; i++) {
			w.updates[i].must_see = NOBODY;
			w.updates[i].before = w.updates[i].stage == COMMITTING;
		}
	}
}

void check_read(uint8_t version, uint8_t must_see, const char *who) {
	if (must_see != NOBODY && w.held && !has_seen(version, must_see)) {
		say("%s has read version %d, and not %d\n", who, version, must_see);
		broken = true;
	}
}

/* ---- masters ---- */

static void forget_promise(struct master *m, bool ran_out) {
	if (m->promised && ran_out && rule(RULE_RUN_OUT)) {
		raise_to(&m->lost, m->first);
	}
	m->promised = false;
	m->first = m->promise_noted = 0;
}

/* A commit or a repair makes the record. The record takes the place of the promise. */
void make_record(int i, uint8_t version, uint16_t ballot, bool counts) {
	struct master *m = &w.masters[i];
	m->noted = m->promised ? m->promise_noted : m->clock;
	m->prepared = ballot;
	if (m->promised && rule(RULE_TAKES_OVER)) {
		raise_to(&m->prepared, m->first);
	}
	forget_promise(m, false);
	m->has = true;
	m->version = version;
	m->wrote = ballot;
	m->counts = counts;
	for (int a = 0; a < ATTEMPTS; a++) {
		w.attempts[a].promise[i].had |= w.attempts[a].stage == ASKING;
	}
}

bool lose_record(int i) {
	struct master *m = &w.masters[i];
	if (!m->has || w.losses == 0) {
		return false;
	}
	w.losses--;
	raise_to(&m->lost, m->prepared);
	m->has = false;
	m->wrote = m->prepared = m->noted = 0;
	/* What it answered to a commit no longer says that the lock is held. */
	for (int a = 0; a < ATTEMPTS; a++) {
		struct attempt *at = &w.attempts[a];
		at->stage = at->stage == COMMITTING &&
			(at->commit[i].state >= ANSWERED && at->commit[i].yes) ? FAILED : at->stage;
	}
	say("n%d loses the record\n", i + 1);
	ended_somewhere();
	return true;
}

bool lose_promise(int i) {
	if (!w.masters[i].promised || w.drops == 0) {
		return false;
	}
	w.drops--;
	forget_promise(&w.masters[i], true);
	say("n%d loses the promise\n", i + 1);
	return true;
}

bool repair(int from, int to) {
	struct repair *l = &w.repairs[w.repairs[0].sent];
	if (from == to || !w.masters[from].has || w.repairs_left == 0 || l->sent) {
		return false;
	}
	w.repairs_left--;
	*l = (struct repair){ true, (uint8_t)to, w.masters[from].version, w.masters[from].wrote };
	say("n%d is about to be sent version %d\n", to + 1, l->version);
	return true;
}

bool learn(int which) {
	struct repair *l = &w.repairs[which];
	struct master *m = &w.masters[l->to];
	if (!l->sent) {
		return false;
	}
	if (!m->has) {
		make_record(l->to, l->version, l->wrote,
			l->wrote >= m->lost || !rule(RULE_LEARNED));
	} else if (l->wrote > m->wrote) {
		m->version = l->version;
		m->wrote = l->wrote;
		raise_to(&m->prepared, l->wrote);
	}
	raise_to(&m->clock, l->wrote / 16);
	l->sent = false;
	say("n%d learns version %d\n", l->to + 1, l->version);
	return true;
}

bool hear_clock(int from, int to) {
	bool watch_event = w.masters[from].clock > w.masters[to].clock;
	raise_to(&w.masters[to].clock, w.masters[from].clock);
	return watch_event;
}

/* With the link everything is lost that others have asked of it before; with its memory, everything
 * that it has coordinated. */
static void restart_forgets(int i) {
	for (int a = 0; a < ATTEMPTS; a++) {
		struct attempt *at = &w.attempts[a];
		at->stage = at->stage == ASKING || at->stage == COMMITTING ? FAILED : at->stage;
		at->promise[i].state = at->promise[i].state == ASKED ? UNASKED
			: at->promise[i].state;
		at->commit[i].state = at->commit[i].state == ASKED ? UNASKED : at->commit[i].state;
		at->promise[i].had = true;
	}
	for (int u = 0; u < UPDATES; u++) {
		struct update *up = &w.updates[u];
		up->stage = up->stage == ASKING || up->stage == COMMITTING ? FAILED : up->stage;
		up->prepare[i].state = up->prepare[i].state == ASKED ? UNASKED
			: up->prepare[i].state;
		up->write[i].state = up->write[i].state == ASKED ? UNASKED : up->write[i].state;
	}
	for (int l = 0; l < REPAIRS; l++) {
		w.repairs[l].sent = w.repairs[l].sent && w.repairs[l].to != i;
	}
}

/* It merges what the others have; or it waits until what it had would be over, and votes with
 * nothing. */
bool restart(int i) {
	if (w.restarts == 0) {
		return false;
	}
	w.restarts--;
	struct master fresh = { .clock = (uint16_t)(w.masters[i].clock + throw_of(3)),
		.counts = true };
	for (int x = throw_of(2) ? 0 : MASTERS; x < MASTERS; x++) {
		const struct master *m = &w.masters[x];
		if (x == i) {
			continue;
		}
		raise_to(&fresh.clock, m->clock);
		raise_to(&fresh.noted, m->has ? m->noted : m->clock);
		fresh.counts = fresh.counts && m->has && (m->counts || m->wrote / 16 > m->noted);
		if (m->has) {
			fresh.has = true;
			fresh.version = m->wrote > fresh.wrote ? m->version : fresh.version;
			raise_to(&fresh.wrote, m->wrote);
			raise_to(&fresh.prepared, m->prepared);
		}
	}
	fresh.noted = fresh.has ? fresh.noted : 0;
	/* What was before it voted is below its clock of then. Walks are too short to need this;
	 * test_cluster_first does. */
	fresh.lost = (uint16_t)(fresh.clock * 16 + 15);
	w.masters[i] = fresh;
	restart_forgets(i);
	say("n%d starts anew\n", i + 1);
	ended_somewhere();
	return true;
}
