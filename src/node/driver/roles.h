/* roles.h: what nodes' certificates let them be, against what a change of the cluster would make of them. */
#ifndef PAWL_NODE_ROLES_H
#define PAWL_NODE_ROLES_H

#include "driver.h"

#define ROLES_WHY_BYTES 384

/* True, and a sentence in `why`: the change would make a node a master, and its certificate does not let it be one. A node that this
 * one is not linked with is not known: should it become a master all the same, the others refuse its links (peers.h). */
bool roles_forbid(const struct driver *d, const struct core_change *change, char why[ROLES_WHY_BYTES]);

/* Logs, once, that the configuration makes this node a master, which its certificate does not let it be. */
void roles_check_own(struct driver *d);

#endif
