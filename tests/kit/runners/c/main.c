/* main.c: reads commands from the standard input, a JSON object a line, and starts them. The
 * program ends with its input, after it has closed its clients. See runner.h. */
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

#define LINE_BYTES_MAX (16 << 20)

struct input {
	struct runner runner;
	struct evbuffer *buffer;
	struct event *readable;
};

void command_started(struct command *command, int error) {
	char message[96];
	if (command->bad) {
		(void)snprintf(message, sizeof(message), "the parameter %s cannot be used",
			command->bad);
		line_refused(command, "bad_argument", message);
	} else if (error) {
		line_error(command, error, NULL);
	}
}

/* ---- clients, and the runner itself ---- */

static void do_hello(struct command *command) {
	line_ok(command, json_pack("{ss ss si}", "language", "c", "version", pawl_version(),
		"level", LEVEL));
}

/* Joins the endpoints by commas; NULL: the environment says where nodes are. Free the text. */
static char *endpoints_of(struct command *command) {
	json_t *list = json_object_get(command->params, "endpoints");
	const size_t count = json_array_size(list);
	size_t size = 1;
	if (!list) {
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		size += json_string_length(json_array_get(list, i)) + 1;
	}
	char *text = calloc(1, size), *at = text;
	for (size_t i = 0; text && i < count; i++) {
		const char *item = json_string_value(json_array_get(list, i));
		if (!item) {
			command->bad = "endpoints";
			break;
		}
		at += snprintf(at, size - (size_t)(at - text), "%s%s", i ? "," : "", item);
	}
	return text;
}

static void do_connect(struct command *command) {
	struct runner *runner = command->runner;
	const char *name = param_text(command, "client");
	char *endpoints = endpoints_of(command);
	struct pawl_options options = { .endpoints = endpoints, .base = runner->base,
		.prefer_first = param_flag(command, "prefer_first"),
		.timeout_ms = param_number(command, "timeout_ms", 0) };
	struct client *client = calloc(1, sizeof(*client));
	const char *message = NULL;
	if (!client) {
		abort();
	}
	pawl_options_from_env(&options);
	int error = command->bad ? 0 : pawl_new(&options, &client->pawl, &message);
	free(endpoints);
	if (command->bad || error) {
		free(client);
		if (command->bad) {
			command_started(command, 0);
		} else {
			line_error(command, error, message);
		}
		return;
	}
	client->runner = runner;
	client->name = strdup(name);
	list_append(&runner->clients, &client->link);
	line_ok(command, json_object());
}

static void do_close(struct command *command) {
	struct client *client = client_named(command);
	if (!client) {
		command_started(command, 0);
		return;
	}
	/* This command is not one of those that end with the client. */
	command->client = NULL;
	client_close(client);
	line_ok(command, json_object());
}

/* Ends a command without an answer of its own. Returns whether there was something to end. */
static bool cancel(struct command *command) {
	struct held *held = command->held;
	if (command->call) {
		pawl_cancel(command->call);
		if (held && held->wanted == command) {
			held_free(held);
		}
		return true;
	}
	if (held && held->wanted == command && held->election) {
		campaign_end(held);
		return true;
	}
	return false;
}

static void do_cancel(struct command *command) {
	struct list *commands = &command->runner->commands;
	const json_int_t id = json_integer_value(json_object_get(command->params, "command"));
	for (struct list *at = list_first(commands); at; at = list_after(commands, at)) {
		struct command *other = CONTAINER_OF(at, struct command, link);
		if (other->id == id && other != command && cancel(other)) {
			line_refused(other, "canceled", "the command cancel has ended it");
			break;
		}
	}
	/* A command that is over already was as good as canceled too late. */
	line_ok(command, json_object());
}

/* ---- reading ---- */

static const struct {
	const char *name;
	command_fn *run;
} table[] = {
	{ "hello", do_hello },
	{ "connect", do_connect },
	{ "close", do_close },
	{ "cancel", do_cancel },
	{ "lock", do_lock },
	{ "locks", do_locks },
	{ "extend", do_extend },
	{ "shorten", do_shorten },
	{ "token", do_token },
	{ "valid", do_valid },
	{ "check", do_check },
	{ "release", do_release },
	{ "forget", do_forget },
	{ "downgrade", do_downgrade },
	{ "update", do_update },
	{ "transfer", do_transfer },
	{ "ask_release", do_ask_release },
	{ "get", do_get },
	{ "waiters", do_waiters },
	{ "explain", do_explain },
	{ "campaign", do_campaign },
	{ "proclaim", do_proclaim },
	{ "leader", do_leader },
	{ "observe", do_observe },
	{ "watch", do_watch },
	{ "stop", do_stop },
	{ "fence", do_fence },
	{ "gate", do_gate },
};

static void run(struct runner *runner, json_t *take_params) {
	struct command *command = calloc(1, sizeof(*command));
	const char *name = json_string_value(json_object_get(take_params, "do"));
	if (!command) {
		abort();
	}
	command->runner = runner;
	command->params = take_params;
	command->id = json_integer_value(json_object_get(take_params, "id"));
	list_append(&runner->commands, &command->link);
	for (size_t i = 0; name && i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].name, name) == 0) {
			table[i].run(command);
			return;
		}
	}
	line_refused(command, "unknown_command", name ? name : "");
}

static void end(struct input *input, const char *why) {
	if (why) {
		fprintf(stderr, "runner: %s\n", why);
	}
	event_base_loopbreak(input->runner.base);
}

static void on_readable(evutil_socket_t fd, short what, void *arg) {
	struct input *input = arg;
	char *line;
	size_t size;
	(void)what;
	int got = evbuffer_read(input->buffer, fd, -1);
	if (got <= 0) {
		if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
			end(input, NULL);
		}
		return;
	}
	while ((line = evbuffer_readln(input->buffer, &size, EVBUFFER_EOL_LF)) != NULL) {
		json_error_t problem;
		json_t *params = json_loadb(line, size, JSON_ALLOW_NUL, &problem);
		free(line);
		if (!json_is_object(params)) {
			json_decref(params);
			end(input, "a line of the input is no JSON object");
			return;
		}
		run(&input->runner, params);
	}
	if (evbuffer_get_length(input->buffer) > LINE_BYTES_MAX) {
		end(input, "a line of the input is too long");
	}
}

/* The loop also reads files, so that the runner can be tried by hand. */
static struct event_base *base_new(void) {
	struct event_config *config = event_config_new();
	if (!config || event_config_require_features(config, EV_FEATURE_FDS) != 0) {
		return NULL;
	}
	struct event_base *base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

int main(void) {
	struct input input = { .runner.base = base_new(), .buffer = evbuffer_new() };
	struct runner *runner = &input.runner;
	list_init(&runner->clients);
	list_init(&runner->helds);
	list_init(&runner->watchings);
	list_init(&runner->commands);
	if (!runner->base || !input.buffer) {
		fprintf(stderr, "runner: no event loop\n");
		return 1;
	}
	input.readable = event_new(runner->base, STDIN_FILENO, EV_READ | EV_PERSIST, on_readable,
		&input);
	if (!input.readable || event_add(input.readable, NULL) != 0) {
		fprintf(stderr, "runner: the standard input cannot be read\n");
		return 1;
	}
	event_base_dispatch(runner->base);
	runner_close(runner);
	event_free(input.readable);
	evbuffer_free(input.buffer);
	event_base_free(runner->base);
	return 0;
}
