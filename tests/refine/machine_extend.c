/* machine_extend.c: extensions and shortenings at a master (section 2, Extend and Shorten), and
 * what is said about a record (fetches). */
#include "machine.h"

static const char *extend_rules(const struct m_step *s, const struct m_record *own) {
	const struct message *m = s->m;
	const uint32_t number = (uint32_t)m->number;
	const uint32_t binding = own->terms.binding > number ? own->terms.binding : number;
	const span_ns lasts = clock_saturating_add(span_from_us(m->lease_us), own->terms.delay);
	if (lasts > s->node->max_lease) {
		return "R5: the lease and the lock delay are above max_lease";
	}
	if (m_r3(s, binding)) {
		return "R3: the lock_id was released, or ended with its connection";
	}
	if (own->barred || s->ended.barred) {
		return "section 9: a lock_id that is barred is not lengthened";
	}
	return m_doubted(s->before, own) && !m_numbered(s->before) &&
		instant_left_long(s->node->now, instant_add(s->node->vote_began,
		span_grow(s->node->request_timeout, s->node->drift_ppm))) > 0
		? "section 4: a contested key is not lengthened yet" : NULL;
}

/* Section 2, Shorten: the number of the record is below that of the shortening. A record that has
 * permit numbers which are not named is not shortened. */
static bool shortens(const struct m_step *s, const struct m_record *own) {
	const struct permits *named = &s->m->terms.set;
	return (s->m->number & NUMBER_SHORTENS) && own->terms.binding < (uint32_t)s->m->number &&
		(!m_is_numbers(&own->terms) || ((own->terms.set.w[0] & ~named->w[0]) == 0 &&
			(own->terms.set.w[1] & ~named->w[1]) == 0));
}

static const char *extended(const struct m_step *s, const struct m_record *own,
	const struct m_record *now) {
	const struct message *m = s->m;
	const uint32_t number = (uint32_t)m->number;
	const struct instant end = instant_add(m_end_of(s->node, m->lease_us), own->terms.delay);
	if (now == NULL) {
		return shortens(s, own) && instant_expired(s->node->now, end) ? NULL
			: "an extension keeps the record";
	}
	if (!m_instant_same(now->end, shortens(s, own) ? end : instant_later(own->end, end))) {
		return "an extension keeps the later end, unless it shortens the lease";
	}
	if (now->token != own->token || now->value != own->value ||
		ballot_compare(now->wrote, own->wrote) != 0 ||
		ballot_compare(now->prepared, own->prepared) != 0 ||
		(now->noted != own->noted && !m_is_numbers(&now->terms))) {
		return "an extension changes nothing but the end, the binding and the name";
	}
	if (now->terms.binding != (own->terms.binding > number ? own->terms.binding : number)) {
		return "a master notes the greatest binding that was named";
	}
	return now->name != m_name_after(own, m->name)
		? "a record rests on a name as long as all that was accepted had it" : NULL;
}

static const char *had_right(const struct m_step *s, const struct m_record *own) {
	const uint64_t token = s->m->token ? s->m->token : own->token;
	if (m_is_numbers(&own->terms) || !(s->answer->flags & FLAG_HAD)) {
		return NULL;
	}
	return token <= own->noted
		? "a master had the lock_id only with a token above what it noted"
		: m_doubted(s->before, own) ? "no master had the lock of a contested key"
		: NULL;
}

/* For how long a master says that it has lacked the lock_id: no longer than it did, and than it has
 * voted. */
static const char *lacked_right(const struct m_step *s, const struct m_record *own) {
	const span_ns said = span_from_us(s->answer->age_us);
	if (own || s->node->votes == false) {
		return NULL;
	}
	if (said > instant_elapsed_long(s->node->now, s->node->vote_began)) {
		return "a master says at most the time for which it has voted";
	}
	return said > instant_elapsed_long(s->node->now, s->lacked_since)
		? "a master says that it has lacked the lock_id for longer than it has" : NULL;
}

const char *machine_extend(const struct m_step *s) {
	const struct message *m = s->m;
	const struct m_record *own = m_record_of(s->before, m->lock_id);
	const struct m_record *now = m_record_of(s->after, m->lock_id);
	const char *wrong = NULL;
	if (s->answer && s->answer->status == STATUS_OK) {
		wrong = !s->node->votes ? "R4: a master that does not vote accepts nothing"
			: !s->in_epoch ? "R4: nothing is accepted under another epoch or hash"
			: own == NULL ? "an extension is accepted without the record"
			: extend_rules(s, own);
		wrong = wrong ? wrong : extended(s, own, now);
		wrong = wrong ? wrong : had_right(s, own);
	} else {
		wrong = m_own_kept(s);
		wrong = wrong || s->answer == NULL ? wrong : lacked_right(s, own);
		if (wrong == NULL && s->answer && s->answer->status == STATUS_HELD &&
			s->before->record_count == 0) {
			wrong = "an extension is refused for a record that is not there";
		}
	}
	return wrong ? wrong : m_others_kept(s->node, s->before, s->after, m->lock_id, NULL);
}

const char *machine_fetch(const struct m_step *s) {
	const struct m_record *own = m_record_of(s->before, s->m->lock_id);
	const struct message *a = s->answer;
	const char *wrong = m_own_kept(s);
	wrong = wrong ? wrong : m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
	if (wrong || a == NULL || a->status != STATUS_OK) {
		return wrong;
	}
	if (!s->node->votes || own == NULL) {
		return "a record is told that is not there";
	}
	const span_ns left = instant_left_long(s->node->now, own->end);
	if (a->token != own->token || ballot_compare(a->ballot, own->wrote) != 0 ||
		m_hash(a->value) != own->value || a->terms.binding != own->terms.binding) {
		return "a record is told as it is";
	}
	return span_from_us(a->left_us) < left ? "after a copy a record ends no earlier" : NULL;
}
