/* bonds_change.h: the masters of a small cluster are exchanged all the time. */
#ifndef PAWL_SIM_BONDS_CHANGE_H
#define PAWL_SIM_BONDS_CHANGE_H

#include "cluster_sim.h"

struct bindings_change {
	struct sim *sim;
	struct prng *prng;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t nodes;
};
void bindings_change_start(struct bindings_change *c, struct sim *sim, struct prng *prng, uint32_t nodes);

#endif
