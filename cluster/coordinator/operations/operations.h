/* operations.h: the other operations, one file each. */
#ifndef PAWL_CLUSTER_OPERATIONS_H
#define PAWL_CLUSTER_OPERATIONS_H

#include "acquire.h"

/* ---- ask.c ---- */
void ask_start(struct core *core, struct op *op);
void ask_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void ask_evaluate(struct core *core, struct op *op, bool over);

/* ---- binding.c ---- */
void binding_start(struct core *core, struct op *op);
void binding_answer(struct core *core, uint32_t from, const struct message *m);
void binding_peer_lost(struct core *core, struct op *op, uint32_t peer, bool closed);
void binding_peer_changed(struct core *core, struct op *op, uint32_t peer);
void binding_extended(struct core *core, const struct op *extend, uint32_t index);
void binding_epoch(struct core *core, struct op *op);
void binding_timer(struct core *core, struct op *op);
void binding_forget(struct core *core, struct op *op);   /* nobody asks for it any more; frees it */
void binding_released(struct core *core, struct op *op, bool broken); /* the lock was released here, or broken; frees it */
void binding_free(struct core *core, struct op *op);

/* ---- break.c ---- */
void break_start(struct core *core, struct op *op);
void break_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void break_evaluate(struct core *core, struct op *op, bool over);

/* ---- downgrade.c ---- */
/* downgrade.c (section 10), transfer.c (section 5, Succession), ask.c, explain.c, group.c (section 11) */
void downgrade_start(struct core *core, struct op *op);
void downgrade_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void downgrade_evaluate(struct core *core, struct op *op, bool over);

/* ---- explain.c ---- */
void explain_start(struct core *core, struct op *op);
void explain_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void explain_evaluate(struct core *core, struct op *op, bool over);

/* ---- extend.c ---- */
void extend_start(struct core *core, struct op *op);
void extend_timer(struct core *core, struct op *op);
void extend_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void extend_vote(struct core *core, struct op *op, uint32_t from, const struct message *m);
void extend_evaluate(struct core *core, struct op *op, bool over);

/* ---- extend_numbers.c ---- */
/* The numbers that q masters have lengthened, or may yet: those in the states `perhaps` count for every number; `had`: only where nobody
 * else's came between. */
struct permits extend_numbers(const struct core *core, const struct op *op, bool had, uint32_t perhaps);

/* ---- extend_repair.c ---- */
void extend_peer_lost(struct core *core, struct op *op, uint32_t peer);

/* ---- local.c ---- */
void local_get(struct core *core, struct op *op);
void local_wait(struct core *core, struct op *op);
void local_check_waits(struct core *core, struct key *key);
void local_forget(struct core *core, struct op *op); /* its last caller is gone */
void local_end(struct core *core, struct op *op, int error); /* of a wait, without its change */
void local_timer(struct core *core, struct op *op);
void local_list(struct core *core, struct op *op);
void local_list_go_on(struct core *core);
void local_tables_swapped(struct core *core, struct table *old); /* waits and lists go on with the live table */
void local_list_free(struct core *core, struct op *op);
void local_list_leave(struct caller *c); /* who asked for a list is told no more of it */

/* ---- read.c ---- */
void read_start(struct core *core, struct op *op);
void read_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void read_evaluate(struct core *core, struct op *op, bool over);

/* ---- release.c ---- */
void release_start(struct core *core, struct op *op);
void release_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void release_evaluate(struct core *core, struct op *op, bool over);

/* ---- transfer.c ---- */
void transfer_start(struct core *core, struct op *op);
void transfer_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void transfer_evaluate(struct core *core, struct op *op, bool over);

/* ---- update.c ---- */
void update_start(struct core *core, struct op *op);
void update_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void update_evaluate(struct core *core, struct op *op, bool over);

/* ---- waiters.c ---- */
void waiters_start(struct core *core, struct op *op);
void waiters_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void waiters_evaluate(struct core *core, struct op *op, bool over);
void waiters_go_on(struct core *core); /* this node's own reports */

#endif
