/* wheel.c: the timing wheel. A timer's level is the position of the highest byte in which its tick
 * differs from the present tick. So a slot of level l is 256^l ticks wide, all its timers are ahead
 * of the present, and no slot wraps around. Only the last level is a ring, whose farthest slot
 * takes what lies beyond:
 *
 *     level 4 (ring) | level 3 | level 2 | level 1 | level 0      bytes of the tick, high end first
 *
 * The present slots of levels 1 to 4 are always empty; that of level 0 holds what is due. When a
 * slot of a higher level comes up, what it holds goes to `moving` as a whole, and from there to the
 * levels below one by one. The present stands still meanwhile. */
#include "wheel.h"

#include "check.h"

#define SLOTS ((uint64_t)1 << WHEEL_SLOT_BITS)
#define SLOT_MASK (SLOTS - 1)
#define TOP (WHEEL_LEVELS - 1)
#define TOP_SHIFT (TOP * WHEEL_SLOT_BITS)
#define NO_TICK UINT64_MAX

#define TICK_MASK ((UINT64_C(1) << 44) - 1)

_Static_assert(WHEEL_SLOT_BITS * WHEEL_LEVELS < 44, "a tick has the bits of all levels");
_Static_assert(63 - WHEEL_TICK_BITS < 44, "it has the bits of all times");

static uint64_t wheel_tick_above(int64_t ns) {
	return ns <= 0 ? 0 : (((uint64_t)ns - 1) >> WHEEL_TICK_BITS) + 1;
}

void wheel_init(struct wheel *w, int64_t now_ns) {
	*w = (struct wheel){ .now_ns = now_ns,
		.now_tick = now_ns > 0 ? (uint64_t)now_ns >> WHEEL_TICK_BITS : 0 };
	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		for (uint64_t slot = 0; slot < SLOTS; slot++) {
			list_init(&w->slots[level][slot]);
		}
	}
	list_init(&w->moving);
}

/* Puts an unlinked timer into the slot of its tick, as seen from now_tick. */
static void wheel_place(struct wheel *w, struct wheel_timer *t) {
	uint64_t tick = t->tick > w->now_tick ? t->tick : w->now_tick;
	uint64_t differs = tick ^ w->now_tick;
	unsigned level = differs ? (unsigned)(63 - __builtin_clzll(differs)) / WHEEL_SLOT_BITS : 0;
	uint64_t slot;
	if (level < TOP) {
		slot = (tick >> level * WHEEL_SLOT_BITS) & SLOT_MASK;
	} else {
		uint64_t now = w->now_tick >> TOP_SHIFT, at = tick >> TOP_SHIFT;
		level = TOP;
		slot = (at - now < SLOTS ? at : now + SLOTS - 1) & SLOT_MASK;
	}
	list_append(&w->slots[level][slot], &t->link);
	w->occupied[level][slot / 64] |= UINT64_C(1) << (slot % 64);
	w->count++;
}

void wheel_arm(struct wheel *w, struct wheel_timer *t, int64_t at_ns) {
	wheel_disarm(w, t);
	t->tick = (at_ns <= w->now_ns ? w->now_tick : wheel_tick_above(at_ns)) & TICK_MASK;
	wheel_place(w, t);
}

void wheel_disarm(struct wheel *w, struct wheel_timer *t) {
	if (!wheel_armed(t)) {
		return;
	}
	/* The timer is alone in its slot: its only neighbour is the slot's head. */
	if (t->link.next == t->link.prev && t->link.next != &w->moving) {
		size_t i = (size_t)(t->link.next - &w->slots[0][0]);
		w->occupied[i / SLOTS][i % SLOTS / 64] &= ~(UINT64_C(1) << (i % 64));
	}
	list_remove(&t->link);
	w->count--;
}

bool wheel_fires_by(const struct wheel_timer *t, int64_t at_ns) {
	return wheel_armed(t) && t->tick <= wheel_tick_above(at_ns);
}

/* Returns the first occupied slot of a level in from .. to-1, or SLOTS. */
static uint64_t wheel_find(const struct wheel *w, unsigned level, uint64_t from, uint64_t to) {
	for (uint64_t slot = from; slot < to; slot = (slot / 64 + 1) * 64) {
		uint64_t bits = w->occupied[level][slot / 64] >> (slot % 64);
		if (bits) {
			slot += (uint64_t)__builtin_ctzll(bits);
			return slot < to ? slot : SLOTS;
		}
	}
	return SLOTS;
}

/* Returns the next tick after now_tick at which a slot comes up. Its timers then fire (level 0) or
 * are spread over the levels below. */
static uint64_t wheel_next_tick(const struct wheel *w) {
	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		const unsigned shift = level * WHEEL_SLOT_BITS;
		uint64_t now = w->now_tick >> shift;
		uint64_t slot = wheel_find(w, level, (now & SLOT_MASK) + 1, SLOTS);
		if (slot < SLOTS) {
			return (now - (now & SLOT_MASK) + slot) << shift;
		}
	}
	uint64_t now = w->now_tick >> TOP_SHIFT;
	uint64_t slot = wheel_find(w, TOP, 0, now & SLOT_MASK);
	return slot < SLOTS ? (now - (now & SLOT_MASK) + SLOTS + slot) << TOP_SHIFT : NO_TICK;
}

/* Takes all timers out of a slot, so that they are placed anew. */
static void wheel_open(struct wheel *w, unsigned level, uint64_t slot) {
	struct list *head = &w->slots[level][slot];
	if (list_empty(head)) {
		return;
	}
	struct list *last = w->moving.prev;
	last->next = head->next;
	head->next->prev = last;
	head->prev->next = &w->moving;
	w->moving.prev = head->prev;
	list_init(head);
	w->occupied[level][slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

/* Moves to a tick at which a slot comes up, and empties the slots of the higher levels that the
 * present has reached. */
static void wheel_advance(struct wheel *w, uint64_t tick) {
	w->now_tick = tick;
	for (unsigned level = TOP; level > 0; level--) {
		const unsigned shift = level * WHEEL_SLOT_BITS;
		if (tick & ((UINT64_C(1) << shift) - 1)) {
			/* The tick is in the middle of this level's slot, which was emptied when it
			 * began. */
			continue;
		}
		wheel_open(w, level, (tick >> shift) & SLOT_MASK);
	}
}

struct wheel_timer *wheel_expire_some(struct wheel *w, int64_t now_ns, uint32_t *budget) {
	if (now_ns > w->now_ns) {
		w->now_ns = now_ns;
	}
	const uint64_t target = w->now_ns > 0 ? (uint64_t)w->now_ns >> WHEEL_TICK_BITS : 0;
	while (*budget > 0) {
		struct list *due = list_first(&w->slots[0][w->now_tick & SLOT_MASK]),
			*moves = due ? NULL : list_first(&w->moving);
		if (due || moves) {
			struct wheel_timer *t =
				CONTAINER_OF(due ? due : moves, struct wheel_timer, link);
			--*budget;
			wheel_disarm(w, t);
			if (due) {
				CHECK(t->tick <= w->now_tick);
				return t;
			}
			wheel_place(w, t);
			continue;
		}
		uint64_t next = w->count ? wheel_next_tick(w) : NO_TICK;
		if (next > target) {
			/* No slot begins on the way, so every timer keeps its place. */
			w->now_tick = target;
			return NULL;
		}
		wheel_advance(w, next);
	}
	return NULL;
}

struct wheel_timer *wheel_expire(struct wheel *w, int64_t now_ns) {
	for (;;) {
		uint32_t budget = UINT32_MAX;
		struct wheel_timer *t = wheel_expire_some(w, now_ns, &budget);
		if (t || budget > 0) {
			return t;
		}
	}
}

int64_t wheel_deadline(const struct wheel *w) {
	if (w->count == 0) {
		return INT64_MAX;
	}
	bool due = !list_empty(&w->slots[0][w->now_tick & SLOT_MASK]) || !list_empty(&w->moving);
	uint64_t tick = due ? w->now_tick : wheel_next_tick(w);
	return tick > (uint64_t)INT64_MAX >> WHEEL_TICK_BITS ? INT64_MAX
		: (int64_t)(tick << WHEEL_TICK_BITS);
}
