/* preparing.c: updates of one value that come at once (section 2, Update): for a short while a master refuses another update's Prepare, and its write, where
 * one has been accepted and its write has not come, so that none is overtaken between its two phases. Who is refused pauses. Few are under
 * way at a time: the oldest gives way, and is then protected no more. */
#include "store.h"

static bool of_op(const struct preparing *p, uint32_t from, uint64_t round) {
	return p->peer == from && p->op == round >> 16;
}

/* Somebody else's, whose write may be on its way. */
bool preparing_busy(const struct core *core, const struct record *r, uint32_t from, uint64_t round) {
	if (ballot_compare(r->wrote, r->prepared) == 0) {
		return false;
	}
	for (uint32_t i = 0; i < PREPARING_MAX; i++) {
		const struct preparing *p = &core->store.preparing[i];
		if (p->op && id128_equal(p->lock_id, r->lock_id) && ballot_compare(p->ballot, r->prepared) == 0) {
			return !of_op(p, from, round) && !instant_distrusted(core->now, p->until);
		}
	}
	return false;
}

void preparing_note(struct core *core, const struct record *r, uint32_t from, uint64_t round) {
	struct preparing *p = &core->store.preparing[core->store.preparing_next];
	core->store.preparing_next = (core->store.preparing_next + 1) % PREPARING_MAX;
	*p = (struct preparing){ .lock_id = r->lock_id, .ballot = r->prepared, .op = round >> 16, .peer = from,
		.until = instant_add(core->now, core->config.request_timeout / 4) };
}

/* It was refused elsewhere, and will not write under this ballot. */
void preparing_drop(struct core *core, uint32_t from, const struct message *m) {
	for (uint32_t i = 0; i < PREPARING_MAX; i++) {
		struct preparing *p = &core->store.preparing[i];
		if (m->attempt && of_op(p, from, m->attempt) && id128_equal(p->lock_id, m->lock_id)) {
			p->op = 0;
		}
	}
}
