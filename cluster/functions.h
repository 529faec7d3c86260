/* functions.h: who offers what inside cluster/, one heading a file. Included by state.h. */
#ifndef PAWL_CLUSTER_FUNCTIONS_H
#define PAWL_CLUSTER_FUNCTIONS_H

/* ---- timer.c ---- */
void timer_at(struct core *core, struct timer *t, enum timer_kind kind, struct instant at);
void timer_stop(struct core *core, struct timer *t);

/* ---- table.c: keys and records ---- */
struct slice key_name(const struct key *key);
/* The key of the live table with what is past its end removed; NULL when nothing of it is left. */
struct key *table_find(struct core *core, struct slice name);
struct key *table_make(struct core *core, struct slice name); /* NULL: limit or memory */
struct key *table_find_in(struct core *core, struct table *t, struct slice name);
struct key *table_make_in(struct core *core, struct table *t, struct slice name);
/* The same in two steps, for whoever looks in between: the name is hashed once (table_hash). */
struct key *table_find_hashed(struct core *core, struct slice name, uint64_t hash);
struct key *table_add(struct core *core, struct table *t, struct slice name, uint64_t hash); /* that was not found; NULL: limit or memory */
void table_free_key(struct core *core, struct key *key); /* with all that stands on it */
void table_clear(struct core *core, struct table *t);
/* The table beside the live one belongs to one builder at a time. False: it is another's, or still being emptied. */
bool table_beside_take(struct core *core);
bool table_beside_free(const struct core *core); /* it could be taken */
void table_beside_drop(struct core *core);       /* what was built is of no use: it is emptied in pieces */
/* What was built beside is live from now on, and the old table is emptied in pieces. Promises and queues must be gone before;
 * waits, lists and snapshots that are under way go on with the new table. */
void table_swap(struct core *core);
void table_empty_go_on(struct core *core);
void table_wake(struct core *core, struct key *key);            /* re-arms the timer */
bool table_settle(struct core *core, struct key *key);         /* the same; frees the key if nothing is left: false */
struct key_more *table_more(struct core *core, struct key *key); /* NULL: no memory */
/* Ends what is past; returns false when the key was freed. */
bool table_expire(struct core *core, struct key *key);
struct record *key_record(const struct key *key, struct id128 lock_id);
struct record **key_link(struct key *key, struct id128 lock_id); /* what points at the record, or at nothing */
/* Adds to the key, drops a promise of the same lock_id; the caller settles. */
void key_add_record(struct core *core, struct key *key, struct record *r);
void key_drop_record(struct core *core, struct key *key, struct record *r);
void record_shorten(struct core *core, struct key *key, struct record *r, span_ns left); /* it ends by then; the caller settles */
void key_note_contested(struct core *core, const struct key *key, bool before); /* its records have changed */
void key_drop_promise(struct core *core, struct key *key);

/* ---- record.c ---- */
uint8_t terms_rest(const struct terms *terms); /* bytes that a record has for them */
void record_put_terms(struct record *r, const struct terms *terms); /* what it has no room for is left out */
struct slice record_owner(const struct record *r);
struct slice record_identity(const struct record *r);
struct slice record_label(const struct record *r);
struct slice record_value(const struct record *r);
size_t record_size(const struct record *r);
/* Everything that the message says about it but when it ends. NULL: no memory. */
struct record *record_new(struct core *core, const struct message *m);
struct record *record_with_value(struct core *core, struct slice value); /* to keep a value in */
void record_free(struct core *core, struct record *r);
/* A new value in place of the old one; false: no memory. The record may move: *at is the pointer to it. */
bool record_set_value(struct core *core, struct record **at, struct slice value);
void record_describe(const struct core *core, const struct record *r, struct message *m); /* token, left, bytes, ballots */

/* ---- terms.c: what excludes what (section 10) ---- */
/* A held record of another lock_id that excludes these terms, or NULL. A semaphore's without numbers: as many as it wants must be left. */
void record_lose(struct core *core, struct key *key, struct record *r); /* master_release.c */
void record_drop(struct core *core, struct key *key, struct record *r, enum core_news_kind how); /* nothing is remembered of it; may free the key */
struct record *key_other(const struct key *key, struct id128 lock_id, const struct terms *terms);
struct record *key_other_exclusive(const struct key *key, struct id128 lock_id);
bool key_contested(const struct key *key);
struct permits key_taken(const struct key *key, struct id128 lock_id, uint32_t of, bool *room);
struct terms terms_both(const struct terms *a, const struct terms *b); /* of two copies of one record, alike */
bool terms_again(uint16_t own, uint16_t asked); /* terms.of */
bool terms_alike(const struct terms *a, const struct terms *b);        /* they may be those of one lock_id */
bool record_excludes(const struct record *r, const struct terms *terms);
void record_set_terms(struct core *core, struct key *key, struct record *r, const struct terms *terms);
bool permits_choose(const struct core *core, const struct op *op, struct permits *set);

/* ---- sync.c: background anti-entropy among masters ---- */
void sync_beat(struct core *core);
void sync_message(struct core *core, uint32_t from, const struct message *m);
void sync_free(struct core *core);

/* ---- bond.c: locks that end with this node ---- */
void bond_start(struct core *core, struct op *op);
void bond_answer(struct core *core, uint32_t from, const struct message *m);
void bond_peer_lost(struct core *core, struct op *op, uint32_t peer, bool closed);
void bond_peer_changed(struct core *core, struct op *op, uint32_t peer);
void bond_extended(struct core *core, const struct op *extend, uint32_t slot);
void bond_epoch(struct core *core, struct op *op);
void bond_timer(struct core *core, struct op *op);
void bond_forget(struct core *core, struct op *op);   /* nobody asks for it any more; frees it */
void bond_released(struct core *core, struct op *op, bool broken); /* the lock was released here, or broken; frees it */
void bond_free(struct core *core, struct op *op);

/* ---- bond_master.c: records here that end with another node ---- */
void bond_master_done(struct core *core);
void bond_master_asked(struct core *core, uint32_t from, const struct message *m);
void bond_master_released(struct core *core, struct id128 lock_id);
void bond_master_accepted(struct core *core, const struct record *r, uint32_t from); /* a commit or an extension */
bool bond_master_bound(const struct core *core, struct id128 lock_id);
void bond_master_epoch(struct core *core, bool stays);
void bond_master_peer_up(struct core *core, uint32_t peer);
void bond_master_peer_lost(struct core *core, uint32_t peer, bool closed);
void bond_master_timer(struct core *core, struct timer *t);

/* ---- rules.c: R1 to R5 as pure decisions ---- */
enum status rule_votes(const struct core *core);
enum status rule_promise(const struct core *core, const struct key *key, const struct message *m, uint32_t peer);
enum status rule_commit(const struct core *core, const struct key *key, const struct message *m);
enum status rule_extend(const struct core *core, const struct key *key, const struct message *m);
enum status rule_learn(const struct core *core, const struct key *key, const struct message *m);
bool rule_had(const struct key *key, const struct record *r, uint64_t caller_token);
struct permits rule_had_numbers(const struct key *key, const struct record *r, uint64_t caller_token);
span_ns rule_later(const struct core *core);
bool rule_token_bound(const struct core *core, uint64_t token);
bool rule_message_bound(const struct core *core, const struct message *m);
bool rule_message_sound(const struct message *m);
bool rule_value_counts(const struct record *r);

/* ---- master.c, master_release.c, master_value.c: what a master does with messages ---- */
void master_handle(struct core *core, uint32_t from, const struct message *m);
void master_extend(struct core *core, uint32_t from, const struct message *m); /* master_extend.c */
void master_prepare(struct core *core, uint32_t from, const struct message *m);
void master_write(struct core *core, uint32_t from, const struct message *m);
void master_release(struct core *core, uint32_t from, const struct message *m);
void master_break(struct core *core, uint32_t from, const struct message *m);
bool master_end_bond(struct core *core, struct slice name, struct id128 lock_id, uint32_t bond); /* true: a record ended */
/* Whose record or promise stands in the way of this lock_id under these terms, and for how long still. */
void master_blocker(const struct core *core, const struct key *key, struct id128 lock_id, const struct terms *terms, struct message *answer);
/* What a message says to do, without an answer; *key is for the caller to settle. */
enum status master_learn_here(struct core *core, uint32_t from, const struct message *m, struct key **key);
bool master_release_here(struct core *core, struct slice name, struct id128 lock_id, enum core_news_kind how, const struct heir *heir);
void master_bar_here(struct core *core, struct slice name, struct id128 lock_id);
void master_promise_again(struct core *core, struct key *key); /* says anew what is free for the promise that is out */
void master_held_self(const struct key *key, const struct record *own, struct message *answer);
/* Promises (creating or renewing) for a request that rule_promise let through; fills the answer. */
void master_grant(struct core *core, struct key *key, const struct message *m, uint32_t peer, struct message *answer);

/* ---- outbox.c ---- */
void out_send(struct core *core, uint32_t peer, const struct message *m); /* copies the bytes; to itself: later in the step */
bool out_take_local(struct core *core, struct message *m);
bool out_reserve_reply(struct core *core);
void out_begin(struct core *core); /* a step */
void out_unheard(struct core *core); /* not even an answer could be stored */
struct core_reply *out_reply(struct core *core); /* zeroed; space was reserved */
bool out_copy(struct core *core, struct slice from, struct slice *to);
void *out_room(struct core *core, size_t size);
struct news_box *out_news_box(struct core *core); /* NULL: not within a step */
struct news_box *out_box(struct core_out *out);
void out_note(struct core *core, enum core_note_kind kind, uint32_t peer, uint64_t value, const char *text, struct slice key);
void out_reset(struct core *core, uint32_t peer);
void out_peer_gone(struct core *core, uint32_t peer); /* its index names nobody any more, or a link that is new */
void out_persist(struct core *core);
void out_drop_peer(struct core *core, uint32_t peer);

/* ---- news.c: what has become of the live table's keys (others' records and tables make no news) ---- */
void news_tell(struct core *core, const struct core_news *news); /* copies the bytes */
void news_record(struct core *core, enum core_news_kind kind, struct key *key, struct record *r); /* before it is dropped */
void news_of(struct core *core, enum core_news_kind kind, struct slice name, const struct record *r); /* of no record of the table */
void news_gap(struct core *core);
void news_gap_of(struct core *core, struct slice name);

/* ---- counted.c: commits and writes that have passed this master by ---- */
void counted_came(struct core *core, uint32_t from, const struct message *m);
void counted_asked(struct core *core, uint32_t peer, const struct message *m); /* or would have been, if there were a link */
void counted_peer_up(struct core *core, uint32_t peer, struct id128 id, uint64_t boot);
void counted_said(struct core *core, uint32_t from, const struct message *m);
void counted_self_again(struct core *core);
void counted_epoch(struct core *core); /* while the table of peers is still the one of the epoch before */
void counted_epoch_begins(struct core *core); /* once it is that of the new one */
void counted_key_missed(struct core *core, struct slice name);
void counted_beat(struct core *core);

/* ---- persist.c: the durable state and the ceiling ---- */
void persist_start(struct core *core);
void persist_changed(struct core *core);
void persist_done(struct core *core, uint64_t seq, bool ok);
void persist_beat(struct core *core);
void ceiling_raise(struct core *core);
void persist_votes_end(struct core *core);
bool persist_may_leave(const struct core *core);
void persist_take(struct core *core, struct durable *state, uint64_t *seq);

/* ---- peers.c ---- */
void peer_up(struct core *core, uint32_t peer, const struct core_event *e);
uint64_t peers_quorum_says(const struct core *core); /* a clock far above this node's that is right; 0: none */
void peer_down(struct core *core, uint32_t peer, bool closed); /* by the other side */
void peer_frame(struct core *core, uint32_t peer, const struct frame *frame);
void peer_ping(struct core *core, uint32_t peer, const struct message *m);
void peer_pong(struct core *core, uint32_t peer, const struct message *m);
void peers_beat(struct core *core);
void peers_reset_all(struct core *core);
void peers_lose_failed(struct core *core); /* handles the loss of one of core->failed, which has one */
void peers_self_again(struct core *core);
void peers_tell(struct core *core); /* a ping to everybody at once: the voting flag has changed */
bool peer_reachable(const struct core *core, uint32_t slot); /* linked, or this node itself */
bool peer_votes(const struct core *core, uint32_t slot);
span_ns peers_pause_most(const struct core *core, uint32_t doubled);
void step_message(struct core *core, uint32_t from, const struct message *m);

/* ---- op.c: operations in common ---- */
struct op *op_new(struct core *core, const struct core_request *r);
/* For one key of a group: answered there, and nobody's but the group's. */
struct op *op_new_inside(struct core *core, const struct core_request *r, struct op *group, uint32_t member);
struct op *op_new_alone(struct core *core, const struct core_request *r); /* nobody asks for it */
void op_free(struct core *core, struct op *op);
void op_free_all(struct core *core);
struct op *op_find(struct core *core, uint64_t round);
struct op *op_find_lock(struct core *core, struct slice key, struct id128 lock_id);
struct caller *op_join(struct core *core, struct op *op, const struct core_request *r);
struct caller *op_join_inside(struct core *core, struct op *op, struct op *group, uint32_t member);
uint64_t op_asker(const struct op *op);
void op_leave(struct core *core, struct caller *c); /* frees the caller */
/* A copy of what a master reported, in op->found; false: no memory or too many. */
struct record *op_found(struct core *core, struct op *op, uint32_t from, const struct message *m);
void op_found_sort(struct op *op); /* by lock_id, then by master */
void op_found_clear(struct core *core, struct op *op);
void op_finish(struct core *core, struct op *op); /* answered: lingers until the last master has answered */
struct op *op_first(struct core *core);
struct op *op_following(struct core *core);
void op_peer_lost(struct core *core, uint32_t peer, bool closed);
void op_peer_changed(struct core *core, uint32_t peer);
void op_timer(struct core *core, struct op *op);
void op_answer(struct core *core, uint32_t from, const struct message *m);
void op_client_gone(struct core *core, uint64_t client);
struct core_reply *op_reply(struct core *core, struct caller *c, int error); /* one caller's reply; the caller is gone */
void op_reply_all(struct core *core, struct op *op, int error);
struct op *op_find_group(const struct core *core, struct slice key, struct id128 lock_id);
static inline uint64_t op_hash_lock(const struct core *core, struct slice key, struct id128 lock_id) {
	return hash_lock_id(core, lock_id) ^ key.size;
}
struct op *op_find_bond(const struct core *core, struct slice key, struct id128 lock_id);
void op_linger(struct core *core, struct op *op);
void op_lock_released(struct core *core, struct slice key, struct id128 lock_id, bool broken);
void op_lock_given_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name);
void op_lock_downgraded(struct core *core, struct slice key, struct id128 lock_id);
uint32_t op_client_waiters(struct core *core, uint64_t client);
#define VOTE_BIT(s) (1u << (s))

/* ---- round.c ---- */
uint64_t op_next_round(struct core *core, struct op *op); /* new number, sent := now, all votes none */
void op_ask(struct core *core, struct op *op, uint32_t slot, struct message *m); /* vote asked, or gone when not linked */
void op_ask_all(struct core *core, struct op *op, struct message *m);
uint32_t op_votes(const struct core *core, const struct op *op, uint32_t states); /* bit set of states */
bool op_epoch_stands(const struct core *core, const struct op *op); /* q have answered under this epoch: a loss may be said */
bool op_late(const struct core *core, const struct op *op); /* request_timeout has passed since the round was sent */
uint64_t op_silent(const struct core *core, const struct op *op);
struct message op_message(const struct op *op, enum message_kind kind);

/* ---- one file per operation ---- */
void attempt_start(struct core *core, struct op *op);
void attempt_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void attempt_timer(struct core *core, struct op *op);
void attempt_wavered(struct core *core, struct op *op); /* the timer of a rival that was met */
void attempt_go_on(struct core *core, struct op *op);   /* with the turn it has */
void attempt_peer_changed(struct core *core, uint32_t peer);
void attempt_displaced(struct core *core, uint32_t from, const struct message *m);
/* Withdraws this attempt's promises and kept requests everywhere; with `entry` also its place in the queue. */
void attempt_withdraw(struct core *core, struct op *op, bool entry);
void attempt_withdraw_at(struct core *core, struct op *op, uint32_t slot, bool promise, bool entry);
void attempt_give_up(struct core *core, struct op *op); /* withdraws everywhere */
void attempt_judge(struct core *core, struct op *op);
void attempt_ask_all(struct core *core, struct op *op, bool turn);
/* home.c */
int attempt_home(const struct core *core, struct slice key); /* slot, or -1: none is linked and votes */
void attempt_enqueue(struct core *core, struct op *op);
void attempt_queue_answer(struct core *core, struct op *op, const struct message *m);
void attempt_rehome_beat(struct core *core); /* those that found no home */
/* commit.c */
void commit_start(struct core *core, struct op *op);
void commit_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void commit_judge(struct core *core, struct op *op, bool over);
void attempt_fail(struct core *core, struct op *op, int error);
void attempt_note_holder(struct core *core, struct op *op, const struct message *m);
void linger_begin(struct core *core, struct op *op);  /* may free it */
void linger_settle(struct core *core, struct op *op); /* may free it */
void linger_end(struct core *core, struct op *op); /* frees it, whatever is left to be done */
void linger_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void linger_peer_changed(struct core *core, struct op *op, uint32_t peer);
void extend_start(struct core *core, struct op *op);
void extend_timer(struct core *core, struct op *op);
void extend_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void extend_vote(struct core *core, struct op *op, uint32_t from, const struct message *m);
void extend_peer_lost(struct core *core, struct op *op, uint32_t peer);
void extend_judge(struct core *core, struct op *op, bool over);
void release_start(struct core *core, struct op *op);
struct message release_message(const struct op *op);
void release_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void release_judge(struct core *core, struct op *op, bool over);
void update_start(struct core *core, struct op *op);
void update_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void update_judge(struct core *core, struct op *op, bool over);
void read_start(struct core *core, struct op *op);
void read_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void read_judge(struct core *core, struct op *op, bool over);
void break_start(struct core *core, struct op *op);
void break_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void break_judge(struct core *core, struct op *op, bool over);
/* downgrade.c (section 10), transfer.c (section 5, Succession), ask.c, explain.c, group.c (section 11) */
void downgrade_start(struct core *core, struct op *op);
void downgrade_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void downgrade_judge(struct core *core, struct op *op, bool over);
void master_downgrade(struct core *core, uint32_t from, const struct message *m);
void transfer_start(struct core *core, struct op *op);
void transfer_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void transfer_judge(struct core *core, struct op *op, bool over);
void transfer_nominate(struct core *core, uint32_t from, const struct message *m);
void transfer_hand_over(struct core *core, uint32_t from, const struct message *m);
void ask_start(struct core *core, struct op *op);
void ask_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void ask_judge(struct core *core, struct op *op, bool over);
void ask_heard(struct core *core, uint32_t from, const struct message *m);
void explain_report(struct core *core, uint32_t from, const struct message *m); /* a master's READ with FLAG_EXPLAIN */
void explain_start(struct core *core, struct op *op);
void explain_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void explain_judge(struct core *core, struct op *op, bool over);
/* group.c, group_request.c, group_answer.c */
int group_check(const struct core_request *r, const char **field, uint32_t *which); /* 0 or an error, the field and which lock */
bool group_new(struct core *core, struct op *op, const struct core_request *r);
bool group_same(const struct op *op, const struct core_request *r);
void group_start(struct core *core, struct op *op);
void group_timer(struct core *core, struct op *op);
void group_forget(struct core *core, struct op *op);
void group_drain(struct core *core, struct op *op); /* this node stops: answers at once; frees it */
bool group_run(struct core *core);
void group_free(struct core *core, struct op *op);
void group_keep_holder(struct group *g, const struct core_reply *r);
bool group_answer_held(struct core *core, struct op *op); /* frees it; false: no memory */
void group_answer_error(struct core *core, struct op *op); /* frees it */
uint64_t group_rename(struct core *core, const struct op *child);
struct core_reply *group_reply(struct core *core, struct op *op, uint32_t member); /* where a child's answer is put */
void waiters_list(struct core *core, uint32_t from, const struct message *m); /* a master's */
void waiters_start(struct core *core, struct op *op);
void waiters_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void waiters_judge(struct core *core, struct op *op, bool over);
void local_get(struct core *core, struct op *op);
void local_wait(struct core *core, struct op *op);
void local_check_waits(struct core *core, struct key *key);
static inline void local_wait_check(struct core *core, struct key *key) { /* the key has changed */
	if (key->more) {
		local_check_waits(core, key);
	}
}
void local_forget(struct core *core, struct op *op); /* its last caller is gone */
void local_end(struct core *core, struct op *op, int error); /* of a wait, without its change */
void local_timer(struct core *core, struct op *op);
void local_list(struct core *core, struct op *op);
void local_list_go_on(struct core *core);
void local_tables_swapped(struct core *core, struct table *old); /* waits and lists go on with the live table */
void local_list_free(struct core *core, struct op *op);
void request_handle(struct core *core, const struct core_request *r);

/* ---- entry.c: records as reads show them ---- */
struct shown { /* of a key to one caller */
	struct core_entry entry;
	const struct core_entry *holders; /* all of them, when there are several */
	uint32_t holder_count;
	bool held, contested;
	bool more; /* holders: not all of them */
};
struct core_entry entry_of(const struct record *r, struct instant now); /* no key; the bytes are the record's own */
bool entry_closing(const struct record *r, struct instant now);
const struct record *entry_lacks(const struct key *key, struct instant now); /* one that would be shown and whose value was left out */
const struct record *entry_shown(const struct key *key, struct instant now, uint32_t *holders); /* NULL: nothing is alive */
bool local_entry(struct core *core, const struct caller *c, struct slice identity, struct slice key, const struct record *r, struct core_entry *entry);
bool entry_show(struct core *core, const struct caller *c, const struct op *op, const struct key *key, struct shown *shown); /* false: no memory */
void entry_reply(struct core_reply *reply, const struct shown *shown);

/* ---- preparing.c ---- */
bool preparing_busy(const struct core *core, const struct record *r, uint32_t from, uint64_t round);
void preparing_note(struct core *core, const struct record *r, uint32_t from, uint64_t round);
void preparing_drop(struct core *core, uint32_t from, const struct message *m);

/* ---- belief.c ---- */
void belief_set(struct core *core, struct slice key, struct id128 lock_id, struct instant deadline, uint64_t asker, struct permits numbers);
struct belief *belief_find(struct core *core, struct slice key, struct id128 lock_id); /* only while it is believed */
struct belief *belief_of(struct core *core, struct slice key, struct id128 lock_id, uint64_t asker); /* only what this one was answered */
struct permits belief_numbers(const struct belief *b);
void belief_drop(struct core *core, struct slice key, struct id128 lock_id);
void belief_beat(struct core *core);
void belief_done(struct core *core);

/* ---- recovery.c, birth.c ---- */
void recovery_start(struct core *core, bool restored);
void recovery_again(struct core *core); /* stops voting and rejoins */
void recovery_beat(struct core *core);
void recovery_vote(struct core *core, const char *how);

void drain_start(struct core *core);
void drain_restore(struct core *core, const struct frame *frame);
void drain_done(struct core *core);
void birth_peer_up(struct core *core, uint32_t peer);
void birth_go_on(struct core *core);
void birth_persisted(struct core *core);
void birth_pledge(struct core *core, uint32_t from, const struct message *m);

#include "lamport.h"
#include "functions_membership.h"
#include "numbers.h"
#include "functions_queue.h"
#include "functions_replication.h"
#include "report.h"

#endif
