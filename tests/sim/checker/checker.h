/* checker.h: judges a run by what clients asked, were answered and believe, in true time
 * (docs/protocol.md, section 8). It knows nothing of how the core works. Of the core's state it
 * sees only whether a master has a record (core_peek).
 *
 * A violation is reported with the seed, the command that replays it and the last events for the
 * key, and ends the program.
 */
#ifndef PAWL_SIM_CHECKER_H
#define PAWL_SIM_CHECKER_H

#include <stdio.h>

#include "cluster_sim.h"

struct checker;

struct checker_options {
	struct sim *sim;
	uint64_t seed;
	/* The command that replays this run. */
	const char *replay;
	/* What the seed expanded to, for the report. */
	const char *setup;
	/* NULL: no history is written. */
	FILE *history;
	uint32_t drift_ppm;
	/* The cluster may be started over: clocks jump. */
	bool forced;
	/* So little is remembered that a released lock_id may come back. */
	bool forgets_releases;
	/* No fault is drawn, and there is no rush. */
	bool nothing_wrong;
	/* A master that lies; TRACE_NONE: none does. */
	uint32_t liar;
	/* Links lose, double or reorder frames, as no TCP connection does. A node cannot count then
	 * what it has missed. */
	bool unkind;
	/* Waiters have to be served in order if they came at least this far apart; 0: the order is
	 * not checked. */
	span_ns order_slack;
	/* Replicas check for double grants, and must find none. */
	bool check_grants;
	/* Watches begin and end. */
	bool watches_change;
	/* Called instead of ending the program for a violation of any other check than `alone`, and
	 * never returns; NULL: the program ends. If a key has two holders, the run goes on without
	 * this call. `core`: a core is in the midst of a step. */
	void (*ruined)(bool core);
	const char *alone;
};
/* The name of the check that replicas make. */
#define CHECKER_REPLICAS_FIND "what replicas find (double grants)"
/* The name of the check that is made by the abstract machine (sim/refine). */
#define CHECKER_REFINEMENT "refinement"
/* Observes the simulation from now on. */
struct checker *checker_new(const struct checker_options *options);
/* From now on only looks for what replicas find. */
void checker_replicas_alone(struct checker *c);
/* Tells whether a key has had two holders, and the run went on. */
bool checker_twice(const struct checker *c);
/* Also writes what was never answered to the history. */
void checker_free(struct checker *c);

/* Ends the program with status 1. `key` is TRACE_NONE when it concerns none. */
_Noreturn void checker_violation(struct checker *c, const char *check, uint32_t key,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- locks ---- */
/* Says what the lock_id asks for (section 10), before it is asked for the first time. */
void checker_lock_terms(struct checker *c, uint32_t lock, const struct terms *terms);
/* Returns the terms with the permits that it was answered with. */
const struct terms *checker_terms(const struct checker *c, uint32_t lock);
/* Records that its holder takes it only for a shared lock from now on. */
void checker_downgrade(struct checker *c, uint32_t lock);
/* Records that the lock may be handed over to another client from now on: nobody believes in it,
 * until its holder is told that it was not. */
void checker_hand_over(struct checker *c, uint32_t lock, bool perhaps);
/* Makes a new lock_id; `value` is what its acquires write. */
uint32_t checker_lock_new(struct checker *c, uint32_t key, uint32_t value);
struct id128 checker_lock_id(const struct checker *c, uint32_t lock);
uint32_t checker_lock_key(const struct checker *c, uint32_t lock);
/* Records that the lock is released, broken, or never to be believed again: all beliefs in it
 * end. */
void checker_lock_end(struct checker *c, uint32_t lock);
/* Records that nobody believes in the lock any more, as it ends with a connection or is rolled
 * back. But a client that has its lock_id may try to use it, and if that is answered as held, it
 * was held all the time. */
void checker_lock_gone(struct checker *c, uint32_t lock);
/* Records that a client which is told when its connection is closed takes the lock for held. */
void checker_binding_held(struct checker *c, uint32_t lock, uint32_t binding);
/* Tells whether checker_lock_gone was called last. */
bool checker_lock_is_gone(const struct checker *c, uint32_t lock);
/* Records that a lock that was gone is believed again. */
void checker_lock_again(struct checker *c, uint32_t lock);
/* Tells whether its release, or a break at once, was asked for, or it may have been handed over. */
bool checker_lock_released(const struct checker *c, uint32_t lock);
/* How many lock_ids there were. */
uint32_t checker_locks(const struct checker *c);
/* Records that it was broken without `now`: a master that lacks it does not get it any more. */
void checker_lock_bar(struct checker *c, uint32_t lock);
bool checker_lock_ended(const struct checker *c, uint32_t lock);
/* As checker_lock_end, for a release that expects a value: whether it ends the lock is known by its
 * answer alone, and the operations on the value are judged on. */
void checker_lock_end_by_value(struct checker *c, uint32_t lock);
/* Tells whether only such releases have ended it. */
bool checker_lock_ended_by_value(const struct checker *c, uint32_t lock);
/* The highest token that it was answered with; 0: none. */
uint64_t checker_lock_token(const struct checker *c, uint32_t lock);

/* ---- operations ---- */
/* An address that is only in a configuration that nobody chose. */
#define CHECKER_LIE "liar:1"
#define CHECKER_NO_VALUE UINT32_MAX
/* What a release that expects a value writes: no operation expects it. */
#define CHECKER_ENDED (UINT32_MAX - 1)
#define CHECKER_MEMBERS 4
struct checker_op {
	enum core_op op;
	/* `lock` is TRACE_NONE for reads. */
	uint32_t client, key, lock;
	span_ns lease, wait;
	/* Of UPDATE, and of RELEASE with `compares`. CHECKER_NO_VALUE: it is unconditional; with
	 * by_seq: the value that the seq names. */
	uint32_t expect, value;
	bool by_seq, quorum;
	/* The release expects a value; and for how long it keeps the key closed. */
	bool compares;
	span_ns closes;
	/* Of ACQUIRE_ALL: in the order of the request. */
	uint32_t members[CHECKER_MEMBERS], member_count;
	int32_t priority;
	bool for_free;
	/* Of EXTEND: the caller keeps the deadline. */
	bool deadline_kept;
	/* Of ACQUIRE, ACQUIRE_ALL and EXTEND: the lock ends with this connection; 0: with none; and
	 * the order that is named. */
	uint32_t binding, order;
	/* Of EXTEND of a semaphore: the permit numbers that it names. */
	struct permits numbers;
};
/* Call it right after sim_send, which gave the id. */
void checker_invoked(struct checker *c, uint64_t id, const struct checker_op *op);
/* The client has the answer. `value` is what a read or a mismatch showed; CHECKER_NO_VALUE:
 * nothing. */
void checker_returned(struct checker *c, uint64_t id, const struct sim_reply *reply,
	uint32_t value);
/* The client closes its connection of this number, one of those that locks may be bound to. */
void checker_closed(struct checker *c, uint32_t client, uint32_t connection);
/* Whether more updates may be recorded for this lock_id. */
bool checker_updates_left(const struct checker *c, uint32_t lock);

/* The network is whole again: releases that were answered must have reached everybody, and no clock
 * may have jumped. */
void checker_settled(struct checker *c);

/* From now on nothing is wrong, until this is called again: renewals of those who believe are
 * answered as held. */
void checker_calm(struct checker *c, bool calm);
/* The lock ends with a connection to this node, which is closed now. */
void checker_lock_ends_at(struct checker *c, uint32_t lock, uint32_t node);
/* Nobody believes in it, and nobody released it in such a way that it is certainly gone: something
 * may be left of it. */
bool checker_lock_left(const struct checker *c, uint32_t lock);
/* Whether it is known which locks hold the key, and there is room for more: `*out_terms` can be had
 * in addition to them. */
bool checker_key_free(const struct checker *c, uint32_t key, struct terms *out_terms);

/* ---- configurations; nodes by their names and present identities ---- */
/* The newest that anybody adopted; NULL: there is none yet. */
const struct config *checker_newest(const struct checker *c);
/* NULL: it was never seen. */
const struct config *checker_config(const struct checker *c, struct id128 cluster, uint64_t epoch);
bool checker_in_config(const struct checker *c, const struct config *config, uint32_t node,
	bool *out_master);
/* All its masters have voted in it. */
bool checker_config_complete(const struct checker *c, const struct config *config);
/* A quorum of its masters has voted in it. */
bool checker_config_votes(const struct checker *c, const struct config *config);
/* The client of a change has its answer from the node. */
void checker_change_answered(struct checker *c, uint32_t node, uint64_t id,
	const struct core_change *change, const struct sim_reply *reply);

/* ---- a master that lies (checker_lies.c) ---- */
/* Locks are not judged while the liar votes, and neither is what was asked for before this call. */
void checker_honest(struct checker *c);
/* There are two configurations of one epoch. */
bool checker_parted(const struct checker *c);

/* ---- replicas ---- */
/* TRACE_NONE: it follows nobody. */
uint32_t checker_followed(const struct checker *c, uint32_t node);
/* Whether all masters of the newest configuration have what a quorum of them has. If not, *lock is
 * missing at *node. */
bool checker_masters_equal(const struct checker *c, uint32_t *node, uint32_t *lock);
/* If not, *lock differs. */
bool checker_replica_equals(const struct checker *c, uint32_t node, uint32_t master,
	uint32_t *lock);

/* ---- beliefs ---- */
/* From now until `deadline` on the actor's clocks (or a later one that it had before) the actor
 * takes the lock for its own. */
void checker_believe(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	struct instant deadline, uint64_t token);
/* The holder has moved to another connection: from now on it trusts this answer, and none from
 * before. */
void checker_believe_only(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	struct instant deadline, uint64_t token);
/* The holder, the only one that uses the lock, is about to shorten its lease to `lease`: it trusts
 * until this deadline at most, and no answer to what it has asked before. */
void checker_shortened(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	struct instant deadline, span_ns lease);
void checker_forget(struct checker *c, const struct sim_actor *actor, uint32_t lock);
/* Some lock_id of the key is believed now. */
bool checker_believed(const struct checker *c, uint32_t key);
bool checker_lock_believed(const struct checker *c, uint32_t lock);
/* It has been believed all the time since that request was sent. */
bool checker_lock_believed_since(struct checker *c, uint32_t lock, uint64_t id);

/* ---- watch events (checker_events.c) ---- */
/* A node has to tell its watchers of each change of its table, and of nothing else. */
void checker_watch_event(struct checker *c, uint32_t node,
	const struct core_watch_event *watch_event);
void checker_events_settled(struct checker *c, bool replicas);
bool checker_events_agree(void *checker);
bool checker_events_of_masters_agree(void *checker);
/* Whatever was granted `patience` ago has been told (checker_watched.c). */
void checker_watched_settled(struct checker *c, span_ns patience);
/* The same of one node, if somebody watches there. */
void checker_watched_judge(struct checker *c, uint32_t node, span_ns patience);
/* Somebody begins to watch at the node, and reads what is there. */
void checker_watch_begins(struct checker *c, uint32_t node);

uint64_t checker_operations(const struct checker *c);

#endif
