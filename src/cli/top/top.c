/* top.c: pawl top: asks all nodes once a second. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "field.h"
#include "top_impl.h"

/* A node that is silent is asked again after this time. */
#define ANSWER_TIMEOUT_MS 5000

static const char top_help[] =
	"usage: pawl top [--count N] [--prefix TEXT]\n"
	"\n"
	"Shows once a second what all nodes of --endpoints do: requests, refusals, grants,\n"
	"releases and lost leases per second, how quickly each node answers, and the keys\n"
	"that stand out: granted most often in the last minute, with the longest queues,\n"
	"with the oldest waiters, and held for longest (20 of each).\n"
	"\n"
	"In a terminal: left and right choose the list, up and down move in it, q ends.\n"
	"Elsewhere it prints a line a second; with --json, an object a second.\n"
	"\n"
	"  --count N      end after N seconds\n"
	"  --prefix TEXT  list only keys that begin with TEXT; without the right to read\n"
	"                 all keys you need this\n"
	"\n"
	"The exit status is 3 if no node has answered. NO_COLOR in the environment turns\n"
	"colours off.\n"
	"\n"
	"Example:\n"
	"  pawl top --endpoints a:7117,b:7117,c:7117\n"
	"  pawl top --json --count 5 | jq .rates\n";

static int64_t now_us(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- asking ---- */

static void node_count(struct top_node *n, const struct pawl_value *tree) {
	const int64_t now = now_us(), before = n->at;
	for (unsigned i = 0; i < TOP_TOTALS; i++) {
		const int64_t total = field_int(tree, top_total_name((enum top_total)i), 0);
		/* A node that was started again counts from 0. */
		n->rates[i] = before && total >= n->totals[i]
			? (double)(total - n->totals[i]) * 1e6 / (double)(now - before) : -1;
		n->totals[i] = total;
	}
	n->at = now;
}

static void node_keep(struct top_node *n, struct pawl_result **place, struct pawl_result *take) {
	n->under_way--;
	pawl_result_free(*place);
	*place = take->error ? NULL : take;
	if (take->error) {
		n->denied = take->error == PAWL_EDENIED;
		snprintf(n->trouble, sizeof n->trouble, "%s", take->message);
		n->at = 0;
		pawl_result_free(take);
	}
}

static void on_said(struct pawl_result *take_result, void *arg) {
	struct top_node *n = arg;
	node_keep(n, &n->said, take_result);
	if (n->said) {
		n->took = now_us() - n->asked;
		n->trouble[0] = '\0';
		n->top->answered = true;
		node_count(n, n->said->tree);
	}
}

static void on_status(struct pawl_result *take_result, void *arg) {
	struct top_node *n = arg;
	node_keep(n, &n->status, take_result);
}

static void node_ask(struct top_node *n) {
	const uint32_t timeout = n->top->line->timeout_ms ? n->top->line->timeout_ms
		: ANSWER_TIMEOUT_MS;
	const struct pawl_request top = { .method = PAWL_TOP, .key = n->top->prefix,
		.timeout_ms = timeout }, status = { .method = PAWL_STATUS, .timeout_ms = timeout };
	n->asked = now_us();
	n->under_way += pawl_start(n->client, &status, on_status, n, NULL) == 0;
	n->under_way += pawl_start(n->client, &top, on_said, n, NULL) == 0;
}

static void top_ask(struct top *t) {
	for (size_t i = 0; i < t->count; i++) {
		struct top_node *n = &t->nodes[i];
		if (n->under_way == 0) {
			node_ask(n);
		} else if (now_us() - n->asked > 900000) {
			n->denied = false;
			snprintf(n->trouble, sizeof n->trouble, "no answer for %s",
				output_duration((now_us() - n->asked) / 1000));
		}
	}
}

/* ---- showing ---- */

static void top_show(struct top *t) {
	top_look(t);
	if (t->screen) {
		top_screen_draw(t);
	} else if (t->line->json) {
		top_print_json(t);
	} else {
		top_print_line(t);
	}
	fflush(stdout);
}

static void on_second(evutil_socket_t fd, short what, void *arg) {
	struct top *t = arg;
	(void)fd, (void)what;
	top_show(t);
	t->shown++;
	if (t->shows && t->shown >= t->shows) {
		event_base_loopbreak(t->base);
		return;
	}
	top_ask(t);
}

static void on_key(evutil_socket_t fd, short what, void *arg) {
	struct top *t = arg;
	(void)fd, (void)what;
	if (!top_screen_key(t)) {
		event_base_loopbreak(t->base);
	} else {
		top_show(t);
	}
}

static void on_resize(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	top_show(arg);
}

static void on_end(evutil_socket_t fd, short what, void *arg) {
	const struct top *t = arg;
	(void)fd, (void)what;
	event_base_loopbreak(t->base);
}

/* ---- the command ---- */

static bool top_begin(struct top *t) {
	t->endpoints = cli_nodes(t->line);
	t->base = event_base_new();
	if (!t->endpoints || !t->base) {
		return false;
	}
	char *rest = t->endpoints;
	while (rest && t->count < TOP_NODES_MAX) {
		struct cli_command_line one = *t->line;
		struct top_node *n = &t->nodes[t->count++];
		n->endpoint = strsep(&rest, ",");
		one.endpoints = n->endpoint;
		n->top = t;
		n->client = cli_connect_on(&one, t->base);
		snprintf(n->trouble, sizeof n->trouble, "no answer yet");
	}
	return true;
}

static void top_end(struct top *t) {
	for (size_t i = 0; i < t->count; i++) {
		pawl_free(t->nodes[i].client);
		pawl_result_free(t->nodes[i].said);
		pawl_result_free(t->nodes[i].status);
	}
	if (t->base) {
		event_base_free(t->base);
	}
	free(t->endpoints);
	free(t);
}

/* Runs until somebody ends it. Returns false without memory. */
static bool top_run(struct top *t) {
	static const struct timeval second = { 1, 0 };
	struct event *events[] = { event_new(t->base, -1, EV_PERSIST, on_second, t),
		evsignal_new(t->base, SIGINT, on_end, t), evsignal_new(t->base, SIGTERM, on_end, t),
		evsignal_new(t->base, SIGWINCH, on_resize, t),
		event_new(t->base, STDIN_FILENO, EV_READ | EV_PERSIST, on_key, t) };
	/* The last two are for a screen only. */
	const size_t all = sizeof events / sizeof *events, count = t->screen ? all : all - 2;
	bool ok = true;
	for (size_t i = 0; i < count; i++) {
		ok = ok && events[i] && event_add(events[i], i == 0 ? &second : NULL) == 0;
	}
	if (ok) {
		top_ask(t);
		if (t->screen) {
			top_show(t);
		}
		event_base_dispatch(t->base);
	}
	for (size_t i = 0; i < all; i++) {
		if (events[i]) {
			event_free(events[i]);
		}
	}
	return ok;
}

static int top_command(struct cli_command_line *line) {
	const char *prefix = "";
	uint64_t shows = 0;
	const struct cli_option options[] = { { "count", CLI_NUMBER, &shows },
		{ "prefix", CLI_TEXT, &prefix } };
	int count;
	cli_options(line, options, sizeof options / sizeof *options, 0, 0, &count);
	struct top *t = calloc(1, sizeof *t);
	if (t) {
		*t = (struct top){ .line = line, .prefix = pawl_str(prefix), .shows = shows };
	}
	if (!t || !top_begin(t)) {
		cli_misuse(line, "out of memory");
	}
	t->screen = !line->json && top_screen_open();
	const bool ran = top_run(t), answered = t->answered;
	if (t->screen) {
		top_screen_close();
	}
	char trouble[sizeof t->nodes[0].trouble];
	snprintf(trouble, sizeof trouble, "%s", t->nodes[0].trouble);
	top_end(t);
	if (!ran) {
		cli_misuse(line, "out of memory");
	}
	if (!answered) {
		output_line(stderr, "pawl top: no node has answered: %s", trouble);
	}
	return answered ? CLI_DONE : CLI_UNREACHABLE;
}

const struct cli_command cli_top = { "top", "show live rates, slow nodes and the hottest keys",
	top_help, top_command };
