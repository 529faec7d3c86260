/* redis.c: the connection of a client of Redis, and the table of its commands. */
#include "redis_impl.h"

#include <stdio.h>

#include "check.h"
#include "pawl/error.h"

/* ---- the commands ---- */

/* The number of arguments counts the name; a `most` of 0 means any number. */
static const struct redis_command {
	const char *name;
	size_t least, most;
	redis_run *run;
} commands[] = {
	{ "SET", 3, 0, redis_set },
	{ "GET", 2, 2, redis_get },
	{ "EVALSHA", 3, 0, redis_evalsha },
	{ "EVAL", 3, 0, redis_eval },
	{ "PING", 1, 2, redis_ping },
	{ "AUTH", 2, 3, redis_auth },
	{ "CLIENT", 2, 0, redis_client },
	{ "COMMAND", 1, 0, redis_command_list },
	{ "CONFIG", 2, 0, redis_config },
	{ "DBSIZE", 1, 1, redis_dbsize },
	{ "DEL", 2, 0, redis_del },
	{ "DELEX", 2, 4, redis_delex },
	{ "DELIFEQ", 3, 3, redis_delex },
	{ "DISCARD", 1, 1, redis_discard },
	{ "ECHO", 2, 2, redis_echo },
	{ "EXEC", 1, 1, redis_exec },
	{ "EXISTS", 2, 0, redis_exists },
	{ "EXPIRE", 3, 3, redis_expire },
	{ "EXPIRETIME", 2, 2, redis_expiretime },
	{ "FLUSHALL", 1, 2, redis_flush },
	{ "FLUSHDB", 1, 2, redis_flush },
	{ "HELLO", 1, 0, redis_hello },
	{ "INFO", 1, 0, redis_info },
	{ "KEYS", 2, 2, redis_keys },
	{ "MGET", 2, 0, redis_mget },
	{ "MULTI", 1, 1, redis_multi },
	{ "PAWL.TOKEN", 3, 3, redis_token },
	{ "PAWL.VALID", 3, 3, redis_valid },
	{ "PAWL.WAIT", 5, 5, redis_take_waiting },
	{ "PERSIST", 2, 2, redis_persist },
	{ "PEXPIRE", 3, 3, redis_pexpire },
	{ "PEXPIRETIME", 2, 2, redis_pexpiretime },
	{ "PSETEX", 4, 4, redis_psetex },
	{ "PSUBSCRIBE", 2, 0, redis_subscribe },
	{ "PTTL", 2, 2, redis_pttl },
	{ "PUNSUBSCRIBE", 1, 0, redis_unsubscribe },
	{ "QUIT", 1, 0, redis_quit },
	{ "RESET", 1, 1, redis_reset },
	{ "ROLE", 1, 1, redis_role },
	{ "SCRIPT", 2, 0, redis_script },
	{ "SELECT", 2, 2, redis_select },
	{ "SENTINEL", 2, 0, redis_sentinel },
	{ "SETEX", 4, 4, redis_setex },
	{ "SETNX", 3, 3, redis_setnx },
	{ "STRLEN", 2, 2, redis_strlen },
	{ "SUBSCRIBE", 2, 0, redis_subscribe },
	{ "TIME", 1, 1, redis_time },
	{ "TTL", 2, 2, redis_ttl },
	{ "TYPE", 2, 2, redis_type },
	{ "UNLINK", 2, 0, redis_del },
	{ "UNSUBSCRIBE", 1, 0, redis_unsubscribe },
	{ "WAIT", 3, 3, redis_wait },
};

static const struct redis_command *command_find(struct slice name) {
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (resp_word_is(name, commands[i].name)) {
			return &commands[i];
		}
	}
	return NULL;
}

static enum dialect_step command_run(const struct redis_call *call) {
	const struct resp_command *c = call->command;
	const struct redis_command *found = command_find(c->arguments[0]);
	const int shown = c->arguments[0].size < 64 ? (int)c->arguments[0].size : 64;
	const char *name = (const char *)c->arguments[0].data;
	char why[192];
	if (!found) {
		snprintf(why, sizeof why, "unknown command '%.*s': Pawl serves locks, and no other "
			"data; docs/redis.md has its commands", shown, name);
		return redis_unable(call, why);
	}
	if (c->count < found->least) {
		snprintf(why, sizeof why, "wrong number of arguments for '%s' command",
			found->name);
		return redis_wrong(call, why);
	}
	if (found->most > 0 && c->count > found->most) {
		snprintf(why, sizeof why, "'%s' has at most %zu argument%s in Pawl", found->name,
			found->most - 1, found->most == 2 ? "" : "s");
		return redis_unable(call, why);
	}
	if (call->redis->multi && found->run != redis_exec && found->run != redis_discard
		&& found->run != redis_reset && found->run != redis_quit) {
		return redis_multi(call);
	}
	return found->run(call);
}

/* ---- the dialect ---- */

static void *redis_open(const struct allocator *alloc, const struct dialect_node *node,
	void *server, uint64_t number, const char *from) {
	struct redis *r = alloc_new(alloc, sizeof *r);
	if (r) {
		*r = (struct redis){ .alloc = *alloc, .node = node, .server = server,
			.number = number, .from = from, .version = 2 };
		r->tasks = (struct task_runner){ .alloc = &r->alloc, .node = node,
			.number = number, .show = redis_show, .ctx = r };
		client_decoder_init(&r->decoder, &r->alloc);
	}
	return r;
}

static void redis_close(void *state) {
	struct redis *r = state;
	task_free(&r->tasks);
	redis_walk_done(r);
	client_decoder_done(&r->decoder);
	const struct allocator alloc = r->alloc;
	alloc_free(&alloc, r, sizeof *r);
}

/* Returns what follows from a step, with regard to what could be written. */
static enum dialect_step redis_stepped(struct redis *r, enum dialect_step step,
	const struct resp_writer *w, const struct client_request **out_request) {
	*out_request = step == DIALECT_ASK ? &r->tasks.request : NULL;
	return w->error ? DIALECT_BROKEN : step;
}

static enum dialect_step redis_serve(void *state, struct slice in, size_t *out_taken,
	struct buffer *out, const struct client_request **out_request) {
	struct redis *r = state;
	struct resp_command command;
	struct resp_writer w = { .out = out, .version = r->version };
	const char *why = NULL;
	char text[96];
	CHECK(!r->tasks.task);
	*out_taken = 0;
	switch (resp_read(in, &command, out_taken, &why)) {
	case RESP_MORE:
		*out_taken = 0;
		return DIALECT_MORE;
	case RESP_WRONG:
		snprintf(text, sizeof text, "Protocol error: %s", why);
		resp_error(&w, "ERR", slice_str(text));
		*out_taken = 0;
		return DIALECT_CLOSE;
	case RESP_COMPLETE:
		break;
	}
	const struct redis_call call = { .redis = r, .command = &command, .w = &w,
		.began = out->size };
	const enum dialect_step step = command.count ? command_run(&call) : DIALECT_DONE;
	return redis_stepped(r, step, &w, out_request);
}

static enum dialect_step redis_answer(void *state, struct slice message, struct buffer *out,
	const struct client_request **out_request) {
	struct redis *r = state;
	struct client_response response;
	struct resp_writer w = { .out = out, .version = r->version };
	CHECK(r->tasks.task || r->walk.kind != REDIS_WALKS_NOT);
	int error = client_response_decode(&r->decoder, r->tasks.request.method, message,
		&response);
	CHECK(error != PAWL_EPROTOCOL);
	const enum dialect_step step = error ? DIALECT_BROKEN
		: r->tasks.task ? redis_task_answer(r, &response, &w)
		: redis_walk_answer(r, &response, &w);
	return redis_stepped(r, step, &w, out_request);
}

static void redis_say_refusal(void *state, struct slice message, struct buffer *out) {
	struct redis *r = state;
	struct client_response response;
	struct resp_writer w = { .out = out, .version = r->version };
	if (client_response_decode(&r->decoder, CLIENT_PING, message, &response) == 0) {
		redis_refuse(&w, &response);
	}
}

/* Whoever asked for a lock may not have learned that it has it. */
static const struct client_request *redis_leave(void *state) {
	struct redis *r = state;
	return task_leave(&r->tasks);
}

static void redis_sent(void *state) {
	struct redis *r = state;
	task_free(&r->tasks);
}

const struct dialect redis_dialect = { .open = redis_open, .close = redis_close,
	.serve = redis_serve, .answer = redis_answer, .refuse = redis_say_refusal,
	.leave = redis_leave, .sent = redis_sent };
