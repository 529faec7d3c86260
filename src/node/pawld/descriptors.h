/* descriptors.h: the files that this process may open, and the limits that can be kept with them.
 * Every connection is a file. When files end, nobody is accepted any more: no administrator, and no
 * node of the cluster. So the limits for clients and strangers are such that those who have places
 * of their own find a file, too. */
#ifndef PAWL_NODE_DESCRIPTORS_H
#define PAWL_NODE_DESCRIPTORS_H

#include <stdint.h>

#include "config_file.h"

/* Returns how many files this process may open if it raises its limit as far as it goes. */
uint64_t descriptors_most(void);
/* Raises the limit of open files as far as it goes. */
void descriptors_raise(void);
/* Lowers [limits] clients and handshakes to what can be kept with so many files. Returns false, and
 * says so in *problem, if it had to. This is pure. */
bool descriptors_fit(struct node_config *c, uint64_t files, struct problem *problem);

#endif
