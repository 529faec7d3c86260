/* commands.h: the commands that make a request, or a few requests, and show the outcome. */
#ifndef PAWL_CLI_COMMANDS_H
#define PAWL_CLI_COMMANDS_H

#include "cli.h"

extern const struct cli_command cli_acquire, cli_extend, cli_update, cli_release, cli_get, cli_ls,
	cli_wait, cli_waiters, cli_break, cli_status, cli_drain, cli_leader, cli_watch, cli_explain,
	cli_ask_release, cli_transfer, cli_downgrade, cli_fence, cli_clients, cli_can, cli_deploy,
	cli_redis_script;

#endif
