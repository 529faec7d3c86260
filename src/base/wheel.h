/* wheel.h: hierarchical timing wheel (Varghese and Lauck, 1987) over one clock in ns, with ticks of 2^20 ns (about 1 ms).
 * Insertion, removal and moving cost O(1). A timer fires at or up to one tick after its time, never before. Pure: time is handed in.
 *
 * A slot that comes up may hold a million timers. It is emptied in as many calls as its owner likes: wheel_expire_some.
 */
#ifndef PAWL_BASE_WHEEL_H
#define PAWL_BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"

#define WHEEL_TICK_BITS 20
#define WHEEL_SLOT_BITS 8
#define WHEEL_LEVELS 5 /* 2^(20+40) ns: 36 years; what lies beyond is kept in the last slot and moved on */

struct wheel_timer {
	struct list link;
	uint64_t tick : 56; /* when it fires */
	uint64_t kind : 8;  /* the owner's, who may have several kinds */
};

struct wheel {
	int64_t now_ns; /* latest time handed in */
	uint64_t now_tick; /* ticks before this one have been dealt with; its own slot holds what is due */
	uint64_t count;
	uint64_t occupied[WHEEL_LEVELS][(1 << WHEEL_SLOT_BITS) / 64]; /* a bit for each slot that is not empty */
	struct list slots[WHEEL_LEVELS][1 << WHEEL_SLOT_BITS];
	struct list moving; /* timers of slots that have come up: to be placed anew before the present goes on */
};

void wheel_init(struct wheel *w, int64_t now_ns);
/* (Re)arms: a timer that is armed is moved. A time that has passed fires at the next advance. Zeroed timers are unarmed. */
void wheel_arm(struct wheel *w, struct wheel_timer *t, int64_t at_ns);
void wheel_disarm(struct wheel *w, struct wheel_timer *t); /* an unarmed one stays so */
static inline bool wheel_armed(const struct wheel_timer *t) {
	return list_linked(&t->link);
}

/* Next timer that is due at now_ns, unarmed and returned; NULL when there is none left. Call until NULL. Timers armed
 * meanwhile for a time that has passed are returned too, in order of their ticks as far as the tick tells. */
struct wheel_timer *wheel_expire(struct wheel *w, int64_t now_ns);

/* The same, and NULL also when `*budget` is used up: each timer that is returned, or placed anew, costs one. Then wheel_deadline is past,
 * unless there was nothing left. */
struct wheel_timer *wheel_expire_some(struct wheel *w, int64_t now_ns, uint32_t *budget);

/* A time at which to call wheel_expire again (never later than the first timer needs, perhaps earlier); INT64_MAX: no timers. */
int64_t wheel_deadline(const struct wheel *w);

#endif
