/* roles.h: what the certificates of nodes let them be, compared with what a change of the cluster
 * would make of them.
 */
#ifndef PAWL_NODE_ROLES_H
#define PAWL_NODE_ROLES_H

#include "driver.h"

/* The size of the sentence, in bytes. */
#define ROLES_WHY_BYTES 384

/* Returns true, and a sentence in `why`, if the change would make a node a master and its
 * certificate does not let it be one. The certificate of a node is unknown if this node has no link
 * to it. If such a node becomes a master nevertheless, the other nodes refuse its links
 * (peers.h). */
bool roles_forbid(const struct driver *d, const struct core_change *change,
	char why[ROLES_WHY_BYTES]);

/* Logs, once, if the configuration makes this node a master and its certificate does not let it be
 * one. */
void roles_check_own(struct driver *d);

#endif
