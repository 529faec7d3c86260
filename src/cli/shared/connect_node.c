/* connect_node.c: talks to one node that is named, and to no other, because the request would mean
 * something else at another node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char nowhere[] = "that node is not among the endpoints; ";

/* Makes a client that talks to this one endpoint only, if the node there is the right one.
 * Otherwise writes to `found` what is there instead. */
static struct pawl *connect_if_named(const struct cli_command_line *line, const char *endpoint,
	const char *node, FILE *found) {
	struct cli_command_line one = *line;
	one.endpoints = endpoint;
	struct pawl *client = cli_connect(&one);
	const struct pawl_request ping = { .method = PAWL_PING };
	struct pawl_result *result = cli_call(client, &ping);
	bool same = !result->error && strcmp(result->node, node) == 0;
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
	FILE *found) {
	char *list = strdup(line->endpoints), *rest = list, *endpoint;
	struct pawl *client = NULL;
	while (!client && rest && (endpoint = strsep(&rest, ",")) != NULL) {
		client = connect_if_named(line, endpoint, node, found);
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
	*out_client = connect_named(line, node, found);
	fclose(found);
	const struct pawl_result none = { .error = PAWL_EUNREACHABLE, .message = text,
		.endpoint = "", .field = "" };
	return *out_client ? CLI_DONE : cli_fail(line, &none, line->command->name, node);
}
