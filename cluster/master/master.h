/* master.h: a master's side: rules, promises, commits, extensions, releases, values, the queue of a key. */
#ifndef PAWL_CLUSTER_MASTER_H
#define PAWL_CLUSTER_MASTER_H

#include "changes.h"

#define REPORT_PIECE_MAX 128

static inline bool queue_lost_left(const struct core *core) {
	return !list_empty(&core->master.queues.lost);
}

/* ---- binding_master.c ---- */
void binding_master_done(struct core *core);
void binding_master_asked(struct core *core, uint32_t from, const struct message *m);
void binding_master_released(struct core *core, struct id128 lock_id);
void binding_master_accepted(struct core *core, const struct record *r, uint32_t from); /* a commit or an extension */
bool binding_master_bound(const struct core *core, struct id128 lock_id);
void binding_master_epoch(struct core *core, bool stays);
void binding_master_peer_up(struct core *core, uint32_t peer);
void binding_master_peer_lost(struct core *core, uint32_t peer, bool closed);
void binding_master_timer(struct core *core, struct timer *t);

/* ---- parked.c ---- */
/* A request with a turn that was refused for this reason; false: it may not wait here, and is not kept any more. */
bool queue_keep(struct core *core, struct key *key, uint32_t from, const struct message *m, enum status refused);
bool queue_may_wait(const struct core *core, const struct key *key, const struct place *place, enum status refused);
/* Its attempt is over here; a promise may have gone with it, or become a record. */
void queue_drop_parked(struct core *core, struct key *key, uint32_t from, struct id128 lock_id);
void queue_parked_free(struct core *core, struct parked *k);
struct parked *queue_parked_next(const struct core *core, const struct key *key, const struct parked *behind); /* in their order; behind NULL: the first */
bool queue_parked_withdrawn(struct core *core, struct key *key, uint32_t from, const struct message *m); /* the attempt's; false: none is kept */
void queue_record_ended(struct core *core, struct key *key);
void queue_parked_again(struct core *core, struct key *key); /* one of them has gone, or a promise */
void queue_hand_over(struct core *core, struct key *key, const struct successor *successor); /* the record that was in its way is gone */
bool queue_parked_ahead(const struct key *key, struct id128 lock_id); /* a request of somebody else is kept here */

/* ---- master.c ---- */
void master_promise(struct core *core, uint32_t from, const struct message *m);
void master_commit(struct core *core, uint32_t from, const struct message *m);
void master_learn(struct core *core, uint32_t from, const struct message *m);
void master_fetch(struct core *core, uint32_t from, const struct message *m);
void master_withdraw(struct core *core, uint32_t from, const struct message *m);
/* Whose record or promise stands in the way of this lock_id under these terms, and for how long still. */
void master_blocker(const struct core *core, const struct key *key, struct id128 lock_id, const struct terms *terms, struct message *answer);
/* What a message says to do, without an answer; *key is for the caller to settle. */
enum status master_learn_here(struct core *core, uint32_t from, const struct message *m, struct key **key);
void master_promise_again(struct core *core, struct key *key); /* says anew what is free for the promise that is out */
void master_held_self(const struct key *key, const struct record *own, struct message *answer);
/* Promises (creating or renewing) for a request that rule_promise let through; fills the answer. */
void master_grant(struct core *core, struct key *key, const struct message *m, uint32_t peer, struct message *answer);

/* ---- master_ask.c ---- */
void ask_heard(struct core *core, uint32_t from, const struct message *m);

/* ---- master_downgrade.c ---- */
void master_downgrade(struct core *core, uint32_t from, const struct message *m);

/* ---- master_explain.c ---- */
void explain_report(struct core *core, uint32_t from, const struct message *m); /* a master's READ with FLAG_EXPLAIN */

/* ---- master_extend.c ---- */
void master_extend(struct core *core, uint32_t from, const struct message *m); /* master_extend.c */
void master_say_when(const struct core *core, struct message *answer); /* master_extend.c: a record of a contested key may be extended */

/* ---- master_release.c ---- */
/* A held record of another lock_id that excludes these terms, or NULL. A semaphore's without numbers: as many as it wants must be left. */
void record_lose(struct core *core, struct key *key, struct record *r); /* master_release.c */
void master_release(struct core *core, uint32_t from, const struct message *m);
void master_break(struct core *core, uint32_t from, const struct message *m);
bool master_end_binding(struct core *core, struct slice name, struct id128 lock_id, uint32_t binding); /* true: a record ended */
bool master_release_here(struct core *core, struct slice name, struct id128 lock_id, enum record_change how, const struct successor *successor);
void master_bar_here(struct core *core, struct slice name, struct id128 lock_id);
bool master_roll_back(struct core *core, struct slice name, struct id128 lock_id, uint64_t attempt);

/* ---- master_report.c ---- */
/* The first of the key's records in the order of their lock_ids, after the one that `m` names (its number: 0: from the beginning). */
uint32_t report_pick(const struct key *key, const struct message *m, uint32_t most, const struct record *piece[REPORT_PIECE_MAX], uint32_t *left);
void master_read(struct core *core, uint32_t from, const struct message *m);
bool report_value_left_out(const struct core *core, const struct record *r, bool alone, enum out_backlog backlog);

/* ---- master_transfer.c ---- */
void transfer_nominate(struct core *core, uint32_t from, const struct message *m);
void transfer_hand_over(struct core *core, uint32_t from, const struct message *m);

/* ---- master_value.c ---- */
void master_prepare(struct core *core, uint32_t from, const struct message *m);
void master_write(struct core *core, uint32_t from, const struct message *m);

/* ---- master_waiters.c ---- */
void waiters_list(struct core *core, uint32_t from, const struct message *m); /* a master's */

/* ---- queue.c ---- */
void queue_enqueue(struct core *core, uint32_t from, const struct message *m);
void queue_withdraw(struct core *core, uint32_t from, const struct message *m);
void queue_drop_ticket(struct core *core, struct key *key, uint32_t from, const struct message *m); /* the entry of its lock_id, with its ticket */
void queue_drop_lock(struct core *core, struct key *key, struct id128 lock_id); /* a release */
void queue_record_held(struct core *core, struct key *key, struct id128 lock_id, uint32_t by); /* by: whose commit it was */
struct waiter *queue_named(const struct core *core, const struct key *key, struct slice owner, struct id128 but); /* the first of this name */
bool queue_turn_of(struct core *core, struct key *key, uint32_t peer, struct id128 lock_id); /* gives it the turn, if it has none here */
void queue_give_turn(struct core *core, struct key *key);
bool queue_ahead(const struct core *core, const struct key *key, struct id128 lock_id); /* somebody waits who is not this lock_id */
/* The first entry of these parts (PARTS_ALL, ...) behind another one, which need not be there any more; behind NULL: the first of all. One that
 * was lost is told where many of them stand together. */
struct waiter *queue_next(const struct core *core, const struct key_more *more, const struct queued *behind, uint32_t parts);
void queue_peer_lost(struct core *core, uint32_t peer); /* what it coordinates here; entries of queues in pieces: */
void queue_lost_go_on(struct core *core);
void queue_forget_all(struct core *core); /* at once */
void queue_free_all(struct core *core, struct key *key); /* at the end of the node */

/* ---- queued.c ---- */
struct place queued_place(const struct queued *q);
void queued_enter(struct core *core, struct map *map, struct tree_node **order, struct queued *q);
void queued_leave(struct core *core, struct map *map, struct tree_node **order, struct queued *q);
void queued_move(struct core *core, struct tree_node **from, struct tree_node **to, struct queued *q); /* from one order to another one */
struct queued *queued_first(struct tree_node *order); /* NULL: there is none; this is so for all of these */
struct queued *queued_after(const struct core *core, struct tree_node *order, const struct queued *q); /* q: need not be in it */
bool queued_sooner(const struct core *core, const struct queued *a, const struct queued *b);
struct queued *queued_find(const struct core *core, const struct map *map, const struct key *key, uint32_t peer, struct id128 lock_id);
/* Of a key and a lock_id there is one for each coordinator at most: the first, and the one after it, in no order. */
struct queued *queued_of_lock(const struct core *core, const struct map *map, const struct key *key, struct id128 lock_id);
struct queued *queued_of_lock_next(const struct queued *q);
void queued_key_enter(struct core *core, struct key_more *more); /* somebody waits for it from now on */
void queued_key_leave(struct core *core, struct key_more *more); /* and nobody any more */
bool queue_before(const struct core *core, const struct place *a, const struct place *b); /* section 10, Order: a is served before b */
/* The first key in the order of names that somebody waits for: the one of this name (where `itself`), or one behind it. */
struct key *queue_next_key(const struct core *core, struct slice name, bool itself);

/* ---- record_message.c ---- */
void snapshot_record_message(const struct core *core, const struct key *key, const struct record *r, struct message *m);

/* ---- rules.c ---- */
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

/* It is gone, or the one that it was made to has asked again, with a turn: who is kept may go on, or may not wait behind it any more. */
static inline void queue_promise_changed(struct core *core, struct key *key) {
	if (key->more) {
		queue_parked_again(core, key);
	}
}

#endif
