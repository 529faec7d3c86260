/* operations.h: the operations of a coordinator other than acquire, one file each.
 *
 * Of each operation NAME, NAME_start asks the masters, NAME_answer takes the answer of a master,
 * and NAME_evaluate judges the votes; `over` says that request_timeout has passed since they were
 * asked for. Any of them may answer the callers and free the operation. */
#ifndef PAWL_CLUSTER_OPERATIONS_H
#define PAWL_CLUSTER_OPERATIONS_H

#include "acquire.h"

/* Returns how many entries of a list are wanted. */
static inline uint32_t limit_of(const struct core_request *r) {
	return r->limit ? r->limit : 100;
}

/* ---- ask.c ---- */

void ask_start(struct core *core, struct op *op);
void ask_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void ask_evaluate(struct core *core, struct op *op, bool over);

/* ---- binding.c ---- */

void binding_start(struct core *core, struct op *op);

/* A master has answered whether it has the record. */
void binding_answer(struct core *core, uint32_t from, const struct message *m);

/* The link to a master is lost. `closed`: the other side closed it. */
void binding_peer_lost(struct core *core, struct op *op, uint32_t peer, bool closed);

/* A master is linked again, or votes, or no longer votes. */
void binding_peer_changed(struct core *core, struct op *op, uint32_t peer);

/* A master has accepted this extension; the lock may be one that is bound to this node. */
void binding_extended(struct core *core, const struct op *extend, uint32_t index);
void binding_shortened(struct core *core, const struct op *extend, struct instant deadline);

/* Another epoch is in force. */
void binding_epoch(struct core *core, struct op *op);

/* The binding's timer has fired. */
void binding_timer(struct core *core, struct op *op);

/* Nobody asks for the binding any more. Frees the operation. */
void binding_forget(struct core *core, struct op *op);

/* The lock was released here, or broken. Frees the operation. */
void binding_released(struct core *core, struct op *op, bool broken);

/* Frees what the operation keeps of the binding, but not the operation. */
void binding_free(struct core *core, struct op *op);

/* ---- break.c ---- */

void break_start(struct core *core, struct op *op);
void break_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void break_evaluate(struct core *core, struct op *op, bool over);

/* ---- downgrade.c ---- */

void downgrade_start(struct core *core, struct op *op);
void downgrade_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void downgrade_evaluate(struct core *core, struct op *op, bool over);

/* ---- explain.c ---- */

void explain_start(struct core *core, struct op *op);
void explain_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void explain_evaluate(struct core *core, struct op *op, bool over);

/* ---- extend.c ---- */

void extend_start(struct core *core, struct op *op);

/* The round is over, or a master may be asked again. */
void extend_timer(struct core *core, struct op *op);

void extend_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);

/* Takes a master's vote without judging the votes. */
void extend_vote(struct core *core, struct op *op, uint32_t from, const struct message *m);

void extend_evaluate(struct core *core, struct op *op, bool over);

/* ---- extend_numbers.c ---- */

/* Returns the permit numbers that q masters have lengthened, or may still lengthen: masters in the
 * states `perhaps` (a bit set) count for every number. `had`: only masters count where no other
 * lock's lease came between. */
struct permits extend_numbers(const struct core *core, const struct op *op, bool had,
	uint32_t perhaps);

/* ---- extend_repair.c ---- */

/* The link to a master is lost; the record may have been asked of it. */
void extend_peer_lost(struct core *core, struct op *op, uint32_t peer);

/* ---- local.c ---- */

/* Answers what this node's own table has of the key. Frees the operation. */
void local_get(struct core *core, struct op *op);

/* Begins a wait for a change of the key, or answers at once. */
void local_wait(struct core *core, struct op *op);

/* A record of the key has come or has changed; NULL: one has ended. Answers the waits whose change
 * has come, or puts them off to the next turns of the loop. */
void local_check_waits(struct core *core, struct key *key, const struct record *r);

/* Tells whether waits are left at a node that has been without a quorum for request_timeout. */
static inline bool local_unserved_left(const struct core *core) {
	return core->coordinator.no_quorum && !list_empty(&core->coordinator.local_waits);
}
/* Answers such waits (section 5, No quorum), as many as one turn of the loop may. */
void local_unserved_go_on(struct core *core);

/* Answers waits that were put off, as many as one turn of the loop may. */
void local_waits_go_on(struct core *core);

/* Ends a wait with this error, unless the key has become free for it. Frees the operation. */
void local_end(struct core *core, struct op *op, int error);

/* The operation's timer has fired: a wait may be over. */
void local_timer(struct core *core, struct op *op);

/* Begins a list of keys. */
void local_list(struct core *core, struct op *op);

/* Does one slice of the next list. There must be one. */
void local_list_go_on(struct core *core);

/* The live table has been replaced; waits and lists go on with the new one. */
void local_tables_swapped(struct core *core, struct table *old);

/* Frees what the operation keeps of a list. */
void local_list_free(struct core *core, struct op *op);

/* The caller who asked for a list has gone, and is told no more of it. */
void local_list_leave(struct caller *c);

/* ---- read.c ---- */

void read_start(struct core *core, struct op *op);

/* Answers reads that have been decided, as many as one turn of the loop may. */
void read_show_go_on(struct core *core);

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

/* Takes what the operation needs of the request, which is an update or a release that expects a
 * value. */
bool update_make(struct core *core, struct op *op, const struct core_request *r);

void update_start(struct core *core, struct op *op);
void update_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void update_evaluate(struct core *core, struct op *op, bool over);

/* ---- waiters.c ---- */

void waiters_start(struct core *core, struct op *op);
void waiters_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void waiters_evaluate(struct core *core, struct op *op, bool over);

/* Asks this node itself for the next piece of a list. There must be such a list. */
void waiters_go_on(struct core *core);

#endif
