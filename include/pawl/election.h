/* election.h: one leader among many candidates, and everybody knows who it is.
 *
 * An election is a lock whose key is the election's name: the leader holds it, candidates wait for it in order, the leader's
 * proclamation is its value, and the token grows from leader to leader. struct pawl_election is one program's part in it: as a
 * candidate, as an observer, or both.
 *
 *   observing --campaign--> candidate --elected: on_leading--> leader --on_stepped_down--> observing, or candidate again
 *       ^                       |                                |
 *       +------- resign --------+------------- resign -----------+
 *
 * There are never two leaders, as long as a leader acts only while pawl_election_valid_ms is above 0: the library steps down by
 * itself (on_stepped_down) warn_ms before the time is over in which the next one cannot have been elected. What must never happen
 * under an old leader carries the token to a resource that checks it (fence.h, pawl_fence_check).
 *
 * The rules of pawl.h for styles, threads, callbacks and errors are in force here: callbacks come from the loop only, in blocking
 * style within pawl_poll and other blocking calls, and in them everything may be called but blocking functions, also
 * pawl_election_free and pawl_free.
 */
#ifndef PAWL_ELECTION_H
#define PAWL_ELECTION_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_election;

struct pawl_leader { /* borrowed within the callback, resp. until the program's loop runs again */
	struct pawl_bytes owner; /* the candidate's name */
	struct pawl_bytes value; /* what it proclaims */
	uint64_t token;
	bool self;               /* it is this election handle */
	const char *label, *host; /* "" where not said */
	int64_t pid;              /* 0: not said */
};

/* This candidate is the leader from now on: begin. */
typedef void pawl_leading_fn(struct pawl_election *election, uint64_t token, void *arg);

/* Not the leader any more, once for each on_leading, unless the program itself has ended it (pawl_election_resign, _free: stop
 * before you call them). Stop what only the leader may do; pawl_election_valid_ms tells how long that may take at most. cause:
 * 0: it yields to somebody who asked for it (below), and lets go when this returns: everything must be stopped by then.
 * Otherwise as of a lock that is lost: PAWL_ELOST (at once), PAWL_EUNREACHABLE, PAWL_ENOQUORUM, PAWL_ETIMEOUT, ... warn_ms
 * before the deadline. */
typedef void pawl_stepped_down_fn(struct pawl_election *election, int cause, void *arg);

/* Another leader, or another value of the same one; NULL: there is none at present. The present one first, when it is known; then
 * every change in order. After the connection was lost: the present one if it is another, or has proclaimed something else. */
typedef void pawl_leader_fn(struct pawl_election *election, const struct pawl_leader *leader, void *arg);

/* Somebody asks this leader to let go: what shall happen?
 * PAWL_ASKED_USUAL: what happens without this callback: where asked.to is named the leadership is handed to that candidate;
 * otherwise, when asked.priority is above this leader's, to the one that asks. If that one is no candidate nothing happens.
 * PAWL_ASKED_STAY: nothing. A program that needs time for stopping, or makes up its mind later, says this, stops, and then
 * calls pawl_election_transfer or pawl_election_resign. */
enum pawl_asked_answer { PAWL_ASKED_USUAL, PAWL_ASKED_STAY };
typedef enum pawl_asked_answer pawl_election_asked_fn(struct pawl_election *election, const struct pawl_asked *asked, void *arg);

/* The election cannot go on for a reason that another attempt does not mend: PAWL_EDENIED, PAWL_EBADREQUEST, PAWL_ETOOLONG,
 * PAWL_ETOOLARGE, PAWL_EMISMATCH, PAWL_ETLS, PAWL_EFULL. It is no candidate any more; where `observing` is false it does not
 * observe any more either. Everything else (no node reachable, no quorum, ...) is tried again, with growing pauses up to 5
 * seconds. */
typedef void pawl_election_failed_fn(struct pawl_election *election, int error, const char *message, bool observing, void *arg);

struct pawl_election_options { /* zero: the default; everything is copied */
	struct pawl_bytes name;  /* of the election: the lock's key */
	struct pawl_bytes owner; /* this candidate's name, for pawl_election_transfer and for others to see; one that no other
	                          * candidate has. Default: as in the client's options */
	struct pawl_bytes value; /* proclaimed with the election; pawl_election_proclaim changes it */
	struct pawl_bytes label; /* default: as in the client's options */
	uint32_t lease_ms;       /* default 30000: a leader that died is replaced after so long, where the next does not apply */
	uint32_t warn_ms;        /* steps down so long before the deadline; default a sixth of the lease, at most half */
	uint32_t timeout_ms;     /* for single requests; default: as in the client's options */
	int32_t priority;        /* the candidate with the greatest one is next; among equals first come, first served */
	uint32_t lock_delay_ms;  /* nobody is elected for so long after this leader was lost without resigning */
	bool release_on_disconnect; /* this leader's death is known at once, by its connection (struct pawl_terms) */
	bool takeover;           /* as a candidate it asks each leader to yield, with its priority: one with a lower priority does */
	bool again;              /* after a loss, and after yielding, it is a candidate again */
	bool observe_only;       /* pawl_election_campaign is refused, and nothing but the name is needed */
	pawl_leading_fn *on_leading;           /* all callbacks may be NULL */
	pawl_renewed_fn *on_renewed; /* while it leads: the deadline is later now; the lock is that of pawl_election_lock */
	pawl_stepped_down_fn *on_stepped_down;
	pawl_leader_fn *on_leader;
	pawl_election_asked_fn *on_asked;
	pawl_election_failed_fn *on_failed;
	void *arg;               /* for all of them */
};

/* Begins to observe; nothing else happens before pawl_election_campaign. 0, PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EBUSY,
 * PAWL_ENOMEM. */
int pawl_election_new(struct pawl *client, const struct pawl_election_options *options, struct pawl_election **out_election);

/* Becomes a candidate: waits, for as long as it takes, and leads when its turn comes. 0 also when it is one already, or leads.
 * PAWL_EINVAL: observe_only, or a resignation or transfer is not over. PAWL_EBUSY, PAWL_ENOMEM, PAWL_ETOOLARGE, PAWL_EIO. */
int pawl_election_campaign(struct pawl_election *election);

/* No candidate any more; as the leader it is none from the call on, without on_stepped_down: stop before. The next candidate
 * leads at once. `again` does not count. done may be NULL; its result is that of the release (of nothing: the call is not
 * made, and 0 is returned). A transfer under way is ended without its `done`. */
int pawl_election_resign(struct pawl_election *election, pawl_done_fn *done, void *arg);

/* Hands leadership to the candidate named `to`: first it is looked up whether it waits: PAWL_ENOTFOUND (this is still the
 * leader, and has been all the time). Then as pawl_election_resign, with that candidate as the next. Where it leaves in just
 * that moment somebody else is next, and the result says PAWL_ENOTFOUND with `released` true. Between the call and the
 * look-up's answer this still leads; pawl_election_leads tells. on_stepped_down comes with cause 0 before it lets go. done may
 * be NULL. PAWL_EINVAL: it does not lead, or is at it already. */
int pawl_election_transfer(struct pawl_election *election, struct pawl_bytes to, pawl_done_fn *done, void *arg);

/* Another value: at once where this leads, otherwise with the next election. PAWL_ELOST through `done`, and those of
 * PAWL_UPDATE; one that is refused there (PAWL_ETOOLARGE, PAWL_EDENIED, ...) changes nothing, also not the value of the next
 * election. done may be NULL; it is not called where this does not lead. Where this does not lead nobody has looked at the
 * value yet: what is refused then is the candidate (on_failed). PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EBUSY, PAWL_ENOMEM. */
int pawl_election_proclaim(struct pawl_election *election, struct pawl_bytes value, pawl_done_fn *done, void *arg);

/* Takes effect with the next campaign; a candidate that waits keeps its place unless it campaigns anew (resign, campaign). */
void pawl_election_set_priority(struct pawl_election *election, int32_t priority);

/* This is the leader, by its own clock, now. */
bool pawl_election_leads(const struct pawl_election *election);
/* It waits to be elected. */
bool pawl_election_campaigns(const struct pawl_election *election);
/* How long it may still act as the leader, as pawl_lock_valid_ms: 0 when it does not lead, and once the deadline has passed. */
int64_t pawl_election_valid_ms(const struct pawl_election *election);
/* Of its leadership; 0 when it does not lead. May grow while it leads. */
uint64_t pawl_election_token(const struct pawl_election *election);
/* The lock that it leads by, NULL when it does not; for pawl_lock_deadline and others that only read. Not to be released. */
const struct pawl_lock *pawl_election_lock(const struct pawl_election *election);
/* The leader that was observed last, without asking anybody: true and *out_leader; false: none, as far as it is known. */
bool pawl_election_leader(const struct pawl_election *election, struct pawl_leader *out_leader);
/* What was observed is up to date, as pawl_watch_current. */
bool pawl_election_current(const struct pawl_election *election);

/* Ends everything: as pawl_election_resign without waiting for the outcome, and observing. No callback comes any more. NULL is
 * allowed. pawl_free frees the elections of its client, too, and a leader's lock is then released as far as that can be done
 * without waiting. */
void pawl_election_free(struct pawl_election *take_election);

#ifdef __cplusplus
}
#endif
#endif
