/* preparing.c: several updates of one value at once (section 2, Update). For a short while after a
 * master has noted the ballot of an update, and until its write comes, it refuses the Prepare of
 * any other update, and its write, so that no update is overtaken between its two phases. The
 * coordinator that is refused pauses. Few updates are under way at a time; when there are too many,
 * the oldest one is protected no more. */
#include "store.h"

static bool of_op(const struct preparing *p, uint32_t from, uint64_t round) {
	return p->peer == from && p->op == round >> 16;
}

bool preparing_busy(const struct core *core, const struct record *r, uint32_t from,
	uint64_t round) {
	if (ballot_compare(record_wrote(core, r), record_prepared(core, r)) == 0) {
		return false;
	}
	for (uint32_t i = 0; i < PREPARING_MAX; i++) {
		const struct preparing *p = &core->store.preparing[i];
		if (p->op && id128_equal(p->lock_id, r->lock_id) &&
			ballot_compare(p->ballot, record_prepared(core, r)) == 0) {
			return !of_op(p, from, round) && !instant_distrusted(core->now, p->until);
		}
	}
	return false;
}

void preparing_note(struct core *core, const struct record *r, uint32_t from, uint64_t round) {
	struct preparing *p = &core->store.preparing[core->store.preparing_next];
	core->store.preparing_next = (core->store.preparing_next + 1) % PREPARING_MAX;
	*p = (struct preparing){ .lock_id = r->lock_id, .ballot = record_prepared(core, r),
		.op = round >> 16, .peer = from,
		.until = instant_add(core->now, core->config.request_timeout / 4) };
}

void preparing_drop(struct core *core, uint32_t from, const struct message *m) {
	for (uint32_t i = 0; i < PREPARING_MAX; i++) {
		struct preparing *p = &core->store.preparing[i];
		if (m->attempt && of_op(p, from, m->attempt) &&
			id128_equal(p->lock_id, m->lock_id)) {
			p->op = 0;
		}
	}
}
