/* follow_apply.c: what a feed's entries do to a replica's table (section 7): they replace, and never merge: the table is to be
 * that of the master. */
#include "state.h"

/* NULL: no memory. */
static struct record *make_record(struct core *core, struct key *key, const struct message *m) {
	struct record **at = key_link(key, m->lock_id), *r = *at;
	if (r && slice_equal(record_owner(r), m->owner) && slice_equal(record_identity(r), m->identity) &&
		slice_equal(record_label(r), m->label)) {
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
	const struct record *old = key ? *key_link(key, m->lock_id) : NULL;
	const bool fresh = old == NULL, written = old && ballot_compare(old->wrote, m->ballot) != 0;
	const bool loosened = old && old->terms.of != m->terms.of;
	struct record *r = key ? make_record(core, key, m) : NULL;
	if (r) {
		r->token = m->token;
		r->noted = m->noted;
		r->wrote = m->ballot;
		r->prepared = m->prepared;
		r->barred = (m->flags & FLAG_BARRED) != 0;
		r->terms.count = m->terms.count;
		r->terms.priority = m->terms.priority;
		r->terms.delay = m->terms.delay;
		r->terms.bond = m->terms.bond;
		record_set_terms(core, key, r, &m->terms);
		r->end = instant_add(core->now, span_from_us(m->left_us)); /* the remaining lease as of sending */
		timer_stop(core, &key->timer);                             /* the new end may be an earlier one */
		digest_record(core, key, r);
		if (fresh || written) {
			news_record(core, fresh ? NEWS_ACQUIRED : NEWS_UPDATED, key, r);
		}
		if (loosened) {
			news_record(core, NEWS_DOWNGRADED, key, r);
		}
	}
	if (key) {
		if (t == core->live) {
			local_wait_check(core, key);
		}
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
	news_record(core, m->flags & FLAG_RELEASED ? NEWS_RELEASED : m->flags & FLAG_NOW ? NEWS_LOST : NEWS_EXPIRED, key, r);
	key_drop_record(core, key, r);
	if (t == core->live) {
		local_wait_check(core, key);
	}
	table_settle(core, key);
}
