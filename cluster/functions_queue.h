/* functions_queue.h: the part of functions.h for those who wait (sections 5 and 10). Included by it. */
#ifndef PAWL_CLUSTER_FUNCTIONS_QUEUE_H
#define PAWL_CLUSTER_FUNCTIONS_QUEUE_H

/* ---- queue.c: the home's queue, turns; kept.c: kept requests ---- */
void queue_enqueue(struct core *core, uint32_t from, const struct message *m);
void queue_withdraw(struct core *core, uint32_t from, const struct message *m);
struct place queue_place(const struct waiter *w);
struct place queue_kept_place(const struct kept *k);
bool queue_before(const struct core *core, const struct place *a, const struct place *b); /* section 10, Order: a is served before b */
/* A request with a turn that was refused for this reason; false: it may not wait here, and is not kept any more. */
bool queue_keep(struct core *core, struct key *key, uint32_t from, const struct message *m, enum status refused);
bool queue_may_wait(const struct core *core, const struct key *key, const struct place *place, enum status refused);
/* Its attempt is over here; a promise may have gone with it, or become a record. */
void queue_drop_kept(struct core *core, struct key *key, uint32_t from, struct id128 lock_id);
void queue_kept_free(struct core *core, struct kept *k);
void queue_drop_ticket(struct core *core, struct key *key, uint32_t from, uint64_t seq);
void queue_drop_lock(struct core *core, struct key *key, struct id128 lock_id); /* a release */
void queue_record_held(struct core *core, struct key *key, struct id128 lock_id, uint32_t by); /* by: whose commit it was */
void queue_record_ended(struct core *core, struct key *key);
void queue_kept_again(struct core *core, struct key *key); /* one of them has gone, or a promise */
/* It is gone, or the one that it was made to has asked again, with a turn: who is kept may go on, or may not wait behind it any more. */
static inline void queue_promise_changed(struct core *core, struct key *key) {
	if (key->more) {
		queue_kept_again(core, key);
	}
}
void queue_hand_over(struct core *core, struct key *key, const struct heir *heir); /* the record that was in its way is gone */
const struct waiter *queue_named(const struct core *core, const struct key *key, struct slice owner, struct id128 but); /* the first of this name */
bool queue_turn_of(struct core *core, struct key *key, uint32_t peer, struct id128 lock_id); /* gives it the turn, if it has none here */
void queue_give_turn(struct core *core, struct key *key);
bool queue_kept_ahead(const struct key *key, struct id128 lock_id); /* a request of somebody else is kept here */
bool queue_ahead(const struct key *key, struct id128 lock_id); /* somebody waits who is not this lock_id */
void queue_peer_lost(struct core *core, uint32_t peer);
void queue_forget_all(struct core *core);
void queue_free_all(struct core *core, struct key *key); /* at the end of the node */

#endif
