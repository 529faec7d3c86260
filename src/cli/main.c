/* pawl: the command. Finds the one that is meant and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const struct cli_command *const commands[] = {
	&cli_run, &cli_acquire, &cli_extend, &cli_update, &cli_release, &cli_get, &cli_ls, &cli_wait, &cli_waiters,
	&cli_break, &cli_status, &cli_cluster, &cli_drain, &cli_cert, &cli_bench, &cli_elect, &cli_leader, &cli_watch, &cli_explain,
	&cli_ask_release, &cli_transfer, &cli_downgrade, &cli_fence, &cli_clients, &cli_can,
};

static const struct cli_command *command_find(const char *name) {
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (strcmp(commands[i]->name, name) == 0) {
			return commands[i];
		}
	}
	return NULL;
}

int main(int argc, char **argv) {
	struct cli_command_line line = { .argc = argc, .argv = argv };
	int at = cli_options_global(&line, argc, argv);
	if (at >= argc) {
		cli_misuse(&line, "which command?");
	}
	bool help = strcmp(argv[at], "help") == 0;
	if (help && at + 1 >= argc) {
		static char ask[] = "--help", *words[] = { ask, ask, NULL };
		cli_options_global(&line, 2, words); /* does not return */
	}
	line.command = command_find(argv[at + help]);
	if (!line.command) {
		cli_misuse(&line, "there is no command '%s'", argv[at + help]);
	}
	if (help) {
		static char ask[] = "--help", *words[] = { ask, ask, NULL };
		line.argc = 2;
		line.argv = words;
	} else {
		line.argc = argc - at;
		line.argv = argv + at;
	}
	int status = line.command->run(&line);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("pawl: standard output");
		return status ? status : CLI_REFUSED;
	}
	return status;
}
