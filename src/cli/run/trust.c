/* trust.c: the deadline in memory that two processes share. The deadline never moves to an earlier
 * time. */
#include "trust.h"

#include <time.h>

static int64_t clock_read(clockid_t clock) {
	struct timespec t;
	/* This cannot fail for clocks that the kernel has had since 2.6.39. */
	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t trust_boot_now(void) {
	return clock_read(CLOCK_BOOTTIME);
}

static void grow(_Atomic int64_t *word, int64_t to) {
	if (atomic_load(word) < to) {
		/* There is only one writer. */
		atomic_store(word, to);
	}
}

void trust_extend(struct trust *t, int64_t boot_ns, int64_t raw_ns) {
	grow(&t->boot_ns, boot_ns);
	grow(&t->raw_ns, raw_ns);
}

int64_t trust_left(const struct trust *t) {
	int64_t boot = atomic_load(&t->boot_ns) - clock_read(CLOCK_BOOTTIME);
	int64_t raw = atomic_load(&t->raw_ns) - clock_read(CLOCK_MONOTONIC_RAW);
	return boot < raw ? boot : raw;
}
