/* release.c: releasing: one round, answered after q, sent again to the others until they have it (section 2, Release). */
#include "state.h"

/* When the lease is over, wherever: this node's record, if it has one, may have missed an extension. */
static struct instant longest_lease(const struct core *core) {
	return instant_add(core->now, span_grow(core->config.max_lease, 2 * core->config.drift_ppm));
}

/* Whoever goes on with a lock that was bound here is not to lose it with this node: only a master that has it bound still ends it. */
struct message release_message(const struct op *op) {
	struct message m = op_message(op, op->lost_here ? MESSAGE_BOND : MESSAGE_RELEASE);
	m.flags = op->lost_here ? FLAG_NOW : 0;
	m.attempt = op->part_of;
	m.number = op->terms.bond;
	return m;
}

void release_start(struct core *core, struct op *op) {
	op->until = longest_lease(core);
	if (op->part_of == 0) {
		belief_drop(core, op->key, op->lock_id);
		op_lock_released(core, op->key, op->lock_id, false);
	} else {
		if (belief_of(core, op->key, op->lock_id, op->part_of)) {
			belief_drop(core, op->key, op->lock_id);
		}
		op_lock_given_back(core, op->key, op->lock_id, op->part_of);
	}
	op->state = OP_ROUND;
	op_next_round(core, op);
	struct message m = release_message(op);
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	release_judge(core, op, false);
}

/* To those that can be reached now, and nobody waits for an answer. */
void release_give_back_once(struct core *core, struct slice key, struct id128 lock_id, uint64_t name) {
	const struct message m = { .kind = MESSAGE_RELEASE, .key = key, .lock_id = lock_id, .attempt = name };
	for (uint32_t i = 0; i < core->masters; i++) {
		if (peer_reachable(core, i)) {
			out_send(core, i, &m);
		}
	}
}

/* What a commit that failed may have left goes back under its name (section 11): nobody waits for it, and it is sent again like a release. */
bool release_give_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name) {
	struct op *op = op_new_alone(core, &(struct core_request){ .op = CORE_RELEASE, .key = key, .lock_id = lock_id });
	if (op == NULL) {
		COUNT(core, no_memory);
		release_give_back_once(core, key, lock_id, name);
		return false;
	}
	op->part_of = name;
	op->until = longest_lease(core);
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_RELEASE);
	m.attempt = name;
	op_ask_all(core, op, &m);
	bool all = true;
	for (uint32_t i = 0; i < core->masters; i++) { /* who is not in this epoch yet may not have heard */
		all = all && op->votes[i].state != VOTE_GONE && peer_votes(core, i);
	}
	linger_begin(core, op);
	return all;
}

/* Of a release, and of the second round of a transfer. */
void release_judge(struct core *core, struct op *op, bool over) {
	uint32_t acks = op_votes(core, op, VOTE_BIT(VOTE_OK));
	bool done = acks >= core->quorum;
	if (!done && !over && acks + op_votes(core, op, VOTE_BIT(VOTE_ASKED)) >= core->quorum) {
		return;
	}
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link), done ? PAWL_OK : PAWL_ENOQUORUM);
		r->released = op->had_any;
		r->acks = acks;
	}
	op->kind = CORE_RELEASE; /* what is sent again is a release, also where a successor was named: by then that one has other means */
	linger_begin(core, op);
}

void release_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	op->had_any = op->had_any || (m->flags & FLAG_HAD) || op_lately(core, op, m);
	op->votes[from].state = m->status == STATUS_OK ? VOTE_OK : VOTE_GONE;
	release_judge(core, op, false);
}
