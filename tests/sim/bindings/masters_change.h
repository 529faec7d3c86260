/* masters_change.h: the masters of a small cluster are exchanged all the time. */
#ifndef PAWL_SIM_MASTERS_CHANGE_H
#define PAWL_SIM_MASTERS_CHANGE_H

#include "cluster_sim.h"

struct masters_change {
	struct sim *sim;
	struct prng *prng;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t nodes;
};
void masters_change_start(struct masters_change *c, struct sim *sim, struct prng *prng,
	uint32_t nodes);

#endif
