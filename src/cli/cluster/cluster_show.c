/* cluster_show.c: pawl cluster show: asks every node of --endpoints at the same time, and puts
 * together what they say. */
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "field.h"
#include "output.h"

#define ASKED_MAX 32
#define ASK_TIMEOUT_MS 2000

struct asked {
	char *endpoint;

	/* This client talks to this endpoint only. */
	struct pawl *client;
	struct pawl_result *result;
	struct show *show;
};

struct show {
	const struct cli_command_line *line;

	/* The memory that the texts of the endpoints point into. */
	char *list;
	struct event_base *base;
	struct asked asked[ASKED_MAX];
	size_t count, waiting;
};

/* ---- asking ---- */

static void on_status(struct pawl_result *take_result, void *arg) {
	struct asked *a = arg;
	a->result = take_result;
	a->show->waiting--;
	if (a->show->waiting == 0) {
		event_base_loopbreak(a->show->base);
	}
}

static void ask(struct show *s, char *endpoint) {
	struct cli_command_line one = *s->line;
	one.endpoints = endpoint;
	struct asked *a = &s->asked[s->count];
	*a = (struct asked){ .endpoint = endpoint, .client = cli_connect_on(&one, s->base),
		.show = s };
	const struct pawl_request request = { .method = PAWL_STATUS,
		.timeout_ms = s->line->timeout_ms ? s->line->timeout_ms : ASK_TIMEOUT_MS };
	if (pawl_start(a->client, &request, on_status, a, NULL) == 0) {
		s->waiting++;
	}
	s->count++;
}

static bool ask_all(struct show *s) {
	s->list = strdup(s->line->endpoints);
	s->base = event_base_new();
	if (!s->list || !s->base) {
		fputs("pawl: out of memory\n", stderr);
		return false;
	}
	char *rest = s->list;
	while (rest && s->count < ASKED_MAX) {
		ask(s, strsep(&rest, ","));
	}
	while (s->waiting > 0 && event_base_dispatch(s->base) == 0) {
	}
	return true;
}

static void show_done(struct show *s) {
	for (size_t i = 0; i < s->count; i++) {
		pawl_free(s->asked[i].client);
		pawl_result_free(s->asked[i].result);
	}
	if (s->base) {
		event_base_free(s->base);
	}
	free(s->list);
}

/* ---- putting together ---- */

static const struct pawl_value *answer(const struct asked *a) {
	return a->result && !a->result->error ? a->result->tree : NULL;
}

static bool is_member(const struct pawl_value *status) {
	const char *role = field_text(status, "role");
	return strcmp(role, "master") == 0 || strcmp(role, "replica") == 0;
}

/* Returns whether status `a` knows more than status `b`. A member knows more than a node that is
 * not in the cluster. Among equals the newest epoch counts, then who sees more votes, then who
 * coordinates a change. */
static bool knows_more(const struct pawl_value *a, const struct pawl_value *b) {
	const struct {
		int64_t left, right;
	} rows[] = {
		{ is_member(a), is_member(b) },
		{ field_int(a, "epoch", 0), field_int(b, "epoch", 0) },
		{ field_int(a, "voting", 0), field_int(b, "voting", 0) },
		{ *field_text(pawl_value_get(a, "change"), "step") != '\0',
			*field_text(pawl_value_get(b, "change"), "step") != '\0' },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].left != rows[i].right) {
			return rows[i].left > rows[i].right;
		}
	}
	return false;
}

static const struct asked *best(const struct show *s) {
	const struct asked *found = NULL;
	for (size_t i = 0; i < s->count; i++) {
		const struct pawl_value *tree = answer(&s->asked[i]);
		if (tree && (!found || knows_more(tree, answer(found)))) {
			found = &s->asked[i];
		}
	}
	return found;
}

/* ---- telling ---- */

static const char *behind(const struct view_node *n) {
	static char text[64];
	if (n->catching_up) {
		snprintf(text, sizeof text, "%" PRId64 " copied", n->snapshot_done);
	} else if (n->lag != VIEW_UNKNOWN) {
		snprintf(text, sizeof text, "%" PRId64, n->lag);
	} else {
		return "-";
	}
	return text;
}

static const char *state_of(const struct view_node *n) {
	if (*n->state) {
		return n->state;
	}
	return n->stranger ? "STRANGER"
		: n->voting ? "voting"
		: n->self || n->linked ? "up"
		: "DOWN";
}

static void print_nodes(const struct view *v) {
	printf("\n%-16s %-8s %-24s %-13s %-6s %-12s %-7s %-8s %s\n", "NODE", "ROLE", "ADDRESS",
		"STATE", "VOTES", "BEHIND", "AGE", "RIGHTS", "FOLLOWS");
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		if (!n->master && !n->replica && !n->self && !n->linked && !*n->state) {
			/* The node was in the cluster once, and is gone. */
			continue;
		}
		printf("%-16s %-8s %-24s %-13s %-6s %-12s %-7s %-8.8s %s\n", n->name,
			*n->role ? n->role : "-", *n->address ? n->address : "-", state_of(n),
			n->voting ? "yes"
				: n->master ? "NO"
				: "-",
			behind(n), n->age_ms == VIEW_UNKNOWN ? "-" : output_duration(n->age_ms),
			*n->rights ? n->rights : "-", *n->following ? n->following : "-");
	}
}

static void say_line(void *ctx, const char *sentence) {
	bool *any = ctx;
	printf("%s  - %s\n", *any ? "" : "\nWhat to do:\n", sentence);
	*any = true;
}

static void print_timing(const struct pawl_value *tree) {
	output_field("timing",
		"leases up to %s, request timeout %s, promise timeout %s, clock drift %g%%",
		output_duration(field_int(tree, "max_lease_ms", 0)),
		output_duration(field_int(tree, "request_timeout_ms", 0)),
		output_duration(field_int(tree, "promise_timeout_ms", 0)),
		(double)field_int(tree, "clock_drift_ppm", 0) / 10000);
}

/* Returns why there is no answer, without the endpoint if the sentence begins with it. */
static const char *why_silent(const struct asked *a) {
	const char *why = a->result ? a->result->message : pawl_error_message(PAWL_ENOMEM);
	size_t size = strlen(a->endpoint);
	return strncmp(why, a->endpoint, size) == 0 && strncmp(why + size, ": ", 2) == 0
		? why + size + 2
		: why;
}

static void print_view(const struct show *s, const struct asked *from, const struct view *v) {
	output_field("cluster", "%s, epoch %" PRId64 ", %s", *v->cluster ? v->cluster : "-",
		v->epoch,
		v->complete ? "complete"
			: v->settled ? "settled, not complete"
			: "NOT SETTLED");
	output_field("as seen by", "%s at %s", v->node, from->endpoint);
	output_field("votes", "%" PRId64 " of %zu masters vote, %" PRId64 " are needed", v->voting,
		view_masters(v), v->quorum);
	print_timing(answer(from));
	if (*v->change.step) {
		output_field("change", "to epoch %" PRId64 ": %s", v->change.epoch, v->change.step);
	}
	print_nodes(v);
	bool any = false;
	advice_give(v, say_line, &any);
	for (size_t i = 0; i < s->count; i++) {
		if (!answer(&s->asked[i])) {
			char text[512];
			snprintf(text, sizeof text, "no node answers at %s: %s",
				s->asked[i].endpoint, why_silent(&s->asked[i]));
			say_line(&any, text);
		}
	}
}

static void add_sentence(void *ctx, const char *sentence) {
	json_array_append_new(ctx, json_string(sentence));
}

static void print_json(const struct show *s, const struct asked *from, const struct view *v) {
	json_t *object = output_json_tree(answer(from)), *advice = json_array(),
	       *nodes = json_array();
	for (size_t i = 0; i < s->count; i++) {
		const struct asked *a = &s->asked[i];
		json_t *node = output_json_tree(answer(a));
		output_json_bytes(node, "endpoint", pawl_str(a->endpoint));
		if (!answer(a)) {
			output_json_bytes(node, "error",
				pawl_str(pawl_error_code(
					a->result ? a->result->error : PAWL_ENOMEM)));
		}
		json_array_append_new(nodes, node);
	}
	advice_give(v, add_sentence, advice);
	output_json_set(object, "nodes", nodes);
	output_json_set(object, "advice", advice);
	output_json(object);
}

static int tell(const struct show *s) {
	const struct asked *from = best(s);
	if (!from) {
		const struct pawl_result *last = s->count ? s->asked[s->count - 1].result : NULL;
		const struct pawl_result none = { .error = PAWL_EUNREACHABLE,
			.message = last ? last->message : "", .endpoint = "", .field = "" };
		return cli_fail(s->line, &none, "cluster", "show");
	}
	struct view v;
	view_read(&v, answer(from));
	for (size_t i = 0; i < s->count; i++) {
		if (answer(&s->asked[i])) {
			view_add(&v, answer(&s->asked[i]));
		}
	}
	if (s->line->json) {
		print_json(s, from, &v);
	} else {
		print_view(s, from, &v);
	}
	return CLI_DONE;
}

int cluster_show(const struct cli_command_line *line) {
	struct show s = { .line = line };
	int status = ask_all(&s) ? tell(&s) : CLI_REFUSED;
	show_done(&s);
	return status;
}
