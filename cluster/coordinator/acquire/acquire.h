/* acquire.h: acquiring: attempts, the home, the second phase, several keys at once. */
#ifndef PAWL_CLUSTER_ACQUIRE_H
#define PAWL_CLUSTER_ACQUIRE_H

#include "coordinator.h"

static inline bool attempt_rehome_left(const struct core *core) {
	const struct list *n = core->coordinator.waiting.next;
	return n != &core->coordinator.waiting && CONTAINER_OF(n, const struct op, waiting)->homes != core->coordinator.homes;
}

/* ---- attempt.c ---- */
void attempt_start(struct core *core, struct op *op);
void attempt_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void attempt_timer(struct core *core, struct op *op);
void attempt_go_on(struct core *core, struct op *op);   /* with the turn it has */
void attempt_peer_changed(struct core *core, uint32_t peer);
void attempt_displaced(struct core *core, uint32_t from, const struct message *m);
/* Withdraws this attempt's promises and kept requests everywhere; with `entry` also its place in the queue. */
void attempt_withdraw(struct core *core, struct op *op, bool entry);
void attempt_withdraw_at(struct core *core, struct op *op, uint32_t index, bool promise, bool entry);
void attempt_give_up(struct core *core, struct op *op); /* withdraws everywhere */
void attempt_ask_all(struct core *core, struct op *op, bool turn);
void attempt_fail(struct core *core, struct op *op, int error);
void attempt_note_holder(struct core *core, struct op *op, const struct message *m);

/* ---- commit.c ---- */
/* commit.c */
void commit_start(struct core *core, struct op *op);
void commit_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void commit_evaluate(struct core *core, struct op *op, bool over);
void commit_put_value(const struct op *op, struct message *m);
bool commit_roll_back(struct core *core, struct op *op); /* false: not at every master */

/* ---- group.c ---- */
void group_start(struct core *core, struct op *op);
void group_timer(struct core *core, struct op *op);
void group_forget(struct core *core, struct op *op);
void group_drain(struct core *core, struct op *op); /* this node stops: answers at once; frees it */
bool group_run(struct core *core);
uint64_t group_rename(struct core *core, const struct op *child);
struct core_reply *group_reply(struct core *core, struct op *op, uint32_t member); /* where a child's answer is put */

/* ---- group_answer.c ---- */
void group_keep_holder(struct group *g, const struct core_reply *r);
bool group_answer_held(struct core *core, struct op *op); /* frees it; false: no memory */
void group_answer_error(struct core *core, struct op *op); /* frees it */

/* ---- group_request.c ---- */
/* group.c, group_request.c, group_answer.c */
int group_check(const struct core_request *r, const char **field, uint32_t *which); /* 0 or an error, the field and which lock */
bool group_new(struct core *core, struct op *op, const struct core_request *r);
bool group_same(const struct op *op, const struct core_request *r);
void group_free(struct core *core, struct op *op);

/* ---- home.c ---- */
/* home.c */
int attempt_home(const struct core *core, struct slice key); /* slot, or -1: none is linked and votes */
void attempt_enqueue(struct core *core, struct op *op);
void attempt_queue_answer(struct core *core, struct op *op, const struct message *m);
void attempt_rehome_beat(struct core *core); /* those that found no home */
void attempt_rehome_all(struct core *core); /* begins, from the beginning */
void attempt_rehome_go_on(struct core *core);
void attempt_leave_home(struct core *core, struct op *op);
void attempt_home_is(struct core *core, struct op *op, int home);
void attempt_waits(struct core *core, struct op *op); /* it is one of those that wait, and knows its home */

/* ---- judge.c ---- */
void attempt_wavered(struct core *core, struct op *op); /* the timer of a rival that was met */
void attempt_evaluate(struct core *core, struct op *op);

/* ---- repair_missing.c ---- */
/* repair_missing.c */
void repair_catch_up(struct core *core, struct op *op, uint32_t peer);
void repair_late_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void repair_late_end(struct core *core, struct op *op);

#endif
