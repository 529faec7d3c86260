/* functions_queue.h: the part of functions.h for those who wait (sections 5 and 10). Included by it. */
#ifndef PAWL_CLUSTER_FUNCTIONS_QUEUE_H
#define PAWL_CLUSTER_FUNCTIONS_QUEUE_H

/* ---- queued.c: what stands in an order, and is found by key and lock_id ---- */
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

/* ---- queue.c: the home's queue, turns; kept.c: kept requests ---- */
void queue_enqueue(struct core *core, uint32_t from, const struct message *m);
void queue_withdraw(struct core *core, uint32_t from, const struct message *m);
bool queue_before(const struct core *core, const struct place *a, const struct place *b); /* section 10, Order: a is served before b */
/* A request with a turn that was refused for this reason; false: it may not wait here, and is not kept any more. */
bool queue_keep(struct core *core, struct key *key, uint32_t from, const struct message *m, enum status refused);
bool queue_may_wait(const struct core *core, const struct key *key, const struct place *place, enum status refused);
/* Its attempt is over here; a promise may have gone with it, or become a record. */
void queue_drop_kept(struct core *core, struct key *key, uint32_t from, struct id128 lock_id);
void queue_kept_free(struct core *core, struct kept *k);
struct kept *queue_kept_next(const struct core *core, const struct key *key, const struct kept *behind); /* in their order; behind NULL: the first */
bool queue_kept_withdrawn(struct core *core, struct key *key, uint32_t from, const struct message *m); /* the attempt's; false: none is kept */
void queue_drop_ticket(struct core *core, struct key *key, uint32_t from, const struct message *m); /* the entry of its lock_id, with its ticket */
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
struct waiter *queue_named(const struct core *core, const struct key *key, struct slice owner, struct id128 but); /* the first of this name */
bool queue_turn_of(struct core *core, struct key *key, uint32_t peer, struct id128 lock_id); /* gives it the turn, if it has none here */
void queue_give_turn(struct core *core, struct key *key);
bool queue_kept_ahead(const struct key *key, struct id128 lock_id); /* a request of somebody else is kept here */
bool queue_ahead(const struct core *core, const struct key *key, struct id128 lock_id); /* somebody waits who is not this lock_id */
/* The first entry of these parts (PARTS_ALL, ...) behind another one, which need not be there any more; behind NULL: the first of all. One that
 * was lost is told where many of them stand together. */
struct waiter *queue_next(const struct core *core, const struct key_more *more, const struct queued *behind, uint32_t parts);
/* The first key in the order of names that somebody waits for: the one of this name (where `itself`), or one behind it. */
struct key *queue_next_key(const struct core *core, struct slice name, bool itself);
void queue_peer_lost(struct core *core, uint32_t peer); /* what it coordinates here; entries of queues in pieces: */
void queue_lost_go_on(struct core *core);
static inline bool queue_lost_left(const struct core *core) {
	return !list_empty(&core->queues.lost);
}
void queue_forget_all(struct core *core); /* at once */
void queue_free_all(struct core *core, struct key *key); /* at the end of the node */

/* ---- home.c: looking for homes, in pieces ---- */
void attempt_rehome_all(struct core *core); /* begins, from the beginning */
void attempt_rehome_go_on(struct core *core);
static inline bool attempt_rehome_left(const struct core *core) {
	const struct list *n = core->waiting.next;
	return n != &core->waiting && CONTAINER_OF(n, const struct op, waiting)->homes != core->homes;
}
void attempt_leave_home(struct core *core, struct op *op);
void attempt_home_is(struct core *core, struct op *op, int home);
void attempt_waits(struct core *core, struct op *op); /* it is one of those that wait, and knows its home */

/* ---- caller.c: connections that are gone, in pieces ---- */
void op_leaving_go_on(struct core *core);
bool op_left(struct core *core, struct op *op); /* nobody asks for it any more, and it was freed for that */
/* One of several replies to the caller, who stays. There is room for it after out_reserve_reply. */
struct core_reply *op_reply_part(struct core *core, struct caller *c, int error);

/* ---- local.c: lists ---- */
void local_list_leave(struct caller *c); /* who asked for a list is told no more of it */

/* ---- waiters.c ---- */
void waiters_go_on(struct core *core); /* this node's own reports */

/* ---- background.c ---- */
void background(struct core *core);
void background_turn(struct core *core); /* perhaps another turn of the loop has begun */
int64_t background_deadline(const struct core *core); /* INT64_MAX: there is nothing to do */

#endif
