/* sim_clock.c: the two clocks of a machine, as functions of true time. */
#include "sim_clock.h"

#define PPB 1000000000

/* It needs 128 bits: nanoseconds times parts per billion pass 2^63 after some fifteen minutes. */
__extension__ typedef __int128 wide;

static int64_t scaled(int64_t d, int64_t ppb) {
	return d + (int64_t)((wide)d * ppb / PPB);
}

void sim_clock_init(struct sim_clock *c, int64_t now, int64_t boot, int64_t raw, int64_t boot_ppb,
	int64_t raw_ppb) {
	*c = (struct sim_clock){ now, boot, raw, boot_ppb, raw_ppb, false };
}

struct instant sim_clock_read(const struct sim_clock *c, int64_t now) {
	int64_t d = now - c->base_true;
	return (struct instant){ c->base_boot + scaled(d, c->boot_ppb),
		c->base_raw + (c->suspended ? 0 : scaled(d, c->raw_ppb)) };
}

static void rebase(struct sim_clock *c, int64_t now) {
	struct instant t = sim_clock_read(c, now);
	c->base_true = now;
	c->base_boot = t.boot;
	c->base_raw = t.raw;
}

void sim_clock_set_rates(struct sim_clock *c, int64_t now, int64_t boot_ppb, int64_t raw_ppb) {
	rebase(c, now);
	c->boot_ppb = boot_ppb;
	c->raw_ppb = raw_ppb;
}

void sim_clock_suspend(struct sim_clock *c, int64_t now, bool suspended) {
	rebase(c, now);
	c->suspended = suspended;
}

int64_t sim_clock_when(const struct sim_clock *c, int64_t now, int64_t boot) {
	struct instant t = sim_clock_read(c, now);
	if (boot <= t.boot) {
		return now;
	}
	if (boot - t.boot > INT64_MAX / 4) {
		return INT64_MAX;
	}
	int64_t d = (int64_t)((wide)(boot - t.boot) * PPB / (PPB + c->boot_ppb));
	int64_t when = now + d;
	while (sim_clock_read(c, when).boot < boot) {
		when++;
	}
	return when;
}
