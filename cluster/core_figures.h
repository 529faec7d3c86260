/* core_figures.h: what a node counts for its metrics: gauges of its table, and totals of what has
 * happened there. Part of core.h. */
#ifndef PAWL_CLUSTER_CORE_FIGURES_H
#define PAWL_CLUSTER_CORE_FIGURES_H

#include "buckets.h"
#include "types.h"

struct core;
struct core_limits;

/* Keys that are counted apart, by how they begin. */
#define KEY_GROUPS_MAX 32
#define KEY_GROUP_BYTES_MAX 128
struct key_groups {
	/* How many groups there are. */
	uint32_t count;
	/* A key belongs to the first of these that it begins with. */
	char prefixes[KEY_GROUPS_MAX][KEY_GROUP_BYTES_MAX + 1];
};

uint32_t key_groups_search(const struct key_groups *groups, struct slice key);
/* Returns the index of the group that the key belongs to, or KEY_GROUPS_MAX if there is none. */
static inline uint32_t key_groups_find(const struct key_groups *groups, struct slice name) {
	return groups->count ? key_groups_search(groups, name) : KEY_GROUPS_MAX;
}

/* The modes of locks. */
enum figure_mode { FIGURE_EXCLUSIVE, FIGURE_SHARED, FIGURE_SEMAPHORE, FIGURE_MODES };
/* Returns the name of a mode, a constant. */
const char *figure_mode_name(enum figure_mode mode);
static inline enum figure_mode figure_mode_of(uint16_t of) {
	return of == MODE_EXCLUSIVE ? FIGURE_EXCLUSIVE
		: of == MODE_SHARED ? FIGURE_SHARED : FIGURE_SEMAPHORE;
}

/* Why a lease ended that its holder had not released. EXPIRED: it was not extended in time. TAKEN:
 * it was broken, or ended with the connection of its client or with its node. */
enum figure_lost { FIGURE_EXPIRED, FIGURE_TAKEN, FIGURE_LOSSES };
const char *figure_lost_name(enum figure_lost cause);

/* Of one group of keys: leases that are held, and leases that were lost. */
struct group_figures {
	/* How many leases are held; and how many were lost since the start. */
	uint64_t holders, lost;
};

struct core_figures {
	/* Held leases, by mode, in this node's table. */
	uint64_t leases[FIGURE_MODES];
	/* Keys of which masters know several holders that exclude each other, as far as this node
	 * has noticed. */
	uint64_t contested;
	/* The entries of the longest queue of a key whose home this node is. */
	uint64_t longest_queue;
	/* How long the lease that was acquired first has been held, in nanoseconds; 0 if there is
	 * none. The node walks through its table in pieces. So with many keys it takes minutes
	 * until it finds the lease, or notices that the lease has ended. */
	span_ns oldest_holder;
	/* Since the start, in this node's table: leases that were released, and that were lost; and
	 * for how long the leases had been held that have ended either way. */
	uint64_t releases, lost[FIGURE_LOSSES];
	struct buckets holds;
	/* For how long the loop stood still in all, in nanoseconds. */
	uint64_t stood_still;
	/* By the index of the group. */
	struct group_figures groups[KEY_GROUPS_MAX];
};

/* Fills in *out as it is at `now`. */
void core_figures(const struct core *core, struct instant now, struct core_figures *out);
/* Returns the limits of the node, with the defaults filled in. */
const struct core_limits *core_limits_of(const struct core *core);
/* From now on the node looks for the oldest holder. Without this call, core_figures does not know
 * it. */
void core_want_figures(struct core *core);

#endif
