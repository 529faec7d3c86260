/* membership_state.h: what a node keeps for a change of the configuration that it coordinates
 * (section 6), and of what it is told. Part of membership.h. */
#ifndef PAWL_CLUSTER_MEMBERSHIP_STATE_H
#define PAWL_CLUSTER_MEMBERSHIP_STATE_H

#include "state.h"

/* ---- a change of the configuration that this node coordinates (section 6) ---- */
enum change_state {
	CHANGE_IDLE,
	/* The change waits for nodes whose links or votes it needs. They may be a moment from being
	 * back. */
	CHANGE_WAIT,
	/* The masters of the next epoch copy ahead. */
	CHANGE_PREPARE,
	/* The first phase of the decree is under way. */
	CHANGE_PROMISE,
	/* The second phase of the decree is under way. */
	CHANGE_ACCEPT,
	/* A rival's ballot was higher, and the change pauses. */
	CHANGE_PAUSE,
	/* The configuration is chosen, and the change waits until the new masters vote. */
	CHANGE_ADOPT
};

/* The answer waits so long for masters that do not vote yet. */
#define ADOPT_WAIT (10 * SPAN_S)
/* How long a change waits for nodes before it is refused, in request_timeouts; and the shortest
 * such time, in which a link that was reset can be back. */
#define CHANGE_WAIT_TIMEOUTS 4
#define CHANGE_WAIT_LEAST (2 * SPAN_S)
/* A round of the decree lasts at least this long. What is chosen does not depend on time, so a
 * round may take longer than request_timeout, as with slow disks. */
#define DECREE_ROUND_LEAST SPAN_S
/* A master that finishes a decree in its proposer's place waits for two to four request_timeouts
 * first, each of which counts as at least this long. */
#define DECREE_FINISH_LEAST (SPAN_S / 4)
/* The longest pause for a rival grows with each pause by at least this, up to eight times. */
#define DECREE_PAUSE_LEAST (50 * SPAN_MS)
/* Bounds of the time after which a decree is given up. */
#define DECREE_LEAST (5 * SPAN_S)
#define DECREE_MOST (60 * SPAN_S)
#define CHANGE_STEP_BYTES 160
/* The most bytes of a text about pledges that differ. */
#define BIRTH_DIFFERS_BYTES 640

/* How far a master of the next epoch has copied ahead. */
struct ahead {
	/* It was asked to copy; and it is ready. */
	bool asked, ready;
	/* It copies for another change. */
	bool other;
	/* How many records it has copied, as it says. */
	uint64_t number;
};

struct change {
	/* What the change is doing. */
	enum change_state state;
	bool
		/* Somebody waits for the answer. */
		has_caller,
		/* The value of another proposer had been accepted. It is finished instead of what
		 * was asked for here. */
		foreign;
	/* The change is a forced start. */
	bool forcing;
	bool
		/* The caller wants it even without a quorum (core_change.anyway). */
		anyway,
		/* Nobody has asked here: this node finishes a decree whose proposer may have
		 * died. */
		finishing;
	/* The driver's numbers of the request and of the connection. */
	uint64_t id, client;
	/* What was asked for. The slices point into `text`. */
	struct core_change wanted;
	/* The nodes of `wanted`. */
	struct core_change_node wanted_nodes[CONFIG_NODES_MAX];
	/* The bytes of what was asked for; NULL: nothing was. */
	uint8_t *text;
	size_t text_size;
	/* CHANGE_WAIT: a text like "waiting for n1, n3 to answer". */
	char waits_for[CHANGE_STEP_BYTES];
	/* The number of the present round. */
	uint64_t round;
	struct instant
		/* When the change is given up, or its answer waits no longer. */
		until,
		/* When a node that copies ahead last made progress. */
		progress,
		/* When the next step of the present state is due. */
		at,
		/* When those who are silent in a round of the decree are asked again. */
		again;
	/* The configuration that was asked for, and the one that is proposed. */
	struct config target, value;
	/* The ballot under which it is proposed, and the highest ballot that this node has heard
	 * of. */
	struct ballot ballot, highest;
	/* How often the change has paused for a rival. */
	uint32_t pauses;
	/* Bit sets of masters, by peer index: those that have answered in this round, and those
	 * that have agreed. */
	uint32_t answered, agreed;
	/* The highest ballot of an accepted value that a master has reported. */
	struct ballot best;
	/* By peer index. */
	struct ahead ahead[NODES_MAX];
};

/* membership/: the configuration that follows, and who may be believed. */
struct membership_state {
	/* With core->adopting: the number of the state that has to be on disk. */
	uint64_t adopt_seq;
	/* The configuration that is being adopted starts the cluster over. */
	bool forced;
	/* core_options.auto_replace; and the birth was stopped, because pledges differ. */
	bool auto_replace, birth_stopped;
	/* Which values of another initial master differ from this node's, for the operator: "the
	 * initial masters to agree: max_lease is 30000ms at b, and 60000ms here". Empty: none. And
	 * the peer index of that master. */
	char birth_differs[BIRTH_DIFFERS_BYTES];
	uint32_t birth_differs_from;
	/* When a quorum was last known to vote; and the operator was told that it is lost. */
	struct instant voters_at;
	bool quorum_lost;
	/* This node is told of a later configuration that it has too little proof for (proof.c);
	 * and the operator was told so. */
	bool unproven, unproven_noted;
	/* Since when, and when last, it was told so. */
	struct instant unproven_since, unproven_at;
	/* The clock of the last ballot that this node drew for a decree since its start. */
	uint64_t ballot_drawn;
	/* When this master finishes a decree that it has accepted in its proposer's place. */
	struct instant finish_at;
	/* The change that this node coordinates. */
	struct change change;
};

#endif
