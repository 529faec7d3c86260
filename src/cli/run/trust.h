/* trust.h: until when a lock may be trusted, told by the process that renews it to the one that guards what runs under it.
 *
 * The deadline lies in memory that both share: a word for each clock. Both only ever grow, so a reader that sees one of them
 * new and the other old errs to the safe side, and a writer that is stopped or killed in between does no harm. Trust ends
 * when EITHER clock says so (docs/protocol.md, Time).
 */
#ifndef PAWL_CLI_TRUST_H
#define PAWL_CLI_TRUST_H

#include <stdatomic.h>
#include <stdint.h>

struct trust {
	_Atomic int64_t boot_ns; /* CLOCK_BOOTTIME */
	_Atomic int64_t raw_ns;  /* CLOCK_MONOTONIC_RAW */
};

int64_t trust_boot_now(void);
void trust_extend(struct trust *t, int64_t boot_ns, int64_t raw_ns); /* never shortens */
/* What is left, by the clock that says less; may be negative. */
int64_t trust_left(const struct trust *t);

#endif
