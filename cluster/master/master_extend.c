/* master_extend.c: what a master does with extensions (sections 2, 4 and 10). */
#include "master.h"

static void count_extend(struct core *core, const struct key *key, enum status s) {
	switch (s) {
	case STATUS_OK:
		COUNT(core, extend_ok);
		core->counts[COUNT_extend_contested_ok] += table_contested(core, key);
		break;
	case STATUS_NEED: COUNT(core, extend_learned); break;
	case STATUS_HELD: COUNT(core, extend_refused_held); break;
	case STATUS_RELEASED: COUNT(core, extend_refused_released); break;
	case STATUS_BARRED: COUNT(core, extend_refused_barred); break;
	case STATUS_TOO_LONG: COUNT(core, extend_refused_too_long); break;
	case STATUS_RECOVERING: COUNT(core, extend_refused_recovering); break;
	case STATUS_CONTESTED: case STATUS_LATER: COUNT(core, extend_refused_contested); break;
	case STATUS_HELD_SELF: case STATUS_PARKED: case STATUS_PROMISED: case STATUS_QUEUED:
	case STATUS_STALE: case STATUS_CLOCK: case STATUS_EPOCH: case STATUS_DENIED:
	case STATUS_FULL: case STATUS_BALLOT: case STATUS_ABSENT: case STATUS_TERMS:
		break;
	}
}

/* Returns the permit numbers that are extended. If the extension names numbers, these are extended.
 * Otherwise all numbers that were meant to last are; numbers that are in doubt are not among
 * them. */
static struct permits extend_numbers_here(const struct key *key, struct record *r,
	struct permits named) {
	if (permits_none(named) || !terms_of_numbers(r->of)) {
		return record_lasting(key, r);
	}
	record_name(r, named);
	return permits_and(named, record_set(r));
}

/* Says when the coordinator is to ask again. */
void master_say_when(const struct core *core, struct message *answer) {
	if (answer->status == STATUS_LATER) {
		answer->left_us = (uint64_t)(rule_later(core) / SPAN_US) + 1;
	}
}

/* Section 2, Shorten: tells whether the end that the extension asks for takes the place of the
 * record's, and not only if it is later. A record that has the order, or a later one, was
 * lengthened after this was asked for. Permit numbers that are not named last as long as they
 * did. */
static bool shortens(const struct record *r, const struct message *m) {
	return (m->number & NUMBER_SHORTENS) && (uint32_t)m->number > record_binding(r) &&
		(!terms_of_numbers(r->of) || permits_within(record_set(r), m->terms.set));
}

/* The extension names a session binding, or an order, which the record notes. NULL: no memory.
 * style: record, because master_extend says so. */
static __attribute__((noinline)) struct record *note_number(struct core *core, struct key *key,
	struct record *r, const struct message *m) {
	const bool cut = shortens(r, m);
	r = key_bind(core, key, r, (uint32_t)m->number);
	if (r && cut) {
		COUNT(core, extend_shortened);
		record_shorten(core, key, r, clock_saturating_add(span_from_us(m->lease_us),
			record_delay(r)));
	}
	return r;
}

/* A master that has the lock_id live extends it. A master that lacks it asks for the record. */
void master_extend(struct core *core, uint32_t from, const struct message *m) {
	struct key *key = table_find_hashed(core, m->key, message_hash(core, m));
	struct message answer = { .kind = MESSAGE_EXTEND_ANSWER, .round = m->round,
		.age_us = lacked_us(core, m->lock_id) };
	answer.status = rule_extend(core, key, m);
	struct record *r = answer.status == STATUS_OK ? key_record(key, m->lock_id) : NULL;
	if (r && m->number && (r = note_number(core, key, r, m)) == NULL) {
		answer.status = STATUS_FULL;
	}
	count_extend(core, key, answer.status);
	if (r) {
		span_ns lasts = clock_saturating_add(span_from_us(m->lease_us), record_delay(r));
		r->rests_on = name_extended(core, r->rests_on, m->name);
		answer.token = r->token;
		answer.terms = record_terms(r);
		answer.terms.set = extend_numbers_here(key, r, m->terms.set);
		core->counts[COUNT_extend_permits_missing] += !permits_within(m->terms.set,
			answer.terms.set);
		answer.had = permits_and(answer.terms.set, rule_had_numbers(key, r, m->token));
		answer.flags = (rule_had(key, r, m->token) ? FLAG_HAD : 0) |
			(permits_within(record_set(r), answer.terms.set) ? 0 : FLAG_MORE);
		r->end = instant_later(r->end, instant_add(core->now, lasts));
		r->accepted = core->tick;
		if (core->master.holder_count > 0) {
			binding_master_accepted(core, r, from);
		}
		core->counts[COUNT_extend_not_had] += !(answer.flags & FLAG_HAD);
		record_changed(core, key, r,
			record_held_again(core, r) ? RECORD_GRANTED : RECORD_EXTENDED);
	} else {
		core->counts[COUNT_extend_permits_missing] += answer.status == STATUS_NEED && key &&
			key_record(key, m->lock_id);
		missed_bound(core, m->key, m->lock_id, (uint32_t)m->number);
		master_blocker(core, key, m->lock_id, &m->terms, &answer);
		master_say_when(core, &answer);
	}
	out_send(core, from, &answer);
}
