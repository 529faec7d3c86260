/* merge.c: merging snapshots (section 4): per lock_id the later end, the higher token, the value with the higher ballot, the
 * highest ballot noted, every release, and the highest noted, where a source that lacks the lock_id, or permits that another source
 * has it with, counts as having noted its clock at the snapshot's end. */
#include "first.h"

static struct record *find_or_add(struct core *core, struct key *key, const struct message *m) {
	struct record *r = key_record(key, m->lock_id);
	if (r == NULL) {
		r = record_new(core, m);
		if (r) {
			r->attempt = m->attempt;
			r->end = instant_add(core->now, 0);
			r->vouched = true; /* if all sources do */
			record_put_older(r, older_of(m));
			key_add_record(core, key, r);
		}
	} else {
		const struct terms own = record_terms(r), both = terms_both(&own, &m->terms);
		r->uneven = r->uneven || !permits_within(both.set, own.set) || !permits_within(both.set, m->terms.set);
		if (r->sources == 0) {
			record_keep_older(r);
		}
		older_merge(r, older_of(m));
		record_set_terms(core, key, r, &both);
		r->sources = r->sources ? r->sources : MERGE_STAYS; /* this master's own, from before it recovered */
		record_name(r, both.set); /* when a number ends is not told by a source: all last as long as the record */
	}
	return r;
}

/* The value with the higher ballot; false: no memory. */
static bool merge_value(struct core *core, struct key *key, struct record **r, const struct message *m) {
	if (ballot_compare(m->ballot, (*r)->wrote) > 0) {
		struct record **at = key_link(key, m->lock_id);
		if (!record_set_value(core, at, m->value)) {
			return false;
		}
		*r = *at;
		(*r)->wrote = m->ballot;
	}
	(*r)->prepared = ballot_later((*r)->prepared, ballot_later(m->prepared, m->ballot));
	return true;
}

bool merge_record(struct core *core, struct table *t, uint32_t source, const struct message *m) {
	if (released_has(core, m->lock_id)) {
		return true;
	}
	struct key *key = table_make_in(core, t, m->key);
	struct record *r = key ? find_or_add(core, key, m) : NULL;
	bool merged = r && merge_value(core, key, &r, m);
	if (merged) {
		r->token = m->token > r->token ? m->token : r->token;
		r->noted = m->noted > r->noted ? m->noted : r->noted;
		r->attempt = r->attempt == m->attempt ? m->attempt : 0; /* section 11: only while all that it rests on had this name */
		r->vouched = r->vouched && (m->flags & FLAG_COUNTS);
		r->freed = r->freed || !(m->flags & FLAG_BOUND);
		span_ns left = span_from_us(m->left_us);
		r->end = instant_later(r->end, instant_add(core->now, left));
		r->accepted = core->tick;
		t->latest = instant_later(t->latest, r->end);
		core->gather.longest = left > core->gather.longest ? left : core->gather.longest;
		const struct released *gone = released_find(core, m->lock_id);
		r->barred = r->barred || (m->flags & FLAG_BARRED) || (gone && gone->barred);
		r->sources |= 1u << source;
		master_raise_clock(core, r->token);
		master_raise_clock(core, r->noted);
		master_raise_clock(core, r->prepared.clock);
	}
	if (r) {
		digest_record(core, key, r);
	}
	if (key) {
		local_wait_check(core, key);
		table_settle(core, key);
	}
	return merged;
}

/* Of what ended with a connection nothing is dropped before all sources have been heard: another one may bring a later bond. */
void merge_released(struct core *core, struct table *t, const struct message *m) {
	released_take(core, m);
	struct key *key = table_find_in(core, t, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r && (m->flags & FLAG_BARRED)) {
		r->barred = true;
		digest_record(core, key, r);
	}
	if (r && (m->flags & FLAG_RELEASED)) {
		key_drop_record(core, key, r);
		local_wait_check(core, key);
		table_settle(core, key);
	}
}

/* Nobody believes it. With a lock delay its key stays closed (section 10). */
static void end_record(struct core *core, struct key *key, struct record *r, span_ns closed) {
	if (closed > 0) {
		record_shorten(core, key, r, closed);
	} else {
		first_ended(core, r);
		key_drop_record(core, key, r);
	}
	local_wait_check(core, key);
}

/* The source lacks it from now on, whatever was the reason, as if it had never sent it: for what it noted its clock at the end counts. */
void merge_lost(struct core *core, struct table *t, uint32_t source, const struct message *m) {
	struct key *key = table_find_in(core, t, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r && r->sources >> source & 1) {
		r->sources &= ~(UINT32_C(1) << source);
		if (r->sources == 0) {
			r->sources = MERGE_STAYS;
			end_record(core, key, r, span_from_us(m->left_us));
		}
		table_settle(core, key);
	}
}

/* ---- finishing: once it votes, each record is looked at once more ----
 *
 * A million records cannot be looked at between two messages. So a record keeps the bits of its sources until it is met, by
 * whoever looks its key up, or by a sweep in the background; until then nobody sees it.
 */

/* The highest noted, where a source that lacks the lock_id counts as having noted its clock at the snapshot's end. */
static void note_sources(struct core *core, struct record *r) {
	core->counts[COUNT_permits_uneven] += r->uneven;
	for (uint32_t left = core->finish.done & ~(r->uneven ? 0 : r->sources); left; left &= left - 1) {
		uint64_t clock = core->finish.clock_end[__builtin_ctz(left)];
		r->noted = clock > r->noted ? clock : r->noted;
		r->vouched = false;
		if (!(r->sources >> __builtin_ctz(left) & 1)) {
			older_merge(r, (struct older){ record_set(r), clock });
		}
	}
	if (core->finish.unknown) {
		record_put_older(r, (struct older){ .noted = 0 });
	}
	r->noted = core->finish.floor > r->noted ? core->finish.floor : r->noted;
	r->vouched = r->vouched && !core->finish.unknown;
	r->sources = core->finish.unknown && !core_votes(core) ? MERGE_STAYS : 0; /* noted anew when it votes */
	r->uneven = false;
}

/* "Every release": a release may have come from one source after another one's record of the lock_id. And a record that none of those who
 * count has came by a try that broke off, and has ended since. */
void merge_finish_key(struct core *core, struct key *key) {
	const struct finishing *f = &core->finish;
	for (struct record *r = key->held, *after; r; r = after) {
		after = r->next;
		if (r->sources == 0) {
			continue;
		}
		bool none = !f->unknown && !(r->sources & (f->brought | MERGE_STAYS)), released = released_has(core, r->lock_id);
		note_sources(core, r);
		const bool back = given_back_named(core, r->lock_id, r->attempt); /* section 11 */
		const bool ended = back || released_ended(core, r->lock_id, r->bond);
		if (none || released || ended) {
			core->counts[COUNT_merge_dropped] += none;
			log_append(core, key_name(key), r->lock_id);
			end_record(core, key, r, released || back ? 0 : record_delay(r));
		}
	}
	table_wake(core, key); /* whoever looked it up may only have looked */
}

/* For whoever walks the live table. False: nothing was left of the key, and it is freed. */
bool merge_finish_walked(struct core *core, struct key *key) {
	if (!core->finish.active) {
		return true;
	}
	merge_finish_key(core, key);
	return table_settle(core, key);
}

void merge_finish_end(struct core *core, struct table *t) {
	if (core->finish.active) {
		core->finish.active = false;
		map_walk_end(&t->keys);
	}
}

#define SWEEP_BUCKETS_A_STEP 1024

void merge_sweep(struct core *core) {
	struct finishing *f = &core->finish;
	for (int i = 0; i < SWEEP_BUCKETS_A_STEP && f->bucket < core->live->keys.bucket_count; i++, f->bucket++) {
		for (struct map_node *n = map_bucket(&core->live->keys, f->bucket), *next; n; n = next) {
			struct key *key = CONTAINER_OF(n, struct key, node);
			next = map_next_in_bucket(n);
			merge_finish_walked(core, key);
		}
	}
	if (f->bucket >= core->live->keys.bucket_count) {
		core->live->tries = 0;
		merge_finish_end(core, core->live);
		COUNT(core, merge_swept);
	}
}

static void begin(struct core *core) {
	core->finish = (struct finishing){ .active = true };
	map_walk_begin(&core->live->keys);
}

/* The table that was merged is the live one from now on. */
void merge_finish_begin(struct core *core) {
	const struct gather *g = &core->gather;
	struct finishing *f = &core->finish;
	CHECK(!f->active);
	begin(core);
	for (uint32_t i = 0; i < g->count; i++) {
		const struct source *s = &g->sources[i];
		if (s->done) {
			f->brought |= 1u << s->bit;
			f->done |= s->never && !s->votes ? 0 : 1u << s->bit;
			f->clock_end[s->bit] = s->clock_end;
			master_raise_clock(core, s->clock_end);
		}
	}
}

/* Of what came between nothing is known: all that was merged counts as noted now. */
static void finish_unknown(struct core *core) {
	if (!core->finish.active) {
		begin(core);
	}
	core->finish.unknown = true;
	core->finish.floor = core->clock;
	core->finish.bucket = 0;
}

/* The bits of all tries are used up. What was merged stays, but stands for no source any more; it is finished before anything else is merged. */
void merge_forget_sources(struct core *core) {
	finish_unknown(core);
}

/* A master that votes by waiting notes its clock in every record that it has. (What it accepted itself, before it recovered, is over.) */
void merge_note_clock(struct core *core) {
	finish_unknown(core);
}
