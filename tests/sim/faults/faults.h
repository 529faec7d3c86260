/* faults.h: whatever goes wrong in a run: faults of processes, links, disks and clocks, shortages,
 * the loss of a majority, and nodes that lie. */
#ifndef PAWL_SIM_FAULTS_H
#define PAWL_SIM_FAULTS_H

#include "run.h"

/* ---- faults.c ---- */
void faults_start(struct run *run);
bool faults_worse_than_tcp(const struct sim_adversary *adversary);
/* Every node runs, and everything is linked again. */
void faults_heal(struct run *run);
/* How long after the heal a write to disk may last that had begun before it. Until then its node
 * may be mute. */
span_ns faults_last_write(const struct run *run);

/* ---- watches.c ---- */
void watches_start(struct run *run);
/* Somebody watches at every node. */
void watches_heal(struct run *run);

/* ---- shortage.c ---- */
void shortage_start(struct run *run);
void shortage_heal(struct run *run);

/* ---- disaster.c ---- */
void disaster_start(struct run *run);
/* Nothing was lost for good, or the cluster was started over. The argument is a struct run. */
bool disaster_over(void *run);

/* ---- liar.c ---- */
void liar_start(struct run *run);

/* ---- liar_master.c ---- */
void liar_master_start(struct run *run);
/* Takes the node away for good. */
void liar_master_ends(struct run *run);
void liar_master_free(struct run *run);
/* The node; TRACE_NONE: no master lies. */
uint32_t liar_master(const struct run *run);

#endif
