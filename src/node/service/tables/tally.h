/* tally.h: finds who has most of something, in one walk over any number of parts and in little
 * memory (Misra and Gries, 1982). Whoever has more than a seventeenth of all is found, and the
 * count is too low by at most that much.
 */
#ifndef PAWL_NODE_TALLY_H
#define PAWL_NODE_TALLY_H

#include <stdint.h>

#include "slice.h"

/* The number of parties that are counted at once. */
#define TALLY_ROWS 16

/* One party. */
struct tally_row {
	/* A hash of the party's name; parts with the same hash belong to it. */
	uint64_t name;
	uint64_t count;
	/* One of the party's parts, as the caller knows it. */
	uint64_t part;
	struct slice text;
};

/* Zeroed at the beginning. */
struct tally {
	struct tally_row rows[TALLY_ROWS];
	uint64_t total;
};

/* Adds `count` to the party with this name hash. `text` is borrowed until the end of the walk. */
void tally_add(struct tally *t, uint64_t name, uint64_t count, uint64_t part, struct slice text);
/* Returns NULL if nobody stands out. */
const struct tally_row *tally_most(const struct tally *t);

#endif
