/* election.h: an election makes one of many candidates the leader, and everybody can see who it is.
 *
 * An election is a lock whose key is the election's name. The leader holds the lock, and candidates
 * wait for it in order. What the leader proclaims is the value of the key, and the token grows from
 * leader to leader. struct pawl_election is the part that one program has in it: as a candidate, as
 * an observer, or as both.
 *
 *   observing --campaign--> candidate --on_leading--> leader --on_stepped_down--> observing,
 *       ^                       |                       |                        or candidate again
 *       +------- resign --------+-------- resign -------+
 *
 * There are never two leaders as long as a leader acts only while pawl_election_valid_ms is above
 * 0. The library makes a leader that cannot extend its lock step down (on_stepped_down), warn_ms
 * before the end of the time in which no other leader can be elected. A write that must never
 * happen under an old leader carries the token to a resource that checks it (fence.h,
 * pawl_fence_check).
 *
 * The rules of pawl.h for styles, threads, callbacks and errors apply here. Callbacks come from the
 * loop only; in the blocking style they come within pawl_poll and other blocking calls. A callback
 * may call everything except blocking functions; it may call pawl_election_free and pawl_free.
 */
#ifndef PAWL_ELECTION_H
#define PAWL_ELECTION_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_election;

/* A leader. In a callback it is borrowed within the callback; from pawl_election_leader it is valid
 * until the loop runs again. */
struct pawl_leader {
	/* The name of the candidate that leads. */
	struct pawl_bytes owner;
	/* What the leader proclaims. */
	struct pawl_bytes value;
	/* The fencing token of the leader's lock. */
	uint64_t token;
	/* The leader is this election handle. */
	bool self;
	/* "" if the leader did not say. */
	const char *label, *host;
	/* The process id; 0 if the leader did not say. */
	int64_t pid;
};

/* This candidate is the leader from now on: begin to lead. */
typedef void pawl_leading_fn(struct pawl_election *election, uint64_t token, void *arg);

/* This is no longer the leader: stop what only the leader may do. It comes once for each
 * on_leading, unless the program itself has ended the leadership (pawl_election_resign,
 * pawl_election_free: stop before you call them). pawl_election_valid_ms tells how much time is
 * left. If `cause` is 0, the leader yields to somebody who asked for it (see below), and the
 * library lets go when this returns: everything must be stopped by then. Otherwise `cause` is the
 * same as for a lost lock (lock.h): PAWL_ELOST leaves no time; PAWL_EUNREACHABLE, PAWL_ENOQUORUM,
 * PAWL_ETIMEOUT, ... come warn_ms before the deadline. */
typedef void pawl_stepped_down_fn(struct pawl_election *election, int cause, void *arg);

/* There is another leader, or the same leader proclaims another value; NULL means that there is no
 * leader at present. The first call tells the present leader, as soon as it is known; the later
 * calls tell every change in order. After a lost connection this tells the present leader if it is
 * another one, or if it has proclaimed something else. */
typedef void pawl_leader_fn(struct pawl_election *election, const struct pawl_leader *leader,
	void *arg);

/* What a leader does when somebody asks it to let go. */
enum pawl_asked_answer {
	/* Do what happens without this callback. If asked.to is given, hand the leadership to that
	 * candidate. Otherwise, if asked.priority is above this leader's priority, hand it to the
	 * one that asks. If that one is not a candidate, nothing happens. */
	PAWL_ASKED_USUAL,
	/* Do nothing. A program that needs time to stop, or decides later, answers this, stops, and
	 * then calls pawl_election_transfer or pawl_election_resign. */
	PAWL_ASKED_STAY
};
/* Somebody asks this leader to let go. The answer says what happens. */
typedef enum pawl_asked_answer pawl_election_asked_fn(struct pawl_election *election,
	const struct pawl_asked *asked, void *arg);

/* The election cannot go on, for a reason that another try does not mend: PAWL_EDENIED,
 * PAWL_EBADREQUEST, PAWL_ETOOLONG, PAWL_ETOOLARGE, PAWL_EMISMATCH, PAWL_ETLS, PAWL_EFULL or
 * PAWL_EMOVED. The program is no longer a candidate; if `observing` is false, it no longer observes
 * either. After every other failure (no node is reachable, there is no quorum, ...) the library
 * tries again, with growing pauses of up to 5 seconds. */
typedef void pawl_election_failed_fn(struct pawl_election *election, int error,
	const char *message, bool observing, void *arg);

/* The options of an election. A zero field means the default. Everything is copied. */
struct pawl_election_options {
	/* The name of the election, which is the key of its lock. */
	struct pawl_bytes name;
	/* The name of this candidate, which others see and pawl_election_transfer takes. No other
	 * candidate may have the same. The default is the owner in the client's options. */
	struct pawl_bytes owner;
	/* What this candidate proclaims when it is elected. pawl_election_proclaim changes it. */
	struct pawl_bytes value;
	/* The default is the label in the client's options. */
	struct pawl_bytes label;
	/* The lease in ms; the default is 30000, or the cluster's max_lease if that is less. A
	 * leader that died is replaced after this time, unless release_on_disconnect replaces it
	 * sooner. */
	uint32_t lease_ms;
	/* How long before the deadline the leader steps down, in ms; the default is a sixth of the
	 * lease, and at most half of the lease is allowed. */
	uint32_t warn_ms;
	/* How long a single request may take, in ms; the default is the time in the client's
	 * options. */
	uint32_t timeout_ms;
	/* The candidate with the highest priority is next; among equal priorities the first comer
	 * is next. */
	int32_t priority;
	/* After this leader was lost without resigning, nobody is elected for this time, in ms. */
	uint32_t lock_delay_ms;
	/* The death of this leader is noticed at once, by its connection (struct pawl_terms). */
	bool release_on_disconnect;
	/* As a candidate, this program asks each leader to yield, with its own priority. A leader
	 * with a lower priority does. */
	bool takeover;
	/* After a loss, and after yielding, this program is a candidate again. */
	bool again;
	/* pawl_election_campaign is refused, and only the name is needed. */
	bool observe_only;
	/* All callbacks may be NULL. */
	pawl_leading_fn *on_leading;
	/* Called while this leads, when the deadline has moved to a later time. The lock is the one
	 * that pawl_election_lock returns. */
	pawl_renewed_fn *on_renewed;
	/* Called when this leads no longer. */
	pawl_stepped_down_fn *on_stepped_down;
	/* Called when another leader is known, or none. */
	pawl_leader_fn *on_leader;
	/* Called when somebody asks this leader to yield. */
	pawl_election_asked_fn *on_asked;
	/* Called when the election cannot go on. */
	pawl_election_failed_fn *on_failed;
	/* Passed to all callbacks. */
	void *arg;
};

/* Begins to observe. Nothing else happens before pawl_election_campaign. Returns 0, PAWL_EINVAL,
 * PAWL_ETOOLARGE, PAWL_EBUSY or PAWL_ENOMEM. Free the election with pawl_election_free. */
int pawl_election_new(struct pawl *client, const struct pawl_election_options *options,
	struct pawl_election **out_election);

/* Becomes a candidate, which waits for as long as it takes, and leads when its turn comes. Returns
 * 0, also if this is already a candidate or the leader. PAWL_EINVAL: observe_only is set, or a
 * resignation or transfer is not over. Other errors are PAWL_EBUSY, PAWL_ENOMEM, PAWL_ETOOLARGE and
 * PAWL_EIO. */
int pawl_election_campaign(struct pawl_election *election);

/* Stops being a candidate or the leader. A leader is no longer the leader from the moment of the
 * call, and on_stepped_down does not come: stop before the call. The next candidate leads at once.
 * `again` has no effect here. done may be NULL; its result is the result of the release. If there
 * is nothing to release, `done` is not called and 0 is returned. A transfer under way is ended
 * without its `done`. */
int pawl_election_resign(struct pawl_election *election, pawl_done_fn *done, void *arg);

/* Hands the leadership to the candidate named `to`. It first asks a node whether that candidate
 * waits. If it does not, the result is PAWL_ENOTFOUND, and this is still the leader and has been
 * all the time. Otherwise on_stepped_down comes with cause 0, and then this resigns with that
 * candidate as the next leader. If the candidate leaves at just that moment, another candidate is
 * next, and the result has PAWL_ENOTFOUND with `released` true. Until the node has answered, this
 * still leads (pawl_election_leads). done may be NULL. PAWL_EINVAL: this does not lead, or a
 * transfer is already under way. */
int pawl_election_transfer(struct pawl_election *election, struct pawl_bytes to,
	pawl_done_fn *done, void *arg);

/* Proclaims another value: at once if this leads, otherwise with the next election. done may be
 * NULL, and is not called if this does not lead. Its result may be PAWL_ELOST and the other errors
 * of PAWL_UPDATE; a value that is refused there (PAWL_ETOOLARGE, PAWL_EDENIED, ...) changes
 * nothing, not even the value of the next election. If this does not lead, nobody has checked the
 * value yet; if it is refused later, the candidate is refused (on_failed). Returns 0, PAWL_EINVAL,
 * PAWL_ETOOLARGE, PAWL_EBUSY or PAWL_ENOMEM. */
int pawl_election_proclaim(struct pawl_election *election, struct pawl_bytes value,
	pawl_done_fn *done, void *arg);

/* Sets the priority for the next campaign. A candidate that waits keeps its place unless it
 * campaigns anew (resign, then campaign). */
void pawl_election_set_priority(struct pawl_election *election, int32_t priority);

/* Returns whether this is the leader now, by its own clock. */
bool pawl_election_leads(const struct pawl_election *election);
/* Returns whether this waits to be elected. */
bool pawl_election_campaigns(const struct pawl_election *election);
/* Returns how long this may still act as the leader at least, in ms, as pawl_lock_valid_ms does. It
 * returns 0 if this does not lead, and once the deadline has passed. */
int64_t pawl_election_valid_ms(const struct pawl_election *election);
/* Returns the token of this leadership; 0 if this does not lead. It may grow while this leads.
 * After on_stepped_down it is still that of the leadership that has ended, until
 * pawl_election_valid_ms is 0. */
uint64_t pawl_election_token(const struct pawl_election *election);
/* Returns the lock by which this leads, or NULL if it does not lead; after on_stepped_down as
 * pawl_election_token. It is for pawl_lock_deadline and other functions that only read. Do not
 * release it. */
const struct pawl_lock *pawl_election_lock(const struct pawl_election *election);
/* Gives the leader that was observed last, without asking any node. Returns true and *out_leader,
 * or false if no leader is known. */
bool pawl_election_leader(const struct pawl_election *election, struct pawl_leader *out_leader);
/* Returns whether the observed leader is up to date, as pawl_watch_current does. */
bool pawl_election_current(const struct pawl_election *election);

/* Ends the observing and everything else, and frees the election. A candidate or leader resigns,
 * but this does not wait for the outcome. No callback comes any more. NULL is allowed. pawl_free
 * also frees the elections of its client; the lock of a leader is then released as far as that can
 * be done without waiting. */
void pawl_election_free(struct pawl_election *take_election);

#ifdef __cplusplus
}
#endif
#endif
