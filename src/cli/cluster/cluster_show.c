/* cluster_show.c: pawl cluster show: puts together what the nodes say. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "cluster_answers.h"
#include "field.h"
#include "output.h"

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
static const char *why_silent(const struct cluster_asked *a) {
	const char *why = a->result ? a->result->message : pawl_error_message(PAWL_ENOMEM);
	size_t size = strlen(a->endpoint);
	return strncmp(why, a->endpoint, size) == 0 && strncmp(why + size, ": ", 2) == 0
		? why + size + 2
		: why;
}

static void print_view(const struct cluster_answers *s, const struct cluster_asked *from,
	const struct view *v) {
	output_field("cluster", "%s, epoch %" PRId64 ", %s", *v->cluster ? v->cluster : "-",
		v->epoch,
		v->complete ? "complete"
			: v->settled ? "settled, not complete"
			: "NOT SETTLED");
	output_field("as seen by", "%s at %s", v->node, from->endpoint);
	output_field("votes", "%" PRId64 " of %zu masters vote, %" PRId64 " are needed", v->voting,
		view_masters(v), v->quorum);
	print_timing(cluster_answer(from));
	if (*v->change.step) {
		output_field("change", "to epoch %" PRId64 ": %s", v->change.epoch, v->change.step);
	}
	print_nodes(v);
	bool any = false;
	advice_give(v, say_line, &any);
	for (size_t i = 0; i < s->count; i++) {
		if (!cluster_answer(&s->asked[i])) {
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

static void print_json(const struct cluster_answers *s, const struct cluster_asked *from,
	const struct view *v) {
	json_t *object = output_json_tree(cluster_answer(from)), *advice = json_array(),
	       *nodes = json_array();
	for (size_t i = 0; i < s->count; i++) {
		const struct cluster_asked *a = &s->asked[i];
		json_t *node = output_json_tree(cluster_answer(a));
		output_json_bytes(node, "endpoint", pawl_str(a->endpoint));
		if (!cluster_answer(a)) {
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

static int tell(const struct cluster_answers *s) {
	const struct cluster_asked *from = cluster_answers_best(s);
	if (!from) {
		return cluster_answers_fail(s, "show");
	}
	struct view v;
	view_read(&v, cluster_answer(from));
	for (size_t i = 0; i < s->count; i++) {
		if (cluster_answer(&s->asked[i])) {
			view_add(&v, cluster_answer(&s->asked[i]));
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
	struct cluster_answers s = { .line = line };
	int status = cluster_answers_ask(&s) ? tell(&s) : CLI_REFUSED;
	cluster_answers_done(&s);
	return status;
}
