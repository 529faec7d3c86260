/* agenda.h: alarms on CLOCK_BOOTTIME (docs/protocol.md, Time): a timer of the loop itself would stand still while the machine
 * is suspended. One timerfd for all, moved only when an earlier alarm comes up. */
#ifndef PAWL_CLIENT_AGENDA_H
#define PAWL_CLIENT_AGENDA_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "env.h"
#include "wheel.h"

struct alarm {
	struct wheel_timer timer;
	void (*ring)(struct alarm *alarm); /* may free what the alarm is in */
};

struct agenda {
	const struct env *env; /* borrowed */
	struct wheel wheel;
	int fd; /* -1: clocks are moved by hand */
	bool watched;
	int64_t armed_ns; /* when the timer goes off; INT64_MAX: it does not */
	struct event event;
};

/* 0, PAWL_EIO or PAWL_ENOMEM. `wake` is called from the loop when alarms may be due: call agenda_ring. */
int agenda_init(struct agenda *a, const struct env *env, struct event_base *base, event_callback_fn wake, void *ctx);
void agenda_done(struct agenda *a); /* accepts zeroed memory and what agenda_init has refused */

/* Rings once at that time; an alarm that is set already is moved. */
void agenda_set(struct agenda *a, struct alarm *alarm, int64_t boot_ns);
void agenda_clear(struct agenda *a, struct alarm *alarm);
/* Rings what is due. */
void agenda_ring(struct agenda *a);
/* Makes the timer right, once a turn. */
void agenda_settle(struct agenda *a);

#endif
