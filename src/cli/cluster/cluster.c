/* cluster.c: pawl cluster: shows or changes who the nodes are. */
#include <stdlib.h>

#include "cluster.h"

static int cluster_run(struct cli_command_line *line) {
	struct cluster_wanted wanted;
	cluster_read_line(line, &wanted);
	int status = wanted.change.kind ? cluster_change(line, &wanted) : cluster_show(line);
	free(wanted.masters);
	free(wanted.replicas);
	return status;
}

const struct cli_command cli_cluster = { "cluster", "show or change which nodes the cluster has",
	cluster_help, cluster_run };
