/* follow_apply.c: what a feed's entries do to a replica's table, and what those who watch at the
 * replica are told (section 7). Entries replace and never merge, because the table is to be that of
 * the master. */
#include "replication.h"

/* Finds or makes the record, with the message's owner, value, ballots and terms; one that is made
 * has this end, too. NULL: there is no memory.
 * style: record, because follow_record says so when everything is as the master says. */
static struct record *make_record(struct core *core, struct key *key, const struct message *m,
	struct instant end) {
	struct record *r = key_record(key, m->lock_id);
	/* Whoever takes a value has noted its ballot, whatever the message says. */
	const struct ballot prepared = ballot_later(m->prepared, m->ballot);
	if (r && slice_equal(record_owner(r), m->owner) &&
		slice_equal(record_identity(r), m->identity) &&
		slice_equal(record_label(r), m->label) &&
		record_terms_size(r) == terms_rest(&m->terms)) {
		const bool same = ballot_compare(record_wrote(core, r), m->ballot) == 0;
		r = key_bind(core, key, r, m->terms.binding);
		return r ? key_write(core, key, r, same ? NULL : &m->value, m->ballot, prepared)
			: NULL;
	}
	struct record *fresh = record_new(core, m);
	if (fresh == NULL || !record_write(core, &fresh, NULL, m->ballot, prepared)) {
		record_free(core, fresh);
		return NULL;
	}
	if (r) {
		key_drop_record(core, key, r);
	}
	fresh->end = end;
	key_add_record(core, key, fresh);
	return fresh;
}

bool follow_record(struct core *core, struct table *t, const struct message *m) {
	struct key *key = table_make_in(core, t, m->key);
	/* The message has the lease that remained when it was sent. */
	const struct instant end = instant_add(core->now, span_from_us(m->left_us));
	struct record *r = key ? make_record(core, key, m, end) : NULL;
	if (r) {
		digest_leave(core, key, r);
		r->token = m->token;
		r->noted = m->noted;
		/* A replica's table stands for nothing: no other node counts it as a source. */
		record_put_older(r, (struct older){ .noted = 0 });
		r->barred = (m->flags & FLAG_BARRED) != 0;
		record_set_terms(core, key, r, &m->terms);
		record_name(r, m->terms.set);
		r->end = end;
		t->latest = instant_later(t->latest, r->end);
		/* The new end may be earlier than the old one. */
		key_ends_earlier(core, key, r);
		record_changed(core, key, r, RECORD_FOLLOWED);
	}
	if (key) {
		table_settle(core, key);
	}
	return r != NULL;
}

/* style: record, because the master tells the end itself (follow_watch_event), and nobody follows
 * or copies a replica. */
void follow_gone(struct core *core, struct table *t, const struct message *m) {
	struct key *key = table_find_in(core, t, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r == NULL) {
		return;
	}
	COUNT(core, follow_gone);
	key_drop_record(core, key, r);
	if (t == table_live(core)) {
		core->observers->key_changed(core, key, NULL);
	}
	table_settle(core, key);
}

void follow_watched(struct core *core) {
	core->follow.watched = follow_tells(core) ? core->follow.live.number : 0;
	if (core->follow.state == FOLLOW_ON) {
		pending_add(core, PENDING_WATCHED);
	}
}

/* This node tells whatever the master tells those who watch there, because the replica's own table
 * shows states that the master had, and not all of them. Nobody sees a snapshot that is being
 * built; when it replaces the table, those who watch are told that events were missed. */
void follow_watch_event(struct core *core, const struct message *m) {
	if (m->parts == 0 || !follow_tells(core)) {
		return;
	}
	const struct core_watch_event n = {
		.kind = m->part < (uint32_t)WATCH_EVENT_MISSED
			? (enum core_watch_event_kind)m->part : WATCH_EVENT_MISSED,
		.key = m->key, .owner = m->owner, .identity = m->identity, .value = m->value,
		.label = m->label, .lock_id = m->lock_id, .token = m->token,
		.value_seq = m->ballot, .terms = m->terms };
	watch_event_tell(core, &n);
}
