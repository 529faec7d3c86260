/* figures.c: what the node counts for its metrics, and the walk over its table that finds the
 * oldest holder, and the keys that stand out (hot.c). */
#include "node.h"

/* The walk goes through this many buckets at a time, so that no beat takes long. It goes on with a
 * beat, but not more often than this. A million keys take two minutes. */
#define WALK_BUCKETS 2048
#define WALK_EVERY (SPAN_S / 5)

/* Begins the walk again, and makes known what the last one found. */
static void begin_again(struct core *core, struct oldest *o) {
	hot_walked(core);
	o->known = o->found;
	o->found = INT64_MAX;
	o->bucket = 0;
}

void figures_beat(struct core *core) {
	struct oldest *o = &core->node.oldest;
	const struct map *keys = &core->store.live->keys;
	if (!instant_expired(core->now, o->next)) {
		return;
	}
	o->next = instant_add(core->now, WALK_EVERY);
	hot_beat(core);
	for (uint32_t i = 0; i < WALK_BUCKETS && o->bucket < keys->bucket_count; i++) {
		for (struct map_node *n = map_bucket(keys, o->bucket); n;
			n = map_next_in_bucket(n)) {
			const struct key *key = CONTAINER_OF(n, struct key, node);
			hot_met(core, key);
			for (const struct record *r = key->held; r; r = r->next) {
				const int64_t since = core->now.boot - record_age(r, core->now);
				o->found = since < o->found ? since : o->found;
			}
		}
		o->bucket++;
	}
	if (o->bucket >= keys->bucket_count) {
		begin_again(core, o);
	}
}

void core_want_figures(struct core *core) {
	struct oldest *o = &core->node.oldest;
	if (!o->wanted) {
		*o = (struct oldest){ .wanted = true, .known = INT64_MAX, .found = INT64_MAX };
		hot_want(core);
	}
}

void core_figures(const struct core *core, struct instant now, struct core_figures *out) {
	const struct table *live = core->store.live;
	const int64_t oldest = core->node.oldest.known;
	*out = (struct core_figures){ .contested = live->contested_count,
		.longest_queue = core->master.longest, .holds = core->changes.holds,
		.releases = core->changes.releases, .stood_still = core->node.stood_still };
	if (core->node.oldest.wanted && live->held_count > 0 && oldest < now.boot) {
		out->oldest_holder = now.boot - oldest;
	}
	for (unsigned i = 0; i < FIGURE_MODES; i++) {
		out->leases[i] = live->held_modes[i];
	}
	for (unsigned i = 0; i < FIGURE_LOSSES; i++) {
		out->lost[i] = core->changes.lost[i];
	}
	for (unsigned i = 0; i < KEY_GROUPS_MAX; i++) {
		out->groups[i] = (struct group_figures){ live->held_groups[i],
			core->changes.group_lost[i] };
	}
}
