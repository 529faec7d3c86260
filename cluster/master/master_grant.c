/* master_grant.c: makes promises, and says what stands in the way of others. For promises of
 * permits it says which permit numbers are taken (section 5, Together, and section 10). */
#include "master.h"

/* Tells whether no other promise of the key comes before this one in the order. */
static bool comes_first(const struct core *core, const struct key *key, const struct promise *p) {
	const struct place own = { p->terms.priority, p->ticket, p->peer };
	bool first = p->ticket.clock != 0;
	for (const struct promise *other = key_promises(key); other && first; other = other->next) {
		const struct place place = { other->terms.priority, other->ticket, other->peer };
		first = !queue_before(core, &place, &own);
	}
	return first;
}

/* Returns the lock_id of a promise to another coordinator, or of a parked request, if some of these
 * are of another coordinator; 0: this one is alone. */
static struct id128 not_alone(const struct core *core, const struct key *key, uint32_t peer) {
	const struct parked *parked = queue_parked_alone(key, peer) ? NULL
		: queue_parked_next(core, key, NULL);
	const struct promise *p = key_promises(key);
	while (p && p->peer == peer) {
		p = p->next;
	}
	return p ? p->lock_id : parked ? parked->q.lock_id : (struct id128){ { 0 } };
}

/* The coordinator of a semaphore's request chooses permit numbers that are free at q masters, so it
 * is told which numbers records have here. If this master reserves numbers for it, it is told which
 * are reserved for others, too. `again`: the attempt still has no numbers. If its promise is the
 * first one in the order, only records have numbers (section 5, Together). */
static void say_taken(struct core *core, const struct key *key, const struct promise *p,
	struct permits taken, bool again, struct message *answer) {
	COUNT(core, promise_permits);
	answer->terms = p->terms;
	answer->terms.set = taken;
	if (p->reserves && !(again && comes_first(core, key, p))) {
		answer->terms.set =
			permits_or(answer->terms.set, key_reserved(key, p->lock_id));
	}
}

void master_tell_taken(struct core *core, const struct key *key, struct promise *p) {
	struct message answer = { .kind = MESSAGE_PROMISE_ANSWER, .round = p->attempt,
		.status = STATUS_OK, .noted = promise_note(core, p),
		.by = not_alone(core, key, p->peer), .ballot = p->first,
		.age_us = first_lacked_us(core, p->lock_id) };
	bool room;
	COUNT(core, promise_again);
	say_taken(core, key, p, key_taken(key, p->lock_id, p->terms.of, &room), false, &answer);
	out_send(core, p->peer, &answer);
}

void master_promise_again(struct core *core, struct key *key) {
	for (struct promise *p = key_promises(key); p && core_votes(core); p = p->next) {
		if (p->tell) {
			master_tell_taken(core, key, p);
		}
	}
}

static void promise_permits(struct core *core, const struct key *key, struct promise *p,
	const struct message *m, bool again, struct message *answer) {
	answer->noted = promise_note(core, p);
	answer->by = not_alone(core, key, p->peer);
	p->tell = (m->flags & FLAG_TELL) != 0;
	p->reserves = (m->flags & FLAG_HOME) || queue_find(core, key, p->peer, p->lock_id) ||
		(!p->tell && id128_zero(answer->by));
	say_taken(core, key, p, promise_reserve(key, p), again, answer);
}

void master_grant(struct core *core, struct key *key, const struct message *m, uint32_t peer,
	struct message *answer) {
	struct promise *p = key_promise(key, m->lock_id);
	/* A coordinator that only wants to be told again does not ask for more numbers yet. */
	const bool again = p && p->reserves && p->attempt == m->attempt &&
		(p->tell || !(m->flags & FLAG_TELL));
	if (p == NULL) {
		if ((p = key_make_promise(core, key, m->lock_id)) == NULL) {
			answer->status = STATUS_FULL;
			return;
		}
	}
	/* A promise that is asked for again keeps what it noted, and takes the name of the attempt
	 * that asked last and the later end. */
	list_remove(&p->by_peer);
	list_append(&core->peers[peer].promises, &p->by_peer);
	p->peer = peer;
	p->attempt = m->attempt;
	p->end = instant_later(p->end, instant_add(core->now, core->config.promise_timeout));
	key_ends_by(core, key, p->end);
	p->terms = m->terms;
	p->turn = (m->flags & FLAG_TURN) != 0;
	p->ticket = m->ticket;
	answer->status = STATUS_OK;
	answer->noted = p->noted;
	first_promised(core, p, m, answer);
	core->counts[COUNT_promise_shared] += p->terms.of == MODE_SHARED;
	if (terms_semaphore(&p->terms)) {
		promise_permits(core, key, p, m, again, answer);
	}
}

/* ---- without a promise ---- */

void master_held_self(const struct core *core, const struct key *key, const struct record *own,
	struct message *answer) {
	answer->status = STATUS_HELD_SELF;
	answer->token = own->token;
	answer->noted = own->noted;
	answer->terms = record_terms(own);
	/* The repeat must not choose any other permits. */
	answer->terms.set = permits_but(answer->terms.set, record_doubtful(key, own));
	answer->value = record_value(own);
	answer->ballot = record_wrote(core, own);
}

void master_blocker(const struct core *core, const struct key *key, struct id128 lock_id,
	const struct terms *terms, struct message *answer) {
	const struct record *r = key && key->held ? key_other(key, lock_id, terms) : NULL;
	const struct promise *p = key ? key_promised_other(key, lock_id) : NULL;
	const uint32_t fields = message_fields(answer->kind);
	if (r) {
		answer->by = r->lock_id;
		answer->left_us = (uint64_t)instant_left_long(core->now, r->end) / 1000;
		answer->token = r->token;
		if (fields & F_TERMS) {
			answer->terms = record_terms(r);
		}
		if (fields & F_OWNER) {
			answer->owner = record_owner(r);
		}
	} else if (p) {
		answer->by = p->lock_id;
		answer->left_us = (uint64_t)instant_left_long(core->now, p->end) / 1000;
	}
}
