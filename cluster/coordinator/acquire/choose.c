/* choose.c: chooses the numbers of the permits that an attempt asks for (section 10). */
#include "acquire.h"

/* Chooses among the numbers that are free at all of these masters: first those that the request's
 * own records have already, then the lowest. */
static bool choose_at(const struct op *op, uint32_t masters, struct permits own,
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
	uint32_t taken = permits_lowest(mine, op->terms.count, set);
	return taken + permits_lowest(permits_but(free, mine), op->terms.count - taken, set) ==
		op->terms.count;
}

/* Tries all masters that promised first, and then any q of them. */
bool attempt_choose_permits(const struct core *core, const struct op *op, struct permits *set) {
	uint32_t alive = 0;
	struct permits own = { { 0, 0 } };
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct vote *v = &op->votes[i];
		if (v->state == VOTE_OK || v->state == VOTE_SELF) {
			alive |= 1u << i;
			own = v->state == VOTE_SELF ? permits_or(own, v->set) : own;
		}
	}
	if (choose_at(op, alive, own, set)) {
		return true;
	}
	for (uint32_t some = alive; some; some = (some - 1) & alive) {
		if ((uint32_t)__builtin_popcount(some) == core->quorum &&
			choose_at(op, some, own, set)) {
			return true;
		}
	}
	return false;
}
