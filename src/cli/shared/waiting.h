/* waiting.h: tells somebody at a terminal why a command does not go on yet. */
#ifndef PAWL_CLI_WAITING_H
#define PAWL_CLI_WAITING_H

#include "cli.h"

struct event_base;

struct waiting {
	const struct cli_command_line *line;
	struct event_base *base;
	struct pawl *client;

	/* The key that is waited for, or several; neither: only for the answer of a node. */
	struct pawl_bytes key;
	const struct pawl_key_item *keys;
	size_t key_count;

	/* How long the command goes on at most; PAWL_FOREVER: as long as it takes. */
	uint32_t patience_ms;
};

/* Returns how long a request goes on that waits for so long: --timeout comes in addition. */
uint32_t waiting_patience(const struct cli_command_line *line, uint32_t wait_ms);

/* If this process is in the foreground of a terminal, where its standard error goes, and there is
 * no --json: says on it, after half a second, who holds the key and which place in the queue this
 * process has, or that no node answers, and says so again when that has changed. It asks for this
 * by reads over the client. Everything in `w` but `w` itself lasts until waiting_over. */
void waiting_tell(const struct waiting *w);
/* The wait is over: nothing more is asked or said. This comes before the client is freed, and may
 * come again. */
void waiting_over(void);

#endif
