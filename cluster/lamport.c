/* lamport.c: the Lamport clock from which tokens are taken, and how fast others may raise it (section 9). */
#include "state.h"

/* The greatest clock that this node takes from others now: up to CLOCK_JUMP_MAX above its own, and over time one a nanosecond. A clock above the
 * limit comes from a jump that the protocol allows (a start, a merge before it votes): such a clock begins with the whole margin. */
uint64_t clock_most(const struct core *core) {
	uint64_t bound = core->clock < TOKEN_MAX - CLOCK_JUMP_MAX ? core->clock + CLOCK_JUMP_MAX : TOKEN_MAX;
	if (core->clock_limit >= core->clock) {
		const uint64_t grown = core->clock_limit + (uint64_t)instant_elapsed_short(core->now, core->clock_limit_at);
		bound = grown < bound ? grown : bound;
	}
	return bound;
}

void clock_limit_raise(struct core *core, uint64_t limit) {
	core->clock_limit = limit;
	core->clock_limit_at = core->now;
}

void master_raise_clock(struct core *core, uint64_t clock) {
	if (clock > core->clock) {
		clock_limit_raise(core, clock_most(core));
		core->clock = clock;
		ceiling_raise(core);
	}
}

/* Counted and reported, never adopted (section 9). */
void master_clock_refused(struct core *core, uint32_t from, uint64_t clock, struct slice key) {
	COUNT(core, clock_refused);
	out_note(core, NOTE_CLOCK_REFUSED, from, clock, NULL, key);
}
