/* clock.c: the clocks of a node: the Lamport clock from which tokens are taken, and how fast others
 * may raise it (section 9); and timers by the clocks of the system. */
#include "engine.h"

uint64_t clock_later(uint64_t clock, uint64_t by) {
	return clock < TOKEN_MAX - by ? clock + by : TOKEN_MAX;
}

/* Returns the limit on the clocks of others: it has grown by one for each nanosecond since it was
 * set. Where this node's own clock is above the limit, that clock comes from a jump that the
 * protocol allows (a start, a merge before it votes). Such a clock begins with the whole margin. */
static uint64_t clock_limit_grown(const struct core *core) {
	const uint64_t limit = core->engine.clock_limit >= core->clock ? core->engine.clock_limit
		: clock_later(core->clock, CLOCK_JUMP_MAX);
	return clock_later(limit, (uint64_t)instant_elapsed_short(core->now,
		core->engine.clock_limit_at));
}

/* Mostly the limit need not have grown. */
bool clock_within(const struct core *core, uint64_t clock) {
	return clock <= core->clock || (clock <= clock_later(core->clock, CLOCK_JUMP_MAX) &&
		(clock <= core->engine.clock_limit || clock <= clock_limit_grown(core)));
}

uint64_t clock_most(const struct core *core) {
	const uint64_t grown = clock_limit_grown(core),
		bound = clock_later(core->clock, CLOCK_JUMP_MAX);
	return grown < bound ? grown : bound;
}

uint64_t clock_most_since(const struct core *core, struct instant since) {
	const uint64_t late = clock_later(clock_most(core),
			(uint64_t)instant_elapsed_short(core->now, since)),
		grown = clock_limit_grown(core);
	return late < grown ? late : grown;
}

void clock_limit_raise(struct core *core, uint64_t limit) {
	core->engine.clock_limit = limit;
	core->engine.clock_limit_at = core->now;
}

void clock_raise(struct core *core, uint64_t clock) {
	if (clock > core->clock) {
		const uint64_t most = clock_most(core);
		clock_limit_raise(core, clock > most && clock <= clock_limit_grown(core) ? clock
			: most);
		core->clock = clock;
		ceiling_raise(core);
	}
}

void clock_refused(struct core *core, uint32_t from, uint64_t clock, struct slice key) {
	COUNT(core, clock_refused);
	out_note(core, NOTE_CLOCK_REFUSED, from, clock, NULL, key);
}

/* ---- timers ---- */

/* The wheel runs on CLOCK_BOOTTIME. Where the other clock reaches the end later, the timer is set
 * later by the difference. */
static int64_t wheel_time(const struct core *core, struct instant at) {
	int64_t behind = clock_saturating_add(at.raw, -core->now.raw);
	int64_t boot = clock_saturating_add(core->now.boot, behind);
	return at.boot > boot ? at.boot : boot;
}

void timer_at(struct core *core, struct timer *t, enum timer_kind kind, struct instant at) {
	t->wheel.kind = (unsigned)kind & 15;
	wheel_arm(&core->engine.wheel, &t->wheel, wheel_time(core, at));
}

void timer_by(struct core *core, struct timer *t, enum timer_kind kind, struct instant at) {
	if (!wheel_fires_by(&t->wheel, wheel_time(core, at)) || t->wheel.kind != (unsigned)kind) {
		timer_at(core, t, kind, at);
	}
}

void timer_stop(struct core *core, struct timer *t) {
	wheel_disarm(&core->engine.wheel, &t->wheel);
}
