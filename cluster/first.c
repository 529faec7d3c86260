/* first.c: first values that may be older than an update of the same lock_id (section 2, Acquire and Update): a commit comes late to a master
 * where the lock was, with the update, and has ended. So a master remembers whose update it has lost; and the coordinator knows that nothing
 * of the present holding is lost if its q masters had no record from before the commit was sent until it came. */
#include "first.h"

/* ---- a master ---- */

void first_outlived(struct core *core, const struct key *key, const struct record *r) {
	if (!ballot_first(r->wrote) && r->wrote.clock > 0) {
		released_add_update(core, r->lock_id);
		if (key_table(core, key) == core->live) { /* who copies may have been sent the ring already */
			snapshot_released(core, key_name(key), r->lock_id);
		}
	}
}

bool first_in_doubt(const struct core *core, const struct record *r) {
	const struct released *was = ballot_first(r->wrote) ? released_find(core, r->lock_id) : NULL;
	return was && was->updated;
}

/* A record that is made drops the promise, and the one that may follow is of another attempt. */
bool first_promised(const struct key *key, const struct message *commit, uint32_t from) {
	const struct promise *p = key ? key->promise : NULL;
	return p && id128_equal(p->lock_id, commit->lock_id) && p->peer == from && p->attempt >> 16 == commit->round >> 16;
}

/* Older nodes take no heed of what stands in these fields. */
void first_accepted(const struct core *core, const struct key *key, const struct message *commit, bool promised, struct message *answer) {
	if (answer->status == STATUS_OK) {
		answer->by = promised ? commit->lock_id : answer->by;
		answer->token = first_in_doubt(core, key_record(key, commit->lock_id)) ? 0 : answer->token;
	}
}

/* The very record that the commit has made: one that came after the loss of an update of the present holding has noted more than its token. */
void first_taught(struct core *core, const struct record *r, const struct message *m) {
	struct released *was = released_find(core, r->lock_id);
	if (was && m->kind == MESSAGE_LEARN && (m->flags & FLAG_STANDS) && r->noted < m->token && ballot_compare(r->wrote, m->ballot) == 0) {
		was->updated = false;
	}
}

/* ---- a coordinator ---- */

/* Before the votes on promises are forgotten. A turn may be given more than once, and its promise be made anew behind the commit. */
void first_begin(struct op *op) {
	op->promised = 0;
	op->stands = false;
	for (uint32_t i = 0; op->state == OP_ASKING && i < MASTERS_MAX; i++) {
		op->promised |= op->votes[i].state == VOTE_OK ? 1u << i : 0;
	}
}

/* Once it stands it does under every epoch that follows, however many masters there are. */
void first_answered(const struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct vote *v = &op->votes[from];
	uint32_t stood = 0;
	v->stood = m->status == STATUS_OK && id128_equal(m->by, op->lock_id) && (op->promised >> from & 1);
	v->in_doubt = m->status == STATUS_OK && m->token == 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		stood += op->votes[i].stood;
	}
	op->stands = op->stands || (op->own_value == NULL && stood >= core->quorum);
}
