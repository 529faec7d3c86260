/* choose.c: chooses the numbers of the permits that an attempt asks for (section 10). */
#include "acquire.h"

/* Chooses among the numbers that are free at all of these masters: first those that the request's
 * own records have already, then the lowest, or else the highest. */
static bool choose_at(const struct op *op, uint32_t masters, struct permits own, bool highest,
	struct permits *set) {
	struct permits free = permits_all(op->terms.of);
	for (uint32_t left = masters; left; left &= left - 1) {
		const struct vote *v = &op->votes[__builtin_ctz(left)];
		/* Where the own record stands, only its numbers are known to be free. */
		free = v->state == VOTE_SELF
			? permits_but(free, permits_but(permits_all(op->terms.of), v->set))
			: permits_but(free, v->set);
	}
	struct permits mine = permits_but(free, permits_but(free, own));
	*set = (struct permits){ { 0, 0 } };
	if (highest) {
		struct permits skip = { { 0, 0 } };
		const uint32_t n = permits_count(free);
		(void)permits_lowest(free, n > op->terms.count ? n - op->terms.count : 0, &skip);
		*set = permits_but(free, skip);
		return n >= op->terms.count;
	}
	uint32_t taken = permits_lowest(mine, op->terms.count, set);
	return taken + permits_lowest(permits_but(free, mine), op->terms.count - taken, set) ==
		op->terms.count;
}

/* Section 5, Together: tells whether q masters have promised to no other coordinator. Then the
 * attempt does without the home's word. */
bool attempt_alone(const struct core *core, const struct op *op) {
	uint32_t alone = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		alone += op->votes[i].state == VOTE_OK && op->votes[i].alone;
	}
	return alone >= core->quorum;
}

/* Tells whether the numbers that the home has reserved are free at q masters. */
static bool home_choice(const struct core *core, const struct op *op, const struct vote *home,
	struct permits *set) {
	*set = (struct permits){ { 0, 0 } };
	if (permits_lowest(permits_but(permits_all(op->terms.of), home->set), op->terms.count,
		set) < op->terms.count) {
		return false;
	}
	uint32_t free = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		free += op->votes[i].state == VOTE_OK && !permits_meet(op->votes[i].set, *set);
	}
	return free >= core->quorum;
}

/* Tells whether the home is still to say what it has reserved, or other masters are to hear that
 * this is free. */
static bool waits_for_home(const struct core *core, const struct op *op, const struct vote *home,
	uint32_t open) {
	const bool waits = op->state == OP_TURN && !op_acquire(op)->home_waited &&
		!op_acquire(op)->try_lock;
	return home->state == VOTE_OK ? open > 0 || waits
		: !peer_suspect(core, (uint32_t)op_acquire(op)->home) &&
			(home->state == VOTE_ASKED || (home->state == VOTE_PARKED && waits));
}

/* Tries all masters that promised first, and then any q of them. */
bool attempt_choose_permits(const struct core *core, const struct op *op, uint32_t open,
	struct permits *set) {
	uint32_t alive = 0;
	struct permits own = { { 0, 0 } };
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct vote *v = &op->votes[i];
		if (v->state == VOTE_OK || v->state == VOTE_SELF) {
			alive |= 1u << i;
			own = v->state == VOTE_SELF ? permits_or(own, v->set) : own;
		}
	}
	const int index = op_acquire(op)->home;
	const struct vote *home = index >= 0 && permits_none(own) ? &op->votes[index] : NULL;
	const bool decides = home && !attempt_alone(core, op);
	if (home && home->state == VOTE_OK && home_choice(core, op, home, set)) {
		return true;
	}
	if (decides && waits_for_home(core, op, home, open)) {
		return false;
	}
	/* The next ones have the lowest reserved. */
	const bool highest = decides && home->state == VOTE_OK;
	if (choose_at(op, alive, own, highest, set)) {
		return true;
	}
	for (uint32_t some = alive; some; some = (some - 1) & alive) {
		if ((uint32_t)__builtin_popcount(some) == core->quorum &&
			choose_at(op, some, own, highest, set)) {
			return true;
		}
	}
	return false;
}
