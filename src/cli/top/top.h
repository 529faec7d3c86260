/* top.h: pawl top: what all nodes do now, once a second. */
#ifndef PAWL_CLI_TOP_H
#define PAWL_CLI_TOP_H

#include "cli.h"

extern const struct cli_command cli_top;

#endif
