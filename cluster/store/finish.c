/* finish.c: finishes what was merged (section 4): once the node votes, each merged record is
 * corrected by what the sources said at their ends, or is dropped.
 *
 * A million records cannot be finished between two messages. So a record keeps the bits of its
 * sources until it is finished, by whoever looks its key up, or by a sweep in the background. Until
 * then nobody sees it. */
#include "store.h"

#define SWEEP_BUCKETS_A_STEP 128
#define SWEEP_RECORDS_A_STEP 1024

/* style: record, because finish_key has said so, or nobody votes from the table yet. */
void finish_end_record(struct core *core, struct key *key, struct record *r, span_ns closed) {
	if (closed > 0) {
		record_shorten(core, key, r, closed);
	} else {
		first_ended(core, r);
		key_drop_record(core, key, r);
	}
	if (key_more(key)) {
		core->observers->key_changed(core, key, NULL);
	}
}

/* Sets the highest clock that was noted. A source that lacks the lock_id counts as having noted its
 * clock at the end of its snapshot. */
static void note_sources(struct core *core, struct record *r) {
	core->counts[COUNT_permits_uneven] += r->uneven;
	const uint32_t even = r->uneven ? 0 : r->sources;
	for (uint32_t left = core->store.finish.done & ~even; left; left &= left - 1) {
		uint64_t clock = core->store.finish.clock_end[__builtin_ctz(left)];
		r->noted = clock > r->noted ? clock : r->noted;
		r->vouched = false;
		if (!(r->sources >> __builtin_ctz(left) & 1)) {
			older_merge(r, (struct older){ record_set(r), clock });
		}
	}
	if (core->store.finish.unknown) {
		record_put_older(r, (struct older){ .noted = 0 });
	}
	r->noted = core->store.finish.floor > r->noted ? core->store.finish.floor : r->noted;
	r->vouched = r->vouched && !core->store.finish.unknown;
	/* If this node does not vote yet, the record is finished once more when it does. */
	r->sources = core->store.finish.unknown && !core_votes(core) ? MERGE_STAYS : 0;
	r->uneven = false;
}

/* A merge keeps every release, and a release may have come from one source after another one's
 * record of the lock_id, or be of a record of this master's own, which no source has. If none of
 * the sources that count has a record, it came by a try that broke off, and has ended since. */
void finish_key(struct core *core, struct key *key) {
	const struct finishing *f = &core->store.finish;
	for (struct record *r = key->held, *after; r; r = after) {
		after = r->next;
		const bool released = tombstone_released(core, r->lock_id);
		if (r->sources == 0 && !released) {
			continue;
		}
		const bool none = r->sources && !f->unknown &&
			!(r->sources & (f->brought | MERGE_STAYS));
		if (r->sources) {
			note_sources(core, r);
		}
		/* A failed request has given the lock back (section 11). */
		const bool back = rolled_back_named(core, r->lock_id, r->rests_on);
		const bool ended = back ||
			tombstone_connection_ended(core, r->lock_id, record_binding(r));
		if (none || released || ended) {
			core->counts[COUNT_merge_dropped] += none;
			core->observers->record_changed(core, key, r, RECORD_DISPROVED);
			finish_end_record(core, key, r, released || back ? 0 : record_delay(r));
		}
	}
}

bool finish_walked(struct core *core, struct key *key) {
	if (!core->store.finish.active) {
		return true;
	}
	finish_key(core, key);
	return table_settle(core, key);
}

void finish_end(struct core *core, struct table *t) {
	if (core->store.finish.active) {
		core->store.finish.active = false;
		pending_left(core, PENDING_FINISHING, false);
		map_walk_end(&t->keys);
	}
}

void finish_sweep(struct core *core) {
	struct finishing *f = &core->store.finish;
	uint32_t records = 0;
	for (int i = 0; i < SWEEP_BUCKETS_A_STEP && records < SWEEP_RECORDS_A_STEP &&
		f->bucket < core->store.live->keys.bucket_count; i++, f->bucket++) {
		for (struct map_node *n = map_bucket(&core->store.live->keys, f->bucket), *next; n;
			n = next) {
			struct key *key = CONTAINER_OF(n, struct key, node);
			next = map_next_in_bucket(n);
			records += key_count(key, SWEEP_RECORDS_A_STEP);
			finish_walked(core, key);
		}
	}
	if (f->bucket >= core->store.live->keys.bucket_count) {
		core->store.live->tries = 0;
		finish_end(core, core->store.live);
		COUNT(core, merge_swept);
	}
}

struct finishing *finish_begin(struct core *core) {
	CHECK(!core->store.finish.active);
	core->store.finish = (struct finishing){ .active = true };
	pending_add(core, PENDING_FINISHING);
	map_walk_begin(&core->store.live->keys);
	return &core->store.finish;
}

/* Nothing is known of what came between, so everything that was merged counts as noted now. */
static void finish_unknown(struct core *core) {
	if (!core->store.finish.active) {
		finish_begin(core);
	}
	core->store.finish.unknown = true;
	core->store.finish.floor = core->clock;
	core->store.finish.bucket = 0;
}

void finish_forget_sources(struct core *core) {
	finish_unknown(core);
}

void finish_note_clock(struct core *core) {
	finish_unknown(core);
}
