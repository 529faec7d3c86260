/* first.c: the ballot of a first value (section 2, Acquire). It is drawn before the promises are
 * asked for, and each master that promises notes it, so that the first value of an attempt that was
 * overtaken is older than what was written since. A master remembers what it has noted and lost in
 * a table, in which lock_ids share places. Of those that share a place the highest ballot and the
 * latest end count. */
#include "store.h"
#include "first.h"

/* ---- a master ---- */

/* A master does not know what was before it voted, but its clock was not above the one that it
 * began with. */
struct ballot first_floor(const struct core *core, struct id128 lock_id) {
	const struct ballot lost = core->store.lost[lacked_place(core, lock_id)].noted;
	const struct ballot before = { core->store.clock_began, UINT64_MAX, UINT32_MAX };
	return core->store.clock_began > 0 ? ballot_later(before, lost) : lost;
}

void first_lost(struct core *core, struct id128 lock_id, struct ballot noted) {
	struct ballot *highest = &core->store.lost[lacked_place(core, lock_id)].noted;
	*highest = ballot_later(noted, *highest);
}

void first_ended(struct core *core, const struct record *r) {
	struct instant *last = &core->store.lost[lacked_place(core, r->lock_id)].at;
	/* Nobody was told that a record is held which was rolled back. */
	if (!rolled_back_named(core, r->lock_id, r->rests_on)) {
		*last = instant_later(*last,
			instant_expired(core->now, r->end) ? r->end : core->now);
	}
	first_lost(core, r->lock_id, record_prepared(core, r));
}

void first_promised(struct core *core, struct promise *p, const struct message *m,
	struct message *answer) {
	p->first = ballot_later(m->ballot, p->first);
	/* The answer has this attempt's own ballot, whatever others have named. */
	answer->ballot = m->ballot;
	answer->age_us = first_lacked_us(core, p->lock_id);
	clock_raise(core, m->ballot.clock);
}

/* Of a new record, record_wrote is also the ballot that it has noted. */
bool first_noted(struct core *core, const struct key *key, struct record **at) {
	const struct promise *p = key_promise(key, (*at)->lock_id);
	return p == NULL || ballot_compare(p->first, record_wrote(core, *at)) <= 0 ||
		record_write(core, at, NULL, record_wrote(core, *at), p->first);
}

bool first_overtaken(const struct core *core, const struct key *key, const struct message *commit) {
	if (commit->prepared.clock > 0) {
		/* The commit brings a value that masters have reported. */
		return false;
	}
	const struct record *own = key ? key_record(key, commit->lock_id) : NULL;
	const struct promise *p = key ? key_promise(key, commit->lock_id) : NULL;
	return ballot_compare(commit->ballot, first_floor(core, commit->lock_id)) < 0 ||
		(own && ballot_compare(commit->ballot, record_prepared(core, own)) < 0) ||
		(p && ballot_compare(commit->ballot, p->first) < 0);
}

uint64_t first_lacked_us(const struct core *core, struct id128 lock_id) {
	return lacked_us_since(core, core->store.lost[lacked_place(core, lock_id)].at);
}

struct ballot first_of_waiter(struct core *core, struct waiter *w) {
	if (w->q.first.clock == 0 ||
		ballot_compare(w->q.first, first_floor(core, w->q.lock_id)) < 0) {
		w->q.first = first_draw(core);
		clock_raise(core, w->q.first.clock);
	}
	return w->q.first;
}

/* ---- a coordinator, or a home for a waiter ---- */

/* The promise raises the clock to the ballot, after it has noted the previous one, and the commit
 * raises it in any case. `first_drawn` sees to it that no ballot is drawn twice before that. */
struct ballot first_draw(struct core *core) {
	uint64_t highest = core->clock > core->store.first_drawn ? core->clock
		: core->store.first_drawn;
	core->store.first_drawn = highest < TOKEN_MAX ? highest + 1 : highest;
	return (struct ballot){ core->store.first_drawn, id128_word(core->durable.node_id),
		(uint32_t)core->durable.boot | BALLOT_FIRST };
}
