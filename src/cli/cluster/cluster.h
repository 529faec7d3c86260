/* cluster.h: pawl cluster, and what it was asked to do. */
#ifndef PAWL_CLI_CLUSTER_H
#define PAWL_CLI_CLUSTER_H

#include "cli.h"
#include "view.h"

extern const struct cli_command cli_cluster;

struct cluster_wanted {
	const char *verb;
	struct pawl_change change; /* kind 0: only show */
	struct pawl_change_node nodes[PAWL_CHANGE_NODES_MAX];
	char *masters, *replicas; /* what the names in `nodes` point into */
	uint32_t wait_ms;
	bool yes;
};

extern const char cluster_help[];

/* Ends with CLI_USAGE when the command line makes no sense. */
void cluster_read_line(struct cli_command_line *line, struct cluster_wanted *out_wanted);

int cluster_show(const struct cli_command_line *line);
/* Asks for the change, tells how it goes on, and what came of it. Returns the exit status. */
int cluster_change(const struct cli_command_line *line, const struct cluster_wanted *wanted);

/* ---- cluster_parse.c ---- */

/* "a,b=host:port" cut in place and appended to nodes[*count ..]. NULL, or what is wrong (static storage). */
const char *cluster_nodes_parse(char *text, bool master, struct pawl_change_node *nodes, size_t *count);
/* "1%", "0.5%", "200ppm" to parts in a million; false if it is none, or more than 100 %. */
bool cluster_drift_parse(const char *text, uint32_t *out_ppm);

#endif
