/* bond.c: the holder's side of a lock that shall end with the node that coordinates it (section 2, Release on disconnect). Masters that
 * have the record are told; each drops it when this node's link to it has been closed for the grace time. So this node may trust in the
 * lock only while enough of those masters are linked: it gives up first.
 *
 * For each master: new -> asked -> has it -> away (link lost) -> has it again, or gone (for longer than the grace time less the drift)
 */
#include "state.h"

#define TIMER_LATE (5 * SPAN_MS)

struct bond_master {
	struct id128 id;
	bool has;     /* it has the record, and ends it with the link */
	bool away;    /* ... and its link is lost, since then: */
	struct instant since;
	bool dropped; /* it says that it has the record no more */
};

struct bond {
	uint32_t masters, quorum; /* of the epoch */
	struct bond_master master[MASTERS_MAX]; /* by slot */
};

/* A clock here may run slower than the master's by twice the drift, and its timer may be late: who holds is to know it first. */
static struct instant gone_at(const struct core *core, const struct op *op, const struct bond_master *m) {
	span_ns early = op->wait / 8 < TIMER_LATE ? op->wait / 8 : TIMER_LATE;
	return instant_add(m->since, span_shrink(op->wait, 2 * core->config.drift_ppm) - early);
}

static bool gone(const struct core *core, const struct op *op, const struct bond_master *m) {
	return m->dropped || (m->away && instant_distrusted(core->now, gone_at(core, op, m)));
}

static bool has(const struct core *core, const struct op *op, uint32_t slot) {
	if (slot != core->self) {
		return op->bond->master[slot].has;
	}
	uint64_t token, noted;
	return core_votes(core) && core_peek(core, op->key, op->lock_id, &token, &noted);
}

/* ---- the end ---- */

void bond_free(struct core *core, struct op *op) {
	if (op->bond) {
		alloc_free(&core->alloc, op->bond, sizeof *op->bond);
		op->bond = NULL;
	}
}

/* Too few are left of those who would refuse another: not to be trusted any more. What is left of the record is released, so that it
 * is not taught again, and stands in nobody's way. */
static void lose(struct core *core, struct op *op) {
	COUNT(core, bond_lost);
	op_reply_all(core, op, PAWL_ELOST);
	bond_free(core, op);
	map_remove(&core->ops_by_lock, &op->by_lock);
	op->kind = CORE_RELEASE;
	release_start(core, op);
}

/* Who held on to it does not want to any more: the lock lives on by its lease. */
void bond_forget(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (i != core->self && peer_reachable(core, i)) {
			struct message m = op_message(op, MESSAGE_BOND);
			m.flags = FLAG_RELEASED;
			out_send(core, i, &m);
		}
	}
	op_free(core, op);
}

/* The lock was released through this node. */
void bond_released(struct core *core, struct op *op) {
	op_reply_all(core, op, PAWL_OK);
	op_free(core, op);
}

/* ---- judging ---- */

static void arm(struct core *core, struct op *op) {
	struct instant next = instant_add(core->now, core->config.request_timeout);
	for (uint32_t i = 0; i < op->bond->masters; i++) {
		const struct bond_master *m = &op->bond->master[i];
		if (m->away && !m->dropped && !gone(core, op, m) && gone_at(core, op, m).boot < next.boot) {
			next = gone_at(core, op, m);
		}
	}
	timer_at(core, &op->timer, TIMER_OP, next);
}

static void judge(struct core *core, struct op *op) {
	uint32_t lost = 0, kept = 0;
	for (uint32_t i = 0; i < op->bond->masters; i++) {
		bool g = gone(core, op, &op->bond->master[i]);
		lost += g;
		kept += !g && has(core, op, i);
	}
	if (lost > 0 && kept < config_sources(op->bond->masters)) {
		lose(core, op);
	} else {
		arm(core, op);
	}
}

static void ask(struct core *core, struct op *op, uint32_t slot) {
	const struct bond_master *master = &op->bond->master[slot];
	if (slot == core->self || !peer_votes(core, slot) || (master->has && !master->away && !master->dropped)) {
		return;
	}
	struct message m = op_message(op, MESSAGE_BOND);
	m.left_us = (uint64_t)(op->wait / SPAN_US);
	out_send(core, slot, &m);
}

static void ask_all(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < op->bond->masters; i++) {
		ask(core, op, i);
	}
}

void bond_start(struct core *core, struct op *op) {
	op->state = OP_BOND;
	op->bond = alloc_new(&core->alloc, sizeof *op->bond);
	if (op->bond == NULL) {
		COUNT(core, no_memory);
		op_reply_all(core, op, PAWL_EBUSY);
		op_free(core, op);
		return;
	}
	op->bond->masters = core->masters;
	op->bond->quorum = core->quorum;
	for (uint32_t i = 0; i < core->masters; i++) {
		op->bond->master[i].id = core->peers[i].node.id;
	}
	ask_all(core, op);
	arm(core, op);
}

/* ---- events ---- */

void bond_timer(struct core *core, struct op *op) {
	ask_all(core, op);
	judge(core, op);
}

void bond_answer(struct core *core, uint32_t from, const struct message *m) {
	struct op *op = from < core->masters ? op_find(core, m->round) : NULL;
	if (op == NULL || op->state != OP_BOND || m->round != op->round) {
		COUNT(core, answer_late);
		return;
	}
	struct bond_master *master = &op->bond->master[from];
	if (m->status == STATUS_OK) {
		master->has = true;
		master->away = master->dropped = false;
	} else if (m->status == STATUS_ABSENT) {
		master->dropped = master->dropped || master->has;
	} /* else it is asked again */
	judge(core, op);
}

void bond_peer_lost(struct core *core, struct op *op, uint32_t peer) {
	struct bond_master *master = &op->bond->master[peer];
	if (master->has && !master->away) {
		master->away = true;
		master->since = core->now;
		judge(core, op);
	}
}

void bond_peer_changed(struct core *core, struct op *op, uint32_t peer) {
	ask(core, op, peer);
}

/* The masters are others. What q masters of the epoch before still have, every handover brings to the new ones; less is not enough. */
void bond_epoch(struct core *core, struct op *op) {
	struct bond old = *op->bond;
	uint32_t lost = 0, kept = 0;
	for (uint32_t i = 0; i < old.masters; i++) {
		bool g = gone(core, op, &old.master[i]);
		lost += g;
		kept += !g && old.master[i].has;
	}
	if (lost > 0 && kept < old.quorum) {
		lose(core, op);
		return;
	}
	*op->bond = (struct bond){ .masters = core->masters, .quorum = core->quorum };
	for (uint32_t i = 0; i < core->masters; i++) {
		struct bond_master *m = &op->bond->master[i];
		m->id = core->peers[i].node.id;
		for (uint32_t k = 0; k < old.masters; k++) {
			if (id128_equal(old.master[k].id, m->id)) {
				*m = old.master[k];
			}
		}
	}
	op_next_round(core, op);
	ask_all(core, op);
	arm(core, op);
}

/* ---- looking in ---- */

/* When the lock ends if no link comes back; INSTANT_FOREVER: by its lease only. */
static struct instant ends_at(const struct core *core, const struct op *op) {
	struct instant away[MASTERS_MAX];
	uint32_t count = 0, kept = 0, lost = 0, needed = config_sources(op->bond->masters);
	for (uint32_t i = 0; i < op->bond->masters; i++) {
		const struct bond_master *m = &op->bond->master[i];
		bool g = gone(core, op, m);
		lost += g;
		kept += !g && has(core, op, i);
		if (!g && m->away) {
			uint32_t at = count++;
			for (; at > 0 && away[at - 1].boot > gone_at(core, op, m).boot; at--) {
				away[at] = away[at - 1];
			}
			away[at] = gone_at(core, op, m);
		}
	}
	if (lost > 0 && kept < needed) {
		return (struct instant){ 0, 0 };
	}
	uint32_t last = kept >= needed ? kept - needed : 0; /* with whose going it ends */
	return last < count ? away[last] : INSTANT_FOREVER;
}

struct instant core_bond_end(const struct core *core, struct slice key, struct id128 lock_id) {
	const struct op *op = op_find_bond(core, key, lock_id);
	return op ? ends_at(core, op) : (struct instant){ 0, 0 };
}
