/* trust.h: until when a lock may be trusted. The process that renews the lock tells it to the
 * process that guards what runs under the lock.
 *
 * The deadline lies in memory that both share, with one word for each clock. Both words only ever
 * grow. So a reader that sees one of them new and the other old errs on the safe side, and a writer
 * that is stopped or killed in between does no harm. Trust ends when EITHER clock says so
 * (docs/protocol.md, Time). */
#ifndef PAWL_CLI_TRUST_H
#define PAWL_CLI_TRUST_H

#include <stdatomic.h>
#include <stdint.h>

struct trust {
	/* On CLOCK_BOOTTIME. */
	_Atomic int64_t boot_ns;
	/* On CLOCK_MONOTONIC_RAW. */
	_Atomic int64_t raw_ns;
};

int64_t trust_boot_now(void);
/* Moves the deadline, but never to an earlier time. */
void trust_extend(struct trust *t, int64_t boot_ns, int64_t raw_ns);
/* Returns how much time is left, in ns, by the clock that says less; it may be negative. */
int64_t trust_left(const struct trust *t);

#endif
