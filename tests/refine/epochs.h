/* epochs.h: what a node has on its disk about its epoch, and what it may say of it (section 6). */
#ifndef PAWL_REFINE_EPOCHS_H
#define PAWL_REFINE_EPOCHS_H

#include "machine.h"

struct e_disk {
	/* The identity of the node. */
	uint64_t id;
	uint64_t epoch, hash;
	bool voted, pledged;
};
/* Tells whether the one epoch follows the other by a forced start. */
bool epochs_forced(uint64_t before, uint64_t after);
/* Tells whether the node has another epoch on its disk by now, and is a part of that. */
bool epochs_changed(const struct e_disk *before, const struct e_disk *after);
/* Judges what has been synced since. `same_masters`: those of the epoch are those of the one before
 * it; `all_pledged`: all initial masters have pledged it. */
const char *epochs_synced(const struct e_disk *before, const struct e_disk *after,
	bool same_masters, bool all_pledged);

/* The clock with which a node begins that starts the cluster over: `known` is the highest one that
 * it knew. */
uint64_t epochs_forced_clock(uint64_t epoch, uint64_t known);

#endif
