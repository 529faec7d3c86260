/* master.h: a master's side of each message: the rules, promises, commits, extensions, releases,
 * values, the queue of a key. It sees nothing of the coordinator, with which it speaks by messages
 * only.
 *
 * There is an order: each file calls only those whose parts stand above its own here. What waits
 * <- rules <- promises <- turns and queues <- bindings <- messages. (A report and an explanation
 * call each other.)
 *
 * In what follows, `from` and `peer` are the peer index of a message's sender, who is the
 * coordinator. A function that takes `from` and a message handles that message, and sends the
 * answer if the message has one. */
#ifndef PAWL_CLUSTER_MASTER_H
#define PAWL_CLUSTER_MASTER_H

#include "changes.h"

/* Limits the records that report_pick returns at once. */
#define REPORT_PIECE_MAX 128

/* Tells whether something of lost links is still to be freed (queue_lost_go_on). */
static inline bool queue_lost_left(const struct core *core) {
	const struct queues *q = &core->master.queues;
	return !list_empty(&q->lost_parked) || !list_empty(&q->lost_promises) ||
		!list_empty(&q->lost);
}

/* Tells whether try-locks are still to be refused (queue_tries_go_on). */
static inline bool queue_tries_left(const struct core *core) {
	return !list_empty(&core->master.queues.refusing);
}

/* Tells whether the link to the coordinator of this entry, or of this parked request, was lost
 * after it came. */
static inline bool queued_lost(const struct core *core, const struct queued *q) {
	return q->lost != core->peers[q->peer].lost;
}

/* ---- queued.c ---- */

/* Returns the request's place in the order. */
struct place queued_place(const struct queued *q);

/* Puts a request into a map and an order, which does not own it. */
void queued_enter(struct core *core, struct map *map, struct tree_node **order, struct queued *q);

/* Takes a request out of its map and order, without freeing it. */
void queued_leave(struct core *core, struct map *map, struct tree_node **order, struct queued *q);

/* Moves a request from one order to another. */
void queued_move(struct core *core, struct tree_node **from, struct tree_node **to,
	struct queued *q);

/* The following functions return NULL if there is no such request. This one returns the first. */
struct queued *queued_first(struct tree_node *order);

/* Returns the request that comes after `q`, which need not be in the order itself. */
struct queued *queued_after(const struct core *core, struct tree_node *order,
	const struct queued *q);

/* Tells whether `a` is served before `b`. */
bool queued_sooner(const struct core *core, const struct queued *a, const struct queued *b);

/* Returns the request of this coordinator for this lock_id. */
struct queued *queued_find(const struct core *core, const struct map *map, const struct key *key,
	uint32_t peer, struct id128 lock_id);

/* Return the first request for a key and lock_id, and the one after it. Each coordinator has at
 * most one of them, and they come in no particular order. */
struct queued *queued_of_lock(const struct core *core, const struct map *map, const struct key *key,
	struct id128 lock_id);
struct queued *queued_of_lock_next(const struct queued *q);

/* Put the entry among those of its owner, and take it out again. */
void queued_owner_enter(const struct core *core, struct waiter *w);
void queued_owner_leave(const struct core *core, struct waiter *w);

/* Returns the first entry of this owner, or with `behind` the next one after that entry, in the
 * order in which they are served. NULL: there is none. */
struct waiter *queued_owner_next(const struct core *core, const struct key_more *more,
	struct slice owner, const struct waiter *behind);

/* From now on somebody waits for the key. */
void queued_key_enter(struct core *core, struct key_more *more);

/* From now on nobody waits for the key. */
void queued_key_leave(struct core *core, struct key_more *more);

/* Section 10, Order: tells whether a request with place `a` is served before one with place `b`. */
bool queue_before(const struct core *core, const struct place *a, const struct place *b);

/* Returns the first key, in the order of names, that somebody waits for and that comes after this
 * name, or with `itself` has this name. NULL: there is none. */
struct key *queue_next_key(const struct core *core, struct slice name, bool itself);

/* ---- waiting.c ---- */

/* Sets up the queues' lengths. Returns 0 or PAWL_ENOMEM. */
int queue_init(struct core *core);
/* Frees them. Accepts a core that queue_init was not called for. */
void queue_done(struct core *core);

/* Return the entry, or the parked request, that this is a part of, or NULL. */
static inline struct waiter *waiter_of(struct queued *q) {
	return q ? CONTAINER_OF(q, struct waiter, q) : NULL;
}
static inline struct parked *parked_of(struct queued *q) {
	return q ? CONTAINER_OF(q, struct parked, q) : NULL;
}

/* Tells whether the link to the entry's coordinator is gone. Then the entry no longer counts, even
 * though it has not been freed yet. */
static inline bool waiter_lost(const struct core *core, const struct waiter *w) {
	return queued_lost(core, &w->q);
}

static inline struct slice waiter_identity(const struct waiter *w) {
	return slice_of(w->bytes + w->owner_size, w->identity_size);
}

/* Puts the entry into the queue of its key. */
void queue_entry_enter(struct core *core, struct waiter *w);
/* Takes it out and frees it. */
void queue_entry_free(struct core *core, struct waiter *w);

/* Returns this coordinator's entry for the lock_id in the key's queue; NULL: there is none. Where
 * there is one, this master is the home of the request. */
struct waiter *queue_find(const struct core *core, const struct key *key, uint32_t peer,
	struct id128 lock_id);

/* Returns the first entry with this owner that is not for the lock_id `but`. NULL: there is none,
 * or too many before it are of links that are gone. */
struct waiter *queue_named(const struct core *core, const struct key *key, struct slice owner,
	struct id128 but);

/* Returns the first entry of these parts (PARTS_ALL, ...) behind another one, which need not be
 * there any more; behind NULL: the first of all; NULL: there is none. Lost entries are passed over,
 * unless very many of them stand in a row. */
struct waiter *queue_next(const struct core *core, const struct key_more *more,
	const struct queued *behind, uint32_t parts);

/* Returns the first entry of these parts that is of another lock_id, or NULL. */
struct waiter *queue_first_other(const struct core *core, const struct key_more *more,
	struct id128 lock_id, uint32_t parts);

/* The entry has the turn from now on. */
void queue_mark_turn(struct core *core, struct waiter *w);

/* Frees the lost entries that stand first in their part of the queue. False: there are more of them
 * than may be freed in this turn of the loop. The rest are freed soon, and then the key gets its
 * turn again (queue_lost_go_on). */
bool queue_drop_lost(struct core *core, struct key_more *more);

/* Tells whether an entry of another lock_id waits for the key that the request may not pass. */
bool queue_ahead(const struct core *core, const struct key *key, const struct message *m);

/* Puts a request among those that are parked for its key, and takes it out. */
void queue_parked_enter(struct core *core, struct parked *k);
void queue_parked_leave(struct core *core, struct parked *k);
/* Returns this coordinator's parked request for the lock_id, or NULL. */
struct parked *queue_parked_find(const struct core *core, const struct key *key, uint32_t peer,
	struct id128 lock_id);

/* Takes a parked request out of its key's order and frees it. */
void queue_parked_free(struct core *core, struct parked *k);

/* Returns the parked request that comes after `behind` in the order; behind NULL: the first. NULL:
 * there is none. */
struct parked *queue_parked_next(const struct core *core, const struct key *key,
	const struct parked *behind);

/* Tells whether the request of an entry in the key's queue is parked here. */
bool queue_parked(const struct core *core, const struct key *key, const struct queued *entry);

/* Tells whether every parked request of the key is of this coordinator. */
bool queue_parked_alone(const struct key *key, uint32_t peer);

/* Drops the parked request of the attempt that the message names. False: none is parked. */
bool queue_parked_withdrawn(struct core *core, struct key *key, uint32_t from,
	const struct message *m);

/* Tells whether the first parked request is one for another lock_id, and comes before this place in
 * the order. */
bool queue_parked_before(const struct core *core, const struct key *key, struct id128 lock_id,
	const struct place *place);

/* Tells whether the first parked request is one for another lock_id. */
bool queue_parked_ahead(const struct key *key, struct id128 lock_id);

/* ---- rules.c ---- */

/* Section 5, Together: tells whether requests of these two coordinators go together, if neither
 * excludes the other and one of them is for `of` (terms.of). Masters draw tokens of their own for
 * shared locks, other nodes do not. */
bool rule_together(const struct core *core, uint32_t peer, uint32_t other, uint16_t of);
/* Section 5, Together: tells whether a queue entry may have its turn next to others where a request
 * for a promise with that turn is answered so. Who is not promised permits is to be parked behind
 * one that comes before it, while nothing is free that is not promised. */
bool rule_turn_next(const struct core *core, const struct key *key, const struct queued *q,
	enum status s);
/* R1 to R5 (section 2): whether what a message asks for may be accepted, and if not, for which
 * reason. A key may be NULL: nothing of it is known here. */
enum status rule_votes(const struct core *core);
enum status rule_promise(const struct core *core, const struct key *key, uint32_t from,
	const struct message *m);
/* The same, but a request with a turn does not pass a parked one that comes before it (section 10,
 * Order): STATUS_QUEUED. */
enum status rule_promise_in_order(const struct core *core, const struct key *key, uint32_t from,
	const struct message *m);
enum status rule_commit(const struct core *core, const struct key *key, const struct message *m);
enum status rule_extend(const struct core *core, const struct key *key, const struct message *m);
enum status rule_learn(const struct core *core, const struct key *key, const struct message *m);

/* Tells whether this master "had" the record (section 2, Extend). caller_token: the token that the
 * caller names; 0: the record's. */
bool rule_had(const struct key *key, const struct record *r, uint64_t caller_token);

/* Returns the permit numbers of a semaphore that this master had; empty for other locks. */
struct permits rule_had_numbers(const struct key *key, const struct record *r,
	uint64_t caller_token);

/* Returns for how long a record of a contested key may not be extended yet; 0: it may be. */
span_ns rule_later(const struct core *core);

/* Section 9: tells whether every number in a message that a clock might be raised to is low enough
 * above the clock to be adopted. */
bool rule_message_bound(const struct core *core, const struct message *m);

/* Section 9: false for what no master that keeps to the protocol says. */
bool rule_message_sound(const struct message *m);

/* Tells whether the record's value counts in an update or a quorum read (section 2, Update). */
bool rule_value_counts(const struct record *r);

/* ---- master_grant.c ---- */

/* Tells the coordinator of a promise of permits again which numbers others have. */
void master_tell_taken(struct core *core, const struct key *key, struct promise *p);
/* A record of the key has ended. Tells the coordinators that want to know it which permit numbers
 * others have now. */
void master_promise_again(struct core *core, struct key *key);

/* Fills in the answer "held by yourself". The value in it is the record's own. */
void master_held_self(const struct core *core, const struct key *key, const struct record *own,
	struct message *answer);

/* Makes or renews the promise for a request that rule_promise let through, and fills in the answer.
 * For permits the home reserves permit numbers for the request; so does another master, unless
 * other coordinators want permits of the key, too (section 5, Together). */
void master_grant(struct core *core, struct key *key, const struct message *m, uint32_t peer,
	struct message *answer);

/* Fills in whose record or promise stands in the way of this lock_id under these terms, and for how
 * long still, as far as the answer's kind says that. The bytes in the answer are the record's
 * own. */
void master_blocker(const struct core *core, const struct key *key, struct id128 lock_id,
	const struct terms *terms, struct message *answer);

/* ---- moved.c: sent again ---- */

/* Returns an entry for the same request that came through another coordinator; with `behind` the
 * next one. There is at most one for each coordinator. NULL: there is none. */
struct waiter *queue_twin(const struct core *core, const struct waiter *w,
	const struct waiter *behind);

/* Stamps an entry that is about to enter the queue of its key. Returns whether the request has a
 * turn already. */
bool queue_stamp(struct core *core, struct waiter *w);

/* The entry is about to be freed, because its coordinator has withdrawn it or has the outcome. */
void queue_note_returned(struct core *core, const struct waiter *w);

/* ---- moved.c: moved ---- */

/* An entry has entered the queue of its key. If it comes from another home, the next turn is given
 * a moment later. */
void queue_moved_enter(struct core *core, struct waiter *w);

/* Tells whether the key gives no turn yet, because others may be coming from another home. `out`:
 * the first entry with a turn, or NULL. */
bool queue_moved_waits(const struct core *core, const struct key_more *more,
	const struct waiter *out);

/* Tells whether the entry comes from another home, and is before the one that has a turn. */
bool queue_moved_ahead(const struct core *core, const struct key_more *more,
	const struct waiter *out, const struct waiter *w);

/* Tells whether somebody with a wait time is ahead of the try-lock that `from` enters. One that
 * comes from another home has a stamp, and requests that came after it may be here already. */
bool queue_waits_ahead(const struct core *core, const struct key_more *more, uint32_t from,
	const struct message *m);

/* ---- parked.c ---- */

/* Parks a request with a turn that was refused for this reason. False: the request may not wait
 * here, and is not parked any more, or there is no memory for it. */
bool queue_park(struct core *core, struct key *key, uint32_t from, const struct message *m,
	enum status refused);

/* Tells whether a request with this place in the order may wait behind what refused it. */
bool queue_may_wait(const struct core *core, const struct key *key, const struct place *place,
	enum status refused);

/* Drops the coordinator's parked request for the lock_id, because its attempt is over here. A
 * promise may have gone with it, or become a record. */
void queue_drop_parked(struct core *core, struct key *key, uint32_t from, struct id128 lock_id);

/* A parked request or a promise has gone, or the request that has the promise has asked again, with
 * a turn: the first parked request that is left may go on, or may no longer wait behind the
 * promise. */
void queue_parked_again(struct core *core, struct key *key);

/* ---- turns.c ---- */

/* Gives turns to the first entries of the key's queue that have none, if they may have them now. */
void queue_give_turn(struct core *core, struct key *key);

/* Gives the turn to an entry whose request has it already, or whose lock_id is held here. */
void queue_turn_again(struct core *core, struct waiter *w);

/* A record of the key has ended, or excludes less than before: whoever it stood in the way of may
 * go on. */
void queue_record_ended(struct core *core, struct key *key);

/* Promises to the successor that the holder named. The record that was in its way is gone. */
void queue_hand_over(struct core *core, struct key *key, const struct successor *successor);

/* Gives the turns of keys for which the moment is over. */
void queue_moved_timer(struct core *core);

/* ---- queue.c ---- */

void queue_enqueue(struct core *core, uint32_t from, const struct message *m);
void queue_withdraw(struct core *core, uint32_t from, const struct message *m);

/* Drops the coordinator's entry for the message's lock_id, if it has the message's ticket. */
void queue_drop_ticket(struct core *core, struct key *key, uint32_t from, const struct message *m);

/* Drops all entries and parked requests of the lock_id, because it was released. The caller then
 * calls queue_record_ended. */
void queue_drop_lock(struct core *core, struct key *key, struct id128 lock_id);

/* A record of this lock_id has become held on a key that has a struct key_more. `by`: the peer that
 * coordinated the commit. */
void queue_record_held(struct core *core, struct key *key, struct id128 lock_id, uint32_t by);

/* Drops what this peer coordinates here, because its link is lost: in pieces, by
 * queue_lost_go_on. */
void queue_peer_lost(struct core *core, uint32_t peer);

/* Frees as much of it as may be freed in this turn of the loop. */
void queue_lost_go_on(struct core *core);

/* Refuses as many try-locks as may be refused in this turn of the loop (queue_record_held). */
void queue_tries_go_on(struct core *core);

/* Drops all promises, parked requests and entries at once, because this node stops voting. */
void queue_forget_all(struct core *core);

/* Frees the entries and parked requests of a key that is about to be freed. */
void queue_free_all(struct core *core, struct key *key);

/* ---- binding_master.c ---- */

/* Forgets all bindings and frees them; no record ends. */
void binding_master_done(struct core *core);

/* Handles a BINDING message: a node binds a lock to itself, gives the binding up, or has lost the
 * lock. */
void binding_master_asked(struct core *core, uint32_t from, const struct message *m);

/* The record is gone, or is no longer bound. */
void binding_master_released(struct core *core, struct id128 lock_id);

/* A commit or an extension of the record, which `from` coordinates, was accepted here, where nodes
 * have bound records. */
void binding_master_accepted(struct core *core, const struct record *r, uint32_t from);

/* Tells whether the lock is bound to some node here. */
bool binding_master_bound(const struct core *core, struct id128 lock_id);

/* Another epoch is in force. `stays`: this node was a master of the previous epoch, too, and has
 * missed none. */
void binding_master_epoch(struct core *core, bool stays);

/* The link to this peer is up. */
void binding_master_peer_up(struct core *core, uint32_t peer);

/* The link to this peer is lost. `closed`: the other side closed it. */
void binding_master_peer_lost(struct core *core, uint32_t peer, bool closed);

/* Goes on examining the locks that are bound to nodes, as far as this turn of the loop may. */
void binding_master_go_on(struct core *core);

/* Ends the records of a holder that is gone, and drops what has ended by itself. May free the
 * holder that the timer belongs to. */
void binding_master_timer(struct core *core, struct timer *t);

/* ---- master_report.c: all that a master knows of a record ---- */

/* Fills in all that a SNAPSHOT_RECORD or a FEED_RECORD says of a record. The bytes in the message
 * are the record's and the key's own. */
void record_message(const struct core *core, enum message_kind kind, const struct key *key,
	const struct record *r, struct message *m);

/* ---- master_extend.c ---- */

void master_extend(struct core *core, uint32_t from, const struct message *m);

/* If the answer is STATUS_LATER, fills in when the record of the contested key may be extended. */
void master_say_when(const struct core *core, struct message *answer);

/* ---- master.c ---- */

void master_promise(struct core *core, uint32_t from, const struct message *m);
void master_commit(struct core *core, uint32_t from, const struct message *m);
void master_learn(struct core *core, uint32_t from, const struct message *m);
void master_fetch(struct core *core, uint32_t from, const struct message *m);
void master_withdraw(struct core *core, uint32_t from, const struct message *m);

/* Does what a LEARN message says, without an answer. *key is set (NULL: there is no such key), and
 * the caller settles it. */
enum status master_learn_here(struct core *core, uint32_t from, const struct message *m,
	struct key **key);

/* ---- master_release.c ---- */

void master_release(struct core *core, uint32_t from, const struct message *m);
void master_break(struct core *core, uint32_t from, const struct message *m);

/* Ends the lock if it is bound to this connection or to an earlier one. True: a record ended. */
bool master_end_binding(struct core *core, struct slice name, struct id128 lock_id,
	uint32_t binding);

/* Drops everything of the message's lock_id and adds it to the tombstones. `how`: RECORD_RELEASED,
 * or RECORD_LOST when the lock is taken by force. `successor` may be NULL. True: a record ended. */
bool master_release_here(struct core *core, const struct message *m, enum record_change how,
	const struct successor *successor);

/* Does so for a release after which the key stays closed. *flags: FLAG_HAD, FLAG_CLOSED. Returns
 * STATUS_FULL if there was no memory, and nothing has ended. */
enum status master_close_here(struct core *core, const struct message *m, uint32_t *flags);

/* Bars the lock_id from extension. */
void master_bar_here(struct core *core, struct slice name, struct id128 lock_id);

/* Rolls back what rests on the name of this request alone. True: a record ended, or lost
 * permits. */
bool master_roll_back(struct core *core, struct slice name, struct id128 lock_id,
	uint64_t request_name);

/* ---- master_transfer.c ---- */

/* Answers who waits under the name that a holder wants as its successor. */
void master_nominate(struct core *core, uint32_t from, const struct message *m);

/* Handles a release that names a successor. */
void master_hand_over(struct core *core, uint32_t from, const struct message *m);

/* ---- master_transfer.c: asking ---- */

/* Tells those who watch the key at this node that somebody asks the holder to let go. */
void master_ask(struct core *core, uint32_t from, const struct message *m);

/* ---- master_release.c: downgrade ---- */

void master_downgrade(struct core *core, uint32_t from, const struct message *m);

/* ---- master_value.c ---- */

void master_prepare(struct core *core, uint32_t from, const struct message *m);
void master_write(struct core *core, uint32_t from, const struct message *m);

/* ---- master_waiters.c ---- */

/* Answers a piece of the list of requests that wait at this master. */
void master_waiters(struct core *core, uint32_t from, const struct message *m);

/* ---- master_explain.c ---- */

/* Handles a READ with FLAG_EXPLAIN. */
void master_explain(struct core *core, uint32_t from, const struct message *m);

/* ---- master_report.c ---- */

/* Picks up to `most` of the key's records in the order of their lock_ids, and returns how many. It
 * begins after the lock_id that `m` names, or from the beginning where m->number is 0. *left: how
 * many records there are from there on, with those that are picked, or more than are picked. */
uint32_t report_pick(const struct key *key, const struct message *m, uint32_t most,
	const struct record *piece[REPORT_PIECE_MAX], uint32_t *left);

void master_read(struct core *core, uint32_t from, const struct message *m);

/* Leaves a large value out of a report, and says so in the flags. */
void report_leave_value_out(const struct core *core, struct message *answer);

#endif
