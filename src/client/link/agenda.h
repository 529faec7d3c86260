/* agenda.h: alarms on CLOCK_BOOTTIME (docs/protocol.md, Time). The timers of libevent would not do,
 * because they stand still while the machine is suspended. All alarms share one timerfd, which is
 * set again only when an earlier alarm comes up. */
#ifndef PAWL_CLIENT_AGENDA_H
#define PAWL_CLIENT_AGENDA_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "env.h"
#include "wheel.h"

struct alarm {
	struct wheel_timer timer;
	/* Called when the alarm is due. It may free the structure that contains the alarm. */
	void (*ring)(struct alarm *alarm);
};

struct agenda {
	/* Borrowed. */
	const struct env *env;
	struct wheel wheel;

	/* The timerfd; -1 if the clocks are moved by hand. */
	int fd;
	/* The loop watches `fd`; `event` does that. */
	bool watched;

	/* When the timer goes off, in ns of CLOCK_BOOTTIME; INT64_MAX if it is not set. */
	int64_t armed_ns;
	struct event event;
};

/* Returns 0, PAWL_EIO or PAWL_ENOMEM. The loop calls `wake` when alarms may be due; `wake` must
 * call agenda_ring. */
int agenda_init(struct agenda *a, const struct env *env, struct event_base *base,
	event_callback_fn wake, void *ctx);
/* Frees what the agenda holds. It accepts zeroed memory, and an agenda that agenda_init has
 * refused. */
void agenda_done(struct agenda *a);

/* Sets the alarm to ring once, at that time. If the alarm is already set, it is moved. */
void agenda_set(struct agenda *a, struct alarm *alarm, int64_t boot_ns);
void agenda_clear(struct agenda *a, struct alarm *alarm);
/* Rings all alarms that are due. */
void agenda_ring(struct agenda *a);
/* Sets the timer for the earliest alarm. Call this once in each turn of the loop. */
void agenda_settle(struct agenda *a);

#endif
