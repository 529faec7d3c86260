/* cluster_answers.h: the status of every node of --endpoints. */
#ifndef PAWL_CLI_CLUSTER_ANSWERS_H
#define PAWL_CLI_CLUSTER_ANSWERS_H

#include "cli.h"

#define CLUSTER_ASKED_MAX 64
#define CLUSTER_ENDPOINT_BYTES 352

struct cluster_asked {
	char *endpoint;

	/* This client talks to this endpoint only. */
	struct pawl *client;
	struct pawl_result *result;
	struct cluster_answers *answers;
};

struct cluster_answers {
	const struct cli_command_line *line;

	/* The memory that the texts of the endpoints point into. */
	char *list;
	struct event_base *base;
	struct cluster_asked asked[CLUSTER_ASKED_MAX];
	size_t count, waiting;
};

/* Asks all nodes at the same time, and waits for their answers. `line` must be set, and everything
 * else zero. Returns false if there is no memory. */
bool cluster_answers_ask(struct cluster_answers *s);
void cluster_answers_done(struct cluster_answers *s);
/* Returns the status that the node has sent, or NULL. */
const struct pawl_value *cluster_answer(const struct cluster_asked *a);
/* Returns the node that knows most; NULL if none has answered. */
const struct cluster_asked *cluster_answers_best(const struct cluster_answers *s);
/* Says that no node has answered, and why. Returns the exit status. */
int cluster_answers_fail(const struct cluster_answers *s, const char *verb);

#endif
