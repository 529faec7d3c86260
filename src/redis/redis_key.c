/* redis_key.c: the commands on keys. Those that act on a lock compare and act by its lock_id
 * (struct task_plan). */
#include "redis_impl.h"

#include <stdio.h>

static const struct slice nothing = { NULL, 0 };

/* Begins with a task for `count` keys from argument `first` on. What is taken with a length of 0
 * has no end. */
static enum dialect_step key_begin(const struct redis_call *call, const struct redis_plan *plan,
	size_t first, size_t count, struct slice value, struct slice fresh, span_ns length) {
	enum dialect_step step;
	struct task *task = redis_task_new(call, plan, call->command->arguments + first, count,
		value, fresh, &step);
	if (!task) {
		return step;
	}
	task->length = length;
	task->without_end = length == 0;
	task->patience = plan->act.takes ? call->redis->server->settings.patience : 0;
	task_begin(&call->redis->tasks, task);
	return DIALECT_ASK;
}

/* ---- SET ---- */

/* The options of SET. */
struct set_options {
	bool nx, xx, get, has_end, has_old;
	struct slice old;
	span_ns length;
};

/* Reads a moment at which the key is to end, and turns it into a length. */
static bool set_moment(const struct redis_call *call, struct slice word, bool seconds,
	span_ns *out) {
	const struct redis *r = call->redis;
	int64_t number;
	char text[24];
	if (!resp_word_number(word, &number) || number <= 0 || number > INT64_MAX / 2000) {
		(void)redis_wrong(call, "invalid expire time in 'set' command");
		return false;
	}
	const int64_t left = number * (seconds ? 1000 : 1) - r->node->unix_ms(r->node->ctx);
	if (left <= 0) {
		(void)redis_unable(call, "the moment at which the key is to end is over");
		return false;
	}
	int size = snprintf(text, sizeof text, "%lld", (long long)left);
	return redis_length(call, slice_of(text, (size_t)size), false, out);
}

/* Reads the options from argument 3 on. Returns false if they were refused. */
static bool set_read(const struct redis_call *call, struct set_options *out) {
	const struct resp_command *c = call->command;
	*out = (struct set_options){ 0 };
	for (size_t i = 3; i < c->count; i++) {
		const struct slice word = c->arguments[i];
		const bool more = i + 1 < c->count;
		const bool px = resp_word_is(word, "PX"), ex = resp_word_is(word, "EX");
		const bool pxat = resp_word_is(word, "PXAT"), exat = resp_word_is(word, "EXAT");
		if (resp_word_is(word, "NX") && !out->xx && !out->has_old) {
			out->nx = true;
		} else if (resp_word_is(word, "XX") && !out->nx && !out->has_old) {
			out->xx = true;
		} else if (resp_word_is(word, "IFEQ") && more && !out->nx && !out->xx) {
			out->has_old = true;
			out->old = c->arguments[++i];
		} else if (resp_word_is(word, "GET")) {
			out->get = true;
		} else if ((px || ex || pxat || exat) && more && !out->has_end) {
			out->has_end = true;
			i++;
			if (px || ex ? !redis_length(call, c->arguments[i], ex, &out->length)
				: !set_moment(call, c->arguments[i], exat, &out->length)) {
				return false;
			}
		} else {
			(void)(resp_word_is(word, "KEEPTTL")
				? redis_unable(call, "Pawl has no KEEPTTL: name a length with PX "
					"or EX")
				: redis_wrong(call, "syntax error"));
			return false;
		}
	}
	return true;
}

/* The reply to a SET with GET: the value that the key had. */
static void reply_old(const struct redis *r, struct resp_writer *w) {
	const struct task *task = r->tasks.task;
	const bool acts = task->plan.free == TASK_TAKE
		&& (task->gone || task->plan.mine == TASK_OVERWRITE);
	if (acts && !task->done) {
		resp_error(w, "TRYAGAIN", slice_str("the key is not free yet, or another "
			"client has just taken it"));
	} else {
		resp_raw(w, buffer_slice(&task->shown));
	}
}

bool redis_keeps(const struct redis_call *call) {
	if (!call->redis->server->settings.keeps) {
		resp_error(call->w, "NOPERM", slice_str("a lock without an end is not possible "
			"here: give it a length with PX or EX ([redis] without_end of this node)"));
	}
	return call->redis->server->settings.keeps;
}

/* Takes the key if it is free. */
static enum dialect_step set_fresh(const struct redis_call *call, struct redis_plan plan,
	span_ns length) {
	const struct slice value = call->command->arguments[2];
	plan.act.takes = true;
	if (length > 0) {
		redis_redlock(call->redis, &plan);
	}
	return key_begin(call, &plan, 1, 1, value, value, length);
}

/* Returns what a SET does to a lock with another value that stands in its way. */
static enum task_act set_over(const struct redis_call *call) {
	return call->redis->server->settings.overwrites ? TASK_OVERWRITE : TASK_REFUSE;
}

static enum dialect_step set_present(const struct redis_call *call, const struct set_options *o) {
	const struct slice fresh = call->command->arguments[2];
	struct slice old = o->old;
	struct redis_plan plan = { .act.mine = TASK_REPLACE,
		.act.compares = o->has_old ? TASK_VALUE : TASK_ANY,
		.show = o->get ? REDIS_SHOW_VALUE : REDIS_SHOW_NOTHING,
		.reply = o->get ? reply_old : redis_reply_ok };
	if (!o->has_end) {
		return redis_unable(call, "a lock that is held keeps its end: name a length with "
			"PX or EX");
	}
	if (!o->has_old && set_over(call) == TASK_REFUSE) {
		/* The client may be late, and another holder of its identity have the key: only
		 * whoever holds it with this value renews. */
		plan.act.mine = TASK_EXTEND;
		plan.act.other = TASK_REFUSE;
		plan.act.compares = TASK_VALUE;
		old = fresh;
	}
	return key_begin(call, &plan, 1, 1, old, fresh, o->length);
}

enum dialect_step redis_set(const struct redis_call *call) {
	static const struct redis_plan takes = { .reply = redis_reply_ok };
	struct redis_plan plan = { .act.free = TASK_TAKE, .reply = redis_reply_set };
	struct set_options o;
	if (!set_read(call, &o)) {
		return DIALECT_DONE;
	}
	if (o.xx || o.has_old) {
		return set_present(call, &o);
	}
	if (!o.has_end && !redis_keeps(call)) {
		return DIALECT_DONE;
	}
	if (o.nx && !o.get) {
		return set_fresh(call, takes, o.length);
	}
	if (o.get) {
		plan.show = REDIS_SHOW_VALUE;
		plan.reply = reply_old;
	}
	plan.act.mine = o.nx ? TASK_NOTHING : set_over(call);
	return key_begin(call, &plan, 1, 1, nothing, call->command->arguments[2], o.length);
}

enum dialect_step redis_setnx(const struct redis_call *call) {
	static const struct redis_plan takes = { .reply = redis_reply_taken };
	return redis_keeps(call) ? set_fresh(call, takes, 0) : DIALECT_DONE;
}

/* SETEX and PSETEX, the heartbeat of tooz: whoever holds the key with this value renews. */
static enum dialect_step set_for(const struct redis_call *call, bool seconds) {
	const struct redis_plan plan = { .act.mine = TASK_EXTEND, .act.other = set_over(call),
		.act.free = TASK_TAKE, .act.compares = TASK_VALUE, .reply = redis_reply_set };
	const struct slice value = call->command->arguments[3];
	span_ns length;
	return redis_length(call, call->command->arguments[2], seconds, &length)
		? key_begin(call, &plan, 1, 1, value, value, length) : DIALECT_DONE;
}

enum dialect_step redis_setex(const struct redis_call *call) {
	return set_for(call, true);
}

enum dialect_step redis_psetex(const struct redis_call *call) {
	return set_for(call, false);
}

/* ---- reading ---- */

static enum dialect_step key_shows(const struct redis_call *call, enum redis_show show) {
	const struct redis_plan plan = { .show = show };
	return key_begin(call, &plan, 1, 1, nothing, nothing, 0);
}

enum dialect_step redis_get(const struct redis_call *call) {
	return key_shows(call, REDIS_SHOW_VALUE);
}

enum dialect_step redis_ttl(const struct redis_call *call) {
	return key_shows(call, REDIS_SHOW_TTL);
}

enum dialect_step redis_pttl(const struct redis_call *call) {
	return key_shows(call, REDIS_SHOW_PTTL);
}

enum dialect_step redis_expiretime(const struct redis_call *call) {
	return key_shows(call, REDIS_SHOW_END);
}

enum dialect_step redis_pexpiretime(const struct redis_call *call) {
	return key_shows(call, REDIS_SHOW_END_MS);
}

enum dialect_step redis_type(const struct redis_call *call) {
	return key_shows(call, REDIS_SHOW_TYPE);
}

enum dialect_step redis_strlen(const struct redis_call *call) {
	return key_shows(call, REDIS_SHOW_LENGTH);
}

enum dialect_step redis_exists(const struct redis_call *call) {
	static const struct redis_plan plan = { .reply = redis_reply_mine };
	return key_begin(call, &plan, 1, call->command->count - 1, nothing, nothing, 0);
}

static void reply_array(const struct redis *r, struct resp_writer *w) {
	const struct task *task = r->tasks.task;
	resp_array(w, task->count);
	resp_raw(w, buffer_slice(&task->shown));
}

enum dialect_step redis_mget(const struct redis_call *call) {
	static const struct redis_plan plan = { .show = REDIS_SHOW_VALUE, .reply = reply_array };
	return key_begin(call, &plan, 1, call->command->count - 1, nothing, nothing, 0);
}

/* ---- renewing and ending ---- */

static enum dialect_step key_expire(const struct redis_call *call, bool seconds) {
	static const struct redis_plan plan = { .act.mine = TASK_EXTEND,
		.reply = redis_reply_done };
	span_ns length;
	return redis_length(call, call->command->arguments[2], seconds, &length)
		? key_begin(call, &plan, 1, 1, nothing, nothing, length) : DIALECT_DONE;
}

enum dialect_step redis_expire(const struct redis_call *call) {
	return key_expire(call, true);
}

enum dialect_step redis_pexpire(const struct redis_call *call) {
	return key_expire(call, false);
}

static void reply_persist(const struct redis *r, struct resp_writer *w) {
	const struct task *task = r->tasks.task;
	if (task->mine && !task->endless) {
		resp_error(w, "NOPERM", slice_str("a lock that was taken with an end keeps it"));
	} else {
		resp_number(w, 0);
	}
}

/* No lock loses its end; but one that has none has nothing to lose. */
enum dialect_step redis_persist(const struct redis_call *call) {
	static const struct redis_plan plan = { .reply = reply_persist };
	return key_begin(call, &plan, 1, 1, nothing, nothing, 0);
}

/* Whoever deletes a lock without naming its value takes it from its holder, unless it is its
 * own. */
enum dialect_step redis_del(const struct redis_call *call) {
	static const struct redis_plan plan = { .act.mine = TASK_DELETE,
		.reply = redis_reply_done };
	return key_begin(call, &plan, 1, call->command->count - 1, nothing, nothing, 0);
}

/* DELEX key IFEQ value, and DELIFEQ key value. */
enum dialect_step redis_delex(const struct redis_call *call) {
	static const struct redis_plan plan = { .act.mine = TASK_RELEASE,
		.act.compares = TASK_VALUE, .reply = redis_reply_done };
	const struct resp_command *c = call->command;
	const bool long_form = resp_word_is(c->arguments[0], "DELEX");
	if (long_form && (c->count != 4 || !resp_word_is(c->arguments[2], "IFEQ"))) {
		return redis_unable(call, "write DELEX key IFEQ value");
	}
	return key_begin(call, &plan, 1, 1, c->arguments[long_form ? 3 : 2], nothing, 0);
}

/* ---- what Redis does not have ---- */

enum dialect_step redis_token(const struct redis_call *call) {
	static const struct redis_plan plan = { .act.compares = TASK_VALUE,
		.show = REDIS_SHOW_TOKEN };
	return key_begin(call, &plan, 1, 1, call->command->arguments[2], nothing, 0);
}

enum dialect_step redis_valid(const struct redis_call *call) {
	static const struct redis_plan plan = { .act.compares = TASK_VALUE,
		.show = REDIS_SHOW_PTTL };
	return key_begin(call, &plan, 1, 1, call->command->arguments[2], nothing, 0);
}

/* PAWL.WAIT key value ms wait-ms: takes the key when its turn comes. */
enum dialect_step redis_take_waiting(const struct redis_call *call) {
	static const struct redis_plan plan = { .act.takes = true, .reply = redis_reply_ok };
	const struct slice *a = call->command->arguments;
	enum dialect_step step;
	span_ns length;
	int64_t wait;
	if (!redis_length(call, a[3], false, &length)) {
		return DIALECT_DONE;
	}
	if (!resp_word_number(a[4], &wait) || wait < 0 || wait > CLIENT_MS_MAX) {
		return redis_wrong(call, "the time to wait must be a number of milliseconds");
	}
	struct task *task = redis_task_new(call, &plan, a + 1, 1, nothing, a[2], &step);
	if (!task) {
		return step;
	}
	task->length = length;
	task->patience = wait * SPAN_MS;
	task_begin(&call->redis->tasks, task);
	return DIALECT_ASK;
}
