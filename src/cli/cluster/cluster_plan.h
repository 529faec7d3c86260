/* cluster_plan.h: what a change would make of the cluster. The node that is asked decides; this is
 * what the user is told before. */
#ifndef PAWL_CLI_CLUSTER_PLAN_H
#define PAWL_CLI_CLUSTER_PLAN_H

#include "cluster.h"

struct cluster_names {
	const char *names[VIEW_NODES_MAX];
	size_t count;
};

/* The nodes at one time. The names are borrowed from the view and the change. */
struct cluster_set {
	struct cluster_names masters, replicas;
};

struct cluster_plan {
	struct cluster_set before, after;

	/* A name in the change that no node of the cluster has, and that gives no new node an
	 * address either; otherwise NULL. */
	const char *unknown;
};

void cluster_plan_make(const struct view *v, const struct pawl_change *change,
	struct cluster_plan *out_plan);
/* Returns how many masters may fail at the same time while the others still grant locks. */
size_t cluster_failures_borne(const struct cluster_set *set);
bool cluster_names_have(const struct cluster_names *names, const char *name);

#endif
