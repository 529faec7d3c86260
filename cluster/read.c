/* read.c: quorum reads (section 3). */
#include "state.h"

#define ANSWERED VOTE_BIT(VOTE_OK)

void read_start(struct core *core, struct op *op) {
	op_found_clear(core, op);
	memset(op->parts_seen, 0, sizeof op->parts_seen);
	op->contested_seen = false;
	op->state = OP_ROUND;
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_READ);
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	read_judge(core, op, false);
}

/* How many masters report this lock_id; *counting: how many of those with a value that counts as in Prepare. */
static uint32_t reporters(const struct op *op, struct id128 lock_id, uint32_t *counting) {
	uint32_t all = 0, good = 0;
	for (uint32_t i = 0; i < op->found_count; i++) {
		const struct found *f = &op->found[i];
		if (id128_equal(f->record->lock_id, lock_id)) {
			all |= 1u << f->from;
			good |= f->counts ? 1u << f->from : 0;
		}
	}
	*counting = (uint32_t)__builtin_popcount(good);
	return (uint32_t)__builtin_popcount(all);
}

struct verdict {
	const struct record *holder; /* the report with the highest ballot among those that count; NULL: none */
	bool free, undetermined;
};

static struct verdict weigh(const struct core *core, const struct op *op, uint32_t silent) {
	struct verdict v = { NULL, true, false };
	struct id128 holder = { { 0 } };
	uint32_t holders = 0;
	for (uint32_t i = 0; i < op->found_count; i++) {
		uint32_t counting, n = reporters(op, op->found[i].record->lock_id, &counting);
		v.free = v.free && n + silent < core->quorum;
		if (n < core->quorum || (holders && id128_equal(holder, op->found[i].record->lock_id))) {
			continue;
		}
		holder = op->found[i].record->lock_id;
		holders++;
		v.undetermined = v.undetermined || counting < core->quorum;
	}
	v.free = v.free && silent < core->quorum;
	v.undetermined = v.undetermined || holders > 1;
	for (uint32_t i = 0; i < op->found_count && holders == 1 && !v.undetermined; i++) {
		const struct found *f = &op->found[i];
		if (id128_equal(f->record->lock_id, holder) && f->counts && (!v.holder || ballot_compare(f->record->wrote, v.holder->wrote) > 0)) {
			v.holder = f->record;
		}
	}
	return v;
}

static void answer_holder(struct core *core, struct op *op, const struct record *r) {
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct caller *c = CONTAINER_OF(n, struct caller, link);
		struct core_entry entry = { .token = 0 };
		bool copied = r == NULL || local_entry(core, c, op->identity, op->key, r, &entry);
		struct core_reply *reply = op_reply(core, c, copied ? PAWL_OK : PAWL_EBUSY);
		reply->held = r != NULL && copied;
		reply->entry = entry;
		reply->value_seq = entry.value_seq;
	}
	op_free(core, op);
}

static void undetermined(struct core *core, struct op *op, uint32_t silent) {
	if (!op->again) {
		COUNT(core, read_again);
		op->again = true;
		read_start(core, op);
		return;
	}
	COUNT(core, read_indeterminate);
	op_reply_all(core, op, core->masters - silent < core->quorum ? PAWL_ENOQUORUM : PAWL_EINDETERMINATE);
	op_free(core, op);
}

void read_judge(struct core *core, struct op *op, bool over) {
	uint32_t answered = op_votes(core, op, ANSWERED), silent = core->masters - answered;
	bool open = !over && op_votes(core, op, VOTE_BIT(VOTE_ASKED)) > 0;
	struct verdict v = weigh(core, op, silent);
	if (open && (op->contested_seen || v.undetermined)) {
		return; /* whoever has not answered yet may decide it */
	}
	/* Free although somebody reported a record: while the answers came, an extension may have moved the lease to other masters. */
	bool doubtful = v.free && op->found_count > 0 && !op->again;
	if (v.holder || (v.free && !doubtful)) {
		COUNT(core, read_quorum);
		answer_holder(core, op, v.holder);
	} else if (!open || doubtful) {
		undetermined(core, op, silent);
	}
}

void read_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct vote *v = &op->votes[from];
	if (m->kind != MESSAGE_READ_ANSWER || v->state != VOTE_ASKED) {
		return;
	}
	if (m->status == STATUS_ABSENT) {
		v->state = VOTE_OK;
	} else if (m->status != STATUS_OK) {
		v->state = VOTE_GONE; /* does not vote in this epoch: silent */
	} else if (m->part < 64 && !(op->parts_seen[from] >> m->part & 1)) {
		op->contested_seen = op->contested_seen || m->parts > 1;
		op->parts_seen[from] |= (uint64_t)1 << m->part;
		if (op_found(core, op, from, m) == NULL) {
			v->state = VOTE_GONE;
		} else if ((uint32_t)__builtin_popcountll(op->parts_seen[from]) == m->parts) {
			v->state = VOTE_OK;
		}
	}
	if (v->state != VOTE_ASKED) {
		read_judge(core, op, false);
	}
}
