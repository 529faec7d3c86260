/* follow_apply.c: what a feed's entries do to a replica's table (section 7): they replace, and never merge: the table is to be
 * that of the master; and what those who watch there are told. */
#include "replication.h"

/* NULL: no memory. */
static struct record *make_record(struct core *core, struct key *key, const struct message *m) {
	struct record **at = key_link(key, m->lock_id), *r = *at;
	if (r && slice_equal(record_owner(r), m->owner) && slice_equal(record_identity(r), m->identity) &&
		slice_equal(record_label(r), m->label) && r->terms_size == terms_rest(&m->terms)) {
		bool same = ballot_compare(r->wrote, m->ballot) == 0;
		return same || record_set_value(core, at, m->value) ? *at : NULL;
	}
	struct record *fresh = record_new(core, m);
	if (fresh == NULL) {
		return NULL;
	}
	if (r) {
		key_drop_record(core, key, r);
	}
	key_add_record(core, key, fresh);
	return fresh;
}

bool follow_record(struct core *core, struct table *t, const struct message *m) {
	struct key *key = table_make_in(core, t, m->key);
	struct record *r = key ? make_record(core, key, m) : NULL;
	if (r) {
		r->token = m->token;
		r->noted = m->noted;
		record_put_older(r, (struct older){ .noted = 0 }); /* a replica's table stands for nothing */
		r->wrote = m->ballot;
		r->prepared = ballot_later(m->prepared, m->ballot); /* whoever takes a value has noted its ballot, whatever is said */
		r->barred = (m->flags & FLAG_BARRED) != 0;
		record_set_terms(core, key, r, &m->terms);
		record_name(r, m->terms.set);
		r->end = instant_add(core->now, span_from_us(m->left_us)); /* the remaining lease as of sending */
		t->latest = instant_later(t->latest, r->end);
		timer_stop(core, &key->timer);                             /* the new end may be an earlier one */
		record_changed(core, key, r, RECORD_FOLLOWED);
	}
	if (key) {
		table_settle(core, key);
	}
	return r != NULL;
}

void follow_gone(struct core *core, struct table *t, const struct message *m) {
	struct key *key = table_find_in(core, t, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r == NULL) {
		return;
	}
	COUNT(core, follow_gone);
	key_drop_record(core, key, r);
	if (t == core->store.live && key->more) {
		core->observers->key_changed(core, key);
	}
	table_settle(core, key);
}

void follow_watched(struct core *core) {
	core->follow.watched = follow_tells(core) ? core->follow.live.number : 0;
}

/* What the master tells those who watch there, this node tells as well: what its own table shows are states that the master had, and not
 * all of them. A snapshot that is being built is seen by nobody; when it replaces the table, a gap is told. */
void follow_watch_event(struct core *core, const struct message *m) {
	if (m->parts == 0 || !follow_tells(core)) {
		return;
	}
	const struct core_watch_event n = { .kind = m->part < (uint32_t)WATCH_EVENT_MISSED ? (enum core_watch_event_kind)m->part : WATCH_EVENT_MISSED, .key = m->key, .owner = m->owner,
		.identity = m->identity, .value = m->value, .label = m->label, .lock_id = m->lock_id, .token = m->token, .value_seq = m->ballot,
		.terms = m->terms };
	watch_event_tell(core, &n);
}
