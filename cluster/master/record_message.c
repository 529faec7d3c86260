/* record_message.c: all that a master knows of a record, as a message for a node that copies the
 * record or follows this master. */
#include "master.h"

void record_message(const struct core *core, const struct key *key, const struct record *r,
	struct message *m) {
	*m = (struct message){ .kind = MESSAGE_SNAPSHOT_RECORD, .key = key_name(key),
		.noted = r->noted, .name = r->rests_on };
	record_describe(core, r, m);
	const struct older o = record_older(r);
	m->had = o.set;
	m->clock = o.noted;
	m->flags |= (rule_value_counts(r) ? FLAG_COUNTS : 0) |
		(binding_master_bound(core, r->lock_id) ? FLAG_BOUND : 0);
}
