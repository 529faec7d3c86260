/* read.h: shows what a read tells about one key, for people or as JSON. */
#ifndef PAWL_CLI_READ_H
#define PAWL_CLI_READ_H

#include "cli.h"

void read_print(const struct cli_command_line *line, const struct pawl_result *result,
	struct pawl_bytes key);

#endif
