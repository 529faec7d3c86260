/* sim_clock.h: the two clocks of one machine, as functions of true time. Rates are in parts per
 * billion above true time: a machine whose rates all lie in 0 .. drift keeps the bound of
 * docs/protocol.md, Time, against any other such machine. */
#ifndef PAWL_SIM_CLOCK_H
#define PAWL_SIM_CLOCK_H

#include "clock.h"

struct sim_clock {
	/* What the clocks showed at base_true. */
	int64_t base_true, base_boot, base_raw;
	int64_t boot_ppb, raw_ppb;
	/* The raw clock stands still, and the boot clock goes on. */
	bool suspended;
};

void sim_clock_init(struct sim_clock *c, int64_t now, int64_t boot, int64_t raw, int64_t boot_ppb,
	int64_t raw_ppb);
struct instant sim_clock_read(const struct sim_clock *c, int64_t now);
void sim_clock_set_rates(struct sim_clock *c, int64_t now, int64_t boot_ppb, int64_t raw_ppb);
void sim_clock_suspend(struct sim_clock *c, int64_t now, bool suspended);
/* The first true time, not before `now`, at which the boot clock shows at least `boot`. */
int64_t sim_clock_when(const struct sim_clock *c, int64_t now, int64_t boot);

#endif
