/* machine_value.c: the two phases of an update at a master (section 2, Update). */
#include "machine.h"

static const char *may_update(const struct m_step *s, const struct m_record *own) {
	return !s->node->votes ? "R4: a master that does not vote accepts nothing"
		: !s->in_epoch ? "R4: nothing is accepted under another epoch or hash"
		: own == NULL ? "an update is accepted without the record"
		: s->ended.released ? "R3: the lock_id was released"
		: s->m->ballot.clock <= own->noted
			? "every master refuses ballots that are not above its record's noted"
		: ballot_compare(s->m->ballot, own->prepared) < 0
			? "every master refuses ballots below the one that it noted"
		: NULL;
}

/* The lease, the token and the name are untouched. */
static bool lease_same(const struct m_record *a, const struct m_record *b) {
	return a->token == b->token && (a->noted == b->noted || m_is_numbers(&a->terms)) &&
		m_instant_same(a->end, b->end) && a->name == b->name && a->barred == b->barred &&
		a->terms.binding == b->terms.binding;
}

static const char *refused(const struct m_step *s) {
	const char *wrong = m_own_kept(s);
	return wrong ? wrong
		: m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}

const char *machine_prepare(const struct m_step *s) {
	const struct m_record *own = m_record_of(s->before, s->m->lock_id);
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	const struct message *a = s->answer;
	if (a == NULL || a->status != STATUS_OK) {
		return refused(s);
	}
	const char *wrong = may_update(s, own);
	if (wrong) {
		return wrong;
	}
	if (now == NULL || !lease_same(own, now) || now->value != own->value ||
		ballot_compare(now->wrote, own->wrote) != 0) {
		return "a Prepare changes nothing but the ballot that is noted";
	}
	if (ballot_compare(now->prepared, s->m->ballot) < 0) {
		return "a Prepare notes the ballot";
	}
	if (s->clock_after < s->m->ballot.clock) {
		return "a master that notes a ballot raises its clock to it";
	}
	if (ballot_compare(a->ballot, own->wrote) != 0 ||
		(!(a->flags & FLAG_SAME) && m_hash(a->value) != own->value)) {
		return "a Prepare reports the value with the ballot that wrote it";
	}
	return m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}

const char *machine_write(const struct m_step *s) {
	const struct m_record *own = m_record_of(s->before, s->m->lock_id);
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	if (s->answer == NULL || s->answer->status != STATUS_OK) {
		return refused(s);
	}
	const char *wrong = may_update(s, own);
	if (wrong) {
		return wrong;
	}
	if (ballot_compare(own->wrote, s->m->ballot) > 0) {
		return "a master has a newer value";
	}
	if (now == NULL || !lease_same(own, now)) {
		return "a write leaves the lease untouched";
	}
	if (now->value != m_hash(s->m->value) || ballot_compare(now->wrote, s->m->ballot) != 0 ||
		ballot_compare(now->prepared, s->m->ballot) < 0) {
		return "a write is taken with its ballot";
	}
	return m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}
