/* time_source.h: the one place where clocks are read (docs/protocol.md, Time). */
#ifndef PAWL_NET_TIME_SOURCE_H
#define PAWL_NET_TIME_SOURCE_H

#include "clock.h"

/* Reads CLOCK_BOOTTIME and CLOCK_MONOTONIC_RAW together. It never returns the loop's cached time,
 * because with that, a loop that was stopped would take old messages for new ones. */
struct instant time_source_now(void);

#endif
