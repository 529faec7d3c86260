/* extend_repair.c: sends the record of a lock that is extended to the masters that lack it, or have
 * it under an earlier token or session binding (section 2, Extend). */
#include "operations.h"
#include "extend.h"

static void learn(struct core *core, struct op *op, uint32_t index, const struct record *r) {
	struct message m = op_message(op, MESSAGE_LEARN);
	record_describe(core, r, &m);
	m.name = extend_name(op);
	if (terms_semaphore(&m.terms)) {
		op->terms.of = m.terms.of;
		op->terms.count = m.terms.count;
	}
	if (terms_semaphore(&m.terms) && !op_extend(op)->blind && !permits_none(op->terms.set)) {
		/* What other attempts have left behind is not sent. */
		m.terms.set = permits_and(op->terms.set, permits_all(m.terms.of));
	}
	/* The master is told the lease, and not what is left of it here. */
	m.left_us = 0;
	m.lease_us = (uint64_t)(clock_saturating_add(op->lease, record_delay(r)) / SPAN_US);
	m.terms.binding = op->terms.binding > m.terms.binding ? op->terms.binding : m.terms.binding;
	const bool behind = op->votes[index].state == VOTE_BEHIND;
	op_ask(core, op, index, &m);
	if (op->votes[index].state == VOTE_ASKED) {
		op->votes[index].state = behind ? VOTE_BEHIND : VOTE_LEARNING;
		op->votes[index].repaired = m.token;
		op->votes[index].repaired_binding = m.terms.binding;
	}
}

/* Tells whether the master accepted the extension, as a whole or for fewer permit numbers than are
 * meant. */
static bool has_record(const struct vote *v) {
	return ((EXTEND_ACCEPTED >> v->state) & 1) || !permits_none(v->set);
}

bool extend_any_has(const struct core *core, const struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (has_record(&op->votes[i])) {
			return true;
		}
	}
	return false;
}

static bool is_behind(const struct op *op, const struct vote *v) {
	return v->token < op_extend(op)->best_token || v->binding < op->terms.binding;
}

/* A repeat of the acquire may have brought a token to fewer than q masters, and masters may have
 * missed that the holder has moved to another connection. Neither counts before the masters that
 * are behind have been sent the record with it (section 2, Extend). */
void extend_raise_behind(struct core *core, struct op *op) {
	struct extend_state *extend = op_extend(op);
	for (uint32_t i = 0; i < core->masters; i++) {
		struct vote *v = &op->votes[i];
		if (((EXTEND_ACCEPTED >> v->state) & 1) && is_behind(op, v)) {
			core->counts[v->token < extend->best_token ? COUNT_extend_behind
				: COUNT_extend_behind_binding]++;
			v->state = v->state == VOTE_HAD ? VOTE_BEHIND : VOTE_NEED;
		}
	}
	if (extend->record && extend->record->token < extend->best_token) {
		record_free(core, extend->record);
		extend->record = NULL;
		extend->fetch_tried = 0;
	}
}

static bool wants_record(const struct op *op, const struct vote *v) {
	return v->state == VOTE_NEED || (v->state == VOTE_BEHIND &&
		(v->repaired < op_extend(op)->best_token ||
			v->repaired_binding < op->terms.binding));
}

/* Tells whether the round fails, whatever is answered from now on. */
static bool is_hopeless(const struct core *core, const struct op *op) {
	return !terms_semaphore(&op->terms) &&
		op_votes(core, op, VOTE_BIT(VOTE_HELD) | VOTE_BIT(VOTE_REFUSED)) >
			core->masters - core->quorum;
}

/* Sends the record to the masters that want it: from this node's table, or from a master that has
 * it. A master that got it although the lock is lost would keep it for nobody. */
void extend_send_record(struct core *core, struct op *op) {
	struct extend_state *extend = op_extend(op);
	if (op_votes(core, op, VOTE_BIT(VOTE_NEED) | VOTE_BIT(VOTE_BEHIND)) == 0 ||
		is_hopeless(core, op)) {
		return;
	}
	struct key *key = table_find(core, op->key);
	const struct record *r = key ? key_record(key, op->lock_id) : NULL;
	r = r && r->token >= extend->best_token ? r : extend->record;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (r && wants_record(op, &op->votes[i])) {
			learn(core, op, i, r);
		} else if (!r && extend->fetch_from < 0 && has_record(&op->votes[i]) &&
			op->votes[i].token >= extend->best_token &&
			!(extend->fetch_tried >> i & 1) && peer_reachable(core, i)) {
			struct message m = op_message(op, MESSAGE_FETCH);
			extend->fetch_from = (int)i;
			extend->fetch_tried |= 1u << i;
			out_send(core, i, &m);
		}
	}
}

/* If a master could not give the record, another one that accepted is asked next. */
void extend_fetched(struct core *core, struct op *op, const struct message *m) {
	struct extend_state *extend = op_extend(op);
	extend->fetch_from = -1;
	if (m->status == STATUS_OK && extend->record == NULL) {
		struct message copy = *m;
		copy.lock_id = op->lock_id;
		extend->record = record_new(core, &copy);
	}
}

/* The link to the master that was asked for the record is lost. */
void extend_peer_lost(struct core *core, struct op *op, uint32_t peer) {
	struct extend_state *extend = op_extend(op);
	if (extend->fetch_from == (int)peer) {
		extend->fetch_from = -1;
		extend_send_record(core, op);
	}
}
