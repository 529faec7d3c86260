/* coordinator.h: operations in common: callers, rounds, votes, reports, and what goes on after the answer. */
#ifndef PAWL_CLUSTER_COORDINATOR_H
#define PAWL_CLUSTER_COORDINATOR_H

#include "changes.h"

struct shown { /* of a key to one caller */
	struct core_entry entry;
	const struct core_entry *holders; /* all of them, when there are several */
	uint32_t holder_count;
	bool held, contested;
	bool more; /* holders: not all of them */
};

#define VOTE_BIT(s) (1u << (s))

static inline uint64_t op_hash_lock(const struct core *core, struct slice key, struct id128 lock_id) {
	return hash_lock_id(core, lock_id) ^ key.size;
}

/* ---- granted.c ---- */
void granted_set(struct core *core, struct slice key, struct id128 lock_id, struct instant deadline, uint64_t asker, struct permits numbers);
struct granted *granted_find(struct core *core, struct slice key, struct id128 lock_id); /* only while it is believed */
struct granted *granted_of(struct core *core, struct slice key, struct id128 lock_id, uint64_t asker); /* only what this one was answered */
struct permits granted_numbers(const struct granted *b);
void granted_drop(struct core *core, struct slice key, struct id128 lock_id);
void granted_beat(struct core *core);
void granted_done(struct core *core);

/* ---- caller.c ---- */
struct caller *op_join(struct core *core, struct op *op, const struct core_request *r);
struct caller *op_join_inside(struct core *core, struct op *op, struct op *group, uint32_t member);
uint64_t op_asker(const struct op *op);
void op_leave(struct core *core, struct caller *c); /* frees the caller */
void op_client_gone(struct core *core, uint64_t client);
struct core_reply *op_reply(struct core *core, struct caller *c, int error); /* one caller's reply; the caller is gone */
void op_reply_all(struct core *core, struct op *op, int error);
uint32_t op_client_waiters(struct core *core, uint64_t client);
void op_leaving_go_on(struct core *core);
bool op_left(struct core *core, struct op *op); /* nobody asks for it any more, and it was freed for that */
/* One of several replies to the caller, who stays. There is room for it after out_reserve_reply. */
struct core_reply *op_reply_part(struct core *core, struct caller *c, int error);

/* ---- entry.c ---- */
struct core_entry entry_of(const struct record *r, struct instant now); /* no key; the bytes are the record's own */
bool entry_closing(const struct record *r, struct instant now);
const struct record *entry_lacks(const struct key *key, struct instant now); /* one that would be shown and whose value was left out */
const struct record *entry_shown(const struct key *key, struct instant now, uint32_t *holders); /* NULL: nothing is alive */
bool local_entry(struct core *core, const struct caller *c, struct slice identity, struct slice key, const struct record *r, struct core_entry *entry);
bool entry_show(struct core *core, const struct caller *c, const struct op *op, const struct key *key, struct shown *shown); /* false: no memory */
void entry_reply(struct core_reply *reply, const struct shown *shown);

/* ---- replies.c ---- */
/* A copy of what a master reported, in op->replies; false: no memory or too many. */
struct record *op_reply_add(struct core *core, struct op *op, uint32_t from, const struct message *m);
void op_replies_sort(struct op *op); /* by lock_id, then by master */
void op_replies_clear(struct core *core, struct op *op);

/* ---- roll_back.c ---- */
struct instant longest_lease(const struct core *core);
struct message release_message(const struct op *op);
void release_roll_back_once(struct core *core, struct slice key, struct id128 lock_id, uint64_t name);
bool release_roll_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name); /* false: not every master is told at once */

/* ---- catch_up.c ---- */
void catch_up_begin(struct core *core, struct op *op);  /* may free it */
void catch_up_settle(struct core *core, struct op *op); /* may free it */
void catch_up_end(struct core *core, struct op *op); /* frees it, whatever is left to be done */
void catch_up_vote(struct op *op, uint32_t from, const struct message *m);
void catch_up_send_again(struct core *core, struct op *op, uint32_t peer);
void catch_up_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void catch_up_peer_changed(struct core *core, struct op *op, uint32_t peer);

/* ---- op.c ---- */
struct op *op_new(struct core *core, const struct core_request *r);
/* For one key of a group: answered there, and nobody's but the group's. */
struct op *op_new_inside(struct core *core, const struct core_request *r, struct op *group, uint32_t member);
struct op *op_new_alone(struct core *core, const struct core_request *r); /* nobody asks for it */
void op_free(struct core *core, struct op *op);
void op_free_all(struct core *core);
struct op *op_find(struct core *core, uint64_t round);
void op_finish(struct core *core, struct op *op); /* answered: lingers until the last master has answered */
struct op *op_first(struct core *core);
struct op *op_following(struct core *core);
void op_peer_lost(struct core *core, uint32_t peer, bool closed);
void op_peer_changed(struct core *core, uint32_t peer);
void op_timer(struct core *core, struct op *op);
void op_round_timer(struct core *core, struct op *op); /* judges it when its masters have had their time */
void op_answer(struct core *core, uint32_t from, const struct message *m);
void op_catch_up(struct core *core, struct op *op);

/* ---- op_lock.c ---- */
struct op *op_find_lock(struct core *core, struct slice key, struct id128 lock_id);
struct op *op_find_group(const struct core *core, struct slice key, struct id128 lock_id);
struct op *op_find_binding(const struct core *core, struct slice key, struct id128 lock_id);
void op_lock_released(struct core *core, struct slice key, struct id128 lock_id, bool broken);
void op_lock_rolled_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name);
void op_lock_downgraded(struct core *core, struct slice key, struct id128 lock_id);

/* ---- reports.c ---- */
void report_ask_all(struct core *core, struct op *op, bool rest);
void report_part(struct core *core, struct op *op, uint32_t from, const struct message *m);
bool report_fetch(struct core *core, struct op *op, const struct record *lacks);
bool report_fetched(struct core *core, struct op *op, uint32_t from, const struct message *m);
bool report_may_begin(struct core *core, struct op *op); /* false: it stands in line */
void report_over(struct core *core, struct op *op);
bool report_due(const struct core *core);
bool report_run(struct core *core);

/* ---- restart.c ---- */
void op_permute(struct core *core, const int from[NODES_MAX]);
void restart_begin(struct core *core, struct op *op);
void restart_again(struct core *core, struct op *op); /* from the beginning; an acquire under the same lock_id */
void restart_all(struct core *core);
void restart_suspended(struct core *core);
void restart_timer(struct core *core, struct op *op);

/* ---- round.c ---- */
uint64_t op_next_round(struct core *core, struct op *op); /* new number, sent := now, all votes none */
void op_ask(struct core *core, struct op *op, uint32_t index, struct message *m); /* vote asked, or gone when not linked */
void op_ask_all(struct core *core, struct op *op, struct message *m);
uint32_t op_votes(const struct core *core, const struct op *op, uint32_t states); /* bit set of states */
bool op_epoch_stands(const struct core *core, const struct op *op); /* q have answered under this epoch: a loss may be said */
bool op_late(const struct core *core, const struct op *op); /* request_timeout has passed since the round was sent */
uint64_t op_silent(const struct core *core, const struct op *op);
struct message op_message(const struct op *op, enum message_kind kind);

#endif
