/* audit_command.h: pawl audit. */
#ifndef PAWL_CLI_AUDIT_COMMAND_H
#define PAWL_CLI_AUDIT_COMMAND_H

#include "cli.h"

extern const struct cli_command cli_audit;

#endif
