/* cluster.h: pawl cluster, and what it was asked to do. */
#ifndef PAWL_CLI_CLUSTER_H
#define PAWL_CLI_CLUSTER_H

#include "cli.h"
#include "view.h"

extern const struct cli_command cli_cluster;

struct cluster_wanted {
	const char *verb;

	/* Its kind is 0 if the cluster is only to be shown. */
	struct pawl_change change;
	struct pawl_change_node nodes[PAWL_CHANGE_NODES_MAX];

	/* The memory that the names in `nodes` point into. */
	char *masters, *replicas;
	uint32_t wait_ms;
	bool yes;

	/* The change is only shown. */
	bool dry_run;
};

extern const char cluster_help[];

/* Ends the program with CLI_USAGE if the command line makes no sense. */
void cluster_read_line(struct cli_command_line *line, struct cluster_wanted *out_wanted);

int cluster_show(const struct cli_command_line *line);
/* Asks for the change, and tells its progress and its outcome. Returns the exit status. */
int cluster_change(const struct cli_command_line *line, const struct cluster_wanted *wanted);

/* ---- cluster_parse.c ---- */

/* Cuts "a,b=host:port" in place, and appends the nodes to nodes[*count ..]. Returns NULL, or what
 * is wrong (static storage). */
const char *cluster_nodes_parse(char *text, bool master, struct pawl_change_node *nodes,
	size_t *count);
/* Reads "1%", "0.5%" or "200ppm" as parts in a million. Returns false if the text is none of these,
 * or more than 100 %. */
bool cluster_drift_parse(const char *text, uint32_t *out_ppm);

#endif
