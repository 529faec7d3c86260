/* cluster_answers.c: asks every node of --endpoints for its status, at the same time. */
#include "cluster_answers.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field.h"

#define ASK_TIMEOUT_MS 2000

/* ---- asking ---- */

static void on_status(struct pawl_result *take_result, void *arg) {
	struct cluster_asked *a = arg;
	a->result = take_result;
	a->answers->waiting--;
	if (a->answers->waiting == 0) {
		event_base_loopbreak(a->answers->base);
	}
}

static void ask(struct cluster_answers *s, char *endpoint) {
	struct cli_command_line one = *s->line;
	one.endpoints = endpoint;
	struct cluster_asked *a = &s->asked[s->count];
	*a = (struct cluster_asked){ .endpoint = endpoint, .client = cli_connect_on(&one, s->base),
		.answers = s };
	const struct pawl_request request = { .method = PAWL_STATUS,
		.timeout_ms = s->line->timeout_ms ? s->line->timeout_ms : ASK_TIMEOUT_MS };
	if (pawl_start(a->client, &request, on_status, a, NULL) == 0) {
		s->waiting++;
	}
	s->count++;
}

bool cluster_answers_ask(struct cluster_answers *s) {
	s->list = cli_nodes(s->line);
	s->base = event_base_new();
	if (!s->list || !s->base) {
		fputs("pawl: out of memory\n", stderr);
		return false;
	}
	char *rest = s->list;
	while (rest && s->count < CLUSTER_ASKED_MAX) {
		ask(s, strsep(&rest, ","));
	}
	while (s->waiting > 0 && event_base_dispatch(s->base) == 0) {
	}
	return true;
}

void cluster_answers_done(struct cluster_answers *s) {
	for (size_t i = 0; i < s->count; i++) {
		pawl_free(s->asked[i].client);
		pawl_result_free(s->asked[i].result);
	}
	if (s->base) {
		event_base_free(s->base);
	}
	free(s->list);
}

/* ---- who knows most ---- */

const struct pawl_value *cluster_answer(const struct cluster_asked *a) {
	return a->result && !a->result->error ? a->result->tree : NULL;
}

static bool has_role(const struct pawl_value *status, const char *role) {
	return strcmp(field_text(status, "role"), role) == 0;
}

static bool is_member(const struct pawl_value *status) {
	return has_role(status, "master") || has_role(status, "replica");
}

/* Returns whether status `a` knows more than status `b`. A member knows more than a node that is
 * not in the cluster. Among equals the newest epoch counts, then who sees more votes, then who
 * coordinates a change, and then masters, because replicas coordinate none. */
static bool knows_more(const struct pawl_value *a, const struct pawl_value *b) {
	const struct {
		int64_t left, right;
	} rows[] = {
		{ is_member(a), is_member(b) },
		{ field_int(a, "epoch", 0), field_int(b, "epoch", 0) },
		{ field_int(a, "voting", 0), field_int(b, "voting", 0) },
		{ *field_text(pawl_value_get(a, "change"), "step") != '\0',
			*field_text(pawl_value_get(b, "change"), "step") != '\0' },
		{ has_role(a, "master"), has_role(b, "master") },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].left != rows[i].right) {
			return rows[i].left > rows[i].right;
		}
	}
	return false;
}

const struct cluster_asked *cluster_answers_best(const struct cluster_answers *s) {
	const struct cluster_asked *found = NULL;
	for (size_t i = 0; i < s->count; i++) {
		const struct pawl_value *tree = cluster_answer(&s->asked[i]);
		if (tree && (!found || knows_more(tree, cluster_answer(found)))) {
			found = &s->asked[i];
		}
	}
	return found;
}

int cluster_answers_fail(const struct cluster_answers *s, const char *verb) {
	const struct pawl_result *last = s->count ? s->asked[s->count - 1].result : NULL;
	if (last && last->tree) {
		/* A node has refused to tell its status. */
		return cli_fail(s->line, last, "cluster", verb);
	}
	const struct pawl_result none = { .error = PAWL_EUNREACHABLE,
		.message = last ? last->message : "", .endpoint = "", .field = "" };
	return cli_fail(s->line, &none, "cluster", verb);
}
