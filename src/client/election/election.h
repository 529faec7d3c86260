/* election.h: one program's part in an election: a lock that it waits for, and a watch on the key
 * of that lock.
 *
 *   OBSERVING --campaign--> CANDIDATE --granted--> LEADING --lost, resign--> OBSERVING
 *                              |  ^                   |
 *               refusal: RESTING--+                   | transfer, or somebody asks
 *                                                     v
 *                  LEADING <--no such candidate-- LOOKING --it waits--> LEAVING --> OBSERVING
 */
#ifndef PAWL_CLIENT_ELECTION_H
#define PAWL_CLIENT_ELECTION_H

#include "lock.h"
#include "pawl/election.h"
#include "watch.h"

enum election_state {
	ELECTION_OBSERVING,

	/* A request waits at a node. */
	ELECTION_CANDIDATE,

	/* The program is a candidate, between two requests. */
	ELECTION_RESTING,
	ELECTION_LEADING,

	/* The program leads, and asks a node whether the successor waits. */
	ELECTION_ASKING_WAITERS,
	ELECTION_LEAVING
};

/* A leader that was observed. */
struct observed_leader {
	bool known;
	uint64_t token;
	/* The process that has the lock, as it says itself. */
	int64_t pid;

	/* Owner, value, label and host, each followed by a NUL, in one block of `size` bytes. The
	 * sizes of the texts do not count the NUL. */
	uint8_t *block;
	size_t size, owner_size, value_size, label_size, host_size;
};

struct pawl_election {
	/* In client->elections. */
	struct list link;
	struct pawl *client;

	/* The election owns the bytes of its options. */
	struct pawl_election_options options;
	enum election_state state;

	/* The lock by which this leads. */
	struct pawl_lock *lock;

	/* The lock by which this led before. on_stepped_down was called for it, and its time may
	 * not be over. */
	struct pawl_lock *previous_lock;

	/* CANDIDATE: the acquire. LOOKING: the request for the waiters. */
	struct pawl_call *call;

	/* The value has changed since the request was made. */
	bool value_changed;

	/* The nodes are of a release that does not know how to mark a lock as an election. */
	bool unmarked;

	/* election_proclaim.c: the proclamations that no node has answered yet, how many there were
	 * in all, and the number of the one that has become the value. */
	struct list proclaimed;
	uint64_t proclamations, adopted;

	/* How many requests have failed since the last time that this led. */
	unsigned failures;

	/* Goes off when a candidate that rests makes its next request. */
	struct alarm rest;

	/* ---- for LOOKING and LEAVING ---- */

	/* Owned by the election. */
	struct pawl_bytes successor;

	/* This leaves because somebody asked for it, so it becomes a candidate again if its options
	 * say so. */
	bool yields;
	pawl_done_fn *done;
	void *done_arg;

	/* ---- election_observe.c ---- */

	/* NULL if the watch has failed for good. */
	struct pawl_watch *watch;
	struct observed_leader leader;

	/* The highest token of a leader that was observed. */
	uint64_t token_highest;

	/* Whether a holder was told since the last PAWL_EVENT_CURRENT or PAWL_EVENT_OVERFLOW, and
	 * whether PAWL_EVENT_CURRENT was ever told. */
	bool present_seen, ever_current;

	/* How often this leader was asked to yield. */
	unsigned asks;
	struct alarm ask;

	/* While a callback of the program runs: set to true if the program frees the election. */
	bool *gone;
};

void elections_release_on_close(struct pawl *client);
void elections_free_all(struct pawl *client);

/* ---- election_lead.c ---- */

int election_campaign(struct pawl_election *e);

/* Ends being a candidate or the leader, without telling the program. A lock that is held stays
 * held. */
void election_stop(struct pawl_election *e);
int election_hand_over(struct pawl_election *e, struct pawl_bytes to, bool yields,
	pawl_done_fn *done, void *arg);
void election_alarms(struct pawl_election *e);
bool election_leads(const struct pawl_election *e);
bool election_campaigns(const struct pawl_election *e);
/* Tells the program. Returns false if the program has freed the election or the client. */
bool election_tell_failed(struct pawl_election *e, int error, const char *message);

/* ---- election_observe.c ---- */

int election_observe(struct pawl_election *e);
void election_leader_free(struct pawl_election *e);
struct pawl_leader election_leader(const struct pawl_election *e);
/* Asks the present leader to yield, for a candidate with `takeover`. */
void election_ask(struct pawl_election *e);

/* ---- election_proclaim.c ---- */

void election_detach_proclamations(struct pawl_election *e);

/* Call these before and after a callback of the program. election_left returns false in the same
 * cases as election_tell_failed. */
static inline void election_enter(struct pawl_election *e, bool *gone) {
	*gone = false;
	e->gone = gone;
	e->client->callbacks++;
}

static inline bool election_left(struct pawl_election *e, const bool *gone) {
	if (*gone) {
		return false;
	}
	e->gone = NULL;
	return !e->client->dying;
}

#endif
