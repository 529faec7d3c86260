/* walks.h: walks through a small model at random. With all rules no walk may break a promise; with
 * any one of them removed some walk has to.
 *
 *   PROGRAM [--walks N] [--without RULE [--trace]]
 */
#ifndef PAWL_MODEL_WALKS_H
#define PAWL_MODEL_WALKS_H

#include <stdbool.h>
#include <stdint.h>

struct walks {
	const char *program;
	const char *const *rules;
	int rule_count;
	/* How many walks are made with all rules, and at most with one less. */
	uint64_t walks, most;
	/* Walks from the beginning, until `broken` or long enough. */
	void (*walk)(void);
};

/* The rule that is removed; negative: none. */
extern int without;
/* The walk broke a promise. */
extern bool broken;

/* Prints what happens, if the walk is traced. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
uint32_t throw_of(uint32_t sides);
/* Returns the status of the program. */
int walks_main(const struct walks *w, int argc, char **argv);

#endif
