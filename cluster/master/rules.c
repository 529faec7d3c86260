/* rules.c: what a master accepts (section 2, the table of R1 to R5). Every rule is a pure decision
 * that names its reason; no rule changes any state. */
#include "master.h"

/* R4: the master must vote in the message's epoch. Frames of another epoch or hash never get this
 * far. */
enum status rule_votes(const struct core *core) {
	return core_votes(core) ? STATUS_OK : STATUS_RECOVERING;
}

/* R3: the lock_id must not be among the released, and its session binding must not be one that has
 * already ended together with its connection (`binding` 0: the lock has none, or it is not known
 * yet). Where copies of a record meet, the greater binding counts; `own` is the one that is here,
 * or NULL. A lock that was broken must not be lengthened by a repeat either. */
static enum status rule_released(const struct core *core, struct id128 lock_id,
	const struct record *own, uint32_t binding) {
	const struct tombstone *r = tombstone_find(core, lock_id);
	if (r == NULL) {
		return STATUS_OK;
	}
	const uint32_t has = own ? record_binding(own) : 0;
	binding = has > binding ? has : binding;
	return r->released || (binding && binding <= r->binding) ? STATUS_RELEASED
		: r->barred ? STATUS_BARRED
		: STATUS_OK;
}

/* R5: the duration must not exceed max_lease. */
static enum status rule_duration(const struct core *core, uint64_t lease_us) {
	return lease_us > (uint64_t)(core->config.max_lease / 1000) ? STATUS_TOO_LONG : STATUS_OK;
}

/* R1, as far as held records go: no record of another lock_id may exclude these terms
 * (section 10). */
static enum status rule_held(const struct core *core, const struct key *key, struct id128 lock_id,
	const struct terms *terms) {
	if (key == NULL || key->held == NULL) {
		return STATUS_OK;
	}
	if (table_contested(core, key) && !key_numbered(key, terms->of)) {
		/* A contested key is closed (section 4). Where all records have permits of one
		 * semaphore, only the permit numbers that two of them have are closed. */
		return STATUS_CONTESTED;
	}
	return key_other(key, lock_id, terms) ? STATUS_HELD : STATUS_OK;
}

/* Section 9: the number of holders that may share a key is limited. */
static enum status rule_room(const struct core *core, const struct key *key) {
	const uint32_t most = core->limits.holders_per_key;
	return key == NULL || key->held == NULL || key_count(key, most) < most
		? STATUS_OK : STATUS_FULL;
}

/* Section 9: tokens and ballots far above the clock are refused, not adopted. This applies to every
 * number in a message that could raise a clock; true: the message may be handled. Requests that are
 * refused for reasons of their own, with an answer that names the reason, are let through. So are
 * snapshots and feeds, because a node that does not vote takes the clock of its sources; and
 * EXTEND, whose token is the caller's and raises nothing. */
bool rule_message_bound(const struct core *core, const struct message *m) {
	const uint32_t fields = message_fields(m->kind);
	if (!(fields & (F_TOKEN | F_NOTED | F_BALLOT | F_PREPARED | F_TICKET)) ||
		m->kind == MESSAGE_COMMIT || m->kind == MESSAGE_LEARN ||
		m->kind == MESSAGE_PREPARE || m->kind == MESSAGE_WRITE ||
		m->kind == MESSAGE_EXTEND || m->kind == MESSAGE_EXTEND_PERMITS ||
		m->kind == MESSAGE_SNAPSHOT_RECORD || m->kind == MESSAGE_SNAPSHOT_RELEASED ||
		m->kind == MESSAGE_SNAPSHOT_END || m->kind == MESSAGE_FEED_RECORD) {
		return true;
	}
	return (!(fields & F_TOKEN) || clock_within(core, m->token)) &&
		(!(fields & F_NOTED) || clock_within(core, m->noted)) &&
		(!(fields & F_BALLOT) || clock_within(core, m->ballot.clock)) &&
		(!(fields & F_PREPARED) || clock_within(core, m->prepared.clock)) &&
		(!(fields & F_TICKET) || clock_within(core, m->ticket.clock));
}

/* Section 9: rejects what no master that keeps to the protocol says, even though each field is in
 * its range. */
bool rule_message_sound(const struct message *m) {
	static const message_set records = MESSAGE_BIT(MESSAGE_COMMIT) |
		MESSAGE_BIT(MESSAGE_LEARN) | MESSAGE_BIT(MESSAGE_FETCH_ANSWER) |
		MESSAGE_BIT(MESSAGE_SNAPSHOT_RECORD) | MESSAGE_BIT(MESSAGE_FEED_RECORD) |
		MESSAGE_BIT(MESSAGE_SYNC_RECORD);
	return !terms_semaphore(&m->terms) || !(records & MESSAGE_BIT(m->kind)) ||
		!permits_none(m->terms.set);
}

bool rule_together(const struct core *core, uint32_t peer, uint32_t other, uint16_t of) {
	return peer == other ||
		(of != MODE_EXCLUSIVE && peer < core->masters && other < core->masters);
}

/* Section 5, Together: a key may be promised to several lock_ids, if none of them excludes another,
 * and their coordinators go together. */
static enum status rule_promised(const struct core *core, const struct key *key, uint32_t from,
	const struct message *m) {
	uint32_t others = 0;
	for (const struct promise *p = key_promises(key); p; p = p->next) {
		if (!id128_equal(p->lock_id, m->lock_id)) {
			others++;
			if (terms_exclude(&p->terms, &m->terms) ||
				!rule_together(core, p->peer, from, m->terms.of)) {
				return STATUS_PROMISED;
			}
		}
	}
	if (terms_semaphore(&m->terms) && !key_permits_left(key, m->lock_id, &m->terms)) {
		/* The master chooses the numbers, whatever numbers the request names. */
		return others ? STATUS_PROMISED : STATUS_HELD;
	}
	return others < PROMISES_A_KEY || key_promise(key, m->lock_id)
		? STATUS_OK : STATUS_PROMISED;
}

enum status rule_promise(const struct core *core, const struct key *key, uint32_t from,
	const struct message *m) {
	enum status s = rule_votes(core);
	if (s == STATUS_OK) {
		s = rule_released(core, m->lock_id, NULL, 0);
	}
	if (s != STATUS_OK || key == NULL) {
		return s;
	}
	const struct record *own = key_record(key, m->lock_id);
	if (own && !slice_equal(record_identity(own), m->identity)) {
		/* Section 9: this is a repeat under another identity. */
		return STATUS_DENIED;
	}
	if (own && own->barred) {
		/* It was broken (section 9), or only keeps the key closed (section 10, Closing). */
		return STATUS_BARRED;
	}
	if (own && !terms_again(own->of, m->terms.of)) {
		/* Section 10: a lock_id keeps its mode. */
		return STATUS_TERMS;
	}
	s = rule_held(core, key, m->lock_id, &m->terms);
	if (s != STATUS_OK) {
		return s;
	}
	if (own) {
		/* A held record never becomes a promise. */
		return STATUS_HELD_SELF;
	}
	s = rule_room(core, key);
	if (s != STATUS_OK) {
		return s;
	}
	s = rule_promised(core, key, from, m);
	if (s != STATUS_OK) {
		return s;
	}
	/* A request with a turn is parked here until it may have the key. Newcomers that could
	 * share the key with the present holders must not slip in before it. */
	if (!(m->flags & FLAG_TURN) &&
		(queue_parked_ahead(key, m->lock_id) ||
			((m->flags & FLAG_HOME) && queue_ahead(core, key, m)))) {
		return STATUS_QUEUED;
	}
	return STATUS_OK;
}

enum status rule_promise_in_order(const struct core *core, const struct key *key, uint32_t from,
	const struct message *m) {
	if (key == NULL || key_more(key) == NULL || !(m->flags & FLAG_TURN)) {
		return rule_promise(core, key, from, m);
	}
	const struct place place = { m->terms.priority, m->ticket, from };
	const enum status s = rule_promise(core, key, from, m);
	/* What is promised already passes nobody. */
	return s == STATUS_OK && !key_promise(key, m->lock_id) &&
			queue_parked_before(core, key, m->lock_id, &place)
		? STATUS_QUEUED : s;
}

bool rule_turn_next(const struct core *core, const struct key *key, const struct queued *q,
	enum status s) {
	if (s == STATUS_OK || s == STATUS_HELD_SELF || !terms_semaphore(&q->terms)) {
		return true;
	}
	const struct place place = queued_place(q);
	uint32_t promised;
	return queue_parked_before(core, key, q->lock_id, &place) &&
		key_permits_free(key, q->lock_id, q->terms.of, &promised) <= promised;
}

/* R2: the token must be above what was noted for this lock_id; where nothing was noted, above the
 * clock. That also holds for permit numbers that the record gains. Locks that are held together
 * have different tokens, too (section 5, Together). The new token of a repeat must be above the
 * tokens of the other records, which came after the repeated lock_id noted its clock. */
static enum status rule_order(const struct core *core, const struct key *key,
	const struct record *own, const struct message *m) {
	const struct promise *promise = key ? key_promise(key, m->lock_id) : NULL;
	bool known = own && permits_within(m->terms.set, record_set(own));
	uint64_t floor = known ? own->noted
		: own ? core->clock : promise_noted(core, promise, m->terms.set);
	const uint64_t others = own && m->token > own->token ? key_highest_token(key, own) : 0;
	floor = others > floor ? others : floor;
	const bool drawn = !own && m->token <= core->clock && key && key_has_token(key, m->token);
	return m->token > floor && !drawn ? STATUS_OK : STATUS_STALE;
}

enum status rule_commit(const struct core *core, const struct key *key, const struct message *m) {
	const struct record *own = key ? key_record(key, m->lock_id) : NULL;
	enum status s = rule_votes(core);
	if (s == STATUS_OK &&
		!(clock_within(core, m->token) && clock_within(core, m->ballot.clock))) {
		s = STATUS_CLOCK;
	}
	if (s == STATUS_OK) {
		s = rule_duration(core, m->lease_us);
	}
	if (s == STATUS_OK) {
		s = rule_released(core, m->lock_id, own, m->terms.binding);
	}
	if (s == STATUS_OK) {
		s = rule_held(core, key, m->lock_id, &m->terms);
	}
	if (s != STATUS_OK) {
		return s;
	}
	if (own && !slice_equal(m->identity, record_identity(own))) {
		/* Two identities try for one lock_id at the same time. It belongs to the one that
		 * came first. */
		return STATUS_DENIED;
	}
	if (own && own->barred) {
		return STATUS_BARRED;
	}
	if (own && !terms_again(own->of, m->terms.of)) {
		return STATUS_TERMS;
	}
	s = own ? STATUS_OK : rule_room(core, key);
	s = s == STATUS_OK ? rule_order(core, key, own, m) : s;
	if (s == STATUS_OK && own && ballot_compare(record_wrote(core, own), m->prepared) > 0 &&
		!slice_equal(record_value(own), m->value)) {
		/* The value has been updated since the masters were asked. The attempt is to begin
		 * again, and is told that value. */
		return STATUS_HELD_SELF;
	}
	return s == STATUS_OK && first_overtaken(core, key, m) ? STATUS_STALE : s;
}

/* Returns for how long a record of a contested key may not be extended yet. */
span_ns rule_later(const struct core *core) {
	return instant_left_long(core->now,
		instant_add(lacked_vote_began(core),
			span_grow(core->config.request_timeout, core->config.drift_ppm)));
}

/* Applies the rules that an extension and a learned record have in common. */
static enum status rule_longer(const struct core *core, const struct key *key,
	const struct record *own, const struct message *m, uint32_t binding) {
	enum status s = rule_votes(core);
	if (s == STATUS_OK) {
		s = rule_duration(core, m->lease_us);
	}
	if (s == STATUS_OK) {
		s = rule_released(core, m->lock_id, own, binding);
	}
	if (s != STATUS_OK) {
		return s;
	}
	if (own && own->barred) {
		return STATUS_BARRED;
	}
	/* Section 4: what this master already has may be extended once every commit round that
	 * began before it voted is over. */
	return own && record_doubted(key, own, m->terms.set) && rule_later(core) > 0
		? STATUS_LATER : STATUS_OK;
}

/* STATUS_NEED: nothing stands in the way, as far as can be told without the terms of the lock, but
 * the record is not here. */
enum status rule_extend(const struct core *core, const struct key *key, const struct message *m) {
	const struct record *own = key ? key_record(key, m->lock_id) : NULL;
	/* The number is the session binding that the extension names. A record that is not here may
	 * have a greater one. */
	enum status s = rule_longer(core, key, own, m, own ? (uint32_t)m->number : 0);
	if (s == STATUS_OK && own && terms_of_numbers(own->of) && !permits_none(m->terms.set) &&
		!permits_meet(m->terms.set, record_set(own))) {
		/* The record is here, but it has none of these permit numbers. */
		s = STATUS_NEED;
	} else if (s == STATUS_OK && own) {
		/* R5 covers the lease and the lock delay after it. */
		s = record_delay(own)
			? rule_duration(core, m->lease_us + (uint64_t)(record_delay(own) / SPAN_US))
			: STATUS_OK;
	} else if (s == STATUS_OK && key && table_contested(core, key) &&
		!key_numbered(key, key->held->of)) {
		s = STATUS_CONTESTED;
	} else if (s == STATUS_OK) {
		s = key && key_other_exclusive(key, m->lock_id) ? STATUS_HELD : STATUS_NEED;
	}
	return s;
}

/* Decides about a record that arrives; its lease includes the lock delay. STATUS_NEED: the record
 * is new here. */
enum status rule_learn(const struct core *core, const struct key *key, const struct message *m) {
	const struct record *own = key ? key_record(key, m->lock_id) : NULL;
	enum status s = rule_longer(core, key, own, m, m->terms.binding);
	if (s != STATUS_OK) {
		return s;
	}
	if (own == NULL) {
		s = rule_held(core, key, m->lock_id, &m->terms);
		s = s == STATUS_OK ? rule_room(core, key) : s;
		return s == STATUS_OK ? STATUS_NEED : s;
	}
	const struct terms had = record_terms(own);
	struct terms more = m->terms;
	if (!terms_alike(&had, &more)) {
		return STATUS_TERMS;
	}
	/* Only the permits that the record has not had here so far have to pass R1. */
	more.set = permits_but(more.set, had.set);
	return permits_none(more.set) ? STATUS_OK : rule_held(core, key, m->lock_id, &more);
}

/* Tells whether the master "had" the record: it is live with a token above what it noted, so that
 * nobody else's lease came between. A lock that another record excludes here was not had. (For the
 * permit numbers of a semaphore, record_lasting has already seen to that.) */
bool rule_had(const struct key *key, const struct record *r, uint64_t caller_token) {
	return (caller_token ? caller_token : r->token) > r->noted &&
		(key_numbered(key, r->of) || !record_doubted(key, r, record_set(r)));
}

/* Section 10: says the same for each permit number. Numbers that the record had before it gained
 * others are judged by what was noted for them, not by what was noted when the others came. */
struct permits rule_had_numbers(const struct key *key, const struct record *r,
	uint64_t caller_token) {
	return key_numbered(key, r->of) ? record_had(r, caller_token ? caller_token : r->token)
		: (struct permits){ { 0, 0 } };
}

/* Section 2, Update, Prepare: a master that missed an extension and learned the record anew may
 * have an old value. */
bool rule_value_counts(const struct record *r) {
	return r->vouched || r->wrote_clock > r->noted || record_keeps_closed(r);
}
