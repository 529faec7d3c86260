/* figures_changed.c: counts the leases that begin and end, for the metrics of the node. */
#include "changes.h"
#include "sketch.h"

static void lost(struct core *core, const struct key *key, enum figure_lost cause) {
	core->changes.lost[cause]++;
	if (key->group < KEY_GROUPS_MAX) {
		core->changes.group_lost[key->group]++;
	}
}

void figures_changed(struct core *core, const struct key *key, const struct record *r,
	enum record_change what) {
	if (what == RECORD_GRANTED && core->changes.granted) {
		sketch_add(core->changes.granted, key->node.hash, key_name(key));
	}
	const bool ends = what == RECORD_EXPIRED || what == RECORD_RELEASED ||
		what == RECORD_CLOSED || what == RECORD_LOST;
	/* A record whose lock delay runs was counted when that began. */
	if (!ends || r->closed) {
		return;
	}
	buckets_add(&core->changes.holds, record_age(r, core->now));
	if (what == RECORD_RELEASED) {
		core->changes.releases++;
	} else {
		lost(core, key, what == RECORD_EXPIRED ? FIGURE_EXPIRED : FIGURE_TAKEN);
	}
}
