/* run.h: what pawl run was asked to do. */
#ifndef PAWL_CLI_RUN_H
#define PAWL_CLI_RUN_H

#include "cli.h"
#include "guardian.h"

struct run_wanted {
	const char *key;
	struct pawl_lock_options lock; /* without its callbacks */
	struct guardian_options guarding;
};

extern const char run_help[];

/* Ends with CLI_USAGE when the command line makes no sense. */
void run_read_line(struct cli_command_line *line, struct run_wanted *out_wanted);

#endif
