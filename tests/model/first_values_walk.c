/* first_values_walk.c: a small model of the rules for first values (docs/protocol.md, section 2,
 * Acquire and Update). There is one lock_id, and three masters that coordinate; there are attempts
 * to acquire the lock, updates, lost records and promises, records that are learned, and one
 * restart. Messages may take as long as they like. The model walks at random (walks.h).
 */
#include "first_values.h"

#include <string.h>

#define RULE_TEXT(name, text) text,
static const char *const rules[] = { RULES(RULE_TEXT) };

enum { STEPS = 600, MOST_WALKS = 2000000 };

enum { ACTIONS = 15, PLACES = ACTIONS * 9 };

static bool act(uint32_t what, int a, int i) {
	switch (what) {
	case 0: return i == 0 && attempt_begin(a);
	case 1: return attempt_promise(a, i);
	case 2: return attempt_hear(a, i);
	case 3: return attempt_commit(a, i);
	case 4: return attempt_granted(a, i);
	case 5: return i == 0 && update_begin(a);
	case 6: return update_prepare(a, i);
	case 7: return update_write(a, i);
	case 8: return update_written(a, i);
	case 9: return update_done(a, i);
	case 10: return a == 0 && lose_record(i);
	case 11: return a == 0 && lose_promise(i);
	case 12: return repair(a, i);
	case 13: return a < REPAIRS && i == 0 && learn(a);
	default: return a == 2 && i == 0 && throw_of(20) == 0 ? restart((int)throw_of(MASTERS))
		: a < 3 && a != i && hear_clock(a, i);
	}
}

/* The first attempt is granted by all masters but one, and so is the first update. */
static void open_with(int but, int not) {
	(void)attempt_begin(0);
	for (int i = 0; i < MASTERS; i++) {
		(void)(i != but && attempt_promise(0, i) && attempt_hear(0, i));
	}
	for (int i = 0; i < MASTERS; i++) {
		(void)(i != but && attempt_commit(0, i) && attempt_granted(0, i));
	}
	(void)update_begin(0);
	for (int i = 0; i < MASTERS; i++) {
		(void)(i != not && update_prepare(0, i) && update_write(0, i));
	}
	for (int i = 0; i < MASTERS; i++) {
		(void)(i != not && update_written(0, i) && update_done(0, i));
	}
}

static void walk(void) {
	bool slow[PLACES];
	memset(&w, 0, sizeof w);
	memset(w.base, NOBODY, sizeof w.base);
	w.newest = NOBODY;
	for (int i = 0; i < MASTERS; i++) {
		w.masters[i].clock = (uint16_t)(throw_of(4) * throw_of(4));
	}
	w.losses = (int)throw_of(4);
	w.repairs_left = (int)throw_of(4);
	w.drops = (int)throw_of(3);
	w.restarts = throw_of(4) == 0;
	if (throw_of(3) == 0) {
		/* For two draws among arguments the compiler chooses which one is made first. */
		const int not = (int)throw_of(MASTERS);
		open_with((int)throw_of(MASTERS), not);
	}
	const uint32_t share = throw_of(3) == 0 ? 2 : 0;
	for (int i = 0; i < PLACES; i++) {
		slow[i] = throw_of(8) < share;
	}
	for (int k = 0; k < STEPS && !broken; k++) {
		const uint32_t place = throw_of(PLACES);
		if (!slow[place] || throw_of(60) == 0) {
			(void)act(place / 9, (int)(place % 9) / 3, (int)(place % 3));
		}
	}
}

int main(int argc, char **argv) {
	return walks_main(&(struct walks){ "pawl-first-values", rules, RULE_COUNT, 1000000,
		MOST_WALKS, walk }, argc, argv);
}
