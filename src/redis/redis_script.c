/* redis_script.c: scripts, which are recognized and not run (script.h). */
#include "redis_impl.h"

#include <stdio.h>

#include "check.h"

/* ---- what a script answers ---- */

static void reply_none(struct resp_writer *w, int8_t number) {
	if (number == SCRIPT_NIL) {
		resp_nil(w);
	} else {
		resp_number(w, number);
	}
}

static void reply_acted(struct resp_writer *w, const struct script_meaning *meaning,
	uint32_t count) {
	switch (meaning->answer) {
	case SCRIPT_SAYS_ONE:
		resp_number(w, 1);
		break;
	case SCRIPT_SAYS_COUNT:
		resp_number(w, count);
		break;
	case SCRIPT_SAYS_OK:
		resp_status(w, "OK");
		break;
	}
}

static void reply_script(const struct redis *r, struct resp_writer *w) {
	const struct task *task = r->tasks.task;
	const struct script_meaning *meaning = &r->meaning;
	if (meaning->kind == SCRIPT_RELEASE && r->server->settings.redlock && task->others == 0) {
		/* Another node has released what was taken through all of them. */
		reply_acted(w, meaning, task->count);
		return;
	}
	if (task->done < (task->plan.together ? task->count : 1)) {
		reply_none(w, task->gone < task->count ? meaning->other : meaning->gone);
		return;
	}
	reply_acted(w, meaning, task->done);
}

static void reply_left(const struct redis *r, struct resp_writer *w) {
	const struct task *task = r->tasks.task;
	if (task->mine) {
		resp_raw(w, buffer_slice(&task->shown));
	} else {
		reply_none(w, task->others > 0 ? r->meaning.other : r->meaning.gone);
	}
}

/* ---- what it does ---- */

static struct redis_plan script_plan(enum script_kind kind, bool takes, bool adds) {
	switch (kind) {
	case SCRIPT_TAKE:
		return (struct redis_plan){ .act.takes = true, .reply = reply_script };
	case SCRIPT_RENEW:
	case SCRIPT_ADD:
	case SCRIPT_ADD_OR_RENEW:
		return (struct redis_plan){ .act.mine = adds ? TASK_ADD : TASK_EXTEND,
			.act.compares = TASK_VALUE, .act.together = true, .reply = reply_script };
	case SCRIPT_RENEW_OR_TAKE:
		return (struct redis_plan){ .act.mine = TASK_EXTEND,
			.act.free = takes ? TASK_TAKE : TASK_NOTHING, .act.compares = TASK_VALUE,
			.reply = reply_script };
	case SCRIPT_RELEASE:
		return (struct redis_plan){ .act.mine = TASK_RELEASE, .act.compares = TASK_VALUE,
			.reply = reply_script };
	case SCRIPT_READ:
		return (struct redis_plan){ .show = REDIS_SHOW_BOTH };
	case SCRIPT_LEFT_IF_MINE:
		return (struct redis_plan){ .act.compares = TASK_VALUE, .show = REDIS_SHOW_PTTL,
			.reply = reply_left };
	}
	CHECK(false);
}

/* Returns an argument of the script by its number, or an empty one if it has none. */
static struct slice script_argument(const struct redis_call *call, size_t first, uint8_t number) {
	const size_t at = first + number - 1;
	return number > 0 && at < call->command->count ? call->command->arguments[at]
		: slice_of(NULL, 0);
}

/* Some scripts name the database themselves, for this command alone. */
static bool script_database(const struct redis_call *call, struct slice word) {
	int64_t number;
	if (!resp_word_number(word, &number) || number < 0 || number >= REDIS_DATABASES) {
		(void)redis_wrong(call, "DB index is out of range");
		return false;
	}
	call->redis->database = (unsigned)number;
	return true;
}

static enum dialect_step script_begin(const struct redis_call *call,
	const struct script_meaning *meaning, size_t keys) {
	struct redis *r = call->redis;
	const size_t first = 3 + keys;
	const struct slice value = script_argument(call, first, meaning->value);
	const struct slice flag = script_argument(call, first, meaning->flag);
	const bool adds = meaning->kind == SCRIPT_ADD
		|| (meaning->kind == SCRIPT_ADD_OR_RENEW && slice_equal(flag, slice_str("0")));
	const bool takes = !meaning->flag || slice_equal(flag, slice_str("yes"));
	struct redis_plan plan = script_plan(meaning->kind, takes, adds);
	/* A release that does not count its keys releases all of them, or none. */
	plan.act.together = plan.act.together || (meaning->kind == SCRIPT_RELEASE && keys > 1
		&& meaning->answer != SCRIPT_SAYS_COUNT);
	const unsigned database = r->database;
	enum dialect_step step;
	span_ns length = 0;
	if (call->command->count < first + meaning->value
		|| (meaning->length && !redis_length(call,
			script_argument(call, first, meaning->length), meaning->seconds, &length))
		|| (meaning->database
			&& !script_database(call,
				script_argument(call, first, meaning->database)))) {
		return call->w->out->size > call->began ? DIALECT_DONE
			: redis_unable(call, "the script has too few arguments");
	}
	if (meaning->kind == SCRIPT_TAKE && length == 0 && !redis_keeps(call)) {
		r->database = database;
		return DIALECT_DONE;
	}
	if (meaning->kind == SCRIPT_TAKE && length > 0) {
		redis_redlock(r, &plan);
	}
	struct task *task = redis_task_new(call, &plan, call->command->arguments + 3, keys,
		value, value, &step);
	r->database = database;
	if (!task) {
		return step;
	}
	r->meaning = *meaning;
	task->length = length;
	task->without_end = length == 0;
	task->patience = plan.act.takes ? r->server->settings.patience : 0;
	task_begin(&r->tasks, task);
	return DIALECT_ASK;
}

/* A script that uses one key would leave any others alone. */
static enum dialect_step script_wrong_keys(const struct redis_call *call,
	const struct script_meaning *meaning) {
	char why[64];
	snprintf(why, sizeof why, "this script has %u key%s", meaning->keys,
		meaning->keys == 1 ? "" : "s");
	return redis_unable(call, why);
}

/* Reads how many keys EVAL and EVALSHA have. */
static enum dialect_step script_run(const struct redis_call *call,
	const struct script_meaning *meaning) {
	int64_t keys;
	if (!resp_word_number(call->command->arguments[2], &keys) || keys < 0) {
		return redis_wrong(call, "value is not an integer or out of range");
	}
	if ((uint64_t)keys > call->command->count - 3) {
		return redis_wrong(call, "Number of keys can't be greater than number of args");
	}
	if (meaning->keys != SCRIPT_ANY_KEYS && keys != meaning->keys) {
		return script_wrong_keys(call, meaning);
	}
	return script_begin(call, meaning, (size_t)keys);
}

/* ---- which script it is ---- */

/* Returns the meaning of a script, and remembers it. */
static const struct script_meaning *script_learn(const struct redis_call *call,
	struct slice script, uint8_t sha1[SCRIPT_SHA1_BYTES]) {
	struct scripts *scripts = &call->redis->server->scripts;
	script_sha1(script, sha1);
	const struct script_meaning *found = scripts_find(scripts, sha1);
	if (!found && (found = script_find(script, &scripts->mappings,
			&call->redis->alloc)) != NULL) {
		scripts_learn(scripts, sha1, found);
	}
	return found;
}

static enum dialect_step script_unknown(const struct redis_call *call,
	const uint8_t sha1[SCRIPT_SHA1_BYTES]) {
	char text[2 * SCRIPT_SHA1_BYTES + 1], why[256];
	script_sha1_print(sha1, text);
	call->redis->node->unknown_script(call->redis->node->ctx, call->redis->number, text);
	snprintf(why, sizeof why, "Pawl does not run scripts, and does not know the one with the "
		"SHA1 %s: pawl redis-script says more (docs/redis.md)", text);
	return redis_unable(call, why);
}

enum dialect_step redis_eval(const struct redis_call *call) {
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	const struct script_meaning *meaning =
		script_learn(call, call->command->arguments[1], sha1);
	return meaning ? script_run(call, meaning) : script_unknown(call, sha1);
}

enum dialect_step redis_evalsha(const struct redis_call *call) {
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	const struct script_meaning *meaning =
		script_sha1_parse(call->command->arguments[1], sha1)
		? scripts_find(&call->redis->server->scripts, sha1) : NULL;
	if (meaning) {
		return script_run(call, meaning);
	}
	resp_error(call->w, "NOSCRIPT", slice_str("No matching script. Please use EVAL."));
	return DIALECT_DONE;
}

/* ---- SCRIPT ---- */

static enum dialect_step script_load(const struct redis_call *call) {
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	char text[2 * SCRIPT_SHA1_BYTES + 1];
	if (!script_learn(call, call->command->arguments[2], sha1)) {
		return script_unknown(call, sha1);
	}
	script_sha1_print(sha1, text);
	resp_text(call->w, text);
	return DIALECT_DONE;
}

static enum dialect_step script_exists(const struct redis_call *call) {
	const struct resp_command *c = call->command;
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	resp_array(call->w, c->count - 2);
	for (size_t i = 2; i < c->count; i++) {
		resp_number(call->w, script_sha1_parse(c->arguments[i], sha1)
			&& scripts_find(&call->redis->server->scripts, sha1));
	}
	return DIALECT_DONE;
}

enum dialect_step redis_script(const struct redis_call *call) {
	const struct resp_command *c = call->command;
	if (resp_word_is(c->arguments[1], "LOAD") && c->count == 3) {
		return script_load(call);
	}
	if (resp_word_is(c->arguments[1], "EXISTS") && c->count > 2) {
		return script_exists(call);
	}
	if (resp_word_is(c->arguments[1], "FLUSH")) {
		/* Others may use them; a client that loads its own again finds them there. */
		resp_status(call->w, "OK");
		return DIALECT_DONE;
	}
	if (resp_word_is(c->arguments[1], "KILL")) {
		resp_error(call->w, "NOTBUSY", slice_str("No scripts in execution right now."));
		return DIALECT_DONE;
	}
	return redis_unable(call, "Pawl knows SCRIPT LOAD, EXISTS, FLUSH and KILL");
}
