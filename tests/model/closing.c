/* closing.c: a small model of a release that keeps the key closed for a while (docs/protocol.md,
 * section 10, Closing). Three masters may have the lock; its holder releases it, and repeats the
 * release through another node. A rival takes the key as soon as q masters let it. Messages may
 * take as long as they like, coordinators die, and masters start again and copy what the others
 * have. The model walks at random (walks.h).
 */
#include "walks.h"

#include <string.h>

enum { MASTERS = 3, QUORUM = 2, OPS = 2, STEPS = 160, LEASE = 14, CLOSE = 6,
	MOST_WALKS = 6000000 };

#define RULES(X) \
	X(QUORUM_CLOSES, "the release is answered once q masters keep the key closed") \
	X(IN_ITS_PLACE, "what keeps the key closed takes the place of the record") \
	X(SENT, "it is sent to masters that lacked the record") \
	X(STANDS, "it is not made where the rival has the key") \
	X(LEFT, "what is sent names what is left of the time") \
	X(KEPT, "a repeat leaves it as it is") \
	X(COPIED, "it is copied like a record")
#define RULE_ENUM(name, text) RULE_##name,
#define RULE_TEXT(name, text) text,
enum rule { RULES(RULE_ENUM) RULE_COUNT };
static const char *const rules[] = { RULES(RULE_TEXT) };

struct master {
	/* When the record ends, and when the key opens again; past: there is neither. */
	uint16_t until, opens;
	bool released, rival;
};
enum asked { UNASKED, ASKED, CLOSED, LACKS, SENT, REFUSED };
struct op {
	bool begun, dead, answered, found;
	uint16_t at;
	uint8_t at_master[MASTERS];
};

static struct {
	uint16_t now;
	struct master masters[MASTERS];
	struct op ops[OPS];
	uint8_t deaths, restarts;
	/* How many masters had the record when they heard of its release; a coordinator has died,
	 * or a master has started again; and the rival has had the key. */
	uint8_t had;
	bool faults, taken;
} w;

static bool rule(enum rule r) {
	return without != (int)r;
}

static bool has(const struct master *m) {
	return m->until > w.now;
}

static bool closed(const struct master *m) {
	return m->opens > w.now;
}

static int votes(const struct op *op, enum asked state) {
	int n = 0;
	for (int i = 0; i < MASTERS; i++) {
		n += op->at_master[i] == state;
	}
	return n;
}

/* ---- what has to hold ---- */

static void check(void) {
	int rivals = 0;
	for (int i = 0; i < MASTERS; i++) {
		const struct master *m = &w.masters[i];
		rivals += m->rival;
		if (m->rival && (closed(m) || has(m))) {
			say("n%d has the rival in a closed key\n", i + 1);
			broken = true;
		}
	}
	for (int n = 0; n < OPS; n++) {
		/* The time counts from the first of the repeats. */
		const int opens = w.ops[0].at + CLOSE;
		const bool promised = w.ops[n].answered || (!w.faults && w.had >= QUORUM);
		if (rivals >= QUORUM && !w.taken && promised && w.now < opens) {
			say("the rival has the key, which is to be closed until %d\n", opens);
			broken = true;
		}
	}
	w.taken |= rivals >= QUORUM;
}

/* ---- masters ---- */

static void close_here(int i, uint16_t opens) {
	struct master *m = &w.masters[i];
	if (m->opens > w.now && rule(RULE_KEPT)) {
		return;
	}
	if (m->opens > w.now && opens > m->opens) {
		say("n%d keeps the key closed for longer\n", i + 1);
		broken = true;
	}
	m->opens = opens;
	for (int n = 0; n < OPS && opens > w.now; n++) {
		if (w.ops[n].begun && opens <= w.ops[n].at + CLOSE) {
			return;
		}
	}
	if (opens > w.now) {
		say("n%d keeps the key closed until %d, for nobody\n", i + 1, opens);
		broken = true;
	}
}

static uint16_t end_of(const struct op *op) {
	return (uint16_t)(rule(RULE_LEFT) ? op->at + CLOSE : w.now + CLOSE);
}

static bool release(int n, int i) {
	struct op *op = &w.ops[n];
	struct master *m = &w.masters[i];
	if (op->at_master[i] != ASKED) {
		return false;
	}
	const bool had = has(m);
	w.had += had;
	m->released = true;
	m->until = 0;
	if (had && rule(RULE_IN_ITS_PLACE)) {
		close_here(i, end_of(op));
	}
	op->found |= had || closed(m);
	op->at_master[i] = closed(m) ? CLOSED : LACKS;
	say("%d: n%d releases for %d: closed until %d\n", w.now, i + 1, n, m->opens);
	return true;
}

static bool send_on(int n, int i) {
	struct op *op = &w.ops[n];
	if (op->at_master[i] != LACKS || !op->found || op->dead || !rule(RULE_SENT)) {
		return false;
	}
	op->at_master[i] = SENT;
	return true;
}

static bool learn(int n, int i) {
	struct op *op = &w.ops[n];
	struct master *m = &w.masters[i];
	if (op->at_master[i] != SENT) {
		return false;
	}
	const bool may = !has(m) && (!m->rival || !rule(RULE_STANDS));
	if (may && end_of(op) > w.now) {
		close_here(i, end_of(op));
	}
	op->at_master[i] = may ? CLOSED : REFUSED;
	say("%d: n%d is sent it for %d: closed until %d\n", w.now, i + 1, n, m->opens);
	return true;
}

/* A master starts again without its memory, and copies what both others have. It does so when no
 * round that it has answered still counts answers (section 4). */
static bool restart(int i) {
	struct master *m = &w.masters[i];
	if (w.restarts == 0) {
		return false;
	}
	w.restarts--;
	w.faults = true;
	for (int n = 0; n < OPS; n++) {
		uint8_t *at = &w.ops[n].at_master[i];
		*at = *at == CLOSED && votes(&w.ops[n], CLOSED) < QUORUM ? REFUSED : *at;
	}
	*m = (struct master){ .until = 0 };
	for (int from = 0; from < MASTERS; from++) {
		const struct master *s = &w.masters[from];
		if (from != i) {
			m->until = s->until > m->until ? s->until : m->until;
			m->opens = rule(RULE_COPIED) && s->opens > m->opens ? s->opens : m->opens;
			m->released |= s->released;
			m->rival |= s->rival;
		}
	}
	/* Every release is kept. Where the rival is known, nobody counts on what is closed. */
	m->until = m->released ? 0 : m->until;
	m->rival = m->rival && !closed(m) && !has(m);
	say("%d: n%d starts again: closed until %d\n", w.now, i + 1, m->opens);
	return true;
}

static bool rival(int i) {
	struct master *m = &w.masters[i];
	if (m->rival || has(m) || closed(m)) {
		return false;
	}
	m->rival = true;
	say("%d: n%d accepts the rival\n", w.now, i + 1);
	return true;
}

/* ---- the coordinators ---- */

static bool begin(int n) {
	struct op *op = &w.ops[n];
	if (op->begun || (n > 0 && !w.ops[n - 1].begun)) {
		return false;
	}
	op->begun = true;
	op->at = w.now;
	memset(op->at_master, ASKED, sizeof op->at_master);
	say("%d: release %d is asked for\n", w.now, n);
	return true;
}

static bool answer(int n) {
	struct op *op = &w.ops[n];
	const int acked = MASTERS - votes(op, ASKED);
	const int closes = rule(RULE_QUORUM_CLOSES) ? votes(op, CLOSED) : acked;
	if (!op->begun || op->dead || op->answered || closes < QUORUM || !op->found) {
		return false;
	}
	op->answered = true;
	say("%d: release %d is answered\n", w.now, n);
	return true;
}

/* ---- walks ---- */

static void act(uint32_t what, int n, int i) {
	switch (what) {
	case 0: (void)(i == 0 && begin(n)); break;
	case 1: (void)release(n, i); break;
	case 2: (void)send_on(n, i); break;
	case 3: (void)learn(n, i); break;
	case 4: (void)(i == 0 && answer(n)); break;
	case 5: (void)(n == 0 && rival(i)); break;
	case 6: (void)(n == 0 && throw_of(4) == 0 && restart(i)); break;
	case 7:
		if (i == 0 && w.deaths > 0 && throw_of(8) == 0) {
			w.deaths--;
			w.faults = true;
			w.ops[n].dead = true;
		}
		break;
	default: w.now = (uint16_t)(w.now + (n == 0 && i == 0)); break;
	}
	check();
}

/* If nothing goes wrong, a release that q masters have heard in time, one of which had the record,
 * is answered, whatever becomes of the others. */
static void check_end(void) {
	const struct op *op = &w.ops[0];
	if (broken || w.faults || w.taken || w.now >= op->at + CLOSE || votes(op, CLOSED) == 0 ||
		votes(op, UNASKED) + votes(op, ASKED) > MASTERS - QUORUM) {
		return;
	}
	for (int i = 0; i < MASTERS; i++) {
		(void)send_on(0, i);
		(void)learn(0, i);
	}
	if (votes(op, REFUSED) == 0 && !op->answered && !answer(0)) {
		say("the release is not answered\n");
		broken = true;
	}
}

static void walk(void) {
	memset(&w, 0, sizeof w);
	w.restarts = (uint8_t)throw_of(2);
	w.deaths = (uint8_t)throw_of(2);
	for (int i = 0; i < MASTERS; i++) {
		w.masters[i].until = i < QUORUM || throw_of(2) ? LEASE : 0;
	}
	for (int k = 0; k < STEPS && !broken; k++) {
		const uint32_t what = throw_of(9), n = throw_of(OPS);
		act(what, (int)n, (int)throw_of(MASTERS));
	}
	check_end();
}

int main(int argc, char **argv) {
	return walks_main(&(struct walks){ "pawl-closing", rules, RULE_COUNT, 300000, MOST_WALKS,
		walk }, argc, argv);
}
