/* proposals.h: the decree on the next configuration, as one master proposes it and as one master
 * answers in it (section 6, The decree). */
#ifndef PAWL_REFINE_PROPOSALS_H
#define PAWL_REFINE_PROPOSALS_H

#include "machine.h"

/* What masters have promised to one ballot of this node. */
struct p_ballot {
	struct ballot ballot;
	uint64_t promised_by[MASTERS_MAX];
	uint32_t count;
	/* The highest ballot under which one of them has accepted a value, and which value. */
	struct ballot best;
	uint64_t best_hash;
	/* The value that this node has proposed under the ballot; 0: none yet. */
	uint64_t proposed;
};

enum { P_BALLOTS = 8 };
struct proposals {
	struct p_ballot ballots[P_BALLOTS];
	uint32_t next;
};

/* A master has answered to a DECREE_PREPARE of this node under the present epoch. */
void proposals_hears(struct proposals *p, uint64_t master, const struct message *m);
/* A message leaves this node. `master`: it is one; `to_master`: it leaves for one. */
const char *proposals_says(struct proposals *p, const struct m_node *node, bool master,
	bool to_master, const struct message *m);

/* What a master has on its disk about the decree of its epoch. */
struct p_disk {
	uint64_t epoch;
	struct ballot promised, accepted;
	uint64_t accepted_hash;
};
/* Judges what has been synced since. */
const char *proposals_synced(const struct p_disk *before, const struct p_disk *after);

#endif
