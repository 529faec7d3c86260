/* group.c: several keys at once, all or none (section 11). The keys are acquired one after another
 * in the order of their bytes, by ordinary acquires whose answers come here.
 *
 *   ACQUIRING --has all--> ALIGNING --one deadline for all--> answered
 *       \                     |
 *        \--one fails, the wait is over, nobody asks--> ROLLING_BACK --rolled back--> the error
 */
#include "operation.h"
#include "acquire.h"

/* While the group waits for later keys, this fraction of the lease passes before the earlier ones
 * are extended: a third. */
#define ACQUIRING_AGE 3
/* At the end it is a tenth. */
#define ALIGNING_AGE 10

static struct core_request child_request(const struct op *op, const struct member *m,
	enum core_op kind) {
	return (struct core_request){ .op = kind, .key = m->key, .lock_id = m->lock_id,
		.identity = op->identity, .lease = op->lease,
		.binding = kind == CORE_EXTEND ? op->terms.binding : 0 };
}

/* Begins an operation for one member. False: no memory. */
static bool begin_child(struct core *core, struct op *op, struct member *m,
	const struct core_request *r) {
	struct op *child = op_new_inside(core, r, op, (uint32_t)(m - op_group(op)->members));
	if (child == NULL) {
		COUNT(core, no_memory);
		return false;
	}
	m->child = child;
	m->began = core->now;
	m->asked_binding = op->terms.binding;
	/* This may answer the child at once. */
	restart_begin(core, child);
	return true;
}

/* ---- the answers of its children ---- */

static void ready(struct core *core, struct group *group) {
	if (!list_linked(&group->ready)) {
		list_append(&core->coordinator.groups, &group->ready);
		pending_add(core, PENDING_GROUPS);
	}
}

struct core_reply *group_reply(struct core *core, struct op *op, uint32_t member) {
	struct member *m = &op_group(op)->members[member];
	m->child = NULL;
	m->answered = true;
	memset(&m->reply, 0, sizeof m->reply);
	ready(core, op_group(op));
	return &m->reply;
}

/* Gives the child's member a new name, because the commit under the present one is rolled back and
 * the next commit must not be. */
uint64_t group_rename(struct core *core, const struct op *child) {
	const uint64_t name = name_next(core, child->part_of);
	for (struct list *n = list_first(&child->callers); n; n = list_after(&child->callers, n)) {
		const struct caller *c = CONTAINER_OF(n, struct caller, link);
		if (c->group) {
			op_group(c->group)->members[c->member].name = name;
		}
	}
	return name;
}

/* The group gets all of its keys or none: from now on it rolls back what it has. It waits for a
 * commit that is under way, because the outcome decides whether there is anything to roll back. */
static void fail(struct core *core, struct op *op, int error, uint32_t member) {
	struct group *group = op_group(op);
	if (group->state == GROUP_ROLLING_BACK) {
		return;
	}
	group->state = GROUP_ROLLING_BACK;
	group->error = error;
	group->failed = member;
	timer_stop(core, &op->timer);
	struct op *child = group->at < group->count ? group->members[group->at].child : NULL;
	if (child && child->kind == CORE_ACQUIRE && child->state != OP_COMMITTING) {
		/* The child may have sent a commit under an earlier epoch. */
		group->members[group->at].committed = op_acquire(child)->committed;
		group->members[group->at].child = NULL;
		attempt_give_up(core, child);
		op_free(core, child);
	}
}

static void take_acquire(struct core *core, struct op *op, struct member *m) {
	struct group *group = op_group(op);
	const struct core_reply *r = &m->reply;
	m->token = r->token;
	m->committed = r->token > 0;
	if (r->times) {
		group->queued += r->times->queued;
		group->late |= r->times->late;
	}
	if (r->error != PAWL_OK) {
		if (group->state == GROUP_ACQUIRING) {
			group_keep_holder(group, r);
			group->holder_end = instant_add(core->now, r->entry.remaining);
		}
		group->wait_cut = group->state == GROUP_ACQUIRING && r->wait_cut;
		fail(core, op, r->error, group->at);
		return;
	}
	m->held = true;
	m->terms = r->terms;
	m->acks = r->acks;
	m->binding = m->asked_binding;
	m->epoch = core->config.epoch;
	m->valid = r->valid;
	m->since = m->began;
	group->at++;
}

static void take_extension(struct core *core, struct op *op, struct member *m) {
	struct group *group = op_group(op);
	const struct core_reply *r = &m->reply;
	if (r->error == PAWL_OK) {
		COUNT(core, group_extended);
		/* A repeat through another node may have been granted a higher token. */
		m->token = r->token > m->token ? r->token : m->token;
		m->acks = r->acks;
		m->binding = m->asked_binding;
		m->epoch = core->config.epoch;
		m->valid = r->valid;
		m->since = m->began;
		m->aligned = group->state == GROUP_ALIGNING;
	} else if (r->error == PAWL_ENOQUORUM || r->error == PAWL_EBUSY) {
		/* It is extended again, as long as the deadline has not passed. */
		m->again = instant_add(core->now, core->config.request_timeout / 4);
	} else {
		fail(core, op, PAWL_ELOST, (uint32_t)(m - group->members));
	}
}

static void take_answers(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	for (uint32_t i = 0; i < group->count; i++) {
		struct member *m = &group->members[i];
		if (!m->answered) {
			continue;
		}
		m->answered = false;
		if (m->reply.op == CORE_ACQUIRE) {
			take_acquire(core, op, m);
		} else if (m->reply.op == CORE_EXTEND) {
			take_extension(core, op, m);
		} else {
			/* The release goes on by itself for masters that it has not reached. */
			m->rolled_back = true;
		}
	}
}

/* ---- up ---- */

static void acquire_next(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	struct member *m = &group->members[group->at];
	struct core_request r = child_request(op, m, CORE_ACQUIRE);
	r.owner = op->owner;
	r.value = op->value;
	r.label = op->label;
	r.terms = op->terms;
	r.terms.of = m->of;
	r.terms.count = m->count;
	r.wait = op->wait > 0 ? instant_left_short(core->now, op->until) : 0;
	if (op->wait > 0 && r.wait <= 0) {
		fail(core, op, PAWL_ETIMEOUT, group->at);
	} else if (op_find_lock(core, CORE_ACQUIRE, m->key, m->lock_id)) {
		/* Somebody acquires this lock_id alone, and it would not be clear who has it in the
		 * end. */
		fail(core, op, PAWL_EBADREQUEST, group->at);
	} else if (core->coordinator.op_count >= core->limits.rounds ||
		!begin_child(core, op, m, &r)) {
		fail(core, op, PAWL_EBUSY, group->at);
	}
}

static struct instant deadline_of(const struct member *m) {
	return instant_add(m->since, m->valid);
}

/* Returns when the newest of the callers asked. */
static struct instant asked_at(const struct op *op) {
	return list_empty(&op->callers)
		? (struct instant){ 0, 0 }
		: CONTAINER_OF(op->callers.prev, struct caller, link)->arrived;
}

/* A repeat has come meanwhile, and may have named a later connection: what the group had before the
 * repeat arrived may have ended since (section 5, Repeats). Or other masters vote now, and these
 * must confirm what is answered. */
static bool stale(const struct core *core, const struct op *op, const struct member *m) {
	return m->since.boot < asked_at(op).boot || m->binding < op->terms.binding ||
		m->epoch != core->config.epoch;
}

/* Returns when a member is to be extended. INSTANT_FOREVER: it is not extended any more. */
static struct instant due_of(const struct core *core, const struct op *op, const struct member *m) {
	bool aligning = op_group(op)->state == GROUP_ALIGNING;
	if (stale(core, op, m)) {
		return m->again;
	}
	if (aligning && m->aligned) {
		return INSTANT_FOREVER;
	}
	return instant_later(m->again,
		instant_add(m->since, op->lease / (aligning ? ALIGNING_AGE : ACQUIRING_AGE)));
}

/* Keeps the members held that the group has. */
static void keep_up(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	for (uint32_t i = 0; i < group->count && group->state != GROUP_ROLLING_BACK; i++) {
		struct member *m = &group->members[i];
		if (!m->held) {
			continue;
		}
		if (instant_distrusted(core->now, deadline_of(m))) {
			/* The member could not be kept. */
			fail(core, op, PAWL_ENOQUORUM, i);
		} else if (m->child == NULL && instant_expired(core->now, due_of(core, op, m))) {
			struct core_request r = child_request(op, m, CORE_EXTEND);
			if (!begin_child(core, op, m, &r)) {
				m->again = instant_add(core->now, core->config.request_timeout / 4);
			}
		}
	}
}

static void arm(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	struct instant at = INSTANT_FOREVER;
	for (uint32_t i = 0; i < group->count; i++) {
		const struct member *m = &group->members[i];
		if (m->held) {
			struct instant due = m->child ? deadline_of(m) : due_of(core, op, m),
				end = deadline_of(m);
			due = due.boot < end.boot ? due : end;
			at = due.boot < at.boot ? due : at;
		}
	}
	if (at.boot != INSTANT_FOREVER.boot) {
		timer_at(core, &op->timer, TIMER_OP, at);
	}
}

/* ---- the answer ---- */

/* Tells whether one deadline holds for all members: nothing is under way, and every lease has begun
 * just now. */
static bool members_aligned(const struct core *core, const struct op *op) {
	const struct group *group = op_group(op);
	for (uint32_t i = 0; i < group->count; i++) {
		const struct member *m = &group->members[i];
		if (m->child || stale(core, op, m) ||
			(!m->aligned &&
				instant_expired(core->now,
					instant_add(m->since, op->lease / ALIGNING_AGE)))) {
			return false;
		}
	}
	return true;
}

/* ---- down ---- */

/* Nobody asked for the group any more, and while it gave everything back the same request came
 * again. The group begins anew, under other names. */
static void begin_again(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	COUNT(core, group_begun_again);
	for (uint32_t i = 0; i < group->count; i++) {
		const struct member was = group->members[i];
		group->members[i] = (struct member){ .key = was.key, .lock_id = was.lock_id,
			.name = name_next(core, was.name), .of = was.of, .count = was.count,
			.place = was.place };
	}
	group->state = GROUP_ACQUIRING;
	group->at = 0;
	group->error = PAWL_OK;
	group->holder_known = group->wait_cut = false;
	op->until = instant_add(
		CONTAINER_OF(list_first(&op->callers), struct caller, link)->arrived, op->wait);
	ready(core, group);
}

/* Rolls back what the group has, under its names. The same lock_ids may have been asked for again
 * through another node, and be trusted, so a master drops a record only if it rests on this request
 * alone. Extensions under way are over before that, so that none restores a record. */
static void roll_back_members(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	bool open = false;
	for (uint32_t i = 0; i < group->count; i++) {
		const struct op *child = group->members[i].child;
		open = open || (child && child->kind != CORE_RELEASE);
	}
	for (uint32_t i = 0, waits = open; i < group->count && !waits; i++) {
		struct member *m = &group->members[i];
		if (!m->committed || m->rolled_back || m->child) {
			continue;
		}
		struct core_request r = child_request(op, m, CORE_RELEASE);
		m->held = false;
		/* Without memory it is tried again soon, until the lease has ended by itself. */
		if (!begin_child(core, op, m, &r)) {
			m->rolled_back = instant_expired(core->now,
				instant_add(m->began, op->lease));
			open = open || !m->rolled_back;
			timer_at(core, &op->timer, TIMER_OP,
				instant_add(core->now, core->config.request_timeout / 4));
		}
	}
	for (uint32_t i = 0; i < group->count; i++) {
		open = open || group->members[i].child || group->members[i].answered;
	}
	if (!open && group->error == PAWL_ECANCELED && !list_empty(&op->callers)) {
		begin_again(core, op);
	} else if (!open) {
		group_answer_error(core, op);
	}
}

static void go_on(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	take_answers(core, op);
	if (group->state != GROUP_ROLLING_BACK) {
		keep_up(core, op);
	}
	if (group->state == GROUP_ACQUIRING && group->at == group->count) {
		group->state = GROUP_ALIGNING;
		keep_up(core, op);
	}
	if (group->state == GROUP_ACQUIRING && group->members[group->at].child == NULL &&
		!group->members[group->at].answered) {
		acquire_next(core, op);
	}
	if (list_linked(&group->ready)) {
		/* Something has been answered at once. The group goes on again in this step. */
		return;
	}
	if (group->state == GROUP_ROLLING_BACK) {
		roll_back_members(core, op);
	} else if (group->state == GROUP_ALIGNING && members_aligned(core, op)) {
		if (!group_answer_held(core, op)) {
			fail(core, op, PAWL_EBUSY, 0);
			ready(core, group);
		}
	} else {
		arm(core, op);
	}
}

void group_timer(struct core *core, struct op *op) {
	go_on(core, op);
}

/* Nobody asks for the group any more. */
void group_forget(struct core *core, struct op *op) {
	fail(core, op, PAWL_ECANCELED, 0);
	ready(core, op_group(op));
}

/* Rolls back what the group has, without waiting for any answer. */
void group_drain(struct core *core, struct op *op) {
	struct group *group = op_group(op);
	for (uint32_t i = 0; i < group->count; i++) {
		struct member *m = &group->members[i];
		bool committing = m->child && m->child->kind == CORE_ACQUIRE &&
			(m->child->state == OP_COMMITTING || op_acquire(m->child)->committed);
		if (m->committed || committing) {
			release_roll_back_once(core, m->key, m->lock_id, m->name);
		}
		/* Nobody waits for the child's answer any more. */
		if (m->child) {
			op_leave(core,
				CONTAINER_OF(list_first(&m->child->callers), struct caller, link));
			m->child = NULL;
		}
	}
	group->error = PAWL_ERECOVERING;
	group->failed = group->at < group->count ? group->at : 0;
	group_answer_error(core, op);
}

void group_start(struct core *core, struct op *op) {
	COUNT(core, group_begun);
	op->state = OP_LOCAL;
	op->until = instant_add(core->now, op->wait);
	ready(core, op_group(op));
}

/* Goes on with a group that has got an answer. False: there is none. */
bool group_run(struct core *core) {
	struct list *n = list_first(&core->coordinator.groups);
	if (n == NULL) {
		pending_left(core, PENDING_GROUPS, false);
		return false;
	}
	list_remove(n);
	go_on(core, CONTAINER_OF(n, struct group, ready)->op);
	return true;
}

static bool group_forgotten(struct core *core, struct op *op) {
	group_forget(core, op);
	return false;
}

const struct operation group_operation = { .by_lock = true, .begin = group_start,
	.make = group_new, .timer = group_timer,
	.forget = group_forgotten, .release = group_free, .part_reply = group_reply };
