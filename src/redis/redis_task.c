/* redis_task.c: the tasks of commands (task.h), and the lengths that commands name. */
#include "redis_impl.h"

#include <stdio.h>

#include "check.h"

bool redis_length(const struct redis_call *call, struct slice word, bool seconds, span_ns *out) {
	const struct redis *r = call->redis;
	const span_ns unit = seconds ? SPAN_S : SPAN_MS;
	const span_ns most = task_longest(r->node, r->server->settings.slack);
	int64_t number;
	char why[256];
	if (!resp_word_number(word, &number)) {
		(void)redis_wrong(call, "value is not an integer or out of range");
		return false;
	}
	if (number <= 0) {
		(void)redis_unable(call, "invalid expire time: a lock lasts for more than 0 "
			"(DEL, or a script that compares its value, ends it)");
		return false;
	}
	if (most <= 0) {
		(void)redis_unable(call, "[redis] slack of this node is as long as the longest "
			"lease of this cluster, so it grants nothing: lower it");
		return false;
	}
	if (number > most / unit) {
		snprintf(why, sizeof why, "a lock of %lld ms is longer than this cluster allows, "
			"which is %lld ms (max_lease, less the drift and the slack): take it for "
			"less, and renew it, or raise max_lease",
			(long long)(number > INT64_MAX / 1000 ? INT64_MAX
			: number * (seconds ? 1000 : 1)), (long long)(most / SPAN_MS));
		(void)redis_unable(call, why);
		return false;
	}
	*out = number * unit;
	return true;
}

struct slice redis_prefix(const struct redis *r, char text[REDIS_PREFIX_MAX + 1]) {
	int size = r->database ? snprintf(text, REDIS_PREFIX_MAX + 1, "db%u:", r->database) : 0;
	return slice_of(text, (size_t)size);
}

struct task *redis_task_new(const struct redis_call *call, const struct redis_plan *plan,
	const struct slice *keys, size_t count, struct slice value, struct slice fresh,
	enum dialect_step *out_step) {
	struct redis *r = call->redis;
	char text[REDIS_PREFIX_MAX + 1];
	const struct slice prefix = redis_prefix(r, text);
	if (!task_keys_are_right(prefix, keys, count)) {
		*out_step = redis_unable(call, "Pawl takes 1 to 64 keys at once, of 1 to 512 bytes "
			"each, with the prefix dbN: of a database other than 0");
		return NULL;
	}
	r->plan = *plan;
	r->plan.act.shows = plan->show != REDIS_SHOW_NOTHING;
	struct task *task = task_new(&r->tasks, &r->plan.act, prefix, keys, count, value, fresh);
	if (!task) {
		*out_step = DIALECT_BROKEN;
		return NULL;
	}
	task->slack = r->server->settings.slack;
	task->owner = slice_str(r->name[0] ? r->name : r->from);
	task->label.text = slice_str(r->library);
	return task;
}

void redis_redlock(const struct redis *r, struct redis_plan *plan) {
	if (r->server->settings.redlock) {
		plan->act.retakes = plan->act.together = true;
		plan->act.mine = TASK_EXTEND;
		plan->act.compares = TASK_VALUE;
	}
}

static void task_say(struct resp_writer *w, enum task_refusal why) {
	switch (why) {
	case TASK_IS_HELD:
		resp_error(w, "NOPERM", slice_str("the key is held: Pawl does not overwrite a "
			"lock ([redis] overwrite of this node). Take it with NX; renew it with the "
			"value that it has, or change that by IFEQ"));
		break;
	case TASK_IS_ANOTHERS:
		resp_error(w, "NOPERM", slice_str("this lock belongs to another identity"));
		break;
	case TASK_IS_ENDLESS:
		resp_error(w, "NOPERM", slice_str("this lock was taken without an end, and cannot "
			"be given one: take it with PX or EX"));
		break;
	case TASK_IS_UNKEPT:
		resp_error(w, "OOM", slice_str("this node keeps as many locks without an end as "
			"it may ([limits] kept_locks): take the lock with PX or EX, or through "
			"another node"));
		break;
	case TASK_IS_LATE:
		resp_error(w, "TRYAGAIN", slice_str("the masters answered too late for the whole "
			"length: [redis] slack of this node is shorter than that took"));
		break;
	case TASK_IS_NOT_SHOWN:
		resp_error(w, "OOM", slice_str("the values together are too large for one reply: "
			"name fewer keys"));
		break;
	}
}

enum dialect_step redis_task_answer(struct redis *r, const struct client_response *response,
	struct resp_writer *w) {
	switch (task_answer(&r->tasks, response)) {
	case TASK_ASKS:
		return DIALECT_ASK;
	case TASK_DONE:
		if (r->plan.then) {
			task_free(&r->tasks);
			return r->plan.then(r, w);
		}
		if (r->plan.reply) {
			r->plan.reply(r, w);
		} else {
			resp_raw(w, buffer_slice(&r->tasks.task->shown));
		}
		if (task_tells(&r->tasks)) {
			return DIALECT_TOLD;
		}
		break;
	case TASK_FAILED:
		if (r->plan.failed) {
			r->plan.failed(r, w);
		} else {
			redis_refuse(w, response);
		}
		break;
	case TASK_REFUSED:
		task_say(w, r->tasks.task->refusal);
		break;
	}
	task_free(&r->tasks);
	redis_walk_done(r);
	return DIALECT_DONE;
}
