/* lacked.c: what a master remembers of lock_ids that it lacks: how long ago their records have
 * ended (section 2, Extend, Lost), and of those that have lapsed the ballots of first values that
 * were noted for them (section 2, Acquire).
 *
 * A table has a bounded number of places, by hash, and each remembers the four lock_ids that were
 * noted last. When another one comes, one leaves, and its place keeps the latest end and the
 * highest ballot of all that have left. These count for every lock_id that the place does not
 * remember. So what the master says of a lock_id may be later, or higher, than what has been, and
 * never the other way round. */
#include "store.h"

#define PLACES_MAX 8192u
/* They take at most this part of the memory. */
#define MEMORY_PART 16

uint32_t lacked_places(uint64_t memory_bytes) {
	const uint64_t fit = memory_bytes / MEMORY_PART / (2 * sizeof(struct lacking_place));
	return fit == 0 ? 1 : fit < PLACES_MAX ? (uint32_t)fit : PLACES_MAX;
}

static size_t bytes(const struct core *core) {
	return core->limits.lacked * sizeof *core->store.lacked;
}

int lacked_init(struct core *core) {
	core->store.lacked = alloc_new(&core->alloc, bytes(core));
	core->store.lapsed = alloc_new(&core->alloc, bytes(core));
	return core->store.lacked && core->store.lapsed ? 0 : PAWL_ENOMEM;
}

void lacked_done(struct core *core) {
	alloc_free(&core->alloc, core->store.lacked, bytes(core));
	alloc_free(&core->alloc, core->store.lapsed, bytes(core));
}

/* Returns the place of a tag, and the tag's number there; LACKS_A_PLACE: it is not remembered. */
static const struct lacking_place *find(const struct core *core,
	const struct lacking_place *places, uint64_t tag, uint32_t *number) {
	const struct lacking_place *place = &places[(tag >> 1) % core->limits.lacked];
	uint32_t i = 0;
	while (i < LACKS_A_PLACE && place->lacks[i].tag != tag) {
		i++;
	}
	*number = i;
	return place;
}

const struct lacking *lacking_find(const struct core *core, const struct lacking_place *places,
	struct id128 lock_id) {
	uint32_t i;
	const struct lacking_place *place = find(core, places, hash_lock_id(core, lock_id) | 1, &i);
	return i < LACKS_A_PLACE ? &place->lacks[i] : &place->rest;
}

/* What has left its place may be this lock_id, so it begins with what the place says of those. */
struct lacking *lacking_note(const struct core *core, struct lacking_place *places,
	struct id128 lock_id) {
	const uint64_t tag = hash_lock_id(core, lock_id) | 1;
	uint32_t i;
	struct lacking_place *place = places + (find(core, places, tag, &i) - places);
	struct lacking own = i < LACKS_A_PLACE ? place->lacks[i] : place->rest;
	if (i == LACKS_A_PLACE) {
		const struct lacking *leaves = &place->lacks[--i];
		place->rest.at = instant_later(place->rest.at, leaves->at);
		place->rest.noted = ballot_later(place->rest.noted, leaves->noted);
	}
	own.tag = tag;
	memmove(&place->lacks[1], &place->lacks[0], i * sizeof own);
	place->lacks[0] = own;
	return &place->lacks[0];
}

void lacked_since(struct core *core, struct id128 lock_id, struct instant at) {
	struct lacking *lack = lacking_note(core, core->store.lacked, lock_id);
	lack->at = instant_later(lack->at, at);
}

uint64_t lacked_us_since(const struct core *core, struct instant last) {
	return (uint64_t)(instant_elapsed_short(core->now,
		instant_later(core->store.vote_began, last)) / SPAN_US);
}

uint64_t lacked_us(const struct core *core, struct id128 lock_id) {
	return lacked_us_since(core, lacking_find(core, core->store.lacked, lock_id)->at);
}

/* ---- the ballots of first values ---- */

/* Such a ballot is drawn before the promises are asked for, and each master that promises notes it,
 * so that the first value of an attempt that was overtaken is older than what was written since. */

/* ---- of a master ---- */

/* A master does not know what was before it voted, but its clock was not above the one that it
 * began with. */
struct ballot first_floor(const struct core *core, struct id128 lock_id) {
	const struct ballot lost = lacking_find(core, core->store.lapsed, lock_id)->noted;
	const struct ballot before = { core->store.clock_began, UINT64_MAX, UINT32_MAX };
	return core->store.clock_began > 0 ? ballot_later(before, lost) : lost;
}

void first_lost(struct core *core, struct id128 lock_id, struct ballot noted) {
	struct lacking *lack = lacking_note(core, core->store.lapsed, lock_id);
	lack->noted = ballot_later(noted, lack->noted);
}

void first_ended(struct core *core, const struct record *r) {
	struct lacking *lack = lacking_note(core, core->store.lapsed, r->lock_id);
	lack->noted = ballot_later(record_prepared(core, r), lack->noted);
	/* Nobody was told that a record is held which was rolled back. */
	if (!rolled_back_named(core, r->lock_id, r->rests_on)) {
		lack->at = instant_later(lack->at,
			instant_expired(core->now, r->end) ? r->end : core->now);
	}
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
	return lacked_us_since(core, lacking_find(core, core->store.lapsed, lock_id)->at);
}

struct ballot first_of_waiter(struct core *core, struct waiter *w) {
	if (w->q.first.clock == 0 ||
		ballot_compare(w->q.first, first_floor(core, w->q.lock_id)) < 0) {
		w->q.first = first_draw(core);
		clock_raise(core, w->q.first.clock);
	}
	return w->q.first;
}

/* ---- of a coordinator, or a home for a waiter ---- */

/* The promise raises the clock to the ballot, after it has noted the previous one, and the commit
 * raises it in any case. `first_drawn` sees to it that no ballot is drawn twice before that. */
struct ballot first_draw(struct core *core) {
	uint64_t highest = core->clock > core->store.first_drawn ? core->clock
		: core->store.first_drawn;
	core->store.first_drawn = highest < TOKEN_MAX ? highest + 1 : highest;
	return (struct ballot){ core->store.first_drawn, id128_word(core->durable.node_id),
		((uint32_t)core->durable.boot & ~BALLOT_LAST) | BALLOT_FIRST };
}
