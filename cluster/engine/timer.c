/* timer.c: sets timers on the node's wheel. A timer only wakes; whoever is woken asks both
 * clocks. */
#include "engine.h"

/* The wheel runs on CLOCK_BOOTTIME. Where the other clock reaches the end later, the timer is set
 * later by the difference. */
void timer_at(struct core *core, struct timer *t, enum timer_kind kind, struct instant at) {
	int64_t behind = clock_saturating_add(at.raw, -core->now.raw);
	int64_t boot = clock_saturating_add(core->now.boot, behind);
	t->wheel.kind = (unsigned)kind & 15;
	wheel_arm(&core->engine.wheel, &t->wheel, at.boot > boot ? at.boot : boot);
}

void timer_stop(struct core *core, struct timer *t) {
	wheel_disarm(&core->engine.wheel, &t->wheel);
}
