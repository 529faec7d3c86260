/* core_hot.h: the keys of a node's table that stand out. Part of core.h. */
#ifndef PAWL_CLUSTER_CORE_HOT_H
#define PAWL_CLUSTER_CORE_HOT_H

#include "core_figures.h"

struct core;

/* HOT_QUEUES: the longest queues of keys whose home this node is; the number is how many requests
 * wait. HOT_HELD: the locks that have been held for longest; the number is for how long, in
 * nanoseconds. HOT_GRANTED: the keys that were granted most often in the last minute, as a master
 * knows it; the number is how often, or less. The node walks through its table in pieces to find
 * the first two, so with a million keys what they show may be two minutes old. */
enum hot_kind { HOT_QUEUES, HOT_HELD, HOT_GRANTED, HOT_KINDS };

#define HOT_KEYS_MAX 20

struct hot_key {
	/* Borrowed until the next step. Only HOT_HELD has an owner. */
	struct slice key, owner;
	/* As the kind says. */
	uint64_t number;
};

/* A lease of the table that ended without a release. */
#define LOST_LEASES_MAX 200
struct lost_lease {
	/* When it ended, in nanoseconds of CLOCK_BOOTTIME. */
	int64_t at;
	/* Why it ended. */
	enum figure_lost cause;
	/* Its fencing token. */
	uint64_t token;
	/* Borrowed until the next step. */
	struct slice key, owner;
};

/* Fills in the lease that was lost as number `back` before the last one. Returns false if there is
 * none, or if it is forgotten. There are none before core_want_figures. */
bool core_lost(const struct core *core, uint32_t back, struct lost_lease *out);

/* Fills in the keys of this kind that begin with `prefix`, the greatest numbers first. Returns how
 * many there are. There are none before core_want_figures. */
uint32_t core_hot(const struct core *core, struct instant now, enum hot_kind kind,
	struct slice prefix, struct hot_key out[HOT_KEYS_MAX]);

#endif
