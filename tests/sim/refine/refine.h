/* refine.h: compares each step of each simulated node with the abstract machine (machine.h). */
#ifndef PAWL_REFINE_H
#define PAWL_REFINE_H

#include "cluster_sim.h"

struct refine;

struct refine_options {
	struct sim *sim;
	/* Called for a step that the machine does not allow, with the rule that it breaks. `what`
	 * is the message under way. It does not return. */
	void (*wrong)(void *ctx, uint32_t node, struct slice key, const char *rule,
		const char *what);
	void *ctx;
	/* A node that lies, whose steps are not judged, and whose words are not counted on;
	 * TRACE_NONE: none does. */
	uint32_t liar;
};

/* Judges the simulation from now on. One at a time. */
struct refine *refine_new(const struct refine_options *options);
void refine_free(struct refine *r);
/* How many messages were judged. */
uint64_t refine_judged(const struct refine *r);

#endif
