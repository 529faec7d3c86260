/* group_answer.c: what is answered to a request for several keys (section 11). */
#include "acquire.h"

/* Notes who stood in the way, for the answer that follows when everything has been rolled back. */
void group_keep_holder(struct group *group, const struct core_reply *r) {
	const struct core_entry *e = &r->entry;
	group->full = r->field;
	group->other_of = r->other_of;
	group->holder_known = r->held && e->owner.size <= OWNER_MAX && e->label.size <= LABEL_MAX;
	if (!group->holder_known) {
		return;
	}
	group->holder = (struct core_entry){ .token = e->token, .terms = e->terms,
		.remaining = e->remaining };
	group->contested = r->contested;
	if (e->owner.size) {
		memcpy(group->owner, e->owner.data, e->owner.size);
		group->holder.owner = slice_of(group->owner, e->owner.size);
	}
	if (e->label.size) {
		memcpy(group->label, e->label.data, e->label.size);
		group->holder.label = slice_of(group->label, e->label.size);
	}
}

/* Returns what the caller may count on for this member, from the instant at which it sent the
 * request. Nothing counts for a caller that was asked for before the caller came. */
static span_ns valid_for(const struct core *core, const struct member *m, const struct caller *c) {
	span_ns before = instant_elapsed_short(m->since, c->arrived);
	return clock_saturating_add(span_shrink(before, core->config.drift_ppm), m->valid);
}

/* Answers all callers that the keys are held. False: no memory. */
bool group_answer_held(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	struct core_lock_got *got = out_room(core, group->count * sizeof *got);
	uint32_t acks = core->masters;
	bool copied = got != NULL;
	for (uint32_t i = 0; copied && i < group->count; i++) {
		const struct member *m = &group->members[i];
		struct core_lock_got *to = &got[m->place];
		*to = (struct core_lock_got){ .lock_id = m->lock_id, .token = m->token,
			.terms = m->terms };
		copied = copied && out_copy(core, m->key, &to->key);
		acks = m->acks < acks ? m->acks : acks;
	}
	if (!copied) {
		return false;
	}
	COUNT(core, group_held);
	for (uint32_t i = 0; i < group->count; i++) {
		const struct member *m = &group->members[i];
		struct granted *b = granted_of(core, table_hash(core, m->key), m->lock_id, m->name);
		/* From now on each member is a lock of its own. */
		if (b) {
			granted_put_asker(b, op_asker(op));
		}
	}
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct caller *c = CONTAINER_OF(n, struct caller, link);
		span_ns valid = SPAN_MAX, waited = instant_elapsed_short(core->now, c->arrived);
		for (uint32_t i = 0; i < group->count; i++) {
			span_ns one = valid_for(core, &group->members[i], c);
			valid = one < valid ? one : valid;
		}
		struct core_reply *r = op_reply(core, c, PAWL_OK);
		r->got = got;
		r->count = group->count;
		r->valid = valid;
		r->waited = waited;
		r->votes = core->quorum;
		r->acks = acks;
	}
	op_free(core, op);
	return true;
}

void group_answer_error(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	const struct member *m = &group->members[group->failed];
	COUNT(core, group_failed);
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct caller *c = CONTAINER_OF(n, struct caller, link);
		span_ns waited = instant_elapsed_short(core->now, c->arrived);
		struct core_reply *r = op_reply(core, c, group->error);
		r->waited = waited;
		r->field = group->error == PAWL_EBADREQUEST ? "lock_id"
			: group->error == PAWL_ETOOLONG ? "lease_ms"
			: NULL;
		r->limit = group->error == PAWL_ETOOLONG ? core->config.max_lease : 0;
		r->field = group->error == PAWL_EFULL ? group->full : r->field;
		if (out_copy(core, m->key, &r->failed_key) && group->holder_known &&
			(group->error == PAWL_EHELD || group->error == PAWL_ETIMEOUT)) {
			r->other_of = group->other_of;
			r->entry.key = r->failed_key;
			r->entry.token = group->holder.token;
			r->entry.terms = group->holder.terms;
			r->entry.remaining = instant_left_long(core->now, group->holder_end);
			r->contested = group->contested;
			r->held = out_copy(core, group->holder.owner, &r->entry.owner) &&
				out_copy(core, group->holder.label, &r->entry.label);
		}
	}
	op_free(core, op);
}
