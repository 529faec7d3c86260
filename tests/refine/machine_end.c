/* machine_end.c: what ends a record or changes its mode: releases, closing, roll-backs, ends of
 * connections, breaks and downgrades (sections 2, 9, 10 and 11). */
#include "machine.h"

/* The record that keeps a key closed has the complement of the released lock_id. */
static struct id128 closing_id(struct id128 released) {
	for (size_t i = 0; i < sizeof released.b; i++) {
		released.b[i] = (uint8_t)~released.b[i];
	}
	return released;
}

static const char *closed(const struct m_step *s, const struct m_record *own) {
	const struct id128 id = closing_id(s->m->lock_id);
	const struct m_record *was = m_record_of(s->before, id);
	const struct m_record *now = m_record_of(s->after, id);
	const span_ns asked = span_from_us(s->m->closes_us);
	if (own == NULL) {
		return was && (now == NULL || !m_record_same(was, now))
			? "a repeated release leaves the key closed as it is" : NULL;
	}
	if (now == NULL) {
		return asked == 0 ? NULL
			: "a release that closes puts another record in the lock's place";
	}
	const struct instant end = instant_add(s->node->now,
		asked < s->node->max_lease ? asked : s->node->max_lease);
	return !now->barred || !now->closing || now->token != own->token ||
		now->terms.of != own->terms.of
		? "the record that keeps a key closed is barred, and has the lock's token and terms"
		: !m_instant_same(now->end, end) ? "a key is closed for the time that was asked for"
		: NULL;
}

static const char *released(const struct m_step *s, const struct m_record *own, bool closes) {
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	if (s->answer && s->answer->status == STATUS_FULL) {
		return m_own_kept(s);
	}
	if (now || m_promise_of(s->after, s->m->lock_id)) {
		return "a release drops the record and the promise of the lock_id";
	}
	if (!s->ended_after.released) {
		return "R3: a master remembers the lock_id that was released";
	}
	return closes ? closed(s, own) : NULL;
}

/* The extension's own record is dropped. Any other record has the request's name again, and is
 * dropped if that name was rolled back meanwhile. */
static const char *taken_back(const struct m_step *s, const struct m_record *own) {
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	if (own == NULL || own->name != s->m->name || s->bound) {
		return s->bound ? NULL : m_own_kept(s);
	}
	if (s->base == 0) {
		struct m_record named = now ? *now : *own;
		named.name = own->name;
		return m_record_same(own, &named) ? NULL
			: "an extension that is taken back changes the name alone";
	}
	if (s->base == s->m->name) {
		return now ? "an extension's own record is dropped when it is taken back" : NULL;
	}
	return now && now->name != s->base
		? "a record has the request's name again when an extension is taken back" : NULL;
}

/* Numbers that are left to run out keep the name that they rest on. */
static const char *rolled_back(const struct m_step *s, const struct m_record *own) {
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	if (s->ended_after.released && !s->ended.released) {
		return "what is rolled back is not remembered among the released";
	}
	if (m_of_extension(s->m->name)) {
		return taken_back(s, own);
	}
	if (own && own->name == s->m->name && !s->bound) {
		return now ? "a roll-back drops what rests on its name alone" : NULL;
	}
	if (!(s->in_epoch ? s->ended_after.name : s->m->name)) {
		return "a master remembers the name that was rolled back";
	}
	return own && m_is_numbers(&own->terms) ? NULL
		: m_own_kept(s) ? "a roll-back drops nothing but what rests on its name alone"
		: NULL;
}

static const char *connection_ended(const struct m_step *s, const struct m_record *own) {
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	const uint32_t number = (uint32_t)s->m->number;
	if (s->ended_after.released && !s->ended.released) {
		return "what ended with a connection is not remembered among the released";
	}
	if (s->ended_after.binding < number) {
		return "what ended with a connection is remembered with its binding";
	}
	if (own && (own->terms.binding == 0 || own->terms.binding > number)) {
		return m_own_kept(s) ? "a master keeps a record that has a greater binding, or none"
			: NULL;
	}
	/* It lasts for its lock delay. */
	if (now && own && now->terms.delay > 0) {
		const struct instant end = instant_add(s->node->now, now->terms.delay);
		return now->end.boot > end.boot || now->end.raw > end.raw
			? "what ended with a connection lasts for its lock delay" : NULL;
	}
	return now ? "a record ends with the connection that it is bound to" : NULL;
}

/* A release may be from a node that is in no configuration: it rolls back under its name, or is not
 * heard (section 6). */
const char *machine_release(const struct m_step *s) {
	const struct message *m = s->m;
	const struct m_record *own = m_record_of(s->before, m->lock_id);
	const bool hands_over = m->kind == MESSAGE_HAND_OVER;
	const bool closes = hands_over && m->blob.size == 0;
	const char *wrong;
	if (!s->in_epoch && !(m->kind == MESSAGE_RELEASE && m->name)) {
		wrong = m_own_kept(s);
	} else if (!hands_over && m->number) {
		wrong = connection_ended(s, own);
	} else if (!hands_over && m->name) {
		wrong = rolled_back(s, own);
	} else {
		wrong = released(s, own, closes);
	}
	if (wrong) {
		return wrong;
	}
	if (!closes) {
		return m_others_kept(s->node, s->before, s->after, m->lock_id, NULL);
	}
	struct m_key after = *s->after;
	const struct m_record *put = m_record_of(&after, closing_id(m->lock_id));
	if (put && m_record_of(s->before, put->lock_id) == NULL) {
		after.records[put - after.records] = after.records[--after.record_count];
	}
	return m_others_kept(s->node, s->before, &after, m->lock_id, NULL);
}

const char *machine_break(const struct m_step *s) {
	const struct m_record *own = m_record_of(s->before, s->m->lock_id);
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	if (s->m->flags & FLAG_NOW) {
		const char *wrong = s->answer ? released(s, own, false) : NULL;
		return wrong ? wrong
			: m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
	}
	if (own && now == NULL) {
		return "a break leaves the lease to its end";
	}
	if (own && s->answer && s->answer->status == STATUS_OK && !now->barred) {
		return "a break bars the lock_id";
	}
	if (own && (now->token != own->token || !m_instant_same(now->end, own->end))) {
		return "a break leaves the lease to its end";
	}
	return m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}

const char *machine_downgrade(const struct m_step *s) {
	const struct m_record *own = m_record_of(s->before, s->m->lock_id);
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	if ((own == NULL) != (now == NULL)) {
		return "a downgrade drops nothing, and makes nothing";
	}
	if (s->answer && s->answer->status == STATUS_OK && own &&
		now->terms.of != MODE_SHARED) {
		return "a downgrade makes the record shared";
	}
	if (own && (now->token != own->token || now->noted != own->noted ||
		!m_instant_same(now->end, own->end) || now->value != own->value)) {
		return "a downgrade changes the mode, and no more";
	}
	return m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}

/* A node that has bound a lock says so, or that it has lost it: then the record ends where it is
 * bound to that node, with its lock delay. */
const char *machine_binding(const struct m_step *s) {
	const struct m_record *own = m_record_of(s->before, s->m->lock_id);
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	const bool ends = own && (s->m->flags & FLAG_NOW) && s->bound && !own->freed &&
		s->node->votes;
	const char *wrong = NULL;
	if (ends) {
		wrong = now && now->terms.delay == 0
			? "a lock that its node has lost ends where it is bound to that node"
			: NULL;
	} else if (own && now && s->answer && s->answer->status == STATUS_OK &&
		!(s->m->flags & FLAG_NOW)) {
		struct m_record counted = *own;
		counted.name = 0;
		wrong = m_record_same(&counted, now) ? NULL
			: "no request rolls back a record that a master has said it has";
	} else {
		wrong = m_own_kept(s);
	}
	return wrong ? wrong
		: m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}
