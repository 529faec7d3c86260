/* tally.h: who has most of something, in one walk over any number of parts and in little memory (Misra and Gries, 1982): whoever has
 * more than a seventeenth of all is found, and is counted at most so much too low. */
#ifndef PAWL_NODE_TALLY_H
#define PAWL_NODE_TALLY_H

#include <stdint.h>

#include "slice.h"

#define TALLY_ROWS 16

struct tally_row {
	/* A hash of its name: parts with the same one are its. */
	uint64_t name;
	uint64_t count;
	/* One of its parts, as the caller knows it. */
	uint64_t part;
	struct slice text;
};

struct tally { /* zeroed at the beginning */
	struct tally_row rows[TALLY_ROWS];
	uint64_t total;
};

void tally_add(struct tally *t, uint64_t name, uint64_t count, uint64_t part, struct slice text);
/* NULL: nobody stands out. */
const struct tally_row *tally_most(const struct tally *t);

#endif
