/* master.c: what a master does with promises, commits, learned records, fetches and withdrawals
 * (section 2). The rules that decide are in rules.c. */
#include "master.h"

static void count_promise(struct core *core, enum status s) {
	switch (s) {
	case STATUS_OK: COUNT(core, promise_ok); break;
	case STATUS_HELD_SELF: COUNT(core, promise_held_self); break;
	case STATUS_PARKED: COUNT(core, promise_parked); break;
	case STATUS_HELD: COUNT(core, promise_refused_held); break;
	case STATUS_PROMISED: COUNT(core, promise_refused_promised); break;
	case STATUS_QUEUED: COUNT(core, promise_refused_queued); break;
	case STATUS_RELEASED: case STATUS_BARRED: COUNT(core, promise_refused_released); break;
	case STATUS_RECOVERING: COUNT(core, promise_refused_recovering); break;
	case STATUS_CONTESTED: COUNT(core, promise_refused_contested); break;
	case STATUS_DENIED: COUNT(core, promise_refused_denied); break;
	case STATUS_FULL: COUNT(core, promise_refused_full); break;
	case STATUS_TERMS: COUNT(core, terms_refused); break;
	case STATUS_NEED: case STATUS_STALE: case STATUS_TOO_LONG: case STATUS_CLOCK:
	case STATUS_EPOCH: case STATUS_BALLOT: case STATUS_ABSENT: case STATUS_LATER:
		break;
	}
}

/* Section 5, Going on: a coordinator that was refused does not count on an earlier promise to the
 * same request, and does not withdraw it. The caller goes on with the parked requests. */
static void promise_refused(struct core *core, struct key *key, uint32_t from,
	struct id128 lock_id) {
	struct promise *p = key_promise(key, lock_id);
	if (p && p->peer == from) {
		COUNT(core, promise_replaced);
		first_lost(core, lock_id, p->first);
		key_drop_promise(core, key, p);
	}
}

/* Answers a request that gets no promise, for this reason. Returns the status of the answer: a
 * request with a turn may be parked. It is rare, and its caller is to cost little. */
static __attribute__((noinline)) enum status no_promise(struct core *core, struct key *key,
	uint32_t from, const struct message *m, enum status refused) {
	struct message answer = { .kind = MESSAGE_PROMISE_ANSWER, .round = m->round,
		.status = refused };
	if (refused == STATUS_HELD_SELF) {
		master_held_self(core, key, key_record(key, m->lock_id), &answer);
	} else {
		bool held = refused == STATUS_HELD || refused == STATUS_CONTESTED;
		master_blocker(core, key, m->lock_id, &m->terms, &answer);
		core->counts[COUNT_delay_closed] += held && answer.terms.delay > 0 &&
			span_from_us(answer.left_us) <= answer.terms.delay;
		if (key) {
			promise_refused(core, key, from, m->lock_id);
		}
		if (key && (m->flags & FLAG_TURN) && queue_park(core, key, from, m, refused)) {
			answer.status = STATUS_PARKED;
		}
	}
	out_send(core, from, &answer);
	return answer.status;
}

void master_promise(struct core *core, uint32_t from, const struct message *m) {
	const uint64_t hash = message_hash(core, m);
	struct key *key = table_find_hashed(core, m->key, hash);
	enum status status = rule_promise_in_order(core, key, from, m);
	if (status == STATUS_OK && key == NULL) {
		key = table_add(core, table_live(core), m->key, hash);
		status = key ? STATUS_OK : STATUS_FULL;
	}
	if (status == STATUS_OK) {
		struct message *answer = out_answer(core, from, MESSAGE_PROMISE_ANSWER, m);
		master_grant(core, key, m, from, answer);
		status = answer->status;
	} else {
		status = no_promise(core, key, from, m, status);
	}
	count_promise(core, status);
	if (key) {
		if (key_more(key)) {
			queue_parked_again(core, key);
		}
		table_settle(core, key);
	}
}

/* Section 5, Together: tells whether the promise stays next to the record. A node that is no master
 * draws its token next to its own records alone. If the record has got the permit numbers that are
 * reserved for the promise, others are. */
static bool stays(const struct core *core, struct key *key, struct promise *p,
	const struct record *r, uint32_t maker) {
	if (p->peer >= core->masters && p->peer != maker) {
		return false;
	}
	bool excluded = record_excludes(r, &p->terms);
	if (excluded && p->reserves) {
		(void)promise_reserve(key, p);
		excluded = record_excludes(r, &p->terms);
	}
	return !excluded;
}

/* A held record displaces promises of other lock_ids, and their coordinators are told. The others
 * note which permit numbers it has. The record's maker is the coordinator whose commit this is
 * (UINT32_MAX: it is no commit). */
static void displace(struct core *core, struct key *key, const struct record *r, uint32_t maker,
	uint64_t token) {
	/* What promises note anew is not below the record's token. */
	clock_raise(core, token);
	/* The numbers that the record's own promise has reserved are free for the others. */
	struct promise *own = key_promise(key, r->lock_id);
	if (own) {
		key_drop_promise(core, key, own);
	}
	struct promise *first = key_promises(key);
	/* All numbers that are free here are promised, and one more. */
	const bool crowded = first && terms_semaphore(&first->terms) &&
		!key_permits_left(key, first->lock_id, &first->terms);
	for (struct promise *p = first, *after; p; p = after) {
		after = p->next;
		const struct permits reserved = p->terms.set;
		if (stays(core, key, p, r, maker) && !(crowded &&
			!key_permits_left(key, p->lock_id, &p->terms))) {
			p->touched = permits_or(p->touched, record_set(r));
			if (permits_meet(reserved, record_set(r))) {
				master_tell_taken(core, key, p);
			}
		} else {
			struct message told = { .kind = MESSAGE_DISPLACED, .key = key_name(key),
				.lock_id = p->lock_id, .attempt = p->attempt, .by = r->lock_id,
				.owner = record_owner(r),
				.left_us = (uint64_t)instant_left_long(core->now, r->end) / 1000 };
			COUNT(core, promise_displaced);
			first_lost(core, p->lock_id, p->first);
			out_send(core, p->peer, &told);
			key_drop_promise(core, key, p);
		}
	}
}

/* Takes over what a record that is already here learns from another copy of itself: its bar and its
 * terms (section 10). */
static void accept_again(struct core *core, struct key *key, struct record *r,
	const struct message *m) {
	const bool widened = !permits_within(m->terms.set, record_set(r)),
		loosened = m->terms.of == MODE_SHARED && r->of == MODE_EXCLUSIVE;
	digest_leave(core, key, r);
	r->barred = r->barred || (m->flags & FLAG_BARRED) != 0;
	/* For the permit numbers that it gains, the record is new here. The clock accounts for
	 * every lease that came between. */
	if (widened) {
		record_keep_older(r);
		COUNT(core, permits_widened);
		r->noted = core->clock;
	}
	if (widened || loosened) {
		const struct terms own = record_terms(r), both = terms_both(&own, &m->terms);
		record_set_terms(core, key, r, &both);
	}
	if (m->token > r->token || widened) {
		/* A promise of another lock_id was noted before this token, and for other permit
		 * numbers. */
		displace(core, key, r, UINT32_MAX, m->token);
	}
	r->token = m->token > r->token ? m->token : r->token;
	record_name(r, m->terms.set);
	if (loosened) {
		COUNT(core, downgrade_learned);
		record_changed(core, key, r, RECORD_DOWNGRADED);
	}
}

/* A repeat of a lock_id that is held never changes its value (section 2, Acquire): the value in a
 * commit is for masters that lack the record. */
static bool brings_value(const struct core *core, const struct record *r, const struct message *m) {
	return m->kind != MESSAGE_COMMIT && ballot_compare(m->ballot, record_wrote(core, r)) > 0;
}

/* Accepts a commit, or a record sent for repair, that the rules let through. Makes the record held
 * or lengthens it, raises its token, keeps the later end, and the value with the higher ballot. *at
 * is the key, or NULL, and may be set here. False: a limit was reached. */
static bool accept(struct core *core, struct key **at, const struct message *m, uint32_t from) {
	struct key *key = *at ? *at : table_make(core, m->key);
	if (key == NULL) {
		return false;
	}
	/* The caller settles the key, whatever happens to the record. */
	*at = key;
	struct record *r = key_record(key, m->lock_id);
	const struct instant end = instant_add(core->now, span_from_us(m->lease_us));
	bool fresh = r == NULL, written = false;
	if (fresh) {
		if ((r = record_new(core, m)) == NULL) {
			return false;
		}
		const struct promise *p = key_promise(key, m->lock_id);
		r->noted = promise_noted(core, p, m->terms.set);
		r->rests_on = m->name;
		r->by_rules = true;
		/* The value that other masters report may be older than the one that was here. */
		r->vouched = ballot_compare(m->ballot, first_floor(core, m->lock_id)) >= 0;
		if (!first_noted(core, key, &r)) {
			record_free(core, r);
			return false;
		}
		name_made(core, m->name);
		r->end = end;
		key_add_record(core, key, r);
		displace(core, key, r, m->kind == MESSAGE_COMMIT ? from : UINT32_MAX, m->token);
	} else {
		written = brings_value(core, r, m);
		if ((r = key_bind(core, key, r, m->terms.binding)) == NULL) {
			return false;
		}
		/* A master that takes a value has noted its ballot. */
		r = key_write(core, key, r, written ? &m->value : NULL,
			written ? m->ballot : record_wrote(core, r),
			ballot_later(m->ballot, record_prepared(core, r)));
		if (r == NULL) {
			return false;
		}
		accept_again(core, key, r, m);
		clock_raise(core, m->token);
	}
	r->rests_on = r->rests_on == m->name ? m->name : 0;
	r->end = instant_later(r->end, end);
	r->accepted = core->tick;
	r->by_rules = r->by_rules || m->kind == MESSAGE_COMMIT;
	r->by_commit = r->by_commit || m->kind == MESSAGE_COMMIT;
	if (core->master.holder_count > 0 &&
		(m->kind == MESSAGE_COMMIT || m->kind == MESSAGE_LEARN)) {
		binding_master_accepted(core, r, from);
	}
	clock_raise(core, m->ballot.clock);
	record_changed(core, key, r, fresh && record_keeps_closed(r) ? RECORD_CLOSING
		: fresh || record_held_again(core, r) ? RECORD_GRANTED
		: written ? RECORD_WRITTEN : RECORD_ACCEPTED);
	if (fresh && key_more(key)) {
		queue_record_held(core, key, m->lock_id, from);
	}
	return true;
}

static void count_commit(struct core *core, const struct key *key, const struct message *m,
	enum status s) {
	bool known = key && (key_record(key, m->lock_id) || key_promise(key, m->lock_id));
	switch (s) {
	case STATUS_OK:
		COUNT(core, commit_ok);
		core->counts[COUNT_commit_shared] += m->terms.of == MODE_SHARED;
		core->counts[COUNT_commit_permits] += terms_semaphore(&m->terms);
		core->counts[COUNT_commit_without_promise] += !known;
		break;
	case STATUS_HELD: COUNT(core, commit_refused_held); break;
	case STATUS_STALE:
		core->counts[COUNT_commit_overtaken_first] += first_overtaken(core, key, m);
		core->counts[known ? COUNT_commit_refused_stale_noted
			: COUNT_commit_refused_stale_clock]++;
		break;
	case STATUS_RELEASED: case STATUS_BARRED: COUNT(core, commit_refused_released); break;
	case STATUS_TOO_LONG: COUNT(core, commit_refused_too_long); break;
	case STATUS_RECOVERING: COUNT(core, commit_refused_recovering); break;
	case STATUS_CONTESTED: COUNT(core, commit_refused_contested); break;
	case STATUS_HELD_SELF: case STATUS_PARKED: case STATUS_NEED: case STATUS_PROMISED:
	case STATUS_QUEUED: case STATUS_CLOCK: case STATUS_EPOCH: case STATUS_DENIED:
	case STATUS_FULL: case STATUS_BALLOT: case STATUS_ABSENT: case STATUS_LATER:
		break;
	case STATUS_TERMS: COUNT(core, terms_refused); break;
	}
}

/* Section 2, Acquire: tells whether a refused commit may be followed by another one of its request.
 * Only the coordinator knows whether it is. */
static bool may_follow(enum status refused) {
	return refused == STATUS_STALE || refused == STATUS_HELD || refused == STATUS_CONTESTED;
}

/* Keeps the place of a request whose commit was refused: until it asks again, no request that came
 * later may get its place. Returns whether the place is kept. */
static bool keep_place(struct core *core, struct key **at, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_PROMISE_ANSWER },
		ask = { .kind = MESSAGE_PROMISE, .round = m->round, .attempt = m->round,
			.key = m->key, .lock_id = m->lock_id, .ticket = m->ticket,
			.identity = m->identity, .flags = FLAG_TURN, .terms = m->terms,
			.ballot = m->ballot };
	/* The request chooses its permit numbers anew. */
	ask.terms.set = (struct permits){ { 0, 0 } };
	enum status status = rule_promise_in_order(core, *at, from, &ask);
	*at = *at ? *at : table_make(core, m->key);
	bool kept = false;
	if (*at && status == STATUS_OK) {
		master_grant(core, *at, &ask, from, &answer);
		queue_parked_again(core, *at);
		kept = answer.status == STATUS_OK;
	} else if (*at) {
		kept = queue_park(core, *at, from, &ask, status);
	}
	core->counts[COUNT_place_kept] += kept;
	return kept;
}

/* Answers a commit that is refused for this reason. The answer has bytes of whoever holds the
 * key. */
static void no_commit(struct core *core, const struct key *key, uint32_t from,
	const struct message *m, enum status refused) {
	struct message answer = { .kind = MESSAGE_COMMIT_ANSWER, .round = m->round,
		.status = refused, .token = m->token };
	master_blocker(core, key, m->lock_id, &m->terms, &answer);
	/* The attempt begins again above this clock. */
	answer.token = refused == STATUS_STALE ? core->clock : answer.token;
	out_send(core, from, &answer);
}

/* The coordinator's promise does not outlast a commit that was refused for good. Another one has to
 * remember its ballot, because other masters may have accepted the commit. */
static void commit_heard(struct core *core, struct key *key, uint32_t from, const struct message *m,
	enum status status) {
	struct promise *p = key_promise(key, m->lock_id);
	if (p && p->peer == from) {
		p->committed = true;
		if (!may_follow(status)) {
			promise_refused(core, key, from, m->lock_id);
		}
	}
}

void master_commit(struct core *core, uint32_t from, const struct message *m) {
	struct key *key = table_find_hashed(core, m->key, message_hash(core, m));
	enum status status = rule_commit(core, key, m);
	count_commit(core, key, m, status);
	if (status == STATUS_CLOCK) {
		clock_refused(core, from, m->token, m->key);
	}
	if (status == STATUS_OK && !accept(core, &key, m, from)) {
		status = STATUS_FULL;
		COUNT(core, commit_refused_full);
	}
	if (status == STATUS_OK) {
		struct message *answer = out_answer(core, from, MESSAGE_COMMIT_ANSWER, m);
		answer->token = m->token;
	} else {
		missed_refused(core, m, key, status);
		no_commit(core, key, from, m, status);
	}
	const bool waits = m->ticket.seq && may_follow(status),
		keeps = waits && keep_place(core, &key, from, m);
	if (key) {
		if (status != STATUS_OK) {
			commit_heard(core, key, from, m, status);
		}
		if (!keeps && key_more(key)) {
			queue_drop_parked(core, key, from, m->lock_id);
		}
		/* A request that still waits keeps its entry: its coordinator withdraws the entry,
		 * or asks again. */
		if (m->ticket.seq && !waits) {
			queue_drop_ticket(core, key, from, m);
		}
		table_settle(core, key);
	}
}

/* Accepts a record that was sent for repair: after a commit that this master missed, for an
 * extension, or because the masters compared their tables. The rules and the clock stamp are those
 * of the record's arrival. */
enum status master_learn_here(struct core *core, uint32_t from, const struct message *m,
	struct key **key) {
	*key = table_find(core, m->key);
	enum status status = rule_learn(core, *key, m);
	if (status != STATUS_OK && status != STATUS_NEED) {
		return status;
	}
	if (!(clock_within(core, m->token) && clock_within(core, m->ballot.clock))) {
		clock_refused(core, from, m->token, m->key);
		return STATUS_CLOCK;
	}
	return accept(core, key, m, from) ? STATUS_OK : STATUS_FULL;
}

void master_learn(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_LEARN_ANSWER, .round = m->round,
		.token = m->token };
	struct key *key;
	answer.status = master_learn_here(core, from, m, &key);
	if (answer.status == STATUS_OK) {
		COUNT(core, repair_accepted);
		/* The parked request may belong to a commit that was refused here (keep_place). */
		queue_drop_parked(core, key, from, m->lock_id);
	} else if (answer.status != STATUS_FULL) {
		core->counts[COUNT_released_refused] += answer.status == STATUS_RELEASED;
		core->counts[COUNT_terms_refused] += answer.status == STATUS_TERMS;
		master_blocker(core, key, m->lock_id, &m->terms, &answer);
		master_say_when(core, &answer);
	}
	if (answer.status != STATUS_OK) {
		missed_refused(core, m, key, answer.status);
	}
	out_send(core, from, &answer);
	if (key) {
		table_settle(core, key);
	}
}

void master_fetch(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_FETCH_ANSWER, .round = m->round,
		.status = rule_votes(core) };
	struct key *key = table_find(core, m->key);
	const struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r && answer.status == STATUS_OK) {
		record_describe(core, r, &answer);
		/* The asker knows it. */
		answer.lock_id = (struct id128){ { 0 } };
	} else if (answer.status == STATUS_OK) {
		answer.status = STATUS_ABSENT;
	}
	out_send(core, from, &answer);
}

void master_withdraw(struct core *core, uint32_t from, const struct message *m) {
	preparing_drop(core, from, m);
	queue_withdraw(core, from, m);
}
