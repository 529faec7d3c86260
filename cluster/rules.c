/* rules.c: what a master accepts (section 2, the table of R1 to R5): pure decisions that name their reason. */
#include "state.h"

/* R4: it must vote in the epoch. (Frames of another epoch or hash do not get as far as this.) */
enum status rule_votes(const struct core *core) {
	return core_votes(core) ? STATUS_OK : STATUS_RECOVERING;
}

/* R3: the lock_id must not be among the released. A broken one may not be lengthened by a repeat either. */
static enum status rule_released(const struct core *core, struct id128 lock_id) {
	const struct released *r = released_find(core, lock_id);
	return r == NULL ? STATUS_OK : r->barred_only ? STATUS_BARRED : STATUS_RELEASED;
}

/* R5: the duration must not exceed max_lease. */
static enum status rule_duration(const struct core *core, uint64_t lease_us) {
	return lease_us > (uint64_t)(core->config.max_lease / 1000) ? STATUS_TOO_LONG : STATUS_OK;
}

/* R1, as far as held records go. */
static enum status rule_held(const struct key *key, struct id128 lock_id) {
	if (key && key_other(key, lock_id)) {
		return key_contested(key) ? STATUS_CONTESTED : STATUS_HELD;
	}
	return STATUS_OK;
}

/* Section 9: tokens and ballots far above the clock are refused, not adopted. */
bool rule_token_bound(const struct core *core, uint64_t token) {
	return token <= TOKEN_MAX && (token <= core->clock || token - core->clock <= CLOCK_JUMP_MAX);
}

/* The same for every number that a message carries and that a clock might be raised to; true: it may be handled. Requests that
 * are refused for their own reasons, with an answer that says so, are let through; so are snapshots and feeds, because who does
 * not vote takes the clock of its sources, and EXTEND, whose token is the caller's and raises nothing. */
bool rule_message_bound(const struct core *core, const struct message *m) {
	const uint32_t fields = message_fields(m->kind);
	if (m->kind == MESSAGE_COMMIT || m->kind == MESSAGE_LEARN || m->kind == MESSAGE_PREPARE || m->kind == MESSAGE_WRITE ||
		m->kind == MESSAGE_EXTEND || m->kind == MESSAGE_SNAPSHOT_RECORD || m->kind == MESSAGE_SNAPSHOT_END ||
		m->kind == MESSAGE_FEED_RECORD) {
		return true;
	}
	return (!(fields & F_TOKEN) || rule_token_bound(core, m->token)) && (!(fields & F_NOTED) || rule_token_bound(core, m->noted)) &&
		(!(fields & F_BALLOT) || rule_token_bound(core, m->ballot.clock)) &&
		(!(fields & F_PREPARED) || rule_token_bound(core, m->prepared.clock)) &&
		(!(fields & F_TICKET) || rule_token_bound(core, m->ticket.clock));
}

enum status rule_promise(const struct core *core, const struct key *key, const struct message *m, uint32_t peer) {
	(void)peer;
	enum status s = rule_votes(core);
	if (s == STATUS_OK) {
		s = rule_released(core, m->lock_id);
	}
	if (s != STATUS_OK || key == NULL) {
		return s;
	}
	const struct record *own = key_record(key, m->lock_id);
	if (own && !slice_equal(record_identity(own), m->identity)) {
		return STATUS_DENIED; /* section 9: a repeat under another identity */
	}
	s = rule_held(key, m->lock_id);
	if (s != STATUS_OK) {
		return s;
	}
	if (own) {
		return STATUS_HELD_SELF; /* a held record never becomes a promise */
	}
	if (key->promise && !id128_equal(key->promise->lock_id, m->lock_id)) {
		return STATUS_PROMISED;
	}
	if ((m->flags & FLAG_HOME) && !(m->flags & FLAG_TURN) && queue_ahead(key, m->lock_id)) {
		return STATUS_QUEUED;
	}
	return STATUS_OK;
}

enum status rule_commit(const struct core *core, const struct key *key, const struct message *m) {
	enum status s = rule_votes(core);
	if (s == STATUS_OK && !(rule_token_bound(core, m->token) && rule_token_bound(core, m->ballot.clock))) {
		s = STATUS_CLOCK;
	}
	if (s == STATUS_OK) {
		s = rule_duration(core, m->lease_us);
	}
	if (s == STATUS_OK) {
		s = rule_released(core, m->lock_id);
	}
	if (s == STATUS_OK) {
		s = rule_held(key, m->lock_id);
	}
	if (s != STATUS_OK) {
		return s;
	}
	/* R2: above what was noted for this lock_id; where nothing was, above the clock */
	const struct record *own = key ? key_record(key, m->lock_id) : NULL;
	const struct promise *promise = key && key->promise && id128_equal(key->promise->lock_id, m->lock_id) ? key->promise : NULL;
	if (own && !slice_equal(m->identity, record_identity(own))) {
		return STATUS_DENIED; /* two identities that try for one lock_id at once: the first one's it is */
	}
	uint64_t floor = own ? own->noted : promise ? promise->noted : core->clock;
	return m->token > floor ? STATUS_OK : STATUS_STALE;
}

/* STATUS_NEED: nothing stands in the way, but the record is not here. */
enum status rule_extend(const struct core *core, const struct key *key, struct id128 lock_id, uint64_t lease_us) {
	enum status s = rule_votes(core);
	if (s == STATUS_OK) {
		s = rule_duration(core, lease_us);
	}
	if (s == STATUS_OK) {
		s = rule_released(core, lock_id);
	}
	if (s != STATUS_OK) {
		return s;
	}
	const struct record *own = key ? key_record(key, lock_id) : NULL;
	if (own && own->barred) {
		return STATUS_BARRED;
	}
	if (own && key_contested(key)) {
		/* section 4: once every commit round of before this master voted is over, what it already has may be extended */
		struct instant over = instant_add(core->vote_began, span_grow(core->config.request_timeout, core->config.drift_ppm));
		return instant_expired(core->now, over) ? STATUS_OK : STATUS_CONTESTED;
	}
	s = rule_held(key, lock_id);
	if (s != STATUS_OK) {
		return s;
	}
	return own ? STATUS_OK : STATUS_NEED;
}

/* "It had it": live with a token above what it noted, so that nobody else's came between. */
bool rule_had(const struct record *r, uint64_t caller_token) {
	return (caller_token ? caller_token : r->token) > r->noted;
}

/* Update, Prepare: who missed an extension and learned the record anew may have an old value. */
bool rule_value_counts(const struct record *r) {
	return r->wrote.clock > r->noted;
}
