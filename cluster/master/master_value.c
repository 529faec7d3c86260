/* master_value.c: what a master does with the two phases of an update (section 2, Update). */
#include "master.h"

/* An update touches a live record of the lock_id, on a master that votes. The key may be contested,
 * because values do not decide who holds it. */
static enum status rule_update(const struct core *core, const struct key *key,
	const struct message *m) {
	enum status s = rule_votes(core);
	if (s == STATUS_OK && !clock_within(core, m->ballot.clock)) {
		s = STATUS_CLOCK;
	}
	if (s != STATUS_OK) {
		return s;
	}
	if (tombstone_released(core, m->lock_id)) {
		return STATUS_RELEASED;
	}
	const struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r) {
		return STATUS_OK;
	}
	return key && key_other_exclusive(key, m->lock_id) ? STATUS_HELD : STATUS_NEED;
}

/* Every master refuses ballots that are not above its record's noted clock, and ballots below the
 * one that it noted. */
static bool ballot_refused(const struct core *core, const struct record *r, struct ballot ballot) {
	return ballot.clock <= r->noted || ballot_compare(ballot, record_prepared(core, r)) < 0;
}

void master_prepare(struct core *core, uint32_t from, const struct message *m) {
	struct key *key = table_find(core, m->key);
	struct message answer = { .kind = MESSAGE_PREPARE_ANSWER, .round = m->round,
		.age_us = lacked_us(core, m->lock_id) };
	answer.status = rule_update(core, key, m);
	if (answer.status == STATUS_CLOCK) {
		clock_refused(core, from, m->ballot.clock, m->key);
	} else if (answer.status == STATUS_OK) {
		struct record *r = key_record(key, m->lock_id);
		answer.prepared = record_prepared(core, r);
		if (ballot_refused(core, r, m->ballot) || preparing_busy(core, r, from, m->round)) {
			COUNT(core, update_refused_ballot);
			answer.status = STATUS_BALLOT;
			if (r->noted > answer.prepared.clock) {
				answer.prepared.clock = r->noted;
			}
		} else if ((r = key_write(core, key, r, NULL, record_wrote(core, r),
			m->ballot)) == NULL) {
			answer.status = STATUS_FULL;
		} else {
			preparing_note(core, r, from, m->round);
			clock_raise(core, m->ballot.clock);
			answer.ballot = record_wrote(core, r);
			answer.flags = rule_value_counts(r) ? FLAG_COUNTS : 0;
			if (ballot_compare(answer.ballot, m->prepared) == 0) {
				/* Values travel only to a coordinator that lacks them. */
				answer.flags |= FLAG_SAME;
			} else {
				answer.value = record_value(r);
			}
			record_changed(core, key, r, RECORD_PREPARED);
		}
	}
	out_send(core, from, &answer);
}

void master_write(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_WRITE_ANSWER, .round = m->round };
	struct key *key = table_find(core, m->key);
	answer.status = rule_update(core, key, m);
	if (answer.status == STATUS_CLOCK) {
		clock_refused(core, from, m->ballot.clock, m->key);
		missed_of(core, m->key);
	} else if (answer.status == STATUS_OK) {
		struct record *r = key_record(key, m->lock_id), *moved;
		answer.prepared = record_prepared(core, r);
		if (ballot_refused(core, r, m->ballot) ||
			ballot_compare(record_wrote(core, r), m->ballot) > 0 ||
			preparing_busy(core, r, from, m->round)) {
			COUNT(core, update_refused_ballot);
			answer.status = STATUS_BALLOT;
			if (r->noted > answer.prepared.clock) {
				answer.prepared.clock = r->noted;
			}
			missed_write_refused(core, m, r);
		} else if ((moved = key_write(core, key, r, &m->value, m->ballot,
			m->ballot)) == NULL) {
			answer.status = STATUS_FULL;
			missed_write_refused(core, m, r);
		} else {
			r = moved;
			clock_raise(core, m->ballot.clock);
			record_changed(core, key, r, RECORD_WRITTEN);
		}
	} else if (answer.status == STATUS_HELD || answer.status == STATUS_NEED) {
		missed_write_to_refused(core, m);
	}
	out_send(core, from, &answer);
}
