/* decrees.h: which configurations the masters have accepted, all of them together (section 6). */
#ifndef PAWL_REFINE_DECREES_H
#define PAWL_REFINE_DECREES_H

#include "machine.h"

enum { D_VALUES = 256 };

/* A configuration, by its hash, and the masters that have accepted it, by the words of their
 * identities. */
struct d_value {
	uint64_t hash, accepted_by[MASTERS_MAX];
	uint32_t count;
};

/* Which configuration an epoch of a cluster has. */
struct d_epoch {
	uint64_t cluster, epoch, hash;
};

struct decrees {
	struct d_value values[D_VALUES];
	struct d_epoch epochs[D_VALUES];
	uint32_t value_count, epoch_count;
};

/* A master has a configuration on its disk that it has accepted. */
void decrees_accepted(struct decrees *d, uint64_t hash, uint64_t master);
/* Tells whether all masters of epoch 1 have pledged it. A pledge is counted like an acceptance. */
bool decrees_all_pledged(const struct decrees *d, const struct config *config, uint64_t hash);
/* A node has adopted a configuration. `forced`: it starts the cluster over. */
const char *decrees_adopted(struct decrees *d, const struct config *config, uint64_t hash,
	bool forced);

#endif
