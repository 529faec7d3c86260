/* figures_changed.c: counts the leases that begin and end, for the metrics of the node. */
#include "changes.h"
#include "sketch.h"

static void remember(struct core *core, const struct key *key, const struct record *r,
	enum figure_lost cause) {
	struct lost_ring *ring = core->changes.lost_last;
	struct lost_place *p = &ring->places[ring->count++ % LOST_LEASES_MAX];
	const struct slice owner = record_owner(r);
	p->at = core->now.boot;
	p->token = r->token;
	p->cause = (uint8_t)cause;
	p->key_size = key->size;
	memcpy(p->key, key->name, key->size);
	p->owner_size = (uint16_t)owner.size;
	if (owner.size > 0) {
		memcpy(p->owner, owner.data, owner.size);
	}
}

void figures_changed(struct core *core, const struct key *key, const struct record *r,
	enum record_change what) {
	if (what == RECORD_GRANTED && core->changes.granted) {
		sketch_add(core->changes.granted,
			hash_fold(key_number(key), UINT64_C(0x9e3779b97f4a7c15)), key_name(key));
	}
	const bool ends = what == RECORD_EXPIRED || what == RECORD_RELEASED ||
		what == RECORD_CLOSED || what == RECORD_LOST;
	/* A record whose lock delay runs was counted when that began. */
	if (!ends || r->closed || record_keeps_closed(r)) {
		return;
	}
	buckets_add(&core->changes.holds, record_age(r, core->now));
	if (what == RECORD_RELEASED) {
		core->changes.releases++;
		return;
	}
	const enum figure_lost cause = what == RECORD_EXPIRED ? FIGURE_EXPIRED : FIGURE_TAKEN;
	core->changes.lost[cause]++;
	if (core->changes.lost_last) {
		remember(core, key, r, cause);
	}
	if (key->group < KEY_GROUPS_MAX) {
		core->changes.group_lost[key->group]++;
	}
}
