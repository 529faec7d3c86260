/* probe.h: asks a quorum for a reserved key about once a second, so that it is known whether a
 * quorum answers, and how fast. */
#ifndef PAWL_NODE_PROBE_H
#define PAWL_NODE_PROBE_H

#include "buckets.h"
#include "driver.h"
#include "health.h"

struct probe {
	struct driver *driver;
	/* One is under way since `begun`, under the number `id`. */
	bool under_way;
	struct instant begun;
	uint64_t id;
	/* What the last one that was asked found; and if it failed, how many masters answered. */
	enum probe_state found;
	uint32_t answered;
	/* How long those took that a quorum answered. */
	struct buckets took;
};

/* The driver is borrowed. Nothing is asked before probe_start. The state is PROBE_OFF; a caller
 * that is going to ask sets it to PROBE_NONE. */
void probe_init(struct probe *p, struct driver *driver);
/* Takes a reply of the core to the probe. */
void probe_heard(struct probe *p, const struct core_reply *reply);
/* Asks, unless one is under way. */
void probe_start(struct probe *p);
/* Returns what is known at `now`: a probe that has been under way for longer than request_timeout
 * has failed. Sets how many masters have answered. */
enum probe_state probe_state_at(const struct probe *p, struct instant now, uint32_t *out_answered);

#endif
