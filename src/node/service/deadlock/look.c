/* look.c: looks for a deadlock that a request may be part of. */
#include "look.h"

#include "check.h"

void look_init(struct look *l, const struct allocator *alloc, struct siphash_key hash_key) {
	*l = (struct look){ .alloc = alloc, .hash_key = hash_key };
}

void look_end(struct look *l) {
	facts_free(l->facts);
	facts_free(l->first);
	l->facts = l->first = NULL;
	l->state = LOOK_IDLE;
	l->open = 0;
}

void look_done(struct look *l) { look_end(l); }

static bool start_over(struct look *l, enum look_state state) {
	l->facts = facts_new(l->alloc, l->hash_key);
	l->state = state;
	l->keys_asked = l->parties_asked = 0;
	return l->facts != NULL;
}

bool look_begin(struct look *l, struct id128 party) {
	CHECK(l->state == LOOK_IDLE);
	l->rounds = 0;
	l->silent = 0;
	if (!start_over(l, LOOK_ASKING)) {
		look_end(l);
		return false;
	}
	facts_party(l->facts, party);
	return true;
}

/* Writes what has not been asked yet. Returns false if that is nothing. */
static bool ask_more(struct look *l, struct waits_ask *ask) {
	const struct facts *f = l->facts;
	ask->key_count = ask->party_count = 0;
	while (l->keys_asked < f->key_count && ask->key_count < WAITS_ASKED_MAX) {
		ask->keys[ask->key_count++] = f->keys[l->keys_asked++].name;
	}
	while (l->parties_asked < f->party_count && ask->party_count < WAITS_ASKED_MAX) {
		ask->parties[ask->party_count++] = f->parties[l->parties_asked++].id;
	}
	return ask->key_count + ask->party_count > 0;
}

/* Begins the second set of answers, about the keys and parties of the first one. */
static bool confirm(struct look *l) {
	l->first = l->facts;
	l->rounds = 0;
	if (!start_over(l, LOOK_CONFIRMING)) {
		return false;
	}
	for (uint32_t i = 0; i < l->first->key_count; i++) {
		facts_key(l->facts, l->first->keys[i].name);
	}
	for (uint32_t i = 0; i < l->first->party_count; i++) {
		facts_party(l->facts, l->first->parties[i].id);
	}
	return true;
}

/* Leaves in the second set what stood in the first one, too: another lock may have come and gone in
 * between, and another request may be served. */
static void keep_standing(const struct look *l) {
	struct facts *f = l->facts;
	for (uint32_t i = 0; i < f->wait_count; i++) {
		f->waits[i].free = f->waits[i].free || !facts_has_wait(l->first, f, i);
	}
	for (uint32_t i = 0; i < f->hold_count; i++) {
		f->holds[i].disputed = f->holds[i].disputed || !facts_has_hold(l->first, f, i);
	}
}

static enum look_step answers_complete(struct look *l, struct instant now, struct deadlock *found) {
	if (l->state == LOOK_CONFIRMING) {
		keep_standing(l);
		return deadlock_find(l->facts, found) ? LOOK_FOUND : LOOK_OVER;
	}
	if (!deadlock_find(l->facts, found)) {
		return LOOK_OVER;
	}
	l->state = LOOK_RESTING;
	l->until = instant_add(now, LOOK_RESTS);
	return LOOK_WAITS;
}

enum look_step look_next(struct look *l, struct instant now, struct waits_ask *ask,
	struct deadlock *found) {
	if (l->state == LOOK_IDLE) {
		return LOOK_OVER;
	}
	if ((l->open || l->state == LOOK_RESTING) && !instant_expired(now, l->until)) {
		return LOOK_WAITS;
	}
	/* Who has not answered by now is left out: what its clients hold counts as what they will
	 * release. */
	l->silent |= l->open;
	l->open = 0;
	if (l->state == LOOK_RESTING && !confirm(l)) {
		return LOOK_OVER;
	}
	if (l->facts->cut || l->rounds == LOOK_ROUNDS_MAX) {
		return LOOK_OVER;
	}
	if (!ask_more(l, ask)) {
		return answers_complete(l, now, found);
	}
	l->round++;
	return LOOK_ASKS;
}

void look_asked(struct look *l, uint64_t peers, struct instant now) {
	l->open = peers;
	l->rounds++;
	l->until = instant_add(now, LOOK_ROUND);
}

struct facts *look_answer(struct look *l, uint32_t peer, uint64_t round, bool cut) {
	if (round != l->round || !(l->open >> peer & 1)) {
		return NULL;
	}
	l->open &= ~(UINT64_C(1) << peer);
	l->facts->cut = l->facts->cut || cut;
	return l->facts;
}
