/* daemon.h: a node as a process: signals, reload, planned stop. */
#ifndef PAWL_NODE_DAEMON_H
#define PAWL_NODE_DAEMON_H

#include "config_file.h"

struct daemon_options {
	struct node_config *take_config;
	const char *config_path; /* for reloads; NULL: --dev */
};

/* Runs until it is told to stop. 0, or a PAWL_E... with *problem set. */
int daemon_run(const struct daemon_options *options, struct problem *problem);

#endif
