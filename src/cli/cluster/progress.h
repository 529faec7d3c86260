/* progress.h: shows what a long command is doing: with a line for each step, or on a terminal with
 * one line that is rewritten. */
#ifndef PAWL_CLI_PROGRESS_H
#define PAWL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	/* NULL means that nothing is shown. */
	FILE *to;
	/* `to` is a terminal. */
	bool rewrites;
	/* The line on it has no end yet. */
	bool open;
	/* The step that was shown last. */
	char last[256];
};

void progress_init(struct progress *p, FILE *to);
/* Shows a step; `total` is 0 if it is not known. Where lines are not rewritten, the same step is
 * shown only once, however far it has come. */
void progress_step(struct progress *p, const char *step, int64_t done, int64_t total);
/* Shows a line that stays. */
void progress_say(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Makes what follows begin on a line of its own. */
void progress_end(struct progress *p);

#endif
