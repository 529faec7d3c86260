/* checker.h: judges a run by what clients asked, were answered and believe, in true time (docs/protocol.md, section 8).
 * It knows nothing of how the core works; of its state it looks only at whether a master has a record (core_peek).
 *
 * A violation is reported with the seed, the command that replays it and the last events for the key, and ends the program.
 */
#ifndef PAWL_SIM_CHECKER_H
#define PAWL_SIM_CHECKER_H

#include <stdio.h>

#include "cluster_sim.h"

struct checker;

struct checker_options {
	struct sim *sim;
	uint64_t seed;
	const char *replay; /* the command that replays this run */
	const char *setup;  /* what the seed expanded to, for the report */
	FILE *history;      /* NULL: none */
	uint32_t drift_ppm;
	bool forced;        /* the cluster may be started over: clocks jump */
	bool forgets_releases; /* so little is remembered that a released lock_id may come back */
	bool nothing_wrong; /* no fault is drawn, and there is no rush */
	uint32_t liar;      /* a master that lies; TRACE_NONE: nobody does */
	bool unkind;        /* links lose, double or reorder frames, as no TCP connection does: what passes a node by cannot be counted */
	span_ns order_slack; /* waiters have to be served in order, as far as this tells them apart; 0: not checked */
};
struct checker *checker_new(const struct checker_options *options); /* observes the sim from now on */
void checker_free(struct checker *c);                               /* writes what was never answered to the history */

/* Ends the program with status 1. key: TRACE_NONE when it concerns none. */
_Noreturn void checker_violation(struct checker *c, const char *check, uint32_t key, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- locks ---- */
/* What the lock_id asks for (section 10); before it is asked for the first time. */
void checker_lock_terms(struct checker *c, uint32_t lock, const struct terms *terms);
const struct terms *checker_terms(const struct checker *c, uint32_t lock); /* with the permits that it was answered with */
/* Its holder takes it only for a shared one from now on. */
void checker_downgrade(struct checker *c, uint32_t lock);
/* It may be handed over to another from now on: nobody believes in it, until its holder is told that it was not. */
void checker_hand_over(struct checker *c, uint32_t lock, bool perhaps);
uint32_t checker_lock_new(struct checker *c, uint32_t key, uint32_t value); /* a new lock_id; `value` is what acquires give it */
struct id128 checker_lock_id(const struct checker *c, uint32_t lock);
uint32_t checker_lock_key(const struct checker *c, uint32_t lock);
/* Released, broken, or never to be believed again: all beliefs in it end. */
void checker_lock_end(struct checker *c, uint32_t lock);
/* Nobody believes in it any more, as it ends with a connection or is given back; but whoever has its lock_id may try to use it, and if that is
 * answered as held, it was held all the time. */
void checker_lock_gone(struct checker *c, uint32_t lock);
void checker_binding_held(struct checker *c, uint32_t lock, uint32_t binding); /* somebody who is told when its connection is closed takes it for held */
bool checker_lock_is_gone(const struct checker *c, uint32_t lock);
void checker_lock_again(struct checker *c, uint32_t lock); /* such a one is believed again */
bool checker_lock_released(const struct checker *c, uint32_t lock); /* its release, or a break at once, was asked for; or it may have been handed over */
uint32_t checker_locks(const struct checker *c); /* how many lock_ids there were */
void checker_lock_bar(struct checker *c, uint32_t lock); /* broken without `now`: who lacks it does not get it any more */
bool checker_lock_ended(const struct checker *c, uint32_t lock);
uint64_t checker_lock_token(const struct checker *c, uint32_t lock); /* the highest it was answered with, 0: none */

/* ---- operations ---- */
#define CHECKER_LIE "liar:1" /* an address that only a configuration has that nobody chose */
#define CHECKER_NO_VALUE UINT32_MAX
#define CHECKER_MEMBERS 4
struct checker_op {
	enum core_op op;
	uint32_t client, key, lock; /* lock: TRACE_NONE for reads */
	span_ns lease, wait;
	uint32_t expect, value;     /* UPDATE: CHECKER_NO_VALUE: unconditional; by_seq: the value that the seq names */
	bool by_seq, quorum;
	uint32_t members[CHECKER_MEMBERS], member_count; /* ACQUIRE_ALL: in the order of the request */
	int32_t priority;
	bool for_free;
	bool kept;                  /* EXTEND: the caller keeps the deadline */
	uint32_t binding;              /* ACQUIRE, ACQUIRE_ALL, EXTEND: the lock ends with this connection; 0: with none */
	struct permits numbers;     /* EXTEND: of a semaphore, those that it names */
};
/* Right after sim_send, which gave the id. */
void checker_invoked(struct checker *c, uint64_t id, const struct checker_op *op);
/* The client has the answer; `value` is what a read or a mismatch showed, CHECKER_NO_VALUE: nothing. */
void checker_returned(struct checker *c, uint64_t id, const struct sim_reply *reply, uint32_t value);
/* The client closes its connection of this number, those that locks may be bound to. */
void checker_closed(struct checker *c, uint32_t client, uint32_t connection);
bool checker_updates_left(const struct checker *c, uint32_t lock); /* more updates may be recorded for this lock_id */

/* Whole network again: releases that were answered have to have reached everybody, and no clock may have jumped. */
void checker_settled(struct checker *c);

/* From now on nothing is wrong (until it is said again): renewals of those who believe are answered as held. */
void checker_calm(struct checker *c, bool calm);
/* The lock ends with a connection to this node, which is closed now. */
void checker_lock_ends_at(struct checker *c, uint32_t lock, uint32_t node);
/* Nobody believes in it, and nobody released it so that it is certain: something may be left of it. */
bool checker_lock_left(const struct checker *c, uint32_t lock);
/* Whether it is known who holds the key, and that there is room for more: what can be had beside them. */
bool checker_key_free(const struct checker *c, uint32_t key, struct terms *out_terms);

/* ---- configurations; nodes by their names and present identities ---- */
const struct config *checker_newest(const struct checker *c); /* that anybody adopted; NULL: none yet */
const struct config *checker_config(const struct checker *c, struct id128 cluster, uint64_t epoch); /* NULL: never seen */
bool checker_in_config(const struct checker *c, const struct config *config, uint32_t node, bool *out_master);
bool checker_config_complete(const struct checker *c, const struct config *config); /* all its masters have voted in it */
bool checker_config_votes(const struct checker *c, const struct config *config); /* a quorum of them has */
/* The client of a change has its answer from the node. */
void checker_change_answered(struct checker *c, uint32_t node, uint64_t id, const struct core_change *change, const struct sim_reply *reply);

/* ---- a master that lies; checker_lies.c ---- */
/* Locks are not judged while it votes, nor is what was asked for before now. */
void checker_honest(struct checker *c);
bool checker_parted(const struct checker *c); /* there are two configurations of one epoch */

/* ---- replicas ---- */
uint32_t checker_followed(const struct checker *c, uint32_t node); /* TRACE_NONE: nobody */
/* Of the newest configuration's masters: what a quorum has, all have; else *lock is not at *node. */
bool checker_masters_equal(const struct checker *c, uint32_t *node, uint32_t *lock);
bool checker_replica_equals(const struct checker *c, uint32_t node, uint32_t master, uint32_t *lock); /* else *lock differs */

/* ---- beliefs ---- */
/* From now until `deadline` on the actor's clocks (or the later one it had before) the actor takes the lock for its own. */
void checker_believe(struct checker *c, const struct sim_actor *actor, uint32_t lock, struct instant deadline, uint64_t token);
void checker_forget(struct checker *c, const struct sim_actor *actor, uint32_t lock);
/* Some lock_id of the key is believed now. */
bool checker_believed(const struct checker *c, uint32_t key);
bool checker_lock_believed(const struct checker *c, uint32_t lock);
bool checker_lock_believed_since(struct checker *c, uint32_t lock, uint64_t id); /* all the time since that request was sent */

/* checker_watch_event.c: what the node tells those who watch has to be what becomes of its table. */
void checker_watch_event(struct checker *c, uint32_t node, const struct core_watch_event *watch_event);
void checker_events_settled(struct checker *c, bool replicas);
bool checker_events_agree(void *checker);
bool checker_events_of_masters_agree(void *checker);
void checker_watched_settled(struct checker *c, span_ns patience); /* checker_watched.c: what was granted so long ago has been told */

uint64_t checker_operations(const struct checker *c);

#endif
