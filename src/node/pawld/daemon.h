/* daemon.h: a node as a process, with signals, reload and a planned stop. */
#ifndef PAWL_NODE_DAEMON_H
#define PAWL_NODE_DAEMON_H

#include "config_file.h"

struct daemon_options {
	struct node_config *take_config;
	/* The file that a reload reads; NULL with --dev. */
	const char *config_path;
	/* Tells a program where it listens, and ends with it (endpoints.h). */
	bool print_endpoints;
};

/* Runs until it is told to stop. Returns 0, or a PAWL_E... with *problem set. */
int daemon_run(const struct daemon_options *options, struct problem *problem);

#endif
