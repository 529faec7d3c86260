/* progress.h: what is demanded of the cluster after the heal, with definite bounds. Whatever does
 * not happen in time is a violation. */
#ifndef PAWL_SIM_PROGRESS_H
#define PAWL_SIM_PROGRESS_H

#include "run.h"

/* ---- progress.c ---- */
/* Call it after the heal; it runs the simulation until all demands are met. */
void progress_demand(struct run *run);
/* The longest time for one message between nodes, with what it waits for at both. */
span_ns progress_hop(const struct run *run);

/* ---- progress_kept.c ---- */
/* From now on nothing may be kept for nobody. */
void kept_start(struct run *run);
void kept_free(struct run *run);

/* ---- progress_calm.c ---- */
void calm_demand(struct run *run);
span_ns calm_settles(const struct run *run);
void calm_contend(struct run *run, uint32_t key, const struct terms *terms);

/* ---- progress_episodes.c ---- */
void episodes_demand(struct run *run);

/* ---- progress_terms.c ---- */
void terms_demand(struct run *run);

/* ---- progress_members.c ---- */
/* All members agree, every master votes, and every replica follows. */
void members_demand(struct run *run);
void members_demand_change(struct run *run);
void members_remove(struct run *run, uint32_t node);
/* The at-th node of the newest configuration. */
bool members_node(struct run *run, uint32_t at, uint32_t *out_node);
uint32_t members_any(struct run *run);

/* ---- progress_lies.c: after a master has lied ---- */
/* Waits until nothing of it is under way, and takes the node out of the set. False: it has done
 * damage after which nothing is promised any more. */
bool liar_master_over(struct run *run);
/* Takes the node out of the set, if it is in it. */
void liar_master_remove(struct run *run);
/* Whether the masters that do not lie are a quorum of the newest configuration, and always were. */
bool liar_master_outvoted(const struct run *run);

/* ---- progress_pulse.c: a client that makes one acquire after the other ---- */
struct pulse {
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t node, key, lock;
	int64_t asked;
	/* The longest time from asking to the answer. */
	span_ns worst;
	bool under_way, over;
};
void pulse_start(struct pulse *p, struct run *run, uint32_t node);
/* A violation if one of its acquires took longer than `most`. */
void pulse_end(struct pulse *p, span_ns most);

/* ---- progress_replicas.c ---- */
void replicas_demand(struct run *run);
void watch_event_demand(struct run *run);
void masters_demand(struct run *run);

/* ---- progress_shortage.c ---- */
/* After the heal, as often as one likes: nobody waits in vain for a key that nobody has. */
void shortage_look(struct run *run);

#endif
