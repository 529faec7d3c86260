/* rules.c: what a master accepts (section 2, the table of R1 to R5): pure decisions that name their reason. */
#include "master.h"
#include "first.h"

/* R4: it must vote in the epoch. (Frames of another epoch or hash do not get as far as this.) */
enum status rule_votes(const struct core *core) {
	return core_votes(core) ? STATUS_OK : STATUS_RECOVERING;
}

/* R3: the lock_id must not be among the released, nor what is bound to this connection among what ended with it (bond 0: not bound, or
 * not known yet). A broken one may not be lengthened by a repeat either. */
static enum status rule_released(const struct core *core, struct id128 lock_id, uint32_t binding) {
	const struct tombstone *r = tombstone_find(core, lock_id);
	if (r == NULL) {
		return STATUS_OK;
	}
	return r->released || (binding && binding <= r->binding) ? STATUS_RELEASED : r->barred ? STATUS_BARRED : STATUS_OK;
}

/* Where copies of a record meet, the greater bond counts. */
static uint32_t later_binding(const struct record *own, uint32_t binding) {
	return own && own->binding > binding ? own->binding : binding;
}

/* R5: the duration must not exceed max_lease. */
static enum status rule_duration(const struct core *core, uint64_t lease_us) {
	return lease_us > (uint64_t)(core->config.max_lease / 1000) ? STATUS_TOO_LONG : STATUS_OK;
}

/* R1, as far as held records go: nothing of another lock_id that excludes these terms (section 10). */
static enum status rule_held(const struct key *key, struct id128 lock_id, const struct terms *terms) {
	if (key == NULL || key->held == NULL) {
		return STATUS_OK;
	}
	if (key_contested(key) && !key_numbered(key, terms->of)) {
		return STATUS_CONTESTED; /* section 4; where all have permits of one semaphore only the numbers are closed that two have */
	}
	return key_other(key, lock_id, terms) ? STATUS_HELD : STATUS_OK;
}

/* Section 9: only so many may share a key. */
static enum status rule_room(const struct core *core, const struct key *key) {
	uint32_t holders = 0;
	for (const struct record *r = key ? key->held : NULL; r; r = r->next) {
		holders++;
	}
	return holders < core->limits.holders_per_key ? STATUS_OK : STATUS_FULL;
}

/* Section 9: tokens and ballots far above the clock are refused, not adopted. */
bool rule_token_bound(const struct core *core, uint64_t token) {
	return token <= core->clock || token <= clock_most(core);
}

/* The same for every number that a message carries and that a clock might be raised to; true: it may be handled. Requests that
 * are refused for their own reasons, with an answer that says so, are let through; so are snapshots and feeds, because who does
 * not vote takes the clock of its sources, and EXTEND, whose token is the caller's and raises nothing. */
bool rule_message_bound(const struct core *core, const struct message *m) {
	const uint32_t fields = message_fields(m->kind);
	if (!(fields & (F_TOKEN | F_NOTED | F_BALLOT | F_PREPARED | F_TICKET)) || m->kind == MESSAGE_COMMIT || m->kind == MESSAGE_LEARN ||
		m->kind == MESSAGE_PREPARE || m->kind == MESSAGE_WRITE || m->kind == MESSAGE_EXTEND || m->kind == MESSAGE_EXTEND_PERMITS || m->kind == MESSAGE_SNAPSHOT_RECORD ||
		m->kind == MESSAGE_SNAPSHOT_RELEASED || m->kind == MESSAGE_SNAPSHOT_END || m->kind == MESSAGE_FEED_RECORD) {
		return true;
	}
	return (!(fields & F_TOKEN) || rule_token_bound(core, m->token)) && (!(fields & F_NOTED) || rule_token_bound(core, m->noted)) &&
		(!(fields & F_BALLOT) || rule_token_bound(core, m->ballot.clock)) &&
		(!(fields & F_PREPARED) || rule_token_bound(core, m->prepared.clock)) &&
		(!(fields & F_TICKET) || rule_token_bound(core, m->ticket.clock));
}

/* Section 9: what no master that keeps to the protocol says, although each field is in its range. */
bool rule_message_sound(const struct message *m) {
	static const message_set records = MESSAGE_BIT(MESSAGE_COMMIT) | MESSAGE_BIT(MESSAGE_LEARN) | MESSAGE_BIT(MESSAGE_FETCH_ANSWER) |
		MESSAGE_BIT(MESSAGE_SNAPSHOT_RECORD) | MESSAGE_BIT(MESSAGE_FEED_RECORD) | MESSAGE_BIT(MESSAGE_SYNC_RECORD);
	return !(records & MESSAGE_BIT(m->kind)) || !terms_semaphore(&m->terms) || !permits_none(m->terms.set);
}

enum status rule_promise(const struct core *core, const struct key *key, const struct message *m, uint32_t peer) {
	(void)peer;
	enum status s = rule_votes(core);
	if (s == STATUS_OK) {
		s = rule_released(core, m->lock_id, 0);
	}
	if (s != STATUS_OK || key == NULL) {
		return s;
	}
	const struct record *own = key_record(key, m->lock_id);
	if (own && !slice_equal(record_identity(own), m->identity)) {
		return STATUS_DENIED; /* section 9: a repeat under another identity */
	}
	if (own && !terms_again(own->of, m->terms.of)) {
		return STATUS_TERMS; /* section 10: it keeps its kind */
	}
	s = rule_held(key, m->lock_id, &m->terms);
	if (s != STATUS_OK) {
		return s;
	}
	if (own) {
		return STATUS_HELD_SELF; /* a held record never becomes a promise */
	}
	s = rule_room(core, key);
	if (s != STATUS_OK) {
		return s;
	}
	if (key->promise && !id128_equal(key->promise->lock_id, m->lock_id)) {
		return STATUS_PROMISED;
	}
	/* who has the turn is kept here until it may have the key: newcomers that could share it with the present holders do not slip in */
	if (!(m->flags & FLAG_TURN) && (queue_parked_ahead(key, m->lock_id) || ((m->flags & FLAG_HOME) && queue_ahead(core, key, m->lock_id)))) {
		return STATUS_QUEUED;
	}
	return STATUS_OK;
}

/* R2: above what was noted for this lock_id; where nothing was, above the clock: also for numbers that the record gains. Those that
 * hold together have different tokens, too: a repeat's new token must also be above the tokens of the others, which came after it
 * noted. */
static enum status rule_order(const struct core *core, const struct key *key, const struct record *own, const struct message *m) {
	const struct promise *promise = key && key->promise && id128_equal(key->promise->lock_id, m->lock_id) ? key->promise : NULL;
	bool known = own && permits_within(m->terms.set, record_set(own));
	uint64_t floor = known ? own->noted : promise && !own ? promise->noted : core->clock;
	for (const struct record *r = own && m->token > own->token ? key->held : NULL; r; r = r->next) {
		floor = r != own && r->token > floor ? r->token : floor;
	}
	return m->token > floor ? STATUS_OK : STATUS_STALE;
}

enum status rule_commit(const struct core *core, const struct key *key, const struct message *m) {
	const struct record *own = key ? key_record(key, m->lock_id) : NULL;
	enum status s = rule_votes(core);
	if (s == STATUS_OK && !(rule_token_bound(core, m->token) && rule_token_bound(core, m->ballot.clock))) {
		s = STATUS_CLOCK;
	}
	if (s == STATUS_OK) {
		s = rule_duration(core, m->lease_us);
	}
	if (s == STATUS_OK) {
		s = rule_released(core, m->lock_id, later_binding(own, m->terms.binding));
	}
	if (s == STATUS_OK) {
		s = rule_held(key, m->lock_id, &m->terms);
	}
	if (s != STATUS_OK) {
		return s;
	}
	if (own && !slice_equal(m->identity, record_identity(own))) {
		return STATUS_DENIED; /* two identities that try for one lock_id at once: the first one's it is */
	}
	if (own && !terms_again(own->of, m->terms.of)) {
		return STATUS_TERMS;
	}
	s = own ? STATUS_OK : rule_room(core, key);
	s = s == STATUS_OK ? rule_order(core, key, own, m) : s;
	if (s == STATUS_OK && own && ballot_compare(own->wrote, m->prepared) > 0 && !slice_equal(record_value(own), m->value)) {
		return STATUS_HELD_SELF; /* its value has been updated since the masters were asked: to begin again, and be told it */
	}
	return s == STATUS_OK && first_overtaken(core, key, m) ? STATUS_STALE : s;
}

/* For how long a record of a contested key may not be extended yet. */
span_ns rule_later(const struct core *core) {
	return instant_left_long(core->now, instant_add(core->store.vote_began, span_grow(core->config.request_timeout, core->config.drift_ppm)));
}

/* What an extension and a record that is learned have in common. */
static enum status rule_longer(const struct core *core, const struct key *key, const struct record *own, const struct message *m, uint32_t binding) {
	enum status s = rule_votes(core);
	if (s == STATUS_OK) {
		s = rule_duration(core, m->lease_us);
	}
	if (s == STATUS_OK) {
		s = rule_released(core, m->lock_id, binding);
	}
	if (s != STATUS_OK) {
		return s;
	}
	if (own && own->barred) {
		return STATUS_BARRED;
	}
	/* section 4: once every commit round of before this master voted is over, what it already has may be extended */
	return own && record_doubted(key, own, m->terms.set) && rule_later(core) > 0 ? STATUS_LATER : STATUS_OK;
}

/* STATUS_NEED: nothing stands in the way, as far as can be said without its terms, but the record is not here. */
enum status rule_extend(const struct core *core, const struct key *key, const struct message *m) {
	const struct record *own = key ? key_record(key, m->lock_id) : NULL;
	const uint32_t named = (uint32_t)m->number; /* by this extension; what is not here may have a later bond */
	enum status s = rule_longer(core, key, own, m, own ? later_binding(own, named) : 0);
	if (s == STATUS_OK && own && terms_of_numbers(own->of) && !permits_none(m->terms.set) && !permits_meet(m->terms.set, record_set(own))) {
		s = STATUS_NEED; /* the record is here, but none of these numbers */
	} else if (s == STATUS_OK && own) { /* R5 is about the lease and the delay after it */
		s = record_delay(own) ? rule_duration(core, m->lease_us + (uint64_t)(record_delay(own) / SPAN_US)) : STATUS_OK;
	} else if (s == STATUS_OK && key && key_contested(key) && !key_numbered(key, key->held->of)) {
		s = STATUS_CONTESTED;
	} else if (s == STATUS_OK) {
		s = key && key_other_exclusive(key, m->lock_id) ? STATUS_HELD : STATUS_NEED;
	}
	return s;
}

/* A record that arrives, with the delay in its lease. STATUS_NEED: it is new here. */
enum status rule_learn(const struct core *core, const struct key *key, const struct message *m) {
	const struct record *own = key ? key_record(key, m->lock_id) : NULL;
	enum status s = rule_longer(core, key, own, m, later_binding(own, m->terms.binding));
	if (s != STATUS_OK) {
		return s;
	}
	if (own == NULL) {
		s = rule_held(key, m->lock_id, &m->terms);
		s = s == STATUS_OK ? rule_room(core, key) : s;
		return s == STATUS_OK ? STATUS_NEED : s;
	}
	const struct terms had = record_terms(own);
	struct terms more = m->terms;
	if (!terms_alike(&had, &more)) {
		return STATUS_TERMS;
	}
	more.set = permits_but(more.set, had.set); /* permits that it has not had here so far */
	return permits_none(more.set) ? STATUS_OK : rule_held(key, m->lock_id, &more);
}

/* "It had it": live with a token above what it noted, so that nobody else's came between; nor can it be said of a lock that another
 * excludes here (of a semaphore's numbers that has been seen to: record_lasting). */
bool rule_had(const struct key *key, const struct record *r, uint64_t caller_token) {
	return (caller_token ? caller_token : r->token) > r->noted && (key_numbered(key, r->of) || !record_doubted(key, r, record_set(r)));
}

/* Section 10: of its numbers. Those that it had before others are judged by what was noted for them, and not by what came with the others. */
struct permits rule_had_numbers(const struct key *key, const struct record *r, uint64_t caller_token) {
	return key_numbered(key, r->of) ? record_had(r, caller_token ? caller_token : r->token) : (struct permits){ { 0, 0 } };
}

/* Update, Prepare: who missed an extension and learned the record anew may have an old value. */
bool rule_value_counts(const struct record *r) {
	return r->vouched || r->wrote.clock > r->noted;
}
