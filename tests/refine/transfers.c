/* transfers.c: snapshots, as the messages show them. */
#include "transfers.h"

#include <stdlib.h>

#include "check.h"

/* The end at a source may be later by the time that messages take. */
#define ON_THE_WAY (10 * SPAN_MS)

static void clear(struct t_source *s) {
	free(s->locks);
	*s = (struct t_source){ .round = 0 };
}

void transfers_done(struct transfers *t) {
	for (uint32_t i = 0; i < T_SOURCES; i++) {
		clear(&t->sources[i]);
	}
}

struct t_source *transfers_begin(struct transfers *t, uint64_t round, uint64_t other) {
	struct t_source *s = &t->sources[t->next++ % T_SOURCES];
	clear(s);
	s->round = round;
	s->other = other;
	return s;
}

struct t_source *transfers_begin_anew(struct transfers *t, uint64_t round, uint64_t other) {
	for (uint32_t i = 0; i < T_SOURCES; i++) {
		if (t->sources[i].other == other && t->sources[i].round) {
			clear(&t->sources[i]);
			t->sources[i].round = round;
			t->sources[i].other = other;
			return &t->sources[i];
		}
	}
	return transfers_begin(t, round, other);
}

struct t_source *transfers_find(struct transfers *t, uint64_t round, uint64_t other) {
	/* A node that has started anew counts its rounds anew. */
	for (uint32_t i = 1; i <= T_SOURCES; i++) {
		struct t_source *s = &t->sources[(t->next - i) % T_SOURCES];
		if (s->round == round && s->other == other && round) {
			return s;
		}
	}
	return NULL;
}

struct t_lock *transfers_lock(const struct t_source *s, struct id128 lock_id) {
	for (size_t i = 0; i < s->count; i++) {
		if (id128_equal(s->locks[i].lock_id, lock_id)) {
			return &s->locks[i];
		}
	}
	return NULL;
}

static struct t_lock *make(struct t_source *s, struct id128 lock_id) {
	struct t_lock *l = transfers_lock(s, lock_id);
	if (l == NULL) {
		if (s->count == s->room) {
			s->room = s->room ? 2 * s->room : 16;
			s->locks = realloc(s->locks, s->room * sizeof *s->locks);
			CHECK(s->locks != NULL);
		}
		l = &s->locks[s->count++];
		*l = (struct t_lock){ .lock_id = lock_id };
	}
	return l;
}

void transfers_message(struct t_source *s, const struct message *m, struct instant now) {
	if (s->done) {
		/* What comes after the end is not a part of it. */
		return;
	}
	if (m->kind == MESSAGE_SNAPSHOT_RECORD) {
		struct t_lock *l = make(s, m->lock_id);
		l->copy = (struct m_copy){ .has = true, .token = m->token, .noted = m->noted,
			.wrote = m->ballot, .prepared = m->prepared,
			.end = instant_add(now, span_from_us(m->left_us)),
			.binding = m->terms.binding, .bound = (m->flags & FLAG_BOUND) != 0 };
		l->numbers = m_is_numbers(&m->terms);
		l->key = m_hash(m->key);
	} else if (m->kind == MESSAGE_SNAPSHOT_LOST) {
		make(s, m->lock_id)->copy.has = false;
	} else if (m->kind == MESSAGE_SNAPSHOT_RELEASED) {
		struct t_lock *l = make(s, m->lock_id);
		l->released = l->released || (m->flags & FLAG_RELEASED);
	} else if (m->kind == MESSAGE_SNAPSHOT_END && m->status == STATUS_OK) {
		s->done = true;
		s->flags = m->flags;
		s->clock = m->clock;
		s->lease = span_from_us(m->lease_us);
	}
}

void transfers_released(struct transfers *t, struct id128 lock_id) {
	for (uint32_t i = 0; i < T_SOURCES; i++) {
		if (t->sources[i].round && !t->sources[i].done) {
			make(&t->sources[i], lock_id)->due = true;
		}
	}
}

void transfers_dropped(struct transfers *t, struct id128 lock_id) {
	for (uint32_t i = 0; i < T_SOURCES; i++) {
		struct t_lock *l = transfers_lock(&t->sources[i], lock_id);
		if (l) {
			l->copy.has = false;
		}
	}
}

const char *transfers_all_released(const struct t_source *s) {
	for (size_t i = 0; i < s->count; i++) {
		if (s->locks[i].due && !s->locks[i].released) {
			return "a snapshot holds every release up to its end";
		}
	}
	return NULL;
}

const char *transfers_all_lost(const struct t_source *s, struct instant now) {
	for (size_t i = 0; i < s->count; i++) {
		const struct t_lock *l = &s->locks[i];
		if (l->copy.has && !l->there && !l->released &&
			!instant_expired(now, l->copy.end)) {
			return "a snapshot tells of what has ended at its source";
		}
	}
	return NULL;
}

/* Whether a source of the present vote has had the lock, and for so long that it lasts. */
static bool brought(const struct t_source *s, struct id128 lock_id, struct instant now) {
	const struct t_lock *l = transfers_lock(s, lock_id);
	return l && l->copy.has && !l->copy.binding && !l->numbers &&
		instant_left_short(now, l->copy.end) > ON_THE_WAY;
}

const char *transfers_kept(const struct transfers *t, const struct t_lock *l, bool there,
	struct instant now) {
	uint32_t count = 0, has = 0;
	for (uint32_t i = 0; i < T_SOURCES && !there; i++) {
		const struct t_source *s = &t->sources[i];
		if (s->counts && !(s->flags & FLAG_NEVER && !s->voted)) {
			const struct t_lock *own = transfers_lock(s, l->lock_id);
			if (own && own->released) {
				return NULL;
			}
			count++;
			has += !s->lies && brought(s, l->lock_id, now);
		}
	}
	/* So many may have been left out. */
	const uint32_t more = count > t->needed ? count - t->needed : 0;
	return !there && has > more ? "a merge keeps every lock that a source has" : NULL;
}

const char *transfers_end_right(const struct t_end *e, const struct m_node *node,
	const struct message *m) {
	const bool forgot = (m->flags & FLAG_FORGOT) != 0;
	if (!e->handover) {
		return node->votes ? NULL : "a master rejoins from masters that vote";
	}
	if (node->epoch < e->asked_epoch) {
		return "a source of a handover has adopted the epoch";
	}
	if (!forgot && !(m->flags & FLAG_NEVER)) {
		return e->remembers ? NULL
			: "a source remembers if it voted when it adopted the epoch";
	}
	if (forgot && m->clock < e->reservation) {
		return "a source that has forgotten has its reservation as its clock";
	}
	return forgot && span_from_us(m->lease_us + 1) < e->longest
		? "a source that has forgotten names the longest lease that it voted under" : NULL;
}

static bool names(const struct config *config, uint64_t id) {
	for (uint32_t i = 0; i < config_masters(config); i++) {
		if (id128_word(config->nodes[i].id) == id) {
			return true;
		}
	}
	return false;
}

static bool suffices(const struct t_source *s, const struct config *config, uint64_t run,
	struct instant from) {
	return s->round && s->done && s->voted && s->epoch >= run && names(config, s->other) &&
		instant_expired(s->asked, from);
}

uint32_t transfers_rejoined(const struct transfers *t, const struct config *config, uint64_t run,
	struct instant from) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < T_SOURCES; i++) {
		bool first = suffices(&t->sources[i], config, run, from);
		for (uint32_t k = 0; first && k < i; k++) {
			/* Another try of the same source counts once. */
			first = t->sources[k].other != t->sources[i].other ||
				!suffices(&t->sources[k], config, run, from);
		}
		n += first;
	}
	return n;
}

/* What a source sent before its link broke, or before it was asked anew, does not count. */
static bool last_try(const struct transfers *t, const struct t_source *s) {
	for (uint32_t i = 0; i < T_SOURCES; i++) {
		const struct t_source *other = &t->sources[i];
		if (other->round > s->round && other->other == s->other) {
			return false;
		}
	}
	return true;
}

/* Section 9: a source whose clock is further ahead is refused. */
#define CLOCK_AHEAD (UINT64_C(1) << 32)

void transfers_vote(struct transfers *t, uint64_t run, uint32_t needed, uint64_t clock) {
	t->needed = needed;
	for (uint32_t i = 0; i < T_SOURCES; i++) {
		struct t_source *s = &t->sources[i];
		s->counts = s->round && s->done && s->epoch >= run && last_try(t, s) &&
			(s->clock <= clock || s->clock - clock <= CLOCK_AHEAD);
	}
}

const char *transfers_judge(const struct transfers *t, const struct t_merged *merged,
	struct instant now) {
	const struct m_record *r = merged->record;
	uint32_t count = 0, agree = 0, has = 0;
	uint64_t clock = 0;
	const char *wrong = NULL;
	bool lied = false;
	for (uint32_t i = 0; i < T_SOURCES; i++) {
		const struct t_source *s = &t->sources[i];
		const struct t_lock *l = transfers_lock(s, r->lock_id);
		struct m_copy copy = l && l->key == merged->key ? l->copy
			: (struct m_copy){ .has = false };
		has += s->counts && copy.has;
		lied = lied || (s->counts && s->lies);
		/* What it lacks says nothing of one that has never voted. */
		if (!s->counts || (s->flags & FLAG_NEVER)) {
			continue;
		}
		copy.clock = s->clock;
		if (m_delayed(r, now)) {
			/* It has ended since, or no source had it any more. */
			copy.end = r->end;
		}
		const char *rule = s->lies || (r->closing && !copy.has) ? NULL
			: l && l->released
				? merged->forgotten ? NULL : "a merge keeps every release"
			/* A copy that is over by now may have ended before the others came. */
			: copy.has && instant_expired(now, copy.end) ? NULL
			: machine_merged(r, &copy);
		count++;
		clock = s->clock > clock ? s->clock : clock;
		agree += rule == NULL;
		wrong = rule ? rule : wrong;
	}
	/* A token above all these clocks was chosen since, and a master that recovers may have
	 * closed a key, or keeps it closed for a lock delay. */
	if (merged->fresh && count > 0 && has == 0 && !lied && r->token <= clock && !r->closing &&
		!m_delayed(r, now)) {
		return "a record that no source which counts has is dropped";
	}
	if (merged->kept && has == 0) {
		/* No source has anything to add to it. */
		return NULL;
	}
	return agree < (t->needed < count ? t->needed : count) ? wrong : NULL;
}
