/* merge.c: merging snapshots (section 4): per lock_id the later end, the higher token, the value with the higher ballot, the
 * highest ballot noted, every release, and the highest noted, where a source that lacks the lock_id counts as having noted
 * its clock at the snapshot's end. */
#include "state.h"

static struct record *find_or_add(struct core *core, struct key *key, const struct message *m) {
	struct record *r = key_record(key, m->lock_id);
	if (r == NULL) {
		r = record_new(core, m->owner, m->identity, m->value);
		if (r) {
			r->lock_id = m->lock_id;
			r->wrote = m->ballot;
			r->end = instant_add(core->now, 0);
			key_add_record(core, key, r);
		}
	}
	return r;
}

/* The value with the higher ballot; false: no memory. */
static bool merge_value(struct core *core, struct key *key, struct record **r, const struct message *m) {
	if (ballot_compare(m->ballot, (*r)->wrote) > 0) {
		struct record **at = &key->held;
		while (*at != *r) {
			at = &(*at)->next;
		}
		if (!record_set_value(core, at, m->value)) {
			return false;
		}
		*r = *at;
		(*r)->wrote = m->ballot;
	}
	struct ballot noted = ballot_compare(m->prepared, m->ballot) > 0 ? m->prepared : m->ballot;
	if (ballot_compare(noted, (*r)->prepared) > 0) {
		(*r)->prepared = noted;
	}
	return true;
}

bool merge_record(struct core *core, uint32_t source, const struct message *m) {
	if (released_has(core, m->lock_id)) {
		return true;
	}
	struct key *key = table_make(core, m->key);
	struct record *r = key ? find_or_add(core, key, m) : NULL;
	bool merged = r && merge_value(core, key, &r, m);
	if (merged) {
		r->token = m->token > r->token ? m->token : r->token;
		r->noted = m->noted > r->noted ? m->noted : r->noted;
		r->end = instant_later(r->end, instant_add(core->now, span_from_us(m->left_us)));
		r->barred = r->barred || (m->flags & FLAG_BARRED) || released_find(core, m->lock_id);
		r->sources = (uint16_t)(r->sources | 1u << source);
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

void merge_released(struct core *core, const struct message *m) {
	bool barred_only = !(m->flags & FLAG_RELEASED);
	released_add(core, m->lock_id, barred_only);
	struct key *key = table_find(core, m->key);
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r && barred_only) {
		r->barred = true;
		digest_record(core, key, r);
	} else if (r) {
		key_drop_record(core, key, r);
		local_wait_check(core, key);
		table_settle(core, key);
	}
}

static void each_record(struct core *core, void (*visit)(struct core *core, struct record *r, uint32_t argument), uint32_t argument) {
	for (size_t b = 0; b < core->live->keys.bucket_count; b++) {
		for (struct map_node *n = map_bucket(&core->live->keys, b); n; n = map_next_in_bucket(n)) {
			for (struct record *r = CONTAINER_OF(n, struct key, node)->held; r; r = r->next) {
				visit(core, r, argument);
			}
		}
	}
}

static void forget_source(struct core *core, struct record *r, uint32_t source) {
	(void)core;
	r->sources = (uint16_t)(r->sources & ~(1u << source));
}

/* A snapshot broke off: what came of it stays, but its source does not count as one that had it. */
void merge_forget_source(struct core *core, uint32_t source) {
	each_record(core, forget_source, source);
}

static void note_sources(struct core *core, struct record *r, uint32_t unused) {
	(void)unused;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct snapshot_in *s = &core->peers[i].take;
		if (s->done && !(r->sources >> i & 1) && s->clock_end > r->noted) {
			r->noted = s->clock_end;
		}
	}
	r->sources = 0;
}

/* "Every release": a release may have come from one source after another one's record of the lock_id. */
static void drop_released(struct core *core) {
	map_walk_begin(&core->live->keys); /* no shrinking meanwhile */
	for (size_t b = 0; b < core->live->keys.bucket_count; b++) {
		for (struct map_node *n = map_bucket(&core->live->keys, b), *next; n; n = next) {
			struct key *key = CONTAINER_OF(n, struct key, node);
			next = map_next_in_bucket(n);
			bool dropped = false;
			for (struct record *r = key->held, *after; r; r = after) {
				after = r->next;
				if (released_has(core, r->lock_id)) {
					key_drop_record(core, key, r);
					dropped = true;
				}
			}
			if (dropped) {
				local_wait_check(core, key);
				table_settle(core, key);
			}
		}
	}
	map_walk_end(&core->live->keys);
}

void merge_finish(struct core *core) {
	drop_released(core);
	each_record(core, note_sources, 0);
	for (uint32_t i = 0; i < core->masters; i++) {
		struct snapshot_in *s = &core->peers[i].take;
		if (s->done) {
			master_raise_clock(core, s->clock_end);
		}
		*s = (struct snapshot_in){ .asked = false };
	}
}

static void note_clock(struct core *core, struct record *r, uint32_t unused) {
	(void)unused;
	r->noted = core->clock;
	r->sources = 0;
}

void merge_note_clock(struct core *core) {
	each_record(core, note_clock, 0);
}
