/* refine_impl.h: what the files of the refinement share. */
#ifndef PAWL_REFINE_IMPL_H
#define PAWL_REFINE_IMPL_H

#include "asker.h"
#include "bound.h"
#include "decrees.h"
#include "epochs.h"
#include "notes.h"
#include "project.h"
#include "proposals.h"
#include "refine.h"
#include "transfers.h"

/* All keys of a node are looked at after so many of its steps. */
#define STEPS_A_SWEEP 16

/* So many locks of one step are remembered. */
#define MADE_MAX 64
/* So many masters of announced configurations are remembered. */
#define ANNOUNCED_MAX (4 * MASTERS_MAX)

struct refine_node {
	struct notes notes;
	/* What it coordinates. */
	struct asker *asker;
	/* The snapshots that it takes, and those that it gives. */
	struct transfers takes, gives;
	uint64_t incarnation, epoch, hash;
	/* The first of its epochs that have the same masters as the present one. */
	uint64_t run;
	bool votes;
	/* When it started, and adopted its epoch; the reservation that it started with; and the
	 * clock with which it voted last. */
	struct instant started, adopted;
	uint64_t reservation, vote_clock;
	/* What its disk said last about its epoch, and about the decree on the next one. */
	struct e_disk epoch_disk;
	struct p_disk decree_disk;
	struct proposals proposals;
	/* The least clock with which it may vote after a forced start. */
	uint64_t forced_clock;
	/* The masters of configurations that a master has announced for the next epoch. */
	uint64_t announced[ANNOUNCED_MAX];
	uint32_t announced_count;
	/* It had voted in its epoch when it started or adopted it; it voted in the one before,
	 * then; and it starts with a side file. */
	bool had_voted, remembers, restored;
	/* It has voted since it started, and stopped: it still has its own table. */
	bool kept;
	/* The largest max_lease that it ever voted under. */
	span_ns longest;
	/* It has merged, and no key of that has been judged yet. */
	bool merges;
	/* The locks that it has bound to itself, and those that nodes have bound at it. */
	struct b_node bound;
	struct b_table bound_here;
	/* Its last step; from when on a link counts as lost that it misses; the peer whose link is
	 * down in this step, and whether its side has closed it; and how many records had ended
	 * with a node. */
	struct instant last_step, links_at;
	uint32_t down;
	bool down_closed;
	uint64_t bindings_ended, links_reset;
	/* When each other node was first heard in its epoch. */
	struct { uint64_t id, epoch; struct instant at; } heard[2 * SIM_NODES_MAX];
	uint32_t heard_count;
	/* All keys have been seen since this tenure began. */
	bool known;
	uint32_t steps;
};

struct refine {
	struct refine_options options;
	struct refine_node nodes[SIM_NODES_MAX];
	/* The step under way, and the node whose step it is. */
	uint32_t node;
	struct core *core;
	struct instant now;
	/* The message that is being handled: what was before; NULL: none is. */
	const struct message *handling;
	uint32_t from;
	bool keyed, in_epoch, bound;
	struct m_node node_before;
	/* The clock when the last promise to another request was made since, or its turn given. */
	uint64_t clock_between;
	bool promised_between;
	struct m_key before, after;
	struct m_ended ended;
	/* The locks of which messages have made records, or found them, in this step. */
	struct id128 made[MADE_MAX];
	uint32_t made_count;
	/* What was answered to it, and an answer that is yet to be filled in. */
	struct message answer;
	bool answered;
	const struct message *unfilled;
	uint64_t judged;
	struct decrees decrees;
};

/* Says that the step under way is not allowed, and does not return. */
void refine_wrong(struct refine *r, struct slice key, const char *rule);

/* Tells whether this is the node that lies. */
bool refine_lies(const struct refine *r, uint64_t id);

/* ---- refine_bound.c ---- */

/* A step begins, or ends; the node has adopted another epoch. */
void refine_bound_begins(struct refine *r, struct refine_node *n, const struct core_event *event);
void refine_bound_ends(struct refine *r, struct refine_node *n);
void refine_bound_adopts(struct refine *r, struct refine_node *n, const struct m_node *node);
/* A node that has bound a lock to itself counts on its own record of it, as on others'. */
void refine_bound_counts(struct refine_node *n, struct m_key *seen, const struct m_key *now);
/* The node sends a message, hears one, or has handled one about a key. */
void refine_bound_sends(struct refine *r, uint32_t peer, const struct message *m);
void refine_bound_hears(struct refine *r, uint32_t from, const struct message *m);
void refine_bound_handled(struct refine *r, struct core *core, const struct message *m);
/* The node has told a client. */
const char *refine_bound_replied(struct refine_node *n, const struct m_node *node,
	const struct core_reply *reply);

/* ---- refine_votes.c ---- */

/* A node starts anew. */
void refine_life_begins(struct refine *r, struct refine_node *n);
/* What its disk says has changed, perhaps. */
void refine_looks_at_disk(struct refine *r, struct refine_node *n);
/* A node that lies has pledged, perhaps. */
void refine_sees_pledge(struct refine *r, uint32_t node);
/* The node has begun to vote, and all its keys have been seen: nothing of what it has merged is
 * missing. */
void refine_nothing_missing(struct refine *r);
/* A master announces a configuration, whose masters copy ahead. */
void refine_announces(struct refine_node *n, const struct message *m);
/* A frame has come to the node: it says in which epoch its sender is. */
void refine_hears_epoch(struct refine *r, struct refine_node *n, const struct frame *f);
/* After a step: looks for another epoch, and for the beginning or the end of a vote. */
void refine_looks_at_votes(struct refine *r);
/* The node asks a peer for a snapshot, or gives one. */
void refine_asks_for_snapshot(struct refine *r, struct core *core, uint32_t peer,
	const struct message *m);
void refine_gives(struct refine *r, struct core *core, uint32_t peer, const struct message *m);
/* A frame leaves the node. */
void refine_sent(void *ctx, uint32_t node, uint32_t to, const struct frame *frame);

#endif
