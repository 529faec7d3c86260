/* task.c: what a command of a dialect does, as one request of the client protocol after the
 * other. */
#include "task_impl.h"

#include <stddef.h>

#include "check.h"
#include "pawl/error.h"

/* ---- making a task ---- */

span_ns task_longest(const struct dialect_node *node, span_ns slack) {
	return span_shrink(node->cluster->max_lease, node->cluster->drift_ppm) - slack;
}

/* Returns the lease behind a length: the slack, and the length, are over by every clock when it
 * ends. */
static span_ns task_covers(const struct task_runner *runner, span_ns length) {
	return span_cover(length + runner->task->slack, runner->node->cluster->drift_ppm);
}

bool task_keys_are_right(struct slice prefix, const struct slice *keys, size_t count) {
	bool right = count > 0 && count <= TASK_KEYS_MAX;
	for (size_t i = 0; right && i < count; i++) {
		right = keys[i].size > 0 && keys[i].size + prefix.size <= KEY_MAX;
	}
	return right;
}

struct task *task_new(const struct task_runner *runner, const struct task_plan *plan,
	struct slice prefix, const struct slice *keys, size_t count, struct slice value,
	struct slice fresh) {
	size_t bytes = sizeof(struct task) + value.size + fresh.size;
	CHECK(task_keys_are_right(prefix, keys, count));
	for (size_t i = 0; i < count; i++) {
		bytes += prefix.size + keys[i].size;
	}
	struct task *task = alloc_new(runner->alloc, bytes);
	if (!task) {
		return NULL;
	}
	task->plan = *plan;
	task->bytes = bytes;
	task->count = (uint32_t)count;
	buffer_init(&task->shown, runner->alloc, TASK_SHOWN_MAX);
	uint8_t *at = (uint8_t *)(task + 1);
	task->value = slice_of(at, value.size);
	at = slice_put(at, value);
	task->fresh = slice_of(at, fresh.size);
	at = slice_put(at, fresh);
	for (size_t i = 0; i < count; i++) {
		uint8_t *begin = at;
		at = slice_put(slice_put(at, prefix), keys[i]);
		task->keys[i] = slice_of(begin, (size_t)(at - begin));
	}
	return task;
}

void task_free(struct task_runner *runner) {
	struct task *task = runner->task;
	if (task) {
		buffer_done(&task->shown);
		alloc_free(runner->alloc, task, task->bytes);
		runner->task = NULL;
	}
}

/* ---- the requests ---- */

/* Clears the request of the runner. Returns what the core gets of it. */
static struct core_request *request_begin(struct task_runner *runner, enum client_method method,
	enum core_op op) {
	struct client_request *request = &runner->request;
	memset(request, 0, offsetof(struct client_request, label_bytes));
	request->msgid = DIALECT_MSGID;
	request->method = method;
	request->core.op = op;
	return &request->core;
}

struct core_request *task_list(struct task_runner *runner, uint32_t limit) {
	struct core_request *core = request_begin(runner, CLIENT_LIST, CORE_LIST);
	runner->request.present = CLIENT_HAS_PREFIX | CLIENT_HAS_LIMIT;
	core->limit = limit;
	return core;
}

static struct core_request *task_request(struct task_runner *runner, enum client_method method,
	enum core_op op) {
	const struct task *task = runner->task;
	struct core_request *core = request_begin(runner, method, op);
	runner->request.present = CLIENT_HAS_KEY;
	core->key = task->keys[task->at];
	return core;
}

static enum task_step task_read(struct task_runner *runner) {
	const enum task_act act = runner->task->plan.mine;
	task_request(runner, CLIENT_GET, CORE_GET)->quorum = true;
	runner->request.urgent = act == TASK_RELEASE || act == TASK_DELETE || act == TASK_EXTEND
		|| act == TASK_ADD || act == TASK_REPLACE;
	runner->task->wait = TASK_READS;
	return TASK_ASKS;
}

/* Several keys are taken together or not at all. */
static void task_take_group(struct task_runner *runner, struct core_request *core) {
	struct task *task = runner->task;
	for (uint32_t i = 0; i < task->count; i++) {
		task->locks[i] = (struct core_lock){ .key = task->keys[i],
			.lock_id = task->lock_ids[i] };
	}
	core->op = CORE_ACQUIRE_ALL;
	core->key = slice_of(NULL, 0);
	core->locks = runner->request.group = task->locks;
	core->lock_count = task->count;
	runner->request.present = CLIENT_HAS_LOCKS;
}

/* Notes when the lease begins at the earliest. */
static void task_begins(struct task_runner *runner) {
	struct task *task = runner->task;
	if (task->since.boot == 0) {
		task->since = runner->node->now(runner->node->ctx);
	}
}

/* Returns the lease of what is taken. The node extends a lock without an end long before that is
 * over. */
static span_ns task_lease(const struct task_runner *runner) {
	const struct task *task = runner->task;
	return task->without_end ? runner->node->cluster->max_lease
		: task_covers(runner, task->length);
}

static enum task_step task_take(struct task_runner *runner, bool all) {
	struct task *task = runner->task;
	struct client_request *request = &runner->request;
	struct core_request *core = task_request(runner, CLIENT_ACQUIRE, CORE_ACQUIRE);
	task->tries++;
	task->act = TASK_TAKE;
	for (uint32_t i = 0; i < task->count; i++) {
		task->lock_ids[i] = runner->node->draw(runner->node->ctx);
	}
	task_begins(runner);
	core->lock_id = task->lock_ids[task->at];
	core->value = task->fresh;
	core->owner = task->owner;
	core->lease = task_lease(runner);
	core->wait = task->patience;
	request->label = task->label;
	request->label.without_end = task->without_end;
	core->label = slice_of(request->label_bytes,
		client_label_pack(&request->label, request->label_bytes));
	if (all && task->count > 1) {
		task_take_group(runner, core);
	}
	task->wait = TASK_ACTS;
	return TASK_ASKS;
}

/* Ends the lock that was read, which another identity needs the right to break for. */
static enum task_step task_delete(struct task_runner *runner, enum task_act act) {
	struct task *task = runner->task;
	struct core_request *core;
	if (task->own) {
		core = task_request(runner, CLIENT_RELEASE, CORE_RELEASE);
		core->lock_id = task->lock_ids[task->at];
	} else {
		core = task_request(runner, CLIENT_BREAK, CORE_BREAK);
		runner->request.present |= CLIENT_HAS_TOKEN | CLIENT_HAS_NOW;
		core->token = task->read_token;
		core->now = true;
	}
	task->act = act;
	task->wait = TASK_ACTS;
	return TASK_ASKS;
}

static enum task_step task_set_value(struct task_runner *runner) {
	struct task *task = runner->task;
	struct core_request *core = task_request(runner, CLIENT_UPDATE, CORE_UPDATE);
	core->lock_id = task->lock_ids[task->at];
	core->value = task->fresh;
	core->expect_seq = true;
	core->expected_seq = task->writes[task->at];
	task->wait = TASK_SETS_VALUE;
	return TASK_ASKS;
}

/* Asks for the release of what was read. Where its value was compared, it is released only if it
 * still has that value (protocol, section 2, Compare and release). */
static enum task_step task_release(struct task_runner *runner) {
	const struct task *task = runner->task;
	struct core_request *core = task_request(runner, CLIENT_RELEASE, CORE_RELEASE);
	core->lock_id = task->lock_ids[task->at];
	core->expect_seq = task->plan.compares != TASK_ANY;
	core->expected_seq = task->writes[task->at];
	return TASK_ASKS;
}

static enum task_step task_lengthen(struct task_runner *runner) {
	struct task *task = runner->task;
	struct core_request *core = task_request(runner, CLIENT_EXTEND, CORE_EXTEND);
	task->wait = TASK_ACTS;
	core->lock_id = task->lock_ids[task->at];
	task_begins(runner);
	core->lease = task_covers(runner,
		task->length + (task->act == TASK_ADD ? task->left : 0));
	/* The order is not below that of any command before it, whichever of them the client has
	 * given up, so that what comes late of them does not shorten what is granted now: a
	 * shortening names the next one after an order that every quorum knows of. */
	core->ordered = true;
	core->binding = task->orders[task->at] + (task->orders[task->at] < UINT32_MAX);
	core->shorten = task->act != TASK_ADD && task->settled[task->at] &&
		task->length < task->certain[task->at] - task->slack;
	return TASK_ASKS;
}

static enum task_step task_do(struct task_runner *runner, enum task_act act) {
	struct task *task = runner->task;
	task->act = act;
	task->wait = TASK_ACTS;
	if (act == TASK_TAKE) {
		return task_take(runner, false);
	}
	if (act == TASK_DELETE || act == TASK_OVERWRITE) {
		return task_delete(runner, act);
	}
	/* The value comes first: a command that is refused for the value lengthens nothing. */
	return act == TASK_REPLACE ? task_set_value(runner)
		: act == TASK_RELEASE ? task_release(runner)
		: task_lengthen(runner);
}

void task_begin(struct task_runner *runner, struct task *take_task) {
	CHECK(!runner->task);
	runner->task = take_task;
	(void)(take_task->plan.takes ? task_take(runner, true) : task_read(runner));
}

/* ---- going on ---- */

static enum task_step task_refuse(struct task *task, enum task_refusal why) {
	task->refusal = why;
	return TASK_REFUSED;
}

/* Returns whether the answer comes so late that a client that counts its time from there would
 * count on the lease after its end. An acquire may have waited for its turn before the lease began.
 * Without slack, the operator leaves that to the client. */
static bool task_is_late(const struct task_runner *runner) {
	const struct task *task = runner->task;
	if (task->done == 0 || task->since.boot == 0 || task->slack <= 0 || task->without_end) {
		return false;
	}
	const span_ns lease = task_lease(runner),
		whole = span_cover(task->valid, runner->node->cluster->drift_ppm),
		queued = whole > lease ? whole - lease : 0;
	return instant_elapsed_long(runner->node->now(runner->node->ctx), task->since) - queued
		> task->slack;
}

/* Asks for the release of what was taken of the key whose turn it is. */
static void task_give(struct task_runner *runner) {
	const struct task *task = runner->task;
	task_request(runner, CLIENT_RELEASE, CORE_RELEASE)->lock_id = task->lock_ids[task->at];
	runner->request.gives_back = true;
}

/* Releases what was taken, key by key, and then says why. */
static enum task_step task_give_back(struct task_runner *runner, enum task_refusal why) {
	struct task *task = runner->task;
	if (task->act == TASK_TAKE && task->at < task->count) {
		task->gives_back = true;
		task->refusal = why;
		task->wait = TASK_ACTS;
		task_give(runner);
		return TASK_ASKS;
	}
	return task_refuse(task, why);
}

static enum task_step task_finish(struct task_runner *runner) {
	if (task_is_late(runner)) {
		if (runner->task->plan.retakes) {
			return task_refuse(runner->task, TASK_IS_LATE);
		}
		runner->task->at = 0;
		return task_give_back(runner, TASK_IS_LATE);
	}
	return TASK_DONE;
}

/* Hands what was taken without an end over to the node. `valid` is for how long the lease is valid
 * from its sending on, which was at `since` or later. Returns whether it keeps all of it. */
static bool task_keeps(const struct task_runner *runner, span_ns valid) {
	const struct task *task = runner->task;
	const struct instant until = instant_add(task->since, valid);
	const uint32_t from = task->plan.takes ? 0 : task->at;
	const uint32_t to = task->plan.takes ? task->count : task->at + 1;
	bool kept = true;
	for (uint32_t i = from; kept && i < to; i++) {
		kept = runner->node->keep(runner->node->ctx, runner->number, task->keys[i],
			task->lock_ids[i], until) == 0;
	}
	return kept;
}

/* Begins to read all keys, because not all of them could be taken, or a value has changed. */
static enum task_step task_reads_again(struct task_runner *runner) {
	struct task *task = runner->task;
	task->mine = task->others = task->gone = task->at = 0;
	task->all_read = false;
	buffer_clear(&task->shown);
	task->since = (struct instant){ 0, 0 };
	return task_read(runner);
}

static enum task_step task_next(struct task_runner *runner) {
	struct task *task = runner->task;
	if (++task->at < task->count) {
		return task->all_read ? task_do(runner, task->plan.mine) : task_read(runner);
	}
	if (task->plan.retakes && task->gone == task->count && task->tries < TASK_TRIES_MAX) {
		task->at = 0;
		return task_take(runner, true);
	}
	if (!task->plan.together || task->all_read || task->mine < task->count) {
		return task_finish(runner);
	}
	task->all_read = true;
	task->at = 0;
	return task_do(runner, task->plan.mine);
}

/* Returns whether the act needs to know the lock_id. */
static bool task_needs_lock_id(const struct task *task, enum task_act act) {
	return act == TASK_EXTEND || act == TASK_ADD || act == TASK_RELEASE || act == TASK_REPLACE
		|| ((act == TASK_DELETE || act == TASK_OVERWRITE) && task->own);
}

static bool task_lengthens(const struct task *task, enum task_act act) {
	return act == TASK_EXTEND || act == TASK_ADD
		|| (act == TASK_REPLACE && !task->without_end);
}

static enum task_step task_has_read(struct task_runner *runner,
	const struct client_response *response) {
	struct task *task = runner->task;
	const struct task_plan *plan = &task->plan;
	const struct client_entry *entry = task_holder(task, response);
	const bool mine = entry && task_is_same(task, entry);
	enum task_act act = !entry ? plan->free : mine ? plan->mine : plan->other;
	task_note(runner, entry);
	task->gone += !entry;
	task->mine += mine;
	task->others += entry && !mine;
	if (plan->shows && runner->show(runner->ctx, task, mine ? entry : NULL) != 0) {
		return task_refuse(task, TASK_IS_NOT_SHOWN);
	}
	if (act == TASK_REFUSE) {
		return task_refuse(task, TASK_IS_HELD);
	}
	if (entry && task_needs_lock_id(task, act) && !(entry->present & CLIENT_ENTRY_LOCK_ID)) {
		return task_refuse(task, TASK_IS_ANOTHERS);
	}
	if (mine && task_lengthens(task, act) && entry->label.without_end) {
		return task_refuse(task, TASK_IS_ENDLESS);
	}
	task->lock_ids[task->at] = entry ? entry->lock_id : task->lock_ids[task->at];
	return act == TASK_NOTHING || plan->together ? task_next(runner) : task_do(runner, act);
}

static enum task_step task_has_acted(struct task_runner *runner,
	const struct client_response *response) {
	struct task *task = runner->task;
	const int error = response->error;
	if (task->gives_back) {
		task->at++;
		return task_give_back(runner, task->refusal);
	}
	if (error == PAWL_EHELD || (error == PAWL_ETIMEOUT && task->act == TASK_TAKE)) {
		if (task->plan.retakes) {
			return task_reads_again(runner);
		}
		task->others++;
		return task->plan.takes ? task_finish(runner) : task_next(runner);
	}
	if (task->act == TASK_OVERWRITE && (!error || error == PAWL_ELOST
			|| error == PAWL_ENOTFOUND)) {
		return task_take(runner, false);
	}
	if (error == PAWL_EMISMATCH && task->count == 1) {
		/* The value was set, or written back, after it was read. */
		return task->tries++ < TASK_TRIES_MAX ? task_reads_again(runner) : TASK_FAILED;
	}
	if (error == PAWL_EMISMATCH) {
		task->mine -= task->mine > 0;
		task->others++;
		return task_next(runner);
	}
	if (error == PAWL_ELOST || error == PAWL_ENOTFOUND) {
		/* It ended, or another one took it, after it was read. */
		task->mine -= task->mine > 0;
		task->gone++;
		return task_next(runner);
	}
	if (error) {
		return TASK_FAILED;
	}
	if (task->act == TASK_REPLACE && task->wait == TASK_SETS_VALUE) {
		task->writes[task->at] = response->value_seq;
		if (!task->without_end) {
			return task_lengthen(runner);
		}
	}
	task->valid = task->act == TASK_TAKE ? response->valid : 0;
	task->got = task->act == TASK_TAKE ? response->token
		: task_unique_of(task->read_token, task->writes[task->at]);
	if (task->act == TASK_TAKE && task->without_end && !task_keeps(runner, response->valid)) {
		task->at = task->plan.takes ? 0 : task->at;
		return task_give_back(runner, TASK_IS_UNKEPT);
	}
	const bool released = (task->act != TASK_RELEASE && task->act != TASK_DELETE)
		|| response->released;
	const bool took_all = task->plan.takes && task->act == TASK_TAKE;
	task->done += took_all ? task->count : released;
	return took_all ? task_finish(runner) : task_next(runner);
}

enum task_step task_answer(struct task_runner *runner, const struct client_response *response) {
	CHECK(runner->task);
	if (runner->task->wait != TASK_READS) {
		return task_has_acted(runner, response);
	}
	return response->error ? TASK_FAILED : task_has_read(runner, response);
}

bool task_tells(struct task_runner *runner) {
	struct task *task = runner->task;
	task->told = task->done > 0 && task->act == TASK_TAKE;
	return task->told;
}

const struct client_request *task_leave(struct task_runner *runner) {
	struct task *task = runner->task;
	if (!task || task->wait != TASK_ACTS || task->act != TASK_TAKE || task->plan.retakes) {
		return NULL;
	}
	/* A single key is taken at its place, several keys together. */
	const bool all = task->plan.takes || task->told;
	task->at = !task->leaves && all ? 0 : task->at + task->leaves;
	if (task->at == task->count || (task->leaves && !all)) {
		return NULL;
	}
	task->leaves = true;
	task_give(runner);
	return &runner->request;
}
