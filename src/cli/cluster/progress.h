/* progress.h: what a long command is doing: a line for each step, or on a terminal one line that is rewritten. */
#ifndef PAWL_CLI_PROGRESS_H
#define PAWL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	FILE *to;      /* NULL: say nothing */
	bool rewrites; /* `to` is a terminal */
	bool open;     /* the line on it is not ended */
	char last[256]; /* the step that was said last */
};

void progress_init(struct progress *p, FILE *to);
/* `total` 0: not known. Where lines are not rewritten the same step is said once, however far it is. */
void progress_step(struct progress *p, const char *step, int64_t done, int64_t total);
/* A line that stays. */
void progress_say(struct progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What follows begins on a line of its own. */
void progress_end(struct progress *p);

#endif
