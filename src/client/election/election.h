/* election.h: one program's part in an election, made of a lock that is waited for and a watch on its key.
 *
 *   OBSERVING --campaign--> CANDIDATE --granted--> LEADING --lost, resign--> OBSERVING
 *                              |  ^                   | transfer, or asked: LOOKING, whether the successor waits
 *               refusal: RESTING--+                   v
 *                                                  LOOKING --not there--> LEADING;   --there--> LEAVING --> OBSERVING
 */
#ifndef PAWL_CLIENT_ELECTION_H
#define PAWL_CLIENT_ELECTION_H

#include "lock.h"
#include "pawl/election.h"
#include "watch.h"

enum election_state {
	ELECTION_OBSERVING,
	ELECTION_CANDIDATE, /* a request waits */
	ELECTION_RESTING,   /* a candidate between two requests */
	ELECTION_LEADING,
	ELECTION_LOOKING,   /* leads */
	ELECTION_LEAVING
};

struct election_known { /* a leader that was observed */
	bool known;
	uint64_t token;
	int64_t pid;
	uint8_t *block; /* the four texts, each followed by a NUL */
	size_t size, owner_size, value_size, label_size, host_size;
};

struct pawl_election {
	struct list link; /* in client->elections */
	struct pawl *client;
	struct pawl_election_options options; /* its bytes are this election's */
	enum election_state state;
	struct pawl_lock *lock; /* that it leads by */
	struct pawl_lock *past; /* that it led by: on_stepped_down was called, and its time is perhaps not over */
	struct pawl_call *call; /* CANDIDATE: the acquire; LOOKING: the look-up */
	bool value_changed;     /* since the request was made */
	struct list proclaimed; /* election_proclaim.c: what no node has answered yet; how many there were, and which of them is the value */
	uint64_t proclamations, adopted;
	unsigned failures;
	struct alarm rest;

	/* LOOKING, LEAVING */
	struct pawl_bytes successor; /* owned */
	bool yields; /* because it was asked: a candidate again, if it wants that */
	pawl_done_fn *done;
	void *done_arg;

	/* election_observe.c */
	struct pawl_watch *watch; /* NULL: failed for good */
	struct election_known leader;
	uint64_t token_highest;
	bool present_seen, ever_current;
	unsigned asks; /* of this leader to yield */
	struct alarm ask;

	bool *gone; /* while the program is called: set when it frees the election */
};

void elections_part(struct pawl *client);
void elections_free_all(struct pawl *client);

/* A copy of the election's own: 0 or PAWL_ENOMEM. */
int election_bytes_keep(const struct allocator *alloc, struct pawl_bytes from, struct pawl_bytes *out);
void election_bytes_free(const struct allocator *alloc, struct pawl_bytes b);

/* election_lead.c */
int election_campaign(struct pawl_election *e);
void election_stop(struct pawl_election *e); /* candidate or leader no more, without a word; what is held stays so */
int election_hand_over(struct pawl_election *e, struct pawl_bytes to, bool yields, pawl_done_fn *done, void *arg);
void election_alarms(struct pawl_election *e);
bool election_leads(const struct pawl_election *e);
bool election_campaigns(const struct pawl_election *e);
/* The program is told. False: it has freed the election, or the client. */
bool election_tell_failed(struct pawl_election *e, int error, const char *message);

/* election_observe.c */
int election_observe(struct pawl_election *e);
void election_leader_free(struct pawl_election *e);
struct pawl_leader election_leader(const struct pawl_election *e);
/* A candidate that takes over asks whoever leads. */
void election_ask(struct pawl_election *e);

/* election_proclaim.c */
void election_part_with_proclamations(struct pawl_election *e);

/* Before and after a callback; after: false as election_tell_failed. */
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
