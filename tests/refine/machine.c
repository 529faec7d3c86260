/* machine.c: what all judgements share: which locks exclude each other, and what may change about
 * those that a message does not name. */
#include "machine.h"

bool m_is_numbers(const struct terms *t) {
	return t->of != MODE_EXCLUSIVE && t->of != MODE_SHARED;
}

bool m_delayed(const struct m_record *r, struct instant now) {
	return r->terms.delay > 0 && instant_expired(instant_add(now, r->terms.delay), r->end);
}

/* Section 10, the table of what excludes what. */
bool m_excludes(const struct terms *a, const struct terms *b) {
	if (a->of == MODE_EXCLUSIVE || b->of == MODE_EXCLUSIVE) {
		return true;
	}
	if (a->of == MODE_SHARED || b->of == MODE_SHARED) {
		return a->of != b->of;
	}
	return a->of != b->of || (a->set.w[0] & b->set.w[0]) || (a->set.w[1] & b->set.w[1]);
}

const struct m_record *m_record_of(const struct m_key *key, struct id128 lock_id) {
	for (uint32_t i = 0; i < key->record_count; i++) {
		if (id128_equal(key->records[i].lock_id, lock_id)) {
			return &key->records[i];
		}
	}
	return NULL;
}

const struct m_promise *m_promise_of(const struct m_key *key, struct id128 lock_id) {
	for (uint32_t i = 0; i < key->promise_count; i++) {
		if (id128_equal(key->promises[i].lock_id, lock_id)) {
			return &key->promises[i];
		}
	}
	return NULL;
}

const struct m_record *m_in_the_way(const struct m_key *key, struct id128 lock_id,
	const struct terms *terms) {
	for (uint32_t i = 0; i < key->record_count; i++) {
		const struct m_record *r = &key->records[i];
		if (!id128_equal(r->lock_id, lock_id) && m_excludes(&r->terms, terms)) {
			return r;
		}
	}
	return NULL;
}

bool m_doubted(const struct m_key *key, const struct m_record *r) {
	return m_in_the_way(key, r->lock_id, &r->terms) != NULL;
}

bool m_contested(const struct m_key *key) {
	for (uint32_t i = 0; i < key->record_count; i++) {
		if (m_doubted(key, &key->records[i])) {
			return true;
		}
	}
	return false;
}

bool m_numbered(const struct m_key *key) {
	for (uint32_t i = 0; i < key->record_count; i++) {
		if (!m_is_numbers(&key->records[i].terms) ||
			key->records[i].terms.of != key->records[0].terms.of) {
			return false;
		}
	}
	return key->record_count > 0;
}

bool m_instant_same(struct instant a, struct instant b) {
	return a.boot == b.boot && a.raw == b.raw;
}

bool m_notes_clock(const struct m_step *s, uint64_t noted) {
	return noted >= s->node->clock && noted <= s->clock_between;
}

struct instant m_end_of(const struct m_node *node, uint64_t lease_us) {
	return instant_add(node->now, span_from_us(lease_us));
}

uint64_t m_hash(struct slice bytes) {
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ bytes.size;
	for (size_t i = 0; i < bytes.size; i++) {
		h = (h ^ bytes.data[i]) * UINT64_C(0x100000001b3);
	}
	return h;
}

/* Numbers of a semaphore that run out are not followed, so a record may lose some. */
static bool terms_same(const struct terms *a, const struct terms *b) {
	return a->of == b->of && a->binding == b->binding && a->delay == b->delay;
}

bool m_record_same(const struct m_record *a, const struct m_record *b) {
	return a->token == b->token && (a->noted == b->noted || m_is_numbers(&a->terms)) &&
		ballot_compare(a->wrote, b->wrote) == 0 &&
		ballot_compare(a->prepared, b->prepared) == 0 && m_instant_same(a->end, b->end) &&
		a->name == b->name && a->value == b->value && a->barred == b->barred &&
		terms_same(&a->terms, &b->terms);
}

/* The names of one request for one lock_id are in an order: they differ in the lowest bits. An
 * extension has none there. */
#define NAME_TRIES 16

bool m_of_extension(uint64_t name) {
	return name && name % NAME_TRIES == 0;
}

uint64_t m_name_after(const struct m_record *own, uint64_t name) {
	if (own->name == name) {
		return name;
	}
	return own->name && !m_of_extension(own->name) && m_of_extension(name) ? name : 0;
}

bool m_r3(const struct m_step *s, uint32_t binding) {
	return s->ended.released || (binding && binding <= s->ended.binding);
}

/* Section 5: when something has ended, a master makes its promise to who waits. It is a promise
 * like any other: R1 holds, and it notes the clock. */
static const char *promise_made(const struct m_node *node, const struct m_key *before,
	const struct m_key *after, const struct m_promise *p) {
	if (!node->votes) {
		return "R4: a master that does not vote promises nothing";
	}
	if (m_record_of(after, p->lock_id)) {
		return "a held record never becomes a promise";
	}
	/* The numbers of a promise for permits are not chosen yet. */
	if (!m_is_numbers(&p->terms) && m_in_the_way(after, p->lock_id, &p->terms)) {
		return "R1: a promise while the record of another lock_id is live";
	}
	for (uint32_t i = 0; i < after->promise_count; i++) {
		const struct m_promise *other = &after->promises[i];
		if (other != p && !m_is_numbers(&p->terms) &&
			m_excludes(&other->terms, &p->terms)) {
			return "R1: a promise while another lock_id is promised";
		}
	}
	return p->noted < before->clock ? "a promise notes the clock" : NULL;
}

static const char *records_kept(const struct m_key *before, const struct m_key *after,
	struct id128 lock_id) {
	for (uint32_t i = 0; i < before->record_count; i++) {
		const struct m_record *r = &before->records[i];
		const struct m_record *now = m_record_of(after, r->lock_id);
		if (id128_equal(r->lock_id, lock_id)) {
			continue;
		}
		if (now == NULL && !m_is_numbers(&r->terms)) {
			return "the record of another lock_id was dropped";
		}
		if (now && !m_record_same(r, now)) {
			return "the record of another lock_id has changed";
		}
	}
	for (uint32_t i = 0; i < after->record_count; i++) {
		const struct id128 id = after->records[i].lock_id;
		if (!id128_equal(id, lock_id) && m_record_of(before, id) == NULL) {
			return "a record of another lock_id has come";
		}
	}
	return NULL;
}

static const char *promises_kept(const struct m_key *before, const struct m_key *after,
	struct id128 lock_id) {
	for (uint32_t i = 0; i < before->promise_count; i++) {
		const struct id128 id = before->promises[i].lock_id;
		if (!id128_equal(id, lock_id) && m_promise_of(after, id) == NULL) {
			return "the promise to another lock_id was dropped before its end";
		}
	}
	return NULL;
}

const char *m_others_kept(const struct m_node *node, const struct m_key *before,
	const struct m_key *after, struct id128 lock_id, const struct terms *displaced) {
	const char *wrong = records_kept(before, after, lock_id);
	wrong = wrong || displaced ? wrong : promises_kept(before, after, lock_id);
	for (uint32_t i = 0; wrong == NULL && i < after->promise_count; i++) {
		const struct m_promise *p = &after->promises[i];
		const struct m_promise *was = m_promise_of(before, p->lock_id);
		if (id128_equal(p->lock_id, lock_id)) {
			continue;
		}
		if (was == NULL) {
			wrong = promise_made(node, before, after, p);
		} else if (was->noted != p->noted) {
			/* The record has displaced it, and its request, which is parked, has got
			 * its promise anew. */
			wrong = displaced ? promise_made(node, before, after, p)
				: "the promise to another lock_id has changed";
		} else if (displaced && !m_is_numbers(&p->terms) &&
			m_excludes(displaced, &p->terms)) {
			wrong = "a record displaces the promises that it excludes";
		}
	}
	return wrong;
}

const char *m_own_kept(const struct m_step *s) {
	const struct m_record *was = m_record_of(s->before, s->m->lock_id);
	const struct m_record *now = m_record_of(s->after, s->m->lock_id);
	if (was == NULL) {
		return now ? "a record was made although the message was refused" : NULL;
	}
	if (now == NULL) {
		return m_is_numbers(&was->terms) ? NULL
			: "a record was dropped although nothing was to end it";
	}
	return m_record_same(was, now) ? NULL
		: "a record has changed although nothing was accepted for it";
}

/* A record that was bound to a node lasts for its lock delay when that node is gone; and a bar is
 * taken over from other masters. */
static bool only_delayed(const struct m_record *was, const struct m_record *now) {
	struct m_record r = *was;
	r.barred = now->barred;
	if (was->terms.delay > 0) {
		r.end = now->end;
	}
	return (was->barred ? now->barred : true) && m_record_same(&r, now);
}

const char *machine_idle(const struct m_node *node, const struct m_key *before,
	const struct m_key *after) {
	if (before->more || after->more || before->unfinished || after->unfinished ||
		!node->votes) {
		return NULL;
	}
	for (uint32_t i = 0; i < after->record_count; i++) {
		const struct m_record *r = &after->records[i];
		const struct m_record *was = m_record_of(before, r->lock_id);
		if (was == NULL) {
			return "a record has come without a message";
		}
		if (!m_record_same(was, r) && !only_delayed(was, r)) {
			return "a record has changed without a message";
		}
	}
	for (uint32_t i = 0; i < after->promise_count; i++) {
		const struct m_promise *p = &after->promises[i];
		const struct m_promise *was = m_promise_of(before, p->lock_id);
		const char *wrong = was ? NULL : promise_made(node, before, after, p);
		if (wrong == NULL && was && was->noted != p->noted && p->noted < before->clock) {
			wrong = "a promise keeps its noted";
		}
		if (wrong) {
			return wrong;
		}
	}
	return NULL;
}

/* Whatever else the message is about, no record changes by it. At the key's home its request may
 * get the turn, and the promise with it (section 5). */
static const char *nothing_accepted(const struct m_step *s) {
	const struct m_promise *p = m_promise_of(s->after, s->m->lock_id);
	const char *wrong = m_own_kept(s);
	if (wrong == NULL && p && m_promise_of(s->before, s->m->lock_id) == NULL) {
		wrong = promise_made(s->node, s->before, s->after, p);
	}
	return wrong ? wrong
		: m_others_kept(s->node, s->before, s->after, s->m->lock_id, NULL);
}

const char *machine_handled(const struct m_step *s) {
	if (s->before->more || s->after->more || s->before->unfinished || s->after->unfinished) {
		return NULL;
	}
	switch ((int)s->m->kind) {
	case MESSAGE_PROMISE: return machine_promise(s);
	case MESSAGE_WITHDRAW: return machine_withdraw(s);
	case MESSAGE_COMMIT: return machine_commit(s);
	case MESSAGE_LEARN: return machine_learn(s);
	case MESSAGE_EXTEND: case MESSAGE_EXTEND_PERMITS: return machine_extend(s);
	case MESSAGE_RELEASE: case MESSAGE_HAND_OVER: return machine_release(s);
	case MESSAGE_BREAK: return machine_break(s);
	case MESSAGE_DOWNGRADE: return machine_downgrade(s);
	case MESSAGE_PREPARE: return machine_prepare(s);
	case MESSAGE_WRITE: return machine_write(s);
	case MESSAGE_FETCH: return machine_fetch(s);
	case MESSAGE_SYNC_RECORD: return machine_sync(s);
	case MESSAGE_BINDING: return machine_binding(s);
	default: return nothing_accepted(s);
	}
}
