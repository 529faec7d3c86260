/* suggest.h: finds the name that somebody may have meant who has typed another one. */
#ifndef PAWL_CLI_SUGGEST_H
#define PAWL_CLI_SUGGEST_H

#include <stddef.h>

struct suggestion {
	/* What was typed. */
	const char *word;

	/* The nearest name so far that is near enough, or NULL; and how far away it is. */
	const char *best;
	size_t distance;
};

/* Takes the name into account. Begin with { .word = WORD }. */
void suggest_try(struct suggestion *s, const char *name);

#endif
