/* timer.c: sets timers on the node's wheel. A timer only wakes; whoever is woken asks both
 * clocks. */
#include "engine.h"

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
