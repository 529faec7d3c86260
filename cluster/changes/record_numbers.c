/* record_numbers.c: a semaphore's record loses permit numbers, or all of them. */
#include "changes.h"

void record_drop_numbers(struct core *core, struct key *key, struct record *r,
	struct permits numbers) {
	/* A record without a number is nobody's. */
	if (permits_within(record_set(r), numbers)) {
		record_drop(core, key, r, RECORD_RELEASED);
		return;
	}
	record_lose_numbers(core, key, r, numbers);
	key_ended(core, key);
	table_settle(core, key);
}

bool record_roll_back(struct core *core, struct key *key, struct record *r, uint64_t name) {
	const struct lapsing l = record_lapsing(r);
	if (permits_none(l.set) || l.rests_on != name || r->rests_on == name) {
		return false;
	}
	record_drop_numbers(core, key, r, l.set);
	return true;
}
