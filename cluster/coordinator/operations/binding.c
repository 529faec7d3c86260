/* binding.c: the holder's side of a lock that ends with the node that coordinates it (section 2,
 * Release on disconnect). The masters that have the record are told. Each of them drops it when
 * this node's link to it has been closed for the grace time. So this node may trust the lock only
 * while enough of those masters are linked, and it gives the lock up before they do.
 *
 * A link that the master's own side has closed is different: that master is dead, or gave the link
 * up, and drops nothing.
 *
 * For each master the steps are: new -> told -> has it -> away (link lost) -> has it again, or gone
 * (away for longer than the grace time less the drift). A master may drop the record from the
 * moment we ask it, even if its answer is lost. It counts as keeping the record only once it has
 * answered. */
#include "binding.h"
#include "operation.h"
#include "operations.h"

/* The timer may fire so much late; a shorter grace time allows for an eighth of itself. */
#define TIMER_LATE (5 * SPAN_MS)

/* Returns the binding of the lock that is extended; NULL: it is not bound to this node. */
static struct op *bound_op(struct core *core, const struct op *extend) {
	return core->coordinator.binding_count > 0
		? op_find_lock(core, CORE_BINDING, extend->key, extend->lock_id) : NULL;
}

/* Returns when the master counts as gone. A clock here may run slower than the master's by twice
 * the drift, and the timer here may be late; the holder must know of the loss before the master
 * drops the record. */
static struct instant gone_at(const struct core *core, const struct op *op,
	const struct bound_master *m) {
	span_ns early = op->wait / 8 < TIMER_LATE ? op->wait / 8 : TIMER_LATE;
	return instant_add(m->since, span_shrink(op->wait, 2 * core->config.drift_ppm) - early);
}

/* A master that closed the link itself is dead and has forgotten everything, or has given the link
 * up. It drops nothing because of that. */
static bool may_drop(const struct bound_master *m) {
	return m->away && !m->closed_by_master;
}

static bool gone(const struct core *core, const struct op *op, const struct bound_master *m,
	struct instant at) {
	return m->dropped || (may_drop(m) && instant_distrusted(at, gone_at(core, op, m)));
}

/* Returns the permit numbers that this node has answered and that are trusted. */
static struct permits trusted(struct core *core, const struct op *op) {
	const struct granted *b = granted_find(core, op->key_hash, op->lock_id);
	return b ? granted_numbers(core, b) : (struct permits){ { 0, 0 } };
}

/* Returns until when the record lasts in this node's own table. */
static struct instant own_end(const struct core *core, const struct op *op) {
	const struct key *key = core_votes(core) ? table_peek(core, op->key) : NULL;
	const struct record *r = key ? key_record(key, op->lock_id) : NULL;
	return r ? r->end : (struct instant){ 0, 0 };
}

static struct instant lasts_until(const struct core *core, const struct op *op, uint32_t index) {
	const struct bound_master *m = &op_binding(op)->master[index];
	return op_binding(op)->numbered ? m->numbers_until
		: index == op_binding(op)->self ? own_end(core, op)
		: m->has ? m->until
		: (struct instant){ 0, 0 };
}

static uint32_t keeping(const struct core *core, const struct op *op, struct instant at) {
	uint32_t kept = 0;
	for (uint32_t i = 0; i < op_binding(op)->masters; i++) {
		kept += !gone(core, op, &op_binding(op)->master[i], at) &&
			!op_binding(op)->master[i].closed_by_master &&
			!instant_distrusted(at, lasts_until(core, op, i));
	}
	return kept;
}

/* Describes a time in which a master had no record, from its beginning to its end. */
struct lack {
	struct instant from, to;
};

static bool lacks(const struct core *core, const struct op *op, uint32_t index, struct lack *lack) {
	const struct bound_master *m = &op_binding(op)->master[index];
	if (index != op_binding(op)->self) {
		*lack = (struct lack){ m->lacks_from, m->lacks_to };
		return m->absent;
	}
	const span_ns long_since = span_from_us(lacked_us(core, op->lock_id));
	*lack = (struct lack){ instant_add(core->now, -long_since), core->now };
	return core_votes(core) && instant_expired(core->now, own_end(core, op));
}

/* Tells whether there was a moment at which fewer than q masters had the record. It is not enough
 * that n - q + 1 masters lacked it one after the other, because it may have been learned in
 * between. */
static bool lacking(const struct core *core, const struct op *op) {
	struct lack all[MASTERS_MAX];
	uint32_t count = 0, most = 0;
	for (uint32_t i = 0; i < op_binding(op)->masters; i++) {
		count += lacks(core, op, i, &all[count]);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at_once = 0;
		/* The moment in question is when the i-th master began to lack the record. */
		for (uint32_t k = 0; k < count; k++) {
			at_once += instant_expired(all[i].from, all[k].from) &&
				instant_expired(all[k].to, all[i].from);
		}
		most = at_once > most ? at_once : most;
	}
	return most > op_binding(op)->masters - op_binding(op)->quorum;
}

/* As long as no master may drop the record before its lease ends, the lock is like any other. Once
 * one may have dropped it, q masters must keep it: fewer would do against another commit, but then
 * a master that starts anew could merge the table without the record. That too many masters lack
 * the record counts only when q have answered in this epoch; without them the next epoch may have
 * granted the lock. */
static bool lost_by(const struct core *core, const struct op *op, struct instant at) {
	bool dropped = instant_distrusted(at, op_binding(op)->before);
	uint32_t answered = 0;
	for (uint32_t i = 0; i < op_binding(op)->masters; i++) {
		dropped = dropped || gone(core, op, &op_binding(op)->master[i], at);
		answered += i == op_binding(op)->self
			? core_votes(core) : op_binding(op)->master[i].heard;
	}
	return (dropped && keeping(core, op, at) < op_binding(op)->quorum) ||
		(answered >= op_binding(op)->quorum && lacking(core, op));
}

static struct instant sooner(const struct core *core, const struct op *op, struct instant end,
	struct instant t) {
	return t.boot < end.boot && t.boot >= core->now.boot && lost_by(core, op, t) ? t : end;
}

/* Returns when the lock ends if no link comes back and it is not extended. INSTANT_FOREVER: only
 * its lease ends it. */
static struct instant ends_at(const struct core *core, const struct op *op) {
	if (lost_by(core, op, core->now)) {
		return (struct instant){ 0, 0 };
	}
	struct instant end = sooner(core, op, INSTANT_FOREVER, op_binding(op)->before);
	for (uint32_t i = 0; i < op_binding(op)->masters; i++) {
		const struct bound_master *m = &op_binding(op)->master[i];
		end = may_drop(m) ? sooner(core, op, end, gone_at(core, op, m)) : end;
		end = sooner(core, op, end, lasts_until(core, op, i));
	}
	return end;
}

/* ---- the end ---- */

void binding_free(struct core *core, struct op *op) {
	if (op_binding(op)) {
		alloc_free(&core->alloc, op_binding(op), sizeof *op_binding(op));
		op_binding(op) = NULL;
		core->coordinator.binding_count--;
	}
}

/* Too few masters are left that would refuse another lock, so the lock must not be trusted any
 * more. What is left of the record ends where it is still bound to this node, so that it stands in
 * nobody's way. This node does not send the record to other masters again. */
static void lose(struct core *core, struct op *op) {
	COUNT(core, binding_lost);
	op_reply_all(core, op, PAWL_ELOST);
	binding_free(core, op);
	map_remove(&core->coordinator.ops_by_lock, &op->by_lock);
	op->kind = CORE_RELEASE;
	memset(&op->as, 0, sizeof op->as);
	op_release(op)->lost_here = true;
	release_start(core, op);
}

/* The holder no longer wants the binding. The lock lives on by its lease. */
void binding_forget(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (i != core->self && peer_reachable(core, i)) {
			struct message m = op_message(op, MESSAGE_BINDING);
			m.flags = FLAG_RELEASED;
			out_send(core, i, &m);
		}
	}
	op_free(core, op);
}

/* The lock was released through this node, or was taken from its holder, who must hear that. */
void binding_released(struct core *core, struct op *op, bool broken) {
	op_reply_all(core, op, broken ? PAWL_ELOST : PAWL_OK);
	op_free(core, op);
}

/* ---- judging ---- */

static void arm(struct core *core, struct op *op) {
	struct instant next = instant_add(core->now, core->config.request_timeout),
		end = ends_at(core, op);
	timer_at(core, &op->timer, TIMER_OP, end.boot < next.boot ? end : next);
}

/* This node counts on its own record as it does on those of other masters. */
static void count_on_own(struct core *core, struct op *op) {
	const uint32_t self = op_binding(op)->self;
	struct key *key = self < op_binding(op)->masters && core_votes(core)
		? table_find(core, op->key) : NULL;
	struct record *r = key ? key_record(key, op->lock_id) : NULL;
	if (self < op_binding(op)->masters) {
		const struct permits numbers = trusted(core, op);
		op_binding(op)->master[self].numbers_until = r && !permits_none(numbers) &&
			permits_within(numbers, record_lasting(key, r))
			? r->end : (struct instant){ 0, 0 };
	}
	if (r) {
		record_counted_on(core, key, r);
	}
}

static void evaluate(struct core *core, struct op *op) {
	count_on_own(core, op);
	if (keeping(core, op, core->now) >= op_binding(op)->quorum) {
		op_binding(op)->before = INSTANT_FOREVER;
	}
	if (lost_by(core, op, core->now)) {
		lose(core, op);
	} else {
		arm(core, op);
	}
}

/* Asks a master whether it has the record, unless its answer is known and good for a while
 * still. */
static void ask(struct core *core, struct op *op, uint32_t index) {
	struct bound_master *master = &op_binding(op)->master[index];
	struct instant soon = instant_add(core->now, 2 * core->config.request_timeout);
	bool known = master->has && master->heard && !master->away && !master->dropped &&
		!instant_distrusted(soon, master->until);
	if (index == core->self || !peer_votes(core, index) || known) {
		return;
	}
	struct message m = op_message(op, MESSAGE_BINDING);
	m.left_us = (uint64_t)(op->wait / SPAN_US);
	master->told = true;
	master->asked = master->open++ == 0 ? core->now : master->asked;
	out_send(core, index, &m);
}

static void ask_all(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < op_binding(op)->masters; i++) {
		ask(core, op, i);
	}
}

void binding_start(struct core *core, struct op *op) {
	op->state = OP_BINDING;
	op_binding(op) = alloc_new(&core->alloc, sizeof *op_binding(op));
	if (op_binding(op) == NULL) {
		COUNT(core, no_memory);
		op_reply_all(core, op, PAWL_EBUSY);
		op_free(core, op);
		return;
	}
	core->coordinator.binding_count++;
	op_binding(op)->masters = core->masters;
	op_binding(op)->quorum = core->quorum;
	op_binding(op)->self = core->self;
	op_binding(op)->before = INSTANT_FOREVER;
	const struct key *key = table_peek(core, op->key);
	const struct record *r = key ? key_record(key, op->lock_id) : NULL;
	op_binding(op)->numbered = !permits_none(trusted(core, op)) ||
		(r && terms_of_numbers(r->of));
	for (uint32_t i = 0; i < core->masters; i++) {
		op_binding(op)->master[i].id = core->peers[i].node.id;
	}
	ask_all(core, op);
	arm(core, op);
}

/* ---- events ---- */

void binding_timer(struct core *core, struct op *op) {
	ask_all(core, op);
	evaluate(core, op);
}

void binding_answer(struct core *core, uint32_t from, const struct message *m) {
	struct op *op = from < core->masters ? op_find(core, m->round) : NULL;
	if (op == NULL || op->state != OP_BINDING || m->round != op->round) {
		COUNT(core, answer_late);
		return;
	}
	struct bound_master *master = &op_binding(op)->master[from];
	master->heard = m->status == STATUS_OK || m->status == STATUS_ABSENT;
	/* After any other status the master is asked again. */
	if (m->status == STATUS_OK) {
		struct instant until = instant_add(master->asked,
			span_shrink(span_from_us(m->left_us), 2 * core->config.drift_ppm));
		if (instant_expired(op_binding(op)->shortened, master->asked)) {
			until = instant_earlier(until, master->until);
		}
		/* A master that is back may have started anew. */
		const bool anew = !master->has || master->away;
		master->until = anew ? until : instant_later(master->until, until);
		master->numbers_until = anew ? (struct instant){ 0, 0 } : master->numbers_until;
		master->has = true;
		master->away = master->closed_by_master = master->dropped = master->absent = false;
	} else if (m->status == STATUS_ABSENT) {
		master->dropped = master->dropped || master->has || master->away;
		master->absent = true;
		master->lacks_from = instant_add(core->now,
			-span_shrink(span_from_us(m->left_us), core->config.drift_ppm));
		master->lacks_to = master->asked;
	}
	master->open -= master->open > 0;
	evaluate(core, op);
}

/* The holder shortens its lease (section 2, Shorten). A master may end the record so early from the
 * moment at which it is asked, even if its answer is lost. */
void binding_shortened(struct core *core, const struct op *extend, struct instant deadline) {
	struct op *op = bound_op(core, extend);
	for (uint32_t i = 0; op && i < op_binding(op)->masters; i++) {
		struct bound_master *m = &op_binding(op)->master[i];
		m->until = instant_earlier(m->until, deadline);
		m->numbers_until = instant_earlier(m->numbers_until, deadline);
	}
	if (op) {
		op_binding(op)->shortening = extend->id;
		op_binding(op)->shortened = extend->sent;
	}
}

/* Tells whether this round was sent before the last one that shortened the lease. */
static bool sent_before_shortening(const struct op *op, const struct op *extend) {
	const struct binding *b = op_binding(op);
	return extend->sent.boot < b->shortened.boot ||
		(extend->sent.boot == b->shortened.boot && extend->id < b->shortening);
}

/* A master has accepted an extension of the lock. */
void binding_extended(struct core *core, const struct op *extend, uint32_t index) {
	struct op *op = bound_op(core, extend);
	if (op && index < op_binding(op)->masters && op_binding(op)->master[index].has) {
		struct bound_master *m = &op_binding(op)->master[index];
		const struct instant until = instant_add(extend->sent,
			span_shrink(extend->lease, core->config.drift_ppm));
		m->absent = false;
		op_binding(op)->numbered |= terms_semaphore(&extend->terms);
		if (sent_before_shortening(op, extend)) {
			return;
		}
		m->until = instant_later(m->until, until);
		if (!permits_none(extend->terms.set) && permits_within(
			permits_or(extend->terms.set, trusted(core, op)),
			extend->votes[index].set)) {
			m->numbers_until = instant_later(m->numbers_until, until);
		}
	}
}

void binding_peer_lost(struct core *core, struct op *op, uint32_t peer, bool closed) {
	struct bound_master *master = &op_binding(op)->master[peer];
	master->open = 0;
	/* If the link was lost again before the master answered, the worse of the two losses
	 * counts. */
	if (master->told && (!master->away || (master->closed_by_master && !closed))) {
		master->away = true;
		master->closed_by_master = closed;
		master->since = core->links_at;
		evaluate(core, op);
	}
}

void binding_peer_changed(struct core *core, struct op *op, uint32_t peer) {
	ask(core, op, peer);
}

/* Returns the time until which no master drops the record. The masters that were told may drop it
 * from the grace time on. This node may not even hear of that, because a master's link can end
 * together with its place in the table of peers. */
static struct instant none_drops_until(const struct core *core, const struct op *op) {
	struct instant first = ends_at(core, op);
	first = op_binding(op)->before.boot < first.boot ? op_binding(op)->before : first;
	for (uint32_t i = 0; i < op_binding(op)->masters; i++) {
		struct bound_master m = op_binding(op)->master[i];
		m.since = m.away ? m.since : core->now;
		if (m.told && !gone(core, op, &op_binding(op)->master[i], core->now) &&
			gone_at(core, op, &m).boot < first.boot) {
			first = gone_at(core, op, &m);
		}
	}
	return first;
}

static bool same_masters(const struct core *core, const struct binding *b) {
	bool same = b->masters == core->masters;
	for (uint32_t i = 0; same && i < b->masters; i++) {
		same = id128_equal(b->master[i].id, core->peers[i].node.id);
	}
	return same;
}

/* Takes other masters in place of the previous ones. The new masters are told anew, and must say in
 * the new epoch that they have the record before one of the previous masters may have dropped it;
 * otherwise a handover could lack the record. What q of the previous masters still have, every
 * handover brings. */
static void turn_to_others(struct core *core, struct op *op) {
	struct binding b = { .masters = core->masters, .quorum = core->quorum, .self = core->self,
		.before = none_drops_until(core, op), .numbered = op_binding(op)->numbered };
	for (uint32_t i = 0; i < core->masters; i++) {
		b.master[i].id = core->peers[i].node.id;
		for (uint32_t k = 0; k < op_binding(op)->masters; k++) {
			const struct bound_master *m = &op_binding(op)->master[k];
			if (id128_equal(m->id, b.master[i].id) && !gone(core, op, m, core->now)) {
				b.master[i] = *m;
				b.master[i].has = b.master[i].absent = false;
			}
		}
	}
	*op_binding(op) = b;
}

void binding_epoch(struct core *core, struct op *op) {
	if (!same_masters(core, op_binding(op))) {
		if (lost_by(core, op, core->now)) {
			lose(core, op);
			return;
		}
		turn_to_others(core, op);
	}
	/* This makes answers to the former round late. */
	op_next_round(core, op);
	for (uint32_t i = 0; i < op_binding(op)->masters; i++) {
		op_binding(op)->master[i].open = 0;
		op_binding(op)->master[i].heard = false;
	}
	ask_all(core, op);
	evaluate(core, op);
}

/* ---- looking in ---- */

struct instant core_binding_end(const struct core *core, struct slice key, struct id128 lock_id) {
	const struct op *op = op_find_lock(core, CORE_BINDING, key, lock_id);
	return op ? ends_at(core, op) : (struct instant){ 0, 0 };
}

static bool binding_link_lost(struct core *core, struct op *op, uint32_t peer, bool closed) {
	binding_peer_lost(core, op, peer, closed);
	return false;
}

static bool binding_restart(struct core *core, struct op *op) {
	binding_epoch(core, op);
	return false;
}

static bool binding_forgotten(struct core *core, struct op *op) {
	binding_forget(core, op);
	return true;
}

const struct operation binding_operation = { .by_lock = true, .needs_lock_id = true,
	.begin = binding_start, .timer = binding_timer,
	.link_lost = binding_link_lost, .link_changed = binding_peer_changed,
	.epoch = binding_restart, .forget = binding_forgotten, .lock_released = binding_released,
	.release = binding_free };
