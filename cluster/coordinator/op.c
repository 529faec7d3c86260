/* op.c: what all operations of a coordinator have in common: how they are made and freed, events
 * that concern them, and the time after the answer. An answer counts once per master, only for the
 * round under way, and only until request_timeout (section 1). */
#include "operation.h"
#include "coordinator.h"

/* At most this many freed operations are kept for the next requests. */
#define POOL_MAX 1024
/* A wait this long is as good as one without end. */
#define WAIT_MAX ((span_ns)366 * 86400 * SPAN_S)

/* ---- birth and end of an operation ---- */

static uint8_t *copy(uint8_t *at, struct slice from, struct slice *to) {
	if (from.size) {
		*to = slice_of(at, from.size);
	}
	return slice_put(at, from);
}

static bool copy_bytes(struct core *core, struct op *op, const struct core_request *r) {
	struct slice expected = r->op == CORE_LIST ? r->after : r->expected;
	op->block_size = r->key.size + r->owner.size + r->identity.size + r->value.size +
		expected.size + r->label.size + r->to.size;
	op->block = op->block_size <= sizeof op->near ? op->near
		: alloc_resize(&core->alloc, NULL, 0, op->block_size);
	if (op->block == NULL) {
		return false;
	}
	uint8_t *at = copy(op->block, r->key, &op->key);
	at = copy(at, r->owner, &op->owner);
	at = copy(at, r->identity, &op->identity);
	at = copy(at, r->value, &op->value);
	at = copy(at, expected, &op->expected);
	at = copy(at, r->label, &op->label);
	copy(at, r->to, &op->to);
	op->key_hash = r->key_hash ? r->key_hash : table_hash(core, op->key);
	return true;
}

static void free_bytes(struct core *core, const struct op *op) {
	if (op->block != op->near) {
		alloc_free(&core->alloc, op->block, op->block_size);
	}
}

static void drop_unborn(struct core *core, struct op *op) {
	if (core->operations[op->kind]->release) {
		core->operations[op->kind]->release(core, op);
	}
	free_bytes(core, op);
	alloc_free(&core->alloc, op, sizeof *op);
}

/* Makes an operation that nobody asks for yet. NULL: no memory. */
static struct op *make(struct core *core, const struct core_request *r) {
	const struct operation *row = core->operations[r->op];
	struct list *pooled = list_first(&core->coordinator.op_pool);
	struct op *op = pooled ? CONTAINER_OF(pooled, struct op, link)
		: alloc_new(&core->alloc, sizeof *op);
	if (op == NULL) {
		return NULL;
	}
	if (pooled) {
		list_remove(pooled);
		core->coordinator.pool_count--;
		memset(op, 0,
			offsetof(struct op, votes) + core->masters_most * sizeof *op->votes);
	}
	list_init(&op->callers);
	op->kind = r->op;
	op->id = core->coordinator.op_next++ & (((uint64_t)1 << 48) - 1);
	op->round = op->id << 16;
	op->lock_id = r->lock_id;
	op->lease = r->lease;
	op->wait = r->wait < WAIT_MAX ? r->wait : WAIT_MAX;
	op->arrived = op->sent = core->now;
	op->terms = r->terms;
	op->terms.binding = r->op == CORE_ACQUIRE || r->op == CORE_ACQUIRE_ALL
		? r->terms.binding : r->binding;
	if (!copy_bytes(core, op, r) || (row->make && !row->make(core, op, r))) {
		drop_unborn(core, op);
		return NULL;
	}
	return op;
}

static void enter(struct core *core, struct op *op) {
	list_append(&core->coordinator.ops, &op->link);
	core->coordinator.op_count++;
	map_insert(&core->coordinator.ops_by_id, &op->by_id, op_hash_number(op->id));
	if (core->operations[op->kind]->by_lock) {
		map_insert(&core->coordinator.ops_by_lock, &op->by_lock,
			op_hash_lock(core, op->key, op->lock_id));
	}
}

struct op *op_new(struct core *core, const struct core_request *r) {
	struct op *op = make(core, r);
	if (op && op_join(core, op, r) == NULL) {
		drop_unborn(core, op);
		return NULL;
	}
	if (op) {
		enter(core, op);
	}
	return op;
}

struct op *op_new_inside(struct core *core, const struct core_request *r, struct op *group,
	uint32_t member) {
	struct op *op = make(core, r);
	if (op && op_join_inside(core, op, group, member) == NULL) {
		drop_unborn(core, op);
		return NULL;
	}
	if (op) {
		op->part_of = op_group(group)->members[member].name;
		enter(core, op);
	}
	return op;
}

struct op *op_new_alone(struct core *core, const struct core_request *r) {
	struct op *op = make(core, r);
	if (op) {
		enter(core, op);
	}
	return op;
}

void op_free(struct core *core, struct op *op) {
	const struct operation *row = core->operations[op->kind];
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		op_leave(core, CONTAINER_OF(n, struct caller, link));
	}
	timer_stop(core, &op->timer);
	if (core->coordinator.ops_next == &op->link) {
		core->coordinator.ops_next = op->link.next;
	}
	if (list_linked(&op->waiting)) {
		list_remove(&op->waiting);
		core->coordinator.waiting_count -= op->kind == CORE_ACQUIRE;
	}
	list_remove(&op->link);
	if (op->state == OP_CATCHING_UP) {
		core->coordinator.catch_up_count--;
	} else {
		core->coordinator.op_count--;
	}
	map_remove(&core->coordinator.ops_by_id, &op->by_id);
	if (row->by_lock) {
		map_remove(&core->coordinator.ops_by_lock, &op->by_lock);
	}
	if (row->release) {
		row->release(core, op);
	}
	free_bytes(core, op);
	if (core->coordinator.pool_count < POOL_MAX) {
		list_append(&core->coordinator.op_pool, &op->link);
		core->coordinator.pool_count++;
	} else {
		alloc_free(&core->alloc, op, sizeof *op);
	}
}

void op_free_all(struct core *core) {
	struct list *n;
	while ((n = list_first(&core->coordinator.ops)) != NULL ||
		(n = list_first(&core->coordinator.catching_up)) != NULL) {
		op_free(core, CONTAINER_OF(n, struct op, link));
	}
	while ((n = list_first(&core->coordinator.op_pool)) != NULL) {
		list_remove(n);
		alloc_free(&core->alloc, CONTAINER_OF(n, struct op, link), sizeof(struct op));
	}
}

struct op *op_find(struct core *core, uint64_t round) {
	uint64_t id = round >> 16;
	for (struct map_node *n = map_first(&core->coordinator.ops_by_id, op_hash_number(id)); n;
		n = map_next(n)) {
		struct op *op = CONTAINER_OF(n, struct op, by_id);
		if (op->id == id) {
			return op;
		}
	}
	return NULL;
}

/* ---- after the answer ---- */

/* Keeps an operation that has been answered, for repairs and for releases that are sent again. The
 * list of these is bounded, loses its oldest, and never makes an operation busy. */
void op_enter_catching_up(struct core *core, struct op *op) {
	CHECK(list_empty(&op->callers));
	op->state = OP_CATCHING_UP;
	if (core->coordinator.ops_next == &op->link) {
		core->coordinator.ops_next = op->link.next;
	}
	list_remove(&op->link);
	list_append(&core->coordinator.catching_up, &op->link);
	core->coordinator.op_count--;
	core->coordinator.catch_up_count++;
	timer_by(core, &op->timer, TIMER_OP, op->until);
	if (core->coordinator.catch_up_count > core->limits.catching_up) {
		COUNT(core, catching_up_lost);
		catch_up_end(core,
			CONTAINER_OF(list_first(&core->coordinator.catching_up), struct op, link));
	}
}

/* Ends an operation that was answered and has nothing to send again. It waits for the last masters'
 * answers as long as they would have counted. */
void op_finish(struct core *core, struct op *op) {
	/* What it sent from now on could arrive behind the message that gives the lock back
	 * (section 11). */
	if (op->part_of) {
		op_free(core, op);
		return;
	}
	op->until = instant_add(op->sent, core->config.request_timeout);
	op_enter_catching_up(core, op);
	catch_up_settle(core, op);
}

/* ---- events for operations ---- */

static void evaluate(struct core *core, struct op *op, bool over) {
	if (core->operations[op->kind]->evaluate) {
		core->operations[op->kind]->evaluate(core, op, over);
	}
}

/* Returns the first operation under way; op_following returns the next. An operation may end others
 * (a break ends the attempts of its lock_id), so an operation that leaves the list moves the cursor
 * on. */
struct op *op_first(struct core *core) {
	core->coordinator.ops_next = core->coordinator.ops.next;
	return op_following(core);
}

struct op *op_following(struct core *core) {
	struct list *n = core->coordinator.ops_next;
	if (n == &core->coordinator.ops) {
		core->coordinator.ops_next = NULL;
		return NULL;
	}
	core->coordinator.ops_next = n->next;
	return CONTAINER_OF(n, struct op, link);
}

void op_peer_lost(struct core *core, uint32_t peer, bool closed) {
	if (peer >= core->masters) {
		return;
	}
	for (struct list *n = list_first(&core->coordinator.catching_up); n;
		n = list_after(&core->coordinator.catching_up, n)) {
		struct op *op = CONTAINER_OF(n, struct op, link);
		const struct operation *row = core->operations[op->kind];
		op->votes[peer].state = vote_open(&op->votes[peer])
			? VOTE_GONE : op->votes[peer].state;
		if (row->link_lost) {
			(void)row->link_lost(core, op, peer, closed);
		}
	}
	for (struct op *op = op_first(core); op; op = op_following(core)) {
		const struct operation *row = core->operations[op->kind];
		struct vote *v = &op->votes[peer];
		if (row->link_lost && !row->link_lost(core, op, peer, closed)) {
			continue;
		}
		bool promised = v->state == VOTE_OK &&
			(op->state == OP_ASKING || op->state == OP_TURN);
		if (vote_open(v) || v->state == VOTE_PARKED || promised) {
			/* Promises and parked requests end with the link. */
			v->state = VOTE_GONE;
			evaluate(core, op, false);
		}
	}
}

/* A link is up again, or a master votes, or no longer votes. */
void op_peer_changed(struct core *core, uint32_t peer) {
	for (struct list *n = list_first(&core->coordinator.catching_up), *next; n; n = next) {
		next = list_after(&core->coordinator.catching_up, n);
		catch_up_peer_changed(core, CONTAINER_OF(n, struct op, link), peer);
	}
	for (struct op *op = peer < core->masters ? op_first(core) : NULL; op;
		op = op_following(core)) {
		if (core->operations[op->kind]->link_changed) {
			core->operations[op->kind]->link_changed(core, op, peer);
		}
	}
}

void op_timer(struct core *core, struct op *op) {
	if (op->state != OP_CATCHING_UP && op_left(core, op)) {
		return;
	}
	if (op->state == OP_CATCHING_UP) {
		/* The timer of a round may still be armed. */
		if (instant_expired(core->now, op->until)) {
			catch_up_end(core, op);
		} else {
			timer_at(core, &op->timer, TIMER_OP, op->until);
		}
	} else if (op->state == OP_SUSPENDED) {
		restart_timer(core, op);
	} else if (core->operations[op->kind]->timer) {
		core->operations[op->kind]->timer(core, op);
	} else {
		op_round_timer(core, op);
	}
}

void op_round_timer(struct core *core, struct op *op) {
	if (op_late(core, op)) {
		evaluate(core, op, true);
	} else {
		timer_at(core, &op->timer, TIMER_OP,
			instant_add(op->sent, core->config.request_timeout));
	}
}

void op_answer(struct core *core, uint32_t from, const struct message *m) {
	peer_answered(core, from, m->round);
	struct op *op = from < core->masters || m->kind == MESSAGE_ASK_ANSWER
		? op_find(core, m->round) : NULL;
	/* Replicas answer nothing but an ask. */
	if (op == NULL || (m->kind == MESSAGE_ASK_ANSWER) != (op->kind == CORE_ASK)) {
		COUNT(core, answer_late);
		return;
	}
	/* An answer counts only for the round under way. What the home says of its queue is about
	 * the entry there. */
	const bool of_queue = m->kind == MESSAGE_TURN || m->kind == MESSAGE_ENQUEUE_ANSWER;
	const uint64_t round = !of_queue ? op->round
		: op->kind == CORE_ACQUIRE ? op_acquire(op)->queue_round : 0;
	if (m->round != round) {
		COUNT(core, answer_stale_round);
		return;
	}
	if (op->state == OP_CATCHING_UP) {
		catch_up_answer(core, op, from, m);
		return;
	}
	if (!list_empty(&core->coordinator.leaving) &&
		(op_leaves_later(core, op) || op_left(core, op))) {
		return;
	}
	if (core->coordinator.slow_after) {
		slow_answer(core, op, from);
	}
	if (core->operations[op->kind]->answer) {
		core->operations[op->kind]->answer(core, op, from, m);
	}
}
