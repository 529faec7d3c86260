/* master_release.c: what a master does with releases, breaks and everything else that ends a record
 * (sections 2, 9 and 11), and with an exclusive lock that becomes a shared one (section 10). */
#include "master.h"

/* Does what master_release_here does. `closing`: the record that takes the place of the one that
 * ends, which is there; NULL: none does. */
static bool release_here(struct core *core, const struct message *m, enum record_change how,
	const struct successor *successor, struct record *closing) {
	const struct slice name = m->key;
	const struct id128 lock_id = m->lock_id;
	/* This finishes merging the key first. The merge would drop a record that it finds among
	 * the released. What comes next leaves the table as it is. */
	struct key *key = table_find_hashed(core, name, message_hash(core, m));
	tombstone_add(core, lock_id, false);
	binding_master_released(core, lock_id);
	core->observers->lock_ended(core, name, lock_id);
	if (missed_any(core)) {
		missed_lock_ended(core, key, name, lock_id,
			how == RECORD_LOST ? WATCH_EVENT_LOST : WATCH_EVENT_RELEASED);
	}
	if (key == NULL) {
		return false;
	}
	struct record *r = key_record(key, lock_id);
	if (r) {
		record_changed(core, key, r, how);
		key_drop_record(core, key, r);
	}
	if (closing) {
		key_add_record(core, key, closing);
		record_changed(core, key, closing, RECORD_CLOSING);
	}
	struct promise *p = key_promise(key, lock_id);
	if (p) {
		key_drop_promise(core, key, p);
	}
	if (r && successor) {
		queue_hand_over(core, key, successor);
	}
	queue_drop_lock(core, key, lock_id);
	queue_record_ended(core, key);
	if (r) {
		core->observers->key_changed(core, key, NULL);
	}
	table_settle(core, key);
	return r != NULL;
}

/* Drops record, promise, parked request and queue entry, exactly by lock_id, and remembers the
 * lock_id (R3). A recovering master does so too, but its answer does not count (section 4). `how`:
 * RELEASED, or LOST when the lock is taken by force. `successor`: the request that is to be next
 * here, or NULL for the first in the order. */
bool master_release_here(struct core *core, const struct message *m, enum record_change how,
	const struct successor *successor) {
	return release_here(core, m, how, successor, NULL);
}

/* Section 10, Closing: what keeps the key closed takes the place of the record in one step, so that
 * nobody is promised the key in between. */
enum status master_close_here(struct core *core, const struct message *m, uint32_t *flags) {
	struct key *key = table_find_hashed(core, m->key, message_hash(core, m));
	const struct record *r = key ? key_record(key, m->lock_id) : NULL;
	const span_ns asked = span_from_us(m->closes_us), most = core->config.max_lease;
	struct record *closing = r == NULL ? NULL
		: record_closing_new(core, r, asked < most ? asked : most);
	if (r && closing == NULL) {
		return STATUS_FULL;
	}
	*flags = r ? FLAG_HAD | FLAG_CLOSED
		: key && key_record(key, record_closing_id(m->lock_id)) ? FLAG_CLOSED
		: 0;
	core->counts[COUNT_release_closes] += r != NULL;
	(void)release_here(core, m, RECORD_RELEASED, NULL, closing);
	return rule_votes(core);
}

/* Rolls back what a failed request had taken (section 11): drops a record that rests on the
 * request's name alone. The same lock_id may have been asked for again through another node, so it
 * is not remembered among the released. The name is remembered, even where there is no such record:
 * then this master does not learn the record from masters that have not heard yet, and tells them
 * (section 7). */
bool master_roll_back(struct core *core, struct slice name, struct id128 lock_id,
	uint64_t request_name) {
	struct key *key = table_find(core, name);
	struct record *r = key ? key_record(key, lock_id) : NULL;
	const bool rests = r && r->rests_on == request_name;
	if (r == NULL && missed_rests_on(core, name, lock_id, request_name)) {
		missed_lock_ended(core, key, name, lock_id, WATCH_EVENT_RELEASED);
	}
	rolled_back_add(core, lock_id, rests ? r->token : 0, request_name);
	core->observers->lock_ended(core, name, lock_id);
	if (rests) {
		record_drop(core, key, r, RECORD_RELEASED);
		return true;
	}
	return r && record_roll_back(core, key, r, request_name);
}

/* The connection that ends the lock was closed by the holder's side (section 2, Release on
 * disconnect). A holder that has named a later connection keeps the lock. It may still name one, so
 * the lock_id is not remembered among the released; the session binding to this connection is. */
bool master_end_binding(struct core *core, struct slice name, struct id128 lock_id,
	uint32_t binding) {
	/* As for a release, the merge of the key is finished first. */
	(void)table_find(core, name);
	tombstone_end_binding(core, lock_id, binding);
	core->observers->lock_ended(core, name, lock_id);
	struct key *key = table_find(core, name);
	struct record *r = key ? key_record(key, lock_id) : NULL;
	if (r == NULL && missed_bound_to(core, name, lock_id, binding)) {
		missed_lock_ended(core, key, name, lock_id, WATCH_EVENT_LOST);
	}
	const uint32_t has = r ? record_binding(r) : 0;
	if (has == 0 || has > binding) {
		return false;
	}
	COUNT(core, binding_ended);
	record_lose(core, key, r);
	return true;
}

/* An extension was answered with an error. A record that it has made goes. A record that rested on
 * one name before the extension rests on that name alone again, and that name may have been rolled
 * back since. */
static bool take_back_extension(struct core *core, const struct message *m) {
	struct key *key = table_find(core, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	const uint64_t before = r && r->rests_on == m->name ? name_before(core, m->name) : 0;
	if (before == 0) {
		return false;
	}
	COUNT(core, extend_taken_back);
	if (before == m->name) {
		record_drop(core, key, r, RECORD_RELEASED);
		return true;
	}
	r->rests_on = before;
	return rolled_back_named(core, m->lock_id, before) &&
		master_roll_back(core, m->key, m->lock_id, before);
}

/* A non-member is heard only if it ends a record, so that no node outside the cluster can fill the
 * ring of tombstones: a node that knows a record's name has asked for that record. */
static bool roll_back(struct core *core, uint32_t from, const struct message *m) {
	if (name_of_extension(m->name)) {
		return take_back_extension(core, m);
	}
	const bool non_member = core->peers[from].standing == PEER_NON_MEMBER && from != core->self;
	struct key *key = non_member ? table_find(core, m->key) : NULL;
	const struct record *r = key ? key_record(key, m->lock_id) : NULL;
	const bool known = r
		? r->rests_on == m->name || record_lapsing(r).rests_on == m->name
		: missed_rests_on(core, m->key, m->lock_id, m->name);
	if (non_member && !known) {
		return false;
	}
	core->counts[COUNT_non_member_rolled_back] += non_member;
	return master_roll_back(core, m->key, m->lock_id, m->name);
}

void master_release(struct core *core, uint32_t from, const struct message *m) {
	bool had = m->number ? master_end_binding(core, m->key, m->lock_id, (uint32_t)m->number)
		: m->name ? roll_back(core, from, m)
		: master_release_here(core, m, RECORD_RELEASED, NULL);
	COUNT(core, release_ok);
	struct message *answer = out_answer(core, from, MESSAGE_RELEASE_ANSWER, m);
	answer->status = rule_votes(core);
	answer->flags = had ? FLAG_HAD : 0;
	answer->age_us = lacked_us(core, m->lock_id);
}

/* Bars the lock_id from extension, now and also if its record arrives later. */
void master_bar_here(struct core *core, struct slice name, struct id128 lock_id) {
	struct key *key = table_find(core, name);
	struct record *r = key ? key_record(key, lock_id) : NULL;
	tombstone_add(core, lock_id, true);
	core->observers->lock_ended(core, name, lock_id);
	if (r) {
		digest_leave(core, key, r);
		r->barred = true;
		record_changed(core, key, r, RECORD_BARRED);
	}
}

/* Break (section 9): bars the lock_id from extension, or with FLAG_NOW releases it by force. */
void master_break(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_BREAK_ANSWER, .round = m->round,
		.status = rule_votes(core) };
	struct key *key = table_find(core, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	answer.flags = r ? FLAG_HAD : 0;
	answer.left_us = r ? (uint64_t)instant_left_long(core->now, r->end) / 1000 : 0;
	COUNT(core, broken);
	if (m->flags & FLAG_NOW) {
		master_release_here(core, m, RECORD_LOST, NULL);
	} else {
		master_bar_here(core, m->key, m->lock_id);
	}
	out_send(core, from, &answer);
}

/* A node that does not vote does this, too. Its answer does not count, but what it tells others
 * later is then correct. */
void master_downgrade(struct core *core, uint32_t from, const struct message *m) {
	struct key *key = table_find(core, m->key);
	struct message answer = { .kind = MESSAGE_DOWNGRADE_ANSWER, .round = m->round,
		.status = rule_votes(core), .age_us = lacked_us(core, m->lock_id) };
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r && r->of == MODE_EXCLUSIVE) {
		struct terms shared = record_terms(r);
		shared.of = MODE_SHARED;
		COUNT(core, downgraded);
		digest_leave(core, key, r);
		record_set_terms(core, key, r, &shared);
		record_changed(core, key, r, RECORD_DOWNGRADED);
	}
	if (answer.status == STATUS_OK) {
		answer.status = r == NULL ? STATUS_ABSENT
			: r->of == MODE_SHARED ? STATUS_OK
			: STATUS_TERMS;
		answer.token = r ? r->token : 0;
	}
	out_send(core, from, &answer);
	if (key) {
		table_settle(core, key);
	}
}
