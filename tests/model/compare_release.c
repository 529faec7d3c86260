/* compare_release.c: a small model of updates and releases that expect a value (docs/protocol.md,
 * section 2, Compare and release). There is one lock, which three masters have, and operations that
 * expect its first value, or what another one has written. Messages may take as long as they like,
 * masters may lose the record, and coordinators may die. The model walks at random (walks.h).
 */
#include "walks.h"

#include <string.h>

enum { MASTERS = 3, QUORUM = 2, OPS = 4, STEPS = 300, MOST_WALKS = 3000000 };

#define RULES(X) \
	X(LAST, "a release writes a last value before it is sent") \
	X(HEED, "an operation that finds a last value does not succeed") \
	X(COMPLETE, "an operation that finds a last value writes it back as one") \
	X(DECIDE, "q masters with the last value decide a release") \
	X(PREPARED, "a write is refused below what was prepared")
#define RULE_ENUM(name, text) RULE_##name,
#define RULE_TEXT(name, text) text,
enum rule { RULES(RULE_ENUM) RULE_COUNT };
static const char *const rules[] = { RULES(RULE_TEXT) };

/* Version 0 is the first value, and version 1 + n is what operation n writes. */
struct master {
	bool has, last;
	uint8_t version, clock;
	uint16_t wrote, prepared;
};
enum asked { UNASKED, ASKED, YES, NO };
/* An operation that is DECIDED releases the lock; one that is DEAD does nothing any more. */
enum stage { IDLE, ASKING, WRITING, WRITING_BACK, DECIDED, SUCCEEDED, OVER };
struct op {
	uint8_t stage, node, expects, version;
	bool releases, dead, last;
	uint16_t ballot;
	uint8_t prepare[MASTERS], write[MASTERS], release[MASTERS];
	/* What the answers to its Prepare have shown. */
	struct master seen[MASTERS];
};

static struct {
	struct master masters[MASTERS];
	struct op ops[OPS];
	int losses, deaths;
} w;

static bool rule(enum rule r) {
	return without != (int)r;
}

static int votes(const uint8_t *of, enum asked state) {
	int n = 0;
	for (int i = 0; i < MASTERS; i++) {
		n += of[i] == state;
	}
	return n;
}

/* ---- what has to hold ---- */

/* Whoever has read `version` has read what `before` wrote, or nobody has. */
static bool follows(uint8_t version, uint8_t before) {
	while (version != before && version != 0) {
		version = w.ops[version - 1].expects;
	}
	return version == before;
}

/* Of operations that expect the same write at most one succeeds. */
static void succeeds(int n) {
	w.ops[n].stage = SUCCEEDED;
	say("operation %d succeeds\n", n);
	for (int x = 0; x < OPS; x++) {
		if (x != n && w.ops[x].stage == SUCCEEDED &&
			w.ops[x].expects == w.ops[n].expects) {
			say("so did operation %d, which expects the same\n", x);
			broken = true;
		}
	}
}

/* Whoever was told that its value is there has the lock until somebody who expects this value, or a
 * later one, releases it. */
static void released(int n) {
	for (int x = 0; x < OPS; x++) {
		if (w.ops[x].stage == SUCCEEDED && !w.ops[x].releases &&
			!follows(w.ops[n].version, (uint8_t)(1 + x))) {
			say("operation %d releases what operation %d was told is its own\n", n, x);
			broken = true;
		}
	}
}

/* ---- operations ---- */

static bool begin(int n) {
	struct op *op = &w.ops[n];
	if (op->stage != IDLE) {
		return false;
	}
	op->stage = ASKING;
	op->node = (uint8_t)throw_of(MASTERS);
	op->releases = throw_of(2);
	const uint8_t expects = (uint8_t)throw_of(OPS + 1);
	op->expects = expects > 0 && (w.ops[expects - 1].releases || expects - 1 == n ||
		w.ops[expects - 1].stage == IDLE) ? 0 : expects;
	op->ballot = (uint16_t)(++w.masters[op->node].clock * 16 + n);
	memset(op->prepare, ASKED, sizeof op->prepare);
	say("operation %d begins: %s if version %d, ballot %d\n", n,
		op->releases ? "release" : "update", op->expects, op->ballot);
	return true;
}

static bool prepare(int n, int i) {
	struct op *op = &w.ops[n];
	struct master *m = &w.masters[i];
	if (op->prepare[i] != ASKED) {
		return false;
	}
	op->prepare[i] = m->has && op->ballot > m->prepared ? YES : NO;
	if (op->prepare[i] == YES) {
		m->prepared = op->ballot;
		op->seen[i] = *m;
	}
	const uint8_t clock = (uint8_t)(op->ballot / 16);
	m->clock = clock > m->clock ? clock : m->clock;
	say("n%d %s operation %d\n", i + 1, op->prepare[i] == YES ? "prepares" : "refuses", n);
	return true;
}

/* Q masters have prepared: tests the expectation on the newest of their values. */
static bool compare(int n) {
	struct op *op = &w.ops[n];
	const struct master *newest = NULL;
	if (op->stage != ASKING || op->dead || votes(op->prepare, YES) < QUORUM) {
		return false;
	}
	for (int i = 0; i < MASTERS; i++) {
		const struct master *seen = &op->seen[i];
		newest = op->prepare[i] == YES && (!newest || seen->wrote > newest->wrote) ? seen
			: newest;
	}
	const bool ends = newest->last && rule(RULE_HEED);
	const bool fits = !ends && newest->version == op->expects;
	op->stage = fits ? WRITING : WRITING_BACK;
	op->version = fits && !op->releases ? (uint8_t)(1 + n) : newest->version;
	op->last = (fits && op->releases) || (newest->last && !fits && rule(RULE_COMPLETE));
	memset(op->write, ASKED, sizeof op->write);
	say("operation %d writes version %d%s%s\n", n, op->version, op->last ? ", the last" : "",
		fits ? "" : " back");
	if (fits && op->releases && !rule(RULE_LAST)) {
		memset(op->write, UNASKED, sizeof op->write);
		memset(op->release, ASKED, sizeof op->release);
		op->stage = DECIDED;
	}
	return true;
}

static bool take(int n, int i) {
	struct op *op = &w.ops[n];
	struct master *m = &w.masters[i];
	if (op->write[i] != ASKED) {
		return false;
	}
	op->write[i] = m->has && (op->ballot >= m->prepared || !rule(RULE_PREPARED)) ? YES : NO;
	if (op->write[i] == YES) {
		m->wrote = op->ballot;
		m->prepared = op->ballot > m->prepared ? op->ballot : m->prepared;
		m->version = op->version;
		m->last = op->last;
	}
	say("n%d %s the write of operation %d\n", i + 1,
		op->write[i] == YES ? "takes" : "refuses", n);
	return true;
}

/* Q masters have the write, or fewer will have it. Then the outcome is not known. */
static bool written(int n) {
	struct op *op = &w.ops[n];
	const int yes = votes(op->write, YES), open = votes(op->write, ASKED);
	const bool half = op->last && !rule(RULE_DECIDE) && yes > 0 && open == 0;
	if ((op->stage != WRITING && op->stage != WRITING_BACK) || op->dead ||
		(yes < QUORUM && yes + open >= QUORUM)) {
		return false;
	}
	if (yes < QUORUM && !half) {
		op->stage = OVER;
	} else if (op->last) {
		op->stage = DECIDED;
		memset(op->release, ASKED, sizeof op->release);
	} else if (op->stage == WRITING) {
		succeeds(n);
	} else {
		op->stage = OVER;
	}
	return true;
}

static bool let_go(int n, int i) {
	struct op *op = &w.ops[n];
	if (op->release[i] != ASKED) {
		return false;
	}
	op->release[i] = YES;
	w.masters[i].has = false;
	say("n%d releases for operation %d\n", i + 1, n);
	released(n);
	return true;
}

static bool told(int n) {
	struct op *op = &w.ops[n];
	if (op->stage != DECIDED || op->dead || votes(op->release, YES) < QUORUM) {
		return false;
	}
	/* Who has completed another one's release is told that the lock is lost. */
	if (op->releases && op->version == op->expects) {
		bool own = true;
		for (int i = 0; i < MASTERS; i++) {
			own = own && !(op->prepare[i] == YES && op->seen[i].last);
		}
		if (own) {
			succeeds(n);
			return true;
		}
	}
	op->stage = OVER;
	return true;
}

/* ---- what goes wrong ---- */

static bool die(int n) {
	struct op *op = &w.ops[n];
	if (w.deaths == 0 || op->stage == IDLE || op->dead) {
		return false;
	}
	w.deaths--;
	op->dead = true;
	/* What it has not sent by now it never sends. */
	for (int i = 0; i < MASTERS; i++) {
		op->release[i] = op->release[i] == ASKED && throw_of(2) ? NO : op->release[i];
		op->write[i] = op->write[i] == ASKED && throw_of(2) ? NO : op->write[i];
	}
	say("the coordinator of operation %d dies\n", n);
	return true;
}

static bool lose(int i) {
	if (w.losses == 0 || !w.masters[i].has) {
		return false;
	}
	w.losses--;
	w.masters[i].has = false;
	say("n%d loses the record\n", i + 1);
	return true;
}

/* ---- walks ---- */

static bool act(uint32_t what, int n, int i) {
	switch (what) {
	case 0: return i == 0 && begin(n);
	case 1: return prepare(n, i);
	case 2: return i == 0 && compare(n);
	case 3: return take(n, i);
	case 4: return i == 0 && written(n);
	case 5: return let_go(n, i);
	case 6: return i == 0 && told(n);
	case 7: return i == 0 && throw_of(4) == 0 && die(n);
	default: return n == 0 && throw_of(4) == 0 && lose(i);
	}
}

static void walk(void) {
	memset(&w, 0, sizeof w);
	for (int i = 0; i < MASTERS; i++) {
		w.masters[i] = (struct master){ .has = true, .wrote = 15, .prepared = 15,
			.clock = (uint8_t)(1 + throw_of(3)) };
	}
	w.losses = (int)throw_of(2);
	w.deaths = (int)throw_of(3);
	for (int k = 0; k < STEPS && !broken; k++) {
		const uint32_t what = throw_of(9), n = throw_of(OPS);
		(void)act(what, (int)n, (int)throw_of(MASTERS));
	}
}

int main(int argc, char **argv) {
	return walks_main(&(struct walks){ "pawl-compare-release", rules, RULE_COUNT, 300000,
		MOST_WALKS, walk }, argc, argv);
}
