/* connect_node.c: which node it is that answers. Some requests are for one node that is named, and
 * would mean something else at another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "field.h"

static const char nowhere[] = "that node is not among the endpoints; ";

/* Makes a client that talks to this one endpoint only, if the node there is the right one.
 * Otherwise writes to `found` what is there instead. Sets *out_silent if nobody answers. */
static struct pawl *connect_if_named(const struct cli_command_line *line, const char *endpoint,
	const char *node, FILE *found, bool *out_silent) {
	struct cli_command_line one = *line;
	one.endpoints = endpoint;
	struct pawl *client = cli_connect(&one);
	const struct pawl_request ping = { .method = PAWL_PING };
	struct pawl_result *result = cli_call(client, &ping);
	bool same = !result->error && strcmp(result->node, node) == 0;
	*out_silent = *out_silent || result->error;
	if (!same) {
		fprintf(found, "%s%s%s%s", ftell(found) > (long)strlen(nowhere) ? ", " : "",
			result->error ? "" : endpoint, result->error ? "" : " is ",
			result->error ? result->message : result->node);
		pawl_free(client);
	}
	pawl_result_free(result);
	return same ? client : NULL;
}

static struct pawl *connect_named(const struct cli_command_line *line, const char *node,
	FILE *found, bool *out_silent) {
	char *list = cli_nodes(line), *rest = list, *endpoint;
	struct pawl *client = NULL;
	while (!client && rest && (endpoint = strsep(&rest, ",")) != NULL) {
		client = connect_if_named(line, endpoint, node, found, out_silent);
	}
	free(list);
	return client;
}

int cli_connect_node(const struct cli_command_line *line, const char *node,
	struct pawl **out_client) {
	char text[512] = "";
	/* What does not fit is left out. */
	FILE *found = fmemopen(text, sizeof text - 1, "w");
	if (!found) {
		cli_misuse(line, "out of memory");
	}
	fputs(nowhere, found);
	bool silent = false;
	*out_client = connect_named(line, node, found, &silent);
	fclose(found);
	/* If all have answered, the node is not missing: it is not meant to be here. */
	const struct pawl_result none = { .method = PAWL_DRAIN,
		.error = silent ? PAWL_EUNREACHABLE : PAWL_ENOTFOUND, .message = text,
		.endpoint = "", .field = "" };
	return *out_client ? CLI_DONE : cli_fail(line, &none, line->command->name, node);
}

void cli_started_over(struct pawl *client, char *out, size_t size) {
	const struct pawl_request request = { .method = PAWL_STATUS };
	struct pawl_result *status = cli_call(client, &request);
	out[0] = '\0';
	if (!status->error) {
		struct view v;
		view_read(&v, status->tree);
		const struct view_node *with = view_started_over(&v);
		snprintf(out, size, "%s", with ? with->name : "");
	}
	pawl_result_free(status);
}
