/* wait.c: pawl wait: waits until a key is held, or free. */
#include <event2/event.h>
#include <string.h>

#include "commands.h"
#include "read.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char wait_help[] =
	"usage: pawl wait KEY --for held|free [--timeout DURATION]\n"
	"\n"
	"Waits until KEY is held, or free, without taking it, and returns at once if that\n"
	"is already so. The exit status is 1 after a timeout, or 3 if no node answered in\n"
	"that time.\n"
	"\n"
	"  --for held|free      what to wait for\n"
	"  --timeout DURATION   how long (default: for ever, even while no node answers)\n"
	"\n"
	"Example:\n"
	"  pawl wait deploy --for free --timeout 10m && echo done\n";

/* Without --timeout, each request waits for this long, and then the next one begins. */
#define WAIT_AT_ONCE_MS 600000

struct waiting {
	struct event_base *base;
	struct pawl *client;
	struct pawl_request request;
	bool for_ever;
	struct pawl_result *result;
	/* The error if there is no result, because the request could not be made. */
	int error;
};

static void ask(struct waiting *w);

static void on_answer(struct pawl_result *take_result, void *arg) {
	struct waiting *w = arg;
	if (w->for_ever
		&& (take_result->error == PAWL_ETIMEOUT
			|| take_result->error == PAWL_EUNREACHABLE)) {
		pawl_result_free(take_result);
		ask(w);
		return;
	}
	w->result = take_result;
	event_base_loopbreak(w->base);
}

static void ask(struct waiting *w) {
	w->error = pawl_start(w->client, &w->request, on_answer, w, NULL);
	if (w->error) {
		event_base_loopbreak(w->base);
	}
}

static bool answered(void *ctx) {
	return *pawl_endpoint(((const struct waiting *)ctx)->client);
}

static int wait_run(struct cli_command_line *line) {
	struct waiting w = { .request = { .method = PAWL_WAIT, .wait_ms = WAIT_AT_ONCE_MS },
		.base = event_base_new() };
	const char *what = NULL, *timeout = NULL;
	const struct cli_option options[] = { { "for", CLI_TEXT, &what },
		{ "timeout", CLI_TEXT, &timeout } };
	char **operands = cli_options(line, options, COUNT(options), 1, 1, NULL);
	w.request.key = cli_key(line, operands[0]);
	if (!what || (strcmp(what, "held") != 0 && strcmp(what, "free") != 0)) {
		cli_misuse(line, "what to wait for is missing: write --for held or --for free");
	}
	w.request.for_free = strcmp(what, "free") == 0;
	w.for_ever = !timeout;
	if (timeout && !cli_duration_parse(timeout, &w.request.wait_ms)) {
		cli_misuse(line, "--timeout: '%s' is not a duration: write 300ms, 5s or 2m",
			timeout);
	}
	if (!w.base) {
		cli_misuse(line, "out of memory");
	}
	w.client = cli_connect_on(line, w.base);
	ask(&w);
	if (!w.error) {
		cli_tell_silence(line, w.base, w.client, answered, &w);
		event_base_dispatch(w.base);
	}
	if (w.error) {
		cli_misuse(line, "%s", pawl_error_message(w.error));
	}
	int status = w.result->error ? cli_fail(line, w.result, "wait", operands[0]) : CLI_DONE;
	if (!w.result->error) {
		read_print(line, w.result, w.request.key);
	}
	status = cli_finish(w.client, w.result, status);
	event_base_free(w.base);
	return status;
}

const struct cli_command cli_wait = { "wait",
	"wait until a key is held, or free, without taking it", wait_help, wait_run };
