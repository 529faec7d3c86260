/* main.c: the command pawl. It finds the command that is meant, and runs it. */
#include <stdio.h>
#include <string.h>

#include "audit_command.h"
#include "bench.h"
#include "certs.h"
#include "cluster.h"
#include "commands.h"
#include "run.h"
#include "suggest.h"
#include "top.h"

static const struct cli_topic topics[] = {
	{ .command = &cli_run },
	{ .command = &cli_acquire },
	{ .command = &cli_extend },
	{ .command = &cli_update },
	{ .command = &cli_release },
	{ .command = &cli_downgrade },
	{ .command = &cli_transfer },
	{ .command = &cli_ask_release },
	{ "Elect a leader:", .command = &cli_elect },
	{ .command = &cli_leader },
	{ "Inspect:", .command = &cli_get },
	{ .command = &cli_ls },
	{ .command = &cli_wait },
	{ .command = &cli_waiters },
	{ .command = &cli_explain },
	{ .command = &cli_watch },
	{ .command = &cli_status },
	{ .command = &cli_top },
	{ "Protect a resource:", .command = &cli_fence },
	{ "Operate a cluster:", .command = &cli_cluster },
	{ .command = &cli_break },
	{ .command = &cli_clients },
	{ .command = &cli_audit },
	{ .command = &cli_drain },
	{ .command = &cli_cert },
	{ .command = &cli_deploy },
	{ .command = &cli_bench },
	{ .command = &cli_can, .unlisted = true },
	{ .command = &cli_redis_script, .unlisted = true },
};

/* pawl lock KEY is pawl acquire; with a command behind "--" it is pawl run. */
static const struct cli_command *command_lock(char **words) {
	for (char **word = words; *word; word++) {
		if (strcmp(*word, "--") == 0) {
			return &cli_run;
		}
	}
	return &cli_acquire;
}

/* Returns the command that the first of the words names. */
static const struct cli_command *command_find(char **words) {
	const char *name = words[0];
	if (strcmp(name, "lock") == 0) {
		return command_lock(words);
	}
	for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
		if (strcmp(topics[i].command->name, name) == 0) {
			return topics[i].command;
		}
	}
	return NULL;
}

/* The names that commands have elsewhere. */
static const struct {
	const char *elsewhere, *here;
} others[] = {
	{ "unlock", "release" },
	{ "renew", "extend" },
	{ "refresh", "extend" },
	{ "list", "ls" },
	{ "set", "update" },
	{ "show", "get" },
};

_Noreturn static void unknown_command(const struct cli_command_line *line, const char *name) {
	struct suggestion s = { .word = name };
	for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
		suggest_try(&s, topics[i].command->name);
	}
	suggest_try(&s, "lock");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (strcmp(others[i].elsewhere, name) == 0) {
			s.best = others[i].here;
		}
	}
	cli_misuse(line, "unknown command '%s'%s%s%s", name, s.best ? "; did you mean pawl " : "",
		s.best ? s.best : "", s.best ? "?" : "");
}

int main(int argc, char **argv) {
	struct cli_command_line line = { .topics = topics,
		.topic_count = sizeof topics / sizeof *topics, .argc = argc, .argv = argv };
	int at = cli_options_global(&line, argc, argv);
	if (at >= argc) {
		cli_misuse(&line, "no command given");
	}
	bool help = strcmp(argv[at], "help") == 0;
	if (help && at + 1 >= argc) {
		static char ask[] = "--help", *words[] = { ask, ask, NULL };
		/* This does not return. */
		cli_options_global(&line, 2, words);
	}
	line.command = command_find(argv + at + help);
	if (!line.command) {
		unknown_command(&line, argv[at + help]);
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
		return status ? status : cli_own_status(&line, CLI_REFUSED);
	}
	return status;
}
