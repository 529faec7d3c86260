/* wheel.h: a hierarchical timing wheel (Varghese and Lauck, 1987) over one clock in nanoseconds,
 * with ticks of 2^20 ns (about 1 ms). Insertion, removal and moving cost O(1). A timer fires at its
 * time or up to one tick after it, never before. The time is handed in.
 *
 * A slot that comes up may hold a million timers. It is emptied in as many calls as its owner likes
 * (wheel_expire_some). */
#ifndef PAWL_BASE_WHEEL_H
#define PAWL_BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"

#define WHEEL_TICK_BITS 20
#define WHEEL_SLOT_BITS 8
/* The levels hold 2^(20+40) ns, which is 36 years. What lies beyond is kept in the last slot and
 * moved on. */
#define WHEEL_LEVELS 5

struct wheel_timer {
	struct list link;
	/* The tick at which the timer fires. */
	uint64_t tick : 44;
	/* For the owner, who may have timers of several kinds; and 16 bits for whatever it likes,
	 * which would be lost otherwise. */
	uint64_t kind : 4;
	uint64_t own : 16;
};

struct wheel {
	/* The latest time that was handed in. */
	int64_t now_ns;
	/* Ticks before this one have been dealt with. Its own slot holds what is due. */
	uint64_t now_tick;
	uint64_t count;
	/* A bit for each slot that is not empty. */
	uint64_t occupied[WHEEL_LEVELS][(1 << WHEEL_SLOT_BITS) / 64];
	struct list slots[WHEEL_LEVELS][1 << WHEEL_SLOT_BITS];
	/* Timers of slots that have come up. They are placed anew before the present goes on. */
	struct list moving;
};

void wheel_init(struct wheel *w, int64_t now_ns);

/* Arms a timer, or moves one that is armed. A timer whose time has passed fires at the next
 * advance. Zeroed timers are unarmed. */
void wheel_arm(struct wheel *w, struct wheel_timer *t, int64_t at_ns);

/* Disarms a timer. An unarmed one stays so. */
void wheel_disarm(struct wheel *w, struct wheel_timer *t);

static inline bool wheel_armed(const struct wheel_timer *t) {
	return list_linked(&t->link);
}

/* Tells whether the timer is armed for a time that is not after this one. */
bool wheel_fires_by(const struct wheel_timer *t, int64_t at_ns);

/* Returns the next timer that is due at now_ns, and disarms it; NULL: there is none left. It is to
 * be called until it returns NULL. Timers that are armed meanwhile for a time that has passed are
 * returned, too. Timers come in the order of their ticks. */
struct wheel_timer *wheel_expire(struct wheel *w, int64_t now_ns);

/* As wheel_expire, but it also returns NULL when `*budget` is used up. Each timer that is returned
 * or placed anew costs one. If something was left, wheel_deadline is a time that has passed. */
struct wheel_timer *wheel_expire_some(struct wheel *w, int64_t now_ns, uint32_t *budget);

/* Returns the time at which to call wheel_expire again: never later than the first timer needs,
 * perhaps earlier. INT64_MAX: there are no timers. */
int64_t wheel_deadline(const struct wheel *w);

#endif
