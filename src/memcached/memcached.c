/* memcached.c: the connection of a client of memcached, and the table of its commands. */
#include "memcached_impl.h"

#include <stdio.h>

#include "check.h"
#include "pawl/error.h"

/* The number of words counts the name, and `noreply` where it is known, which is the last one. */
static const struct memcached_command {
	const char *name;
	size_t least, most;
	memcached_run *run;
	bool noreply;
} commands[] = {
	{ "add", 5, 6, memcached_add, true },
	{ "append", 5, 6, memcached_no_piece, true },
	{ "cas", 6, 7, memcached_cas, true },
	{ "decr", 3, 4, memcached_no_number, true },
	{ "delete", 2, 4, memcached_delete, true },
	{ "flush_all", 1, 3, memcached_flush_all, true },
	{ "gat", 3, MCTEXT_WORDS_MAX, memcached_gat, false },
	{ "gats", 3, MCTEXT_WORDS_MAX, memcached_gats, false },
	{ "get", 2, MCTEXT_WORDS_MAX, memcached_get, false },
	{ "gets", 2, MCTEXT_WORDS_MAX, memcached_gets, false },
	{ "incr", 3, 4, memcached_no_number, true },
	{ "ma", 2, MCTEXT_WORDS_MAX, memcached_ma, false },
	{ "md", 2, MCTEXT_WORDS_MAX, memcached_md, false },
	{ "me", 2, MCTEXT_WORDS_MAX, memcached_me, false },
	{ "mg", 2, MCTEXT_WORDS_MAX, memcached_mg, false },
	{ "mn", 1, 1, memcached_mn, false },
	{ "ms", 3, MCTEXT_WORDS_MAX, memcached_ms, false },
	{ "prepend", 5, 6, memcached_no_piece, true },
	{ "quit", 1, 1, memcached_quit, false },
	{ "replace", 5, 6, memcached_replace, true },
	{ "set", 5, 6, memcached_set, true },
	{ "stats", 1, 3, memcached_stats, false },
	{ "touch", 3, 4, memcached_touch, true },
	{ "verbosity", 2, 3, memcached_verbosity, true },
	{ "version", 1, 1, memcached_version, false },
};

static const struct memcached_command *command_find(struct slice name) {
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (mctext_is(name, commands[i].name)) {
			return &commands[i];
		}
	}
	return NULL;
}

static enum dialect_step command_run(const struct memcached_call *call) {
	struct memcached *m = call->memcached;
	const struct mctext_command *c = call->command;
	const struct memcached_command *found = c->count ? command_find(c->words[0]) : NULL;
	m->meta = (struct memcached_meta){ .on = false };
	m->noreply = found && found->noreply && c->count > found->least
		&& mctext_is(c->words[c->count - 1], "noreply");
	m->flags = 0;
	if (!found) {
		/* A client that asks for something newer knows this word. */
		mctext_line(call->w, "ERROR");
		return DIALECT_DONE;
	}
	if (c->more || c->count > found->most) {
		return memcached_wrong(call, "too many words: Pawl takes 1 to 64 keys at once");
	}
	if (c->count < found->least) {
		return memcached_wrong(call, "too few words");
	}
	return found->run(call);
}

/* ---- the dialect ---- */

static void *memcached_open(const struct allocator *alloc, const struct dialect_node *node,
	void *server, uint64_t number, const char *from) {
	struct memcached *m = alloc_new(alloc, sizeof *m);
	if (m) {
		*m = (struct memcached){ .alloc = *alloc, .node = node, .server = server,
			.from = from };
		m->tasks = (struct task_runner){ .alloc = &m->alloc, .node = node,
			.number = number, .show = memcached_show, .ctx = m };
		client_decoder_init(&m->decoder, &m->alloc);
	}
	return m;
}

static void memcached_close(void *state) {
	struct memcached *m = state;
	task_free(&m->tasks);
	client_decoder_done(&m->decoder);
	const struct allocator alloc = m->alloc;
	alloc_free(&alloc, m, sizeof *m);
}

/* Returns what follows from a step, with regard to what could be written. `began` is the size of
 * the output before the reply, which a client that wants none does not get. */
static enum dialect_step memcached_stepped(struct memcached *m, enum dialect_step step,
	const struct mctext_writer *w, size_t began, const struct client_request **out_request) {
	*out_request = step == DIALECT_ASK ? &m->tasks.request : NULL;
	if (w->error) {
		return DIALECT_BROKEN;
	}
	if (m->noreply) {
		w->out->size = began;
	}
	if (step == DIALECT_TOLD && w->out->size == began) {
		/* The client does not want to be told. */
		task_free(&m->tasks);
		return DIALECT_DONE;
	}
	return step;
}

static enum dialect_step memcached_serve(void *state, struct slice in, size_t *out_taken,
	struct buffer *out, const struct client_request **out_request) {
	struct memcached *m = state;
	struct mctext_command command;
	struct mctext_writer w = { .out = out };
	const size_t began = out->size;
	const char *why = NULL;
	CHECK(!m->tasks.task && m->flush_lists == 0);
	*out_taken = 0;
	switch (mctext_read(in, &command, out_taken, &why)) {
	case MCTEXT_MORE:
		return DIALECT_MORE;
	case MCTEXT_WRONG:
		mctext_line(&w, why);
		return DIALECT_CLOSE;
	case MCTEXT_COMPLETE:
		break;
	}
	const struct memcached_call call = { .memcached = m, .command = &command, .w = &w };
	return memcached_stepped(m, command_run(&call), &w, began, out_request);
}

static enum dialect_step memcached_answer(void *state, struct slice message, struct buffer *out,
	const struct client_request **out_request) {
	struct memcached *m = state;
	struct client_response response;
	struct mctext_writer w = { .out = out };
	const size_t began = out->size;
	CHECK(m->tasks.task || m->flush_lists > 0);
	int error = client_response_decode(&m->decoder, m->tasks.request.method, message,
		&response);
	CHECK(error != PAWL_EPROTOCOL);
	return memcached_stepped(m, error ? DIALECT_BROKEN : memcached_go_on(m, &response, &w), &w,
		began, out_request);
}

static void memcached_say_refusal(void *state, struct slice message, struct buffer *out) {
	struct memcached *m = state;
	struct client_response response;
	struct mctext_writer w = { .out = out };
	if (client_response_decode(&m->decoder, CLIENT_PING, message, &response) == 0) {
		memcached_refuse(&w, &response);
	}
}

/* Whoever asked for a lock may not have learned that it has it. */
static const struct client_request *memcached_leave(void *state) {
	struct memcached *m = state;
	return task_leave(&m->tasks);
}

static void memcached_sent(void *state) {
	struct memcached *m = state;
	task_free(&m->tasks);
}

const struct dialect memcached_dialect = { .open = memcached_open, .close = memcached_close,
	.serve = memcached_serve, .answer = memcached_answer, .refuse = memcached_say_refusal,
	.leave = memcached_leave, .sent = memcached_sent };
