/* acquire.h: acquiring: attempts, the home, the second phase, several keys at once. */
#ifndef PAWL_CLUSTER_ACQUIRE_H
#define PAWL_CLUSTER_ACQUIRE_H

#include "coordinator.h"

/* Tells whether some requests have not looked for their home since it may have changed. */
static inline bool attempt_rehome_left(const struct core *core) {
	const struct list *n = core->coordinator.waiting.next;
	const struct op *first = n == &core->coordinator.waiting
		? NULL : CONTAINER_OF(n, const struct op, waiting);
	return first && op_acquire(first)->home_changes != core->coordinator.home_changes;
}

/* ---- home.c: no quorum ---- */

/* With each beat: whether the node has been without a quorum for request_timeout. If so, those who
 * wait are answered, in pieces. */
void attempt_unserved_beat(struct core *core, bool quorum_lost);
/* Those who have yet to look for their home do so first. */
static inline bool attempt_unserved_left(const struct core *core) {
	return core->coordinator.unserved > 0 && !list_empty(&core->coordinator.waiting) &&
		!attempt_rehome_left(core);
}
void attempt_unserved_go_on(struct core *core);

/* ---- attempt.c ---- */

/* Begins an acquire, or begins it again. May end the operation and free it. */
void attempt_start(struct core *core, struct op *op);

/* A master has answered before the commit. May free the operation. */
void attempt_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);

/* The timer has fired before the commit. May free the operation. */
void attempt_timer(struct core *core, struct op *op);

/* Goes on with the turn that the attempt has. */
void attempt_go_on(struct core *core, struct op *op);

/* A master is linked or votes again. */
void attempt_peer_changed(struct core *core, uint32_t peer);

/* A master says that a held record has displaced its promise. */
void attempt_displaced(struct core *core, uint32_t from, const struct message *m);

/* Asks all masters for promises under a new ballot. `turn`: the attempt has a turn. */
void attempt_ask_all(struct core *core, struct op *op, bool turn);


/* Asks these masters, one bit each, for promises. */
void attempt_ask(struct core *core, struct op *op, uint32_t indexes, bool turn);
/* Asks a master again for a request with a turn. The vote stands until the master says
 * otherwise. */
void attempt_ask_again(struct core *core, struct op *op, uint32_t index);
/* Asks the masters that have promised to say again which permit numbers are taken, now and whenever
 * a record of the key ends. */
void attempt_be_told(struct core *core, struct op *op);

/* ---- choose.c ---- */

/* Tells whether q masters have promised permits to this coordinator alone. */
bool attempt_alone(const struct core *core, const struct op *op);

/* Chooses permit numbers that some q of the masters that promised have free in common. False: there
 * are too few. */
bool attempt_choose_permits(const struct core *core, const struct op *op, uint32_t open,
	struct permits *set);

/* ---- commit.c ---- */

/* Sends the commit: q masters have promised. */
void commit_start(struct core *core, struct op *op);

/* A master has answered the commit. May free the operation. */
void commit_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);

/* Notes what a master has answered to the commit, whether the acquire has been answered or not. */
void commit_vote(struct core *core, struct op *op, uint32_t from, const struct message *m);

/* Judges the commit. `over`: request_timeout has passed since it was sent. May free the
 * operation. */
void commit_evaluate(struct core *core, struct op *op, bool over);

/* Fills in the value that a commit brings, with its ballot. The bytes are the operation's own. */
void commit_put_value(const struct core *core, const struct op *op, struct message *m);

/* Rolls back what the commit may have left. False: there is nothing, or not every master is told at
 * once. */
bool commit_roll_back(struct core *core, struct op *op);

/* ---- group.c ---- */

/* Begins a request for several keys. */
void group_start(struct core *core, struct op *op);

/* The group's timer has fired. May free the group. */
void group_timer(struct core *core, struct op *op);

/* Nobody asks for the group any more: it rolls back what it has. */
void group_forget(struct core *core, struct op *op);

/* This node stops: answers at once, and frees the group. */
void group_drain(struct core *core, struct op *op);

/* Goes on with a group that has got an answer. False: there is none. */
bool group_run(struct core *core);

/* Gives the child's member a new name, and returns the name. */
uint64_t group_rename(struct core *core, const struct op *child);

/* Returns where the answer of a member's child is put. */
struct core_reply *group_reply(struct core *core, struct op *op, uint32_t member);

/* ---- group_answer.c ---- */

/* Notes who stood in the way, with copies of the bytes. */
void group_keep_holder(struct group *group, const struct core_reply *r);

/* Answers that all is held, and frees the group. False: there is no memory, and nothing was
 * done. */
bool group_answer_held(struct core *core, struct op *op);

/* Answers with the group's error, and frees the group. */
void group_answer_error(struct core *core, struct op *op);

/* ---- group_request.c ---- */

/* Checks a request for several keys. Returns 0 or an error, with the field that is wrong and the
 * number of the lock. */
int group_check(const struct core_request *r, const char **field, uint32_t *which);

/* Makes what the operation keeps of the group, in one block; group_free frees it. False: no
 * memory. */
bool group_new(struct core *core, struct op *op, const struct core_request *r);

/* Tells whether the request has all keys of the group with the same lock_ids. */
bool group_same(const struct op *op, const struct core_request *r);

void group_free(struct core *core, struct op *op);

/* ---- home.c ---- */

/* Returns the peer index of the key's home. -1: no master is linked and votes. */
int attempt_home(const struct core *core, struct slice key);

/* Tells whether the request is to enter the queue without asking, because another one of this node
 * waits for its turn at the key. */
bool attempt_queues(struct core *core, const struct op *op);

/* Counts the request among those of this node that are in queues. */
void attempt_queued_begins(struct core *core, struct op *op);

/* It does not wait any more. */
static inline void attempt_queued_ends(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	if (list_linked(&acquire->queued)) {
		list_remove(&acquire->queued);
		core->coordinator.queued_count--;
	}
}

/* A record of a key has come or changed (`held`), or has ended. Where requests of this node wait
 * for the key, somebody has had the turn, or their home owes it. */
void attempt_key_changed(struct core *core, const struct key *key, bool held);

/* Enters the queue of the attempt's home. */
void attempt_enqueue(struct core *core, struct op *op);

/* Notes who holds the key, as far as this answer of a master tells. */
void attempt_note_holder(struct core *core, struct op *op, const struct message *m);

/* The home has answered the entry. May free the operation. */
void attempt_queue_answer(struct core *core, struct op *op, const struct message *m);

/* Lets all requests look for their homes again, in pieces; begins with the first. */
void attempt_rehome_all(struct core *core);

/* Does as much of this as may be done in this turn of the loop. */
void attempt_rehome_go_on(struct core *core);

/* Sets the home of an attempt that begins again; it leaves the former one if that is another. */
void attempt_home_is(struct core *core, struct op *op, int home);

/* Adds the request to those that wait. It knows its home. */
void attempt_waits(struct core *core, struct op *op);

/* ---- give_up.c ---- */

/* Withdraws this attempt's promises and parked requests everywhere. `entry`: its place in the queue
 * as well. */
void attempt_withdraw(struct core *core, struct op *op, bool entry);

/* Withdraws the attempt's promise and parked request, or its entry, or both, at one master. */
void attempt_withdraw_at(struct core *core, struct op *op, uint32_t index, bool promise,
	bool entry);

/* Withdraws whatever a master may keep of an attempt after its commit, but for the record. */
void attempt_leave(struct core *core, struct op *op, uint32_t index);

/* Withdraws everything everywhere. */
void attempt_give_up(struct core *core, struct op *op);

/* Answers all callers with an error, withdraws everything, and frees the operation. */
void attempt_fail(struct core *core, struct op *op, int error);

/* ---- evaluate.c ---- */

/* The attempt has waited long enough for a rival that it met. */
void attempt_rival_waited(struct core *core, struct op *op);

/* Judges the attempt's votes before the commit. May free the operation. */
void attempt_evaluate(struct core *core, struct op *op);

/* ---- commit.c: after the answer ---- */

/* A master that missed the commit can be reached. */
void acquire_catch_up(struct core *core, struct op *op, uint32_t peer);

/* A master has answered after the acquire was answered. */
void acquire_late_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);

/* The acquire ends before all masters have answered. */
void acquire_late_end(struct core *core, struct op *op);

#endif
