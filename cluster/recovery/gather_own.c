/* gather_own.c: a master of the epoch before is a source of its own: its table is copied in pieces into the one beside it, and what it
 * accepts meanwhile goes into both (section 6). */
#include "recovery.h"
#include "gather.h"

#define OWN_BUCKETS_A_STEP 512

/* Its own table, in pieces; what changes meanwhile comes by gather_changed. */
static bool copy_own(struct core *core, struct source *s) {
	struct gather *g = &core->gather;
	for (int i = 0; i < OWN_BUCKETS_A_STEP && g->self_bucket < core->live->keys.bucket_count; i++, g->self_bucket++) {
		for (struct map_node *n = map_bucket(&core->live->keys, g->self_bucket); n; n = map_next_in_bucket(n)) {
			const struct key *key = CONTAINER_OF(n, struct key, node);
			for (const struct record *r = key->held; r; r = r->next) {
				struct message m;
				snapshot_record_message(core, key, r, &m);
				if (!merge_record(core, core->beside, s->bit, &m)) {
					return false;
				}
				g->merged++;
			}
		}
	}
	return true;
}

struct source *gather_own(struct core *core) {
	struct source *s = gather_beside(core) ? gather_source(&core->gather, core->durable.node_id) : NULL;
	return s && s->before ? s : NULL;
}

void gather_own_done(struct core *core, struct source *s) {
	s->done = true;
	s->clock_end = core->clock;
	gather_judge(core);
}

bool gather_busy(const struct core *core) {
	return core->gather.own_walking;
}

/* A piece of the walk over its own table, once a step. */
void gather_go_on(struct core *core) {
	struct source *s = gather_own(core);
	CHECK(s && core->gather.own_walking);
	if (!copy_own(core, s)) {
		core->gather.full = true;
		gather_break_off(core, s);
	} else if (core->gather.self_bucket >= core->live->keys.bucket_count) {
		gather_end_own_walk(core);
		s->walked = true;
		if (core->gather.kind == GATHER_HANDOVER) {
			gather_own_done(core, s);
		}
		premerge_tell(core);
	}
}

void gather_ask_own(struct core *core, struct source *s) {
	struct gather *g = &core->gather;
	bool voted_before = g->kind == GATHER_HANDOVER ? core->durable.voted_before : core->durable.voted;
	bool remembers = g->kind == GATHER_HANDOVER ? core->remembers : core_votes(core);
	if (!gather_take_bit(core, s)) {
		return;
	}
	s->asked = true;
	s->asked_at = s->progress = s->told_at = core->now;
	if (remembers) {
		g->self_bucket = 0;
		g->own_walking = true;
		map_walk_begin(&core->live->keys);
		return;
	}
	s->walked = s->done = g->kind == GATHER_HANDOVER;
	s->never = !voted_before;
	s->forgot = voted_before;
	s->told_at = core->adopted_at;
	s->clock_end = core->durable.ceiling > core->clock ? core->durable.ceiling : core->clock;
}

/* What this node accepts while it is its own source. */
void gather_changed(struct core *core, const struct key *key, const struct record *r) {
	struct source *s = gather_own(core);
	if (s && s->asked && !s->done && key_table(core, key) == core->live) {
		struct message m;
		snapshot_record_message(core, key, r, &m);
		if (!merge_record(core, core->beside, s->bit, &m)) {
			gather_break_off(core, s);
		}
	}
}

void gather_released(struct core *core, const struct message *m) {
	struct source *s = gather_own(core);
	if (s && s->asked && !s->done) {
		merge_released(core, core->beside, m);
	}
}

void gather_lost(struct core *core, const struct message *m) {
	struct source *s = gather_own(core);
	if (s && s->asked && !s->done) {
		merge_lost(core, core->beside, s->bit, m);
	}
}
