/* shorten.c: a small model of shortening (docs/protocol.md, section 2, Shorten). One lock, which
 * its holder lengthens and shortens through three masters, and a rival that takes the key as soon
 * as q masters have no record. Messages and answers may take as long as they like, masters start
 * again and copy what the others have, and the holder asks without waiting for answers. All clocks
 * are exact. The model walks at random (walks.h).
 */
#include "walks.h"

#include <string.h>

enum { MASTERS = 3, QUORUM = 2, OPS = 4, STEPS = 200, LEASE = 12, MOST_WALKS = 6000000 };

#define RULES(X) \
	X(LOWER, "a master shortens only a record with a lower number") \
	X(NAMES, "what is asked after a shortening names its number") \
	X(NOTES, "a master notes the number that is named") \
	X(TRUST, "the holder gives up its trust before it asks") \
	X(EARLIER, "answers to what was asked before count no more") \
	X(COPIES, "copies of the record have the number")
#define RULE_ENUM(name, text) RULE_##name,
#define RULE_TEXT(name, text) text,
enum rule { RULES(RULE_ENUM) RULE_COUNT };
static const char *const rules[] = { RULES(RULE_TEXT) };

/* `until`: the end of the record; it has none if that is past. */
struct master {
	uint16_t until;
	uint8_t number;
	bool rival;
};
enum asked { UNASKED, ASKED, YES, NO };
struct op {
	bool begun, shortens, answered;
	uint8_t number, lease;
	uint16_t at;
	uint8_t at_master[MASTERS];
};

static struct {
	uint16_t now;
	struct master masters[MASTERS];
	struct op ops[OPS];
	/* The holder: until when it trusts, and the number that it names. */
	uint16_t trusted;
	uint8_t number, restarts;
} w;

static bool rule(enum rule r) {
	return without != (int)r;
}

static bool has(int i) {
	return w.masters[i].until > w.now;
}

static int votes(const struct op *op) {
	int yes = 0;
	for (int i = 0; i < MASTERS; i++) {
		yes += op->at_master[i] == YES;
	}
	return yes;
}

/* ---- the holder ---- */

static bool ask(int n) {
	struct op *op = &w.ops[n];
	if (op->begun || (n > 0 && !w.ops[n - 1].begun) || w.trusted <= w.now) {
		return false;
	}
	*op = (struct op){ .begun = true, .shortens = throw_of(2), .at = w.now };
	op->lease = (uint8_t)(op->shortens ? 1 + throw_of(LEASE / 2) : LEASE - throw_of(3));
	w.number += op->shortens;
	op->number = op->shortens || rule(RULE_NAMES) ? w.number : 0;
	memset(op->at_master, ASKED, sizeof op->at_master);
	if (op->shortens && rule(RULE_TRUST) && w.trusted > w.now + op->lease) {
		w.trusted = (uint16_t)(w.now + op->lease);
	}
	say("%d: the holder asks: %s to %d, number %d; it trusts until %d\n", w.now,
		op->shortens ? "shorten" : "lengthen", op->lease, op->number, w.trusted);
	return true;
}

static bool hear(int n) {
	struct op *op = &w.ops[n];
	if (!op->begun || op->answered || votes(op) < QUORUM || w.trusted <= w.now) {
		return false;
	}
	op->answered = true;
	bool earlier = false;
	for (int later = n + 1; later < OPS; later++) {
		earlier |= w.ops[later].begun && w.ops[later].shortens;
	}
	if ((!earlier || !rule(RULE_EARLIER)) && w.trusted < op->at + op->lease) {
		w.trusted = (uint16_t)(op->at + op->lease);
	}
	say("%d: the holder hears of %d, and trusts until %d\n", w.now, n, w.trusted);
	return true;
}

/* ---- masters ---- */

static void note(struct master *m, uint8_t number) {
	m->number = number > m->number && rule(RULE_NOTES) ? number : m->number;
}

static bool take(int n, int i) {
	struct op *op = &w.ops[n];
	struct master *m = &w.masters[i];
	if (op->at_master[i] != ASKED) {
		return false;
	}
	/* One that lacks the record learns it, unless the rival has the key there. */
	const uint16_t end = (uint16_t)(w.now + op->lease);
	op->at_master[i] = m->rival ? NO : YES;
	if (!m->rival && has(i)) {
		const bool cut = op->shortens && (op->number > m->number || !rule(RULE_LOWER));
		m->until = cut || end > m->until ? end : m->until;
		note(m, op->number);
	} else if (!m->rival) {
		*m = (struct master){ .until = end };
		note(m, op->number);
	}
	say("%d: n%d %s %d: until %d, number %d\n", w.now, i + 1,
		op->at_master[i] == YES ? "accepts" : "refuses", n, m->until, m->number);
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
	for (int n = 0; n < OPS; n++) {
		struct op *op = &w.ops[n];
		op->at_master[i] = op->at_master[i] == YES && votes(op) < QUORUM ? NO
			: op->at_master[i];
	}
	*m = (struct master){ .rival = false };
	for (int from = 0; from < MASTERS; from++) {
		const struct master *s = &w.masters[from];
		if (from != i && has(from)) {
			m->until = s->until > m->until ? s->until : m->until;
			m->number = rule(RULE_COPIES) && s->number > m->number ? s->number
				: m->number;
		}
		m->rival |= from != i && s->rival;
	}
	say("%d: n%d starts again: until %d, number %d\n", w.now, i + 1, m->until, m->number);
	return true;
}

/* ---- the rival ---- */

static bool rival(int i) {
	struct master *m = &w.masters[i];
	int have = 0;
	if (m->rival || has(i)) {
		return false;
	}
	m->rival = true;
	for (int k = 0; k < MASTERS; k++) {
		have += w.masters[k].rival;
	}
	say("%d: n%d accepts the rival\n", w.now, i + 1);
	if (have >= QUORUM && w.trusted > w.now) {
		say("the rival has the key, and the holder trusts until %d\n", w.trusted);
		broken = true;
	}
	return true;
}

/* ---- walks ---- */

static void act(uint32_t what, int n, int i) {
	switch (what) {
	case 0: (void)(i == 0 && ask(n)); break;
	case 1: (void)(i == 0 && hear(n)); break;
	case 2: case 3: (void)take(n, i); break;
	case 4: (void)(n == 0 && rival(i)); break;
	case 5: (void)(n == 0 && throw_of(4) == 0 && restart(i)); break;
	default: w.now = (uint16_t)(w.now + (n == 0 && i == 0)); break;
	}
}

static void walk(void) {
	memset(&w, 0, sizeof w);
	w.trusted = LEASE;
	w.restarts = (uint8_t)throw_of(2);
	for (int i = 0; i < MASTERS; i++) {
		w.masters[i].until = LEASE;
	}
	/* One master may have missed the acquire. */
	w.masters[2].until = throw_of(2) ? LEASE : 0;
	for (int k = 0; k < STEPS && !broken; k++) {
		const uint32_t what = throw_of(7), n = throw_of(OPS);
		act(what, (int)n, (int)throw_of(MASTERS));
	}
}

int main(int argc, char **argv) {
	return walks_main(&(struct walks){ "pawl-shorten", rules, RULE_COUNT, 300000, MOST_WALKS,
		walk }, argc, argv);
}
