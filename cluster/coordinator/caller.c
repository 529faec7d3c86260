/* caller.c: who asked for an operation: connections, their open requests, and the replies they
 * get. */
#include "operation.h"
#include "coordinator.h"

/* So many requests may share an operation, because all of them are answered at once. */
#define CALLERS_MAX 32

static struct client *client_find(struct core *core, uint64_t id) {
	for (struct map_node *n = map_first(&core->coordinator.clients, op_hash_number(id)); n;
		n = map_next(n)) {
		struct client *c = CONTAINER_OF(n, struct client, node);
		if (c->id == id) {
			return c;
		}
	}
	return NULL;
}

static void client_settle(struct core *core, struct client *c) {
	if (list_empty(&c->callers)) {
		CHECK(list_empty(&c->lists));
		if (list_linked(&c->leaving)) {
			list_remove(&c->leaving);
		} else {
			map_remove(&core->coordinator.clients, &c->node);
		}
		alloc_free(&core->alloc, c, sizeof *c);
	}
}

/* The first caller needs no memory of its own, because most operations have only one. */
static struct caller *caller_new(struct core *core, struct op *op) {
	struct caller *c = op->first.op ? alloc_new(&core->alloc, sizeof *c) : &op->first;
	if (c) {
		*c = (struct caller){ .op = op, .arrived = core->now };
		list_append(&op->callers, &c->link);
	}
	return c;
}

struct caller *op_join(struct core *core, struct op *op, const struct core_request *r) {
	struct client *client = client_find(core, r->client);
	if (client == NULL) {
		client = alloc_new(&core->alloc, sizeof *client);
		if (client == NULL) {
			return NULL;
		}
		client->id = r->client;
		list_init(&client->callers);
		list_init(&client->lists);
		map_insert(&core->coordinator.clients, &client->node, op_hash_number(r->client));
	}
	struct caller *c = caller_new(core, op);
	if (c == NULL) {
		client_settle(core, client);
		return NULL;
	}
	c->id = r->id;
	c->client = client;
	c->admin = r->admin;
	list_append(&client->callers, &c->by_client);
	c->waits = (op->kind == CORE_ACQUIRE || op->kind == CORE_ACQUIRE_ALL) && op->wait > 0;
	client->waiters += c->waits;
	out_caller_added(core);
	return c;
}

struct caller *op_join_inside(struct core *core, struct op *op, struct op *group, uint32_t member) {
	struct caller *c = caller_new(core, op);
	if (c) {
		c->group = group;
		c->member = member;
	}
	return c;
}

/* Returns the connection that asked last, or the request for several keys: it is the one that a
 * granted lease is about. 0: nobody asks any more. */
uint64_t op_asker(const struct op *op) {
	const struct caller *last = list_empty(&op->callers)
		? NULL : CONTAINER_OF(op->callers.prev, struct caller, link);
	return op->part_of ? op->part_of : last && last->client ? last->client->id : 0;
}

void op_leave(struct core *core, struct caller *c) {
	struct client *client = c->client;
	if (client) {
		if (core->operations[c->op->kind]->leave) {
			core->operations[c->op->kind]->leave(c);
		}
		list_remove(&c->by_client);
		client->waiters -= c->waits;
		out_caller_removed(core);
		client_settle(core, client);
	}
	list_remove(&c->link);
	if (c == &c->op->first) {
		c->op = NULL;
	} else {
		alloc_free(&core->alloc, c, sizeof *c);
	}
}

bool op_crowded(const struct op *op) {
	uint32_t count = 0;
	for (const struct list *n = list_first(&op->callers); n && count < CALLERS_MAX;
		n = list_after(&op->callers, n)) {
		count++;
	}
	return count == CALLERS_MAX;
}

uint32_t op_client_waiters(struct core *core, uint64_t client) {
	const struct client *c = client_find(core, client);
	return c ? c->waiters : 0;
}

/* ---- answers to callers ---- */

static bool has_left(const struct caller *c) {
	return c->client && list_linked(&c->client->leaving);
}

/* Returns a place for an answer that nobody reads. */
static struct core_reply *unread(struct core *core) {
	memset(&core->coordinator.nobody, 0, sizeof core->coordinator.nobody);
	return &core->coordinator.nobody;
}

/* Returns why this node takes no part, as a sentence that may be empty. */
static struct slice absence(const struct core *core) {
	const char *why = engine_absence(core);
	return why ? slice_str(why) : slice_of(NULL, 0);
}

/* Tells whether the wait that is over was ended by op_end_wait. */
static bool wait_cut(const struct op *op) {
	return op->kind == CORE_ACQUIRE ? op_acquire(op)->wait_cut
		: op->kind == CORE_ACQUIRE_ALL && op_group(op)->wait_cut;
}

struct core_reply *op_reply_part(struct core *core, struct caller *c, int error) {
	struct op *op = c->op;
	turn_pieces(core)->timers -= turn_pieces(core)->timers > 0;
	struct core_reply *r = c->group
		? core->operations[c->group->kind]->part_reply(core, c->group, c->member)
		: !list_empty(&core->coordinator.leaving) && has_left(c) ? unread(core)
		: out_reply(core);
	r->id = c->id;
	r->client = c->client ? c->client->id : 0;
	r->op = op->kind;
	r->error = error;
	r->lock_id = op->lock_id;
	r->quorum = core->quorum;
	if (core->coordinator.slow_after) {
		r->times = slow_times(core, op, c->arrived);
	}
	r->recovering = core->state == CORE_RECOVERING;
	r->replica = core->state == CORE_FOLLOWING;
	r->age = r->replica ? follow_age(core, core->now) : 0;
	r->wait_cut = error == PAWL_ETIMEOUT && wait_cut(op);
	if (error == PAWL_ENOQUORUM) {
		r->silent = op_silent(core, op);
		r->not_voting = op_not_voting(core, op);
	} else if (error == PAWL_ERECOVERING) {
		r->why = absence(core);
	}
	return r;
}

struct core_reply *op_reply(struct core *core, struct caller *c, int error) {
	struct core_reply *r = op_reply_part(core, c, error);
	op_leave(core, c);
	return r;
}

void op_reply_all(struct core *core, struct op *op, int error) {
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		op_reply(core, CONTAINER_OF(n, struct caller, link), error);
	}
}

/* ---- connections that are gone ---- */

/* Gives up an operation that nobody asks for any more. True: it was freed. */
static bool forget(struct core *core, struct op *op) {
	if (op->state == OP_IN_LINE || op->state == OP_WEIGHING || op->state == OP_SHOWING) {
		op_free(core, op);
		return true;
	}
	return core->operations[op->kind]->forget && core->operations[op->kind]->forget(core, op);
}

void op_leaving_go_on(struct core *core) {
	struct list *n;
	while (turn_pieces(core)->leaving > 0 &&
		(n = list_first(&core->coordinator.leaving)) != NULL) {
		struct client *client = CONTAINER_OF(n, struct client, leaving);
		struct caller *c = CONTAINER_OF(list_first(&client->callers), struct caller,
			by_client);
		struct op *op = c->op;
		turn_pieces(core)->leaving--;
		/* The client is freed with the last of its callers. */
		op_leave(core, c);
		if (list_empty(&op->callers)) {
			(void)forget(core, op);
		}
	}
	pending_left(core, PENDING_LEAVING, !list_empty(&core->coordinator.leaving));
}

/* Moves a caller to the front of those that leave. */
static void leave_first(struct core *core, struct caller *c) {
	list_remove(&c->by_client);
	list_prepend(&c->client->callers, &c->by_client);
	list_remove(&c->client->leaving);
	list_prepend(&core->coordinator.leaving, &c->client->leaving);
	pending_add(core, PENDING_LEAVING);
}

/* To give up one acquire may bring the next one its turn in the same step, and that one may be of
 * the same connection. So this, too, is done in pieces. */
bool op_leaves_later(struct core *core, struct op *op) {
	struct list *n;
	if (op->kind != CORE_ACQUIRE || op->state == OP_COMMITTING) {
		return false;
	}
	for (n = list_first(&op->callers); n; n = list_after(&op->callers, n)) {
		if (!has_left(CONTAINER_OF(n, struct caller, link))) {
			return false;
		}
	}
	if (turn_pieces(core)->leaving > 0) {
		turn_pieces(core)->leaving--;
		return false;
	}
	COUNT(core, leaves_later);
	op->missed = true;
	for (n = list_first(&op->callers); n; n = list_after(&op->callers, n)) {
		leave_first(core, CONTAINER_OF(n, struct caller, link));
	}
	return true;
}

bool op_left(struct core *core, struct op *op) {
	bool any = false;
	for (struct list *n = list_empty(&core->coordinator.leaving) ? NULL
			: list_first(&op->callers), *next;
		n; n = next) {
		struct caller *c = CONTAINER_OF(n, struct caller, link);
		next = list_after(&op->callers, n);
		if (has_left(c)) {
			op_leave(core, c);
			any = true;
		}
	}
	return any && list_empty(&op->callers) && forget(core, op);
}

/* Gives up in pieces what the client waited for, because there may be tens of thousands of
 * requests. An operation that an event arrives for meanwhile is given up at once (op_left). */
void op_client_gone(struct core *core, uint64_t id) {
	struct client *client = client_find(core, id);
	if (client) {
		map_remove(&core->coordinator.clients, &client->node);
		list_append(&core->coordinator.leaving, &client->leaving);
		op_leaving_go_on(core);
	}
}

/* ---- a wait that is ended ---- */

/* Returns the attempt that a request waits with now: of a request for several keys, that for the
 * key whose turn it is. NULL: it waits for nobody. */
static struct op *waiting_attempt(struct op *op) {
	if (op->kind == CORE_ACQUIRE_ALL) {
		const struct group *group = op_group(op);
		op = group->state == GROUP_ACQUIRING && group->at < group->count
			? group->members[group->at].child : NULL;
	}
	return op && op->kind == CORE_ACQUIRE && op->wait > 0 ? op : NULL;
}

void op_end_wait(struct core *core, uint64_t client, uint64_t request_id) {
	const struct client *c = client_find(core, client);
	for (const struct list *n = c ? list_first(&c->callers) : NULL; n;
		n = list_after(&c->callers, n)) {
		const struct caller *caller = CONTAINER_OF(n, struct caller, by_client);
		struct op *op = caller->id == request_id ? waiting_attempt(caller->op) : NULL;
		/* A commit that is under way goes on, and decides whether it gets the lock. */
		if (op) {
			op->until = core->now;
			op_acquire(op)->wait_cut = true;
			timer_at(core, &op->timer, TIMER_OP, core->now);
		}
	}
}
