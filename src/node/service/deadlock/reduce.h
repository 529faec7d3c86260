/* reduce.h: finds the deadlocks among the facts of a look, and a ring in them. This is pure.
 *
 * Whoever could proceed is removed with all that it holds, until nobody can. A party can proceed if
 * it waits for nothing, or if one of its requests could be served with what the others that are
 * left hold. Who is left waits for ever. (A search for cycles would find false ones where a key has
 * several holders.) Then those are removed for whom none of the others waits: they only wait for a
 * deadlock. */
#ifndef PAWL_NODE_DEADLOCK_REDUCE_H
#define PAWL_NODE_DEADLOCK_REDUCE_H

#include "facts.h"

/* A deadlock. */
struct deadlock {
	/* How many parties it has. */
	uint32_t party_count;
	/* The waits of one ring in it, each for a key that the party of the next one holds: the
	 * first `told` of `count`. The first one is the youngest in its ring that can be broken by
	 * ending one wait. */
	uint32_t ring[RING_MEMBERS_MAX];
	uint32_t count, told;
};

/* Returns true and fills in *out if the facts contain a deadlock. False: there is none, or there is
 * no memory, or something was cut. */
bool deadlock_find(const struct facts *f, struct deadlock *out);

/* Tells whether the first wait is younger than the second. All nodes agree. */
bool deadlock_younger(const struct fact_wait *a, const struct fact_wait *b);

#endif
