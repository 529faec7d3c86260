/* lacked.c: how long a master has lacked a lock_id (section 2, Extend, Lost). Several lock_ids
 * share a place, and the last end of any of them counts, so that what the master says is never too
 * long. */
#include "store.h"

uint32_t lacked_place(const struct core *core, struct id128 lock_id) {
	return (uint32_t)(hash_lock_id(core, lock_id) % LACKED_PLACES);
}

void lacked_since(struct core *core, struct id128 lock_id, struct instant at) {
	struct instant *p = &core->store.lacked[lacked_place(core, lock_id)];
	*p = instant_later(*p, at);
}

uint64_t lacked_us_since(const struct core *core, struct instant last) {
	return (uint64_t)(instant_elapsed_short(core->now,
		instant_later(core->store.vote_began, last)) / SPAN_US);
}

uint64_t lacked_us(const struct core *core, struct id128 lock_id) {
	return lacked_us_since(core, core->store.lacked[lacked_place(core, lock_id)]);
}
