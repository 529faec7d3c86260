/* sim_kept.h: what masters keep for requests of which no coordinator knows, and requests that no
 * master keeps an entry of. Neither lasts while the nodes are linked. */
#ifndef PAWL_SIM_KEPT_H
#define PAWL_SIM_KEPT_H

#include "cluster_sim.h"

enum sim_kept_kind {
	/* The entry has a turn, and nobody else is given one. */
	SIM_KEPT_TURN, SIM_KEPT_ENTRY, SIM_KEPT_PARKED,
	/* The coordinator waits for its turn at a home that has no entry of it. */
	SIM_KEPT_MISSING
};

struct sim_kept {
	enum sim_kept_kind kind;
	uint32_t master, coordinator;
	uint64_t master_incarnation, coordinator_incarnation;
	/* How often the master has lost its links with the coordinator. */
	uint32_t lost;
	uint32_t key;
	struct id128 lock_id;
	/* Of the ticket. */
	uint64_t seq;
};

/* Calls `found` for all of them. Nodes that stand still, and pairs of nodes that are not linked
 * under one epoch, have none. */
void sim_kept_look(struct sim *sim, void (*found)(void *ctx, const struct sim_kept *kept),
	void *ctx);

#endif
