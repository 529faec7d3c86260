/* merge.c: merging snapshots (section 4). Of each lock_id a merge keeps the later end, the higher
 * token, the value with the higher ballot, the highest ballot noted, every release, and the highest
 * `noted`. A source that lacks the lock_id, or lacks permits that another source has it with,
 * counts as having noted its clock at the end of its snapshot. */
#include "recovery.h"

/* Returns the record that the message is merged into, with its terms merged. NULL: there is no
 * memory.
 * style: record, because merge_record says so when everything is merged. */
static struct record *find_or_add(struct core *core, struct key *key, const struct message *m) {
	struct record *r = key_record(key, m->lock_id);
	if (r == NULL) {
		r = record_new(core, m);
		if (r) {
			r->rests_on = m->name;
			r->end = instant_add(core->now, 0);
			/* The record's value counts (as in Prepare) if it does at all its
			 * sources. */
			r->vouched = true;
			record_put_older(r, older_of(m));
			key_add_record(core, key, r);
		}
	} else {
		if ((r = key_bind(core, key, r, m->terms.binding)) == NULL) {
			return NULL;
		}
		digest_leave(core, key, r);
		const struct terms own = record_terms(r), both = terms_both(&own, &m->terms);
		r->uneven = r->uneven || !permits_within(both.set, own.set) ||
			!permits_within(both.set, m->terms.set);
		if (r->sources == 0) {
			record_keep_older(r);
		}
		older_merge(r, older_of(m));
		record_set_terms(core, key, r, &both);
		/* The record is this master's own, from before it recovered. */
		r->sources = r->sources ? r->sources : MERGE_STAYS;
		/* A source does not tell when each permit number ends, so all last as long as the
		 * record. */
		record_name(r, both.set);
	}
	return r;
}

/* Keeps the value with the higher ballot. False: there is no memory. *r may move.
 * style: record, because merge_record says so when everything is merged. */
static bool merge_value(struct core *core, struct key *key, struct record **r,
	const struct message *m) {
	const struct ballot highest = ballot_later(record_prepared(core, *r),
		ballot_later(m->prepared, m->ballot)), wrote = record_wrote(core, *r);
	struct record *moved = key_write(core, key, *r, NULL, wrote, highest);
	if (moved == NULL) {
		return false;
	}
	*r = moved;
	/* It is noted even if there is no memory for the value. */
	clock_raise(core, highest.clock);
	if (ballot_compare(m->ballot, wrote) > 0) {
		moved = key_write(core, key, moved, &m->value, m->ballot, highest);
		*r = moved ? moved : *r;
	}
	return moved;
}

bool merge_record(struct core *core, struct table *t, uint32_t source, const struct message *m) {
	if (tombstone_released(core, m->lock_id)) {
		return true;
	}
	struct key *key = table_make_in(core, t, m->key);
	struct record *r = key ? find_or_add(core, key, m) : NULL;
	bool merged = r && merge_value(core, key, &r, m);
	if (merged) {
		r->token = m->token > r->token ? m->token : r->token;
		r->noted = m->noted > r->noted ? m->noted : r->noted;
		/* Section 11: the record keeps its name only while all that it rests on had this
		 * one. What rested on the name of an extension may have rested on different ones
		 * before that at two sources. */
		r->rests_on = r->rests_on == m->name && !name_of_extension(m->name) ? m->name : 0;
		r->vouched = r->vouched && (m->flags & FLAG_COUNTS);
		r->freed = r->freed || !(m->flags & FLAG_BOUND);
		span_ns left = span_from_us(m->left_us);
		r->end = instant_later(r->end, instant_add(core->now, left));
		r->accepted = core->tick;
		t->latest = instant_later(t->latest, r->end);
		core->recovery->transfer.longest = left > core->recovery->transfer.longest ? left
			: core->recovery->transfer.longest;
		const struct tombstone *gone = tombstone_find(core, m->lock_id);
		r->barred = r->barred || (m->flags & FLAG_BARRED) || (gone && gone->barred);
		r->sources |= 1u << source;
		clock_raise(core, r->token);
		clock_raise(core, r->noted);
	}
	if (r) {
		record_changed(core, key, r, RECORD_MERGED);
	}
	if (key) {
		table_settle(core, key);
	}
	return merged;
}

/* Nothing that ended with a connection is dropped before all sources have been heard, because
 * another source may bring a later session binding. */
void merge_released(struct core *core, struct table *t, const struct message *m) {
	tombstone_take(core, m);
	struct key *key = table_find_in(core, t, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r && (m->flags & FLAG_BARRED)) {
		digest_leave(core, key, r);
		r->barred = true;
		record_changed(core, key, r, RECORD_MERGED);
	}
	if (r && (m->flags & FLAG_RELEASED)) {
		key_drop_record(core, key, r);
		if (key_more(key)) {
			core->observers->key_changed(core, key, NULL);
		}
		table_settle(core, key);
	}
}

/* From now on the source lacks the record, whatever the reason, as if it had never sent it. So the
 * clock at the end of its snapshot counts as noted. */
void merge_lost(struct core *core, struct table *t, uint32_t source, const struct message *m) {
	struct key *key = table_find_in(core, t, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r && r->sources >> source & 1) {
		r->sources ^= 1u << source;
		if (r->sources == 0) {
			r->sources = MERGE_STAYS;
			finish_end_record(core, key, r, span_from_us(m->left_us));
		}
		table_settle(core, key);
	}
}

void merge_finish_begin(struct core *core) {
	const struct state_transfer *transfer = &core->recovery->transfer;
	struct finishing *f = finish_begin(core);
	for (uint32_t i = 0; i < transfer->count; i++) {
		const struct source *s = &transfer->sources[i];
		if (s->done) {
			f->brought |= 1u << s->bit;
			f->done |= s->never && !s->votes ? 0 : 1u << s->bit;
			f->clock_end[s->bit] = s->clock_end;
			clock_raise(core, s->clock_end);
		}
	}
}
