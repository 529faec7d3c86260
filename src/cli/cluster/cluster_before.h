/* cluster_before.h: what is said and asked before a change of the cluster. */
#ifndef PAWL_CLI_CLUSTER_BEFORE_H
#define PAWL_CLI_CLUSTER_BEFORE_H

#include "cluster.h"
#include "progress.h"

/* Says what is to be known before the change, and asks where an answer is needed. Returns whether
 * to go on; if not, *out_status is the exit status. Ends the program with CLI_USAGE if the change
 * needs --yes. */
bool cluster_before(const struct cli_command_line *line, const struct cluster_wanted *wanted,
	const struct view *v, struct progress *p, int *out_status);

#endif
