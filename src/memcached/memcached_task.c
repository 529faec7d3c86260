/* memcached_task.c: the tasks of commands (task.h), and the times that commands name. */
#include "memcached_impl.h"

#include <stdio.h>

/* Up to so many seconds a time is a length, and above that it is a moment, in seconds since 1970.
 * memcached has this rule. */
#define LENGTH_SECONDS_MAX (INT64_C(30) * 24 * 3600)

enum dialect_step memcached_wrong(const struct memcached_call *call, const char *why) {
	mctext_error(call->w, "CLIENT_ERROR", slice_str(why));
	return DIALECT_DONE;
}

enum dialect_step memcached_refused(const struct memcached_call *call, const char *why) {
	mctext_error(call->w, "SERVER_ERROR", slice_str(why));
	return DIALECT_DONE;
}

bool memcached_time(const struct memcached_call *call, struct slice word,
	struct memcached_work *work) {
	const struct memcached *m = call->memcached;
	const int64_t most = task_longest(m->node, m->server->settings.slack) / SPAN_MS;
	int64_t number;
	char why[192];
	if (!mctext_number(word, &number) || number > INT64_MAX / 2000) {
		memcached_wrong(call, "invalid exptime argument");
		return false;
	}
	if (number == 0 && !m->server->settings.keeps) {
		memcached_refused(call, "a lock without an end is not possible here: give it an "
			"exptime other than 0 ([memcached] without_end of this node)");
		return false;
	}
	if (number == 0) {
		work->without_end = true;
		return true;
	}
	if (number < 0) {
		work->over = true;
		return true;
	}
	const int64_t ms = number <= LENGTH_SECONDS_MAX ? number * 1000
		: number * 1000 - m->node->unix_ms(m->node->ctx);
	if (ms <= 0) {
		work->over = true;
		return true;
	}
	if (most <= 0) {
		memcached_refused(call, "[memcached] slack of this node is as long as the longest "
			"lease of this cluster, so it grants nothing: lower it");
		return false;
	}
	if (ms > most) {
		snprintf(why, sizeof why, "a lock of %lld ms is longer than this cluster allows, "
			"which is %lld ms (max_lease, less the drift and the slack): take it for "
			"less, and renew it, or raise max_lease",
			(long long)ms, (long long)most);
		memcached_refused(call, why);
		return false;
	}
	work->length = ms * SPAN_MS;
	return true;
}

/* ---- beginning ---- */

static bool key_is_right(struct slice key) {
	bool right = key.size > 0 && key.size <= MEMCACHED_KEY_MAX;
	for (size_t i = 0; right && i < key.size; i++) {
		right = key.data[i] > ' ' && key.data[i] != 0x7f;
	}
	return right;
}

/* A key that is to end at once is not taken, and is released if it is held. */
static void plan_for_over(struct memcached_plan *plan) {
	struct task_plan *act = &plan->act;
	if (act->takes || act->free == TASK_TAKE) {
		plan->words.gone = plan->words.done;
	}
	act->takes = false;
	act->free = TASK_NOTHING;
	if (act->mine == TASK_EXTEND || act->mine == TASK_REPLACE) {
		act->mine = TASK_RELEASE;
	}
	if (act->other == TASK_OVERWRITE) {
		act->other = TASK_DELETE;
	}
}

/* A lock that has no end is not extended, because its node does that; and no other lock loses its
 * end (memcached_show). */
static void plan_without_end(struct memcached_plan *plan) {
	if (plan->act.mine == TASK_EXTEND) {
		plan->act.mine = TASK_NOTHING;
		plan->words.mine = plan->words.done;
	}
	plan->act.shows = true;
}

static void task_label(struct memcached *m, struct task *task) {
	if (m->flags) {
		snprintf(m->label, sizeof m->label, MEMCACHED_LABEL MEMCACHED_FLAGS "%lu",
			(unsigned long)m->flags);
	} else {
		snprintf(m->label, sizeof m->label, MEMCACHED_LABEL);
	}
	task->label.text = slice_str(m->label);
}

enum dialect_step memcached_begin(const struct memcached_call *call,
	const struct memcached_plan *plan, const struct memcached_work *work) {
	struct memcached *m = call->memcached;
	const struct memcached_settings *settings = &m->server->settings;
	if (!task_keys_are_right(slice_of(NULL, 0), work->keys, work->count)) {
		return memcached_wrong(call, "Pawl takes 1 to 64 keys at once");
	}
	for (size_t i = 0; i < work->count; i++) {
		if (!key_is_right(work->keys[i])) {
			return memcached_wrong(call, "a key has 1 to 250 bytes, and neither blanks "
				"nor control characters");
		}
	}
	m->plan = *plan;
	m->plan.act.shows = plan->show != MEMCACHED_SHOW_NOTHING;
	m->refused = NULL;
	m->without_end = work->without_end;
	m->shown_from = 0;
	m->done_before = 0;
	if (work->over) {
		plan_for_over(&m->plan);
	}
	if (work->without_end) {
		plan_without_end(&m->plan);
	}
	struct task *task = task_new(&m->tasks, &m->plan.act, slice_of(NULL, 0), work->keys,
		work->count, work->value, work->fresh);
	if (!task) {
		return DIALECT_BROKEN;
	}
	task->unique = work->unique;
	task->length = work->length;
	task->without_end = work->without_end;
	task->slack = settings->slack;
	task->patience = m->plan.act.takes ? settings->patience : 0;
	task->owner = slice_str(m->from);
	task_label(m, task);
	task_begin(&m->tasks, task);
	return DIALECT_ASK;
}

/* ---- going on ---- */

static void task_say(const struct memcached *m, struct mctext_writer *w) {
	const char *why = NULL;
	switch (m->tasks.task->refusal) {
	case TASK_IS_HELD:
		why = "the key is held: Pawl does not overwrite a lock ([memcached] overwrite of "
			"this node). Take it with add; renew it with the value that it has, or "
			"change that by cas";
		break;
	case TASK_IS_ANOTHERS:
		why = "this lock belongs to another identity";
		break;
	case TASK_IS_ENDLESS:
		why = "a lock without an end stays as it is: delete it, and take it again";
		break;
	case TASK_IS_UNKEPT:
		why = "this node keeps as many locks without an end as it can: give the lock an "
			"exptime, or use another node";
		break;
	case TASK_IS_LATE:
		why = "the masters answered too late for the whole time: [memcached] slack of this "
			"node is shorter than that took";
		break;
	case TASK_IS_NOT_SHOWN:
		why = m->refused ? m->refused
			: "the values together are too large for one reply: name fewer keys";
		break;
	}
	mctext_error(w, "SERVER_ERROR", slice_str(why));
}

enum dialect_step memcached_go_on(struct memcached *m, const struct client_response *response,
	struct mctext_writer *w) {
	if (!m->tasks.task) {
		return memcached_flush_listed(m, response, w);
	}
	switch (task_answer(&m->tasks, response)) {
	case TASK_ASKS:
		return DIALECT_ASK;
	case TASK_DONE:
		if (m->flush_lists > 0) {
			task_free(&m->tasks);
			return memcached_flush_ended(m);
		}
		memcached_reply(m, w);
		if (task_tells(&m->tasks)) {
			return DIALECT_TOLD;
		}
		break;
	case TASK_FAILED:
		memcached_refuse(w, response);
		break;
	case TASK_REFUSED:
		task_say(m, w);
		break;
	}
	task_free(&m->tasks);
	m->flush_lists = 0;
	return DIALECT_DONE;
}
