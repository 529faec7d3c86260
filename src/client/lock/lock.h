/* lock.h: a held lock, and what its holder may count on.
 *
 *   acquiring --answer--> kept --release or free--> gone
 *                          | it is warn_ms before the deadline and no extension has succeeded,
 *                          | or a node said so
 *                          v
 *                         lost (final: no answer brings it back) --release or free--> gone
 *
 * The files of the room, in an order in which each calls only those before it; the three that keep
 * a lock call each other:
 *
 *   lock_view                    what can be said of a lock
 *   lock_keep, renew, reclaim    keeping it, extending it, acquiring it again
 *   session_binding, entering, extend, leave
 *                                what binds it to a connection, shares its handle, extends it at
 *                                once, hands it over
 *   lock, locks, lock_call       beginning, one or several; the requests of a holder
 */
#ifndef PAWL_CLIENT_LOCK_H
#define PAWL_CLIENT_LOCK_H

#include "call.h"

struct batch;
struct leave;

/* What the lock was acquired with, in one block; the value is the one that was written last. If
 * there are no bytes, it is not known. */
struct lock_inputs {
	/* Owner, label and value, one behind the other. */
	uint8_t *bytes;
	/* The size of the block, and of each of the three, in bytes. */
	size_t size, owner, label, value;
};

/* What a node has granted. */
struct lock_grant {
	struct pawl_id lock_id;
	uint64_t token;
	enum pawl_mode mode;
	/* The permit numbers, for permits of a semaphore; borrowed from the answer. */
	const uint32_t *slots;
	size_t slot_count;
	/* Until when the lock may be trusted. */
	struct instant deadline;
	/* The order that the request named. */
	uint32_t order;
	/* The number of the connection over which the answer came. */
	unsigned connection;
	/* The request has waited for longer than the lease. */
	bool waited_long;
	/* Something else was requested under this lock_id meanwhile, or the lease was shortened;
	 * see struct pawl_call. */
	bool crossed, outdated;
};

struct pawl_lock {
	/* In client->locks, once the lock is held. */
	struct list link;

	/* In client->due, if the lock is to be extended in this turn. */
	struct list due;

	/* How many locks may be extended in one request with this one; 0: as many as fit. */
	size_t together;
	struct pawl *client;
	uint8_t *key;
	size_t key_size;
	struct pawl_id lock_id;
	/* For whom the lock is, when nodes look for deadlocks; all zero: the client. */
	struct pawl_id party;
	uint64_t token;
	enum pawl_mode mode;

	/* The permit numbers, for permits of a semaphore. */
	struct permits slots;

	/* How often the lock is entered; at least 1. */
	int entered;

	/* The lease, and how long before the deadline on_lost comes. If the program has left the
	 * lease open, the cluster may allow less than the default (lock_take_lease). */
	span_ns lease, warn;
	/* The library does not extend the lock by itself. */
	bool no_renewal;

	/* A transfer is under way. The lock is not trusted meanwhile, but may be trusted again. */
	bool leaving;

	/* Until when the lock may be trusted. */
	struct instant deadline;

	/* The greatest order that a request for the lock has named (docs/protocol.md, Shorten). */
	uint32_t order;

	/* Why the lock is lost; 0 while it is not. */
	int cause;

	/* The last error of the extensions since the last one that succeeded. */
	int last_error;

	/* How many extensions have failed since the last one that succeeded. */
	unsigned failures;
	/* They go off when the lock is to be extended, and when on_lost is due. */
	struct alarm renew_alarm, warn_alarm;

	/* When renew_alarm goes off, in ns of CLOCK_BOOTTIME, while it is set. */
	int64_t renew_at;

	/* The extension under way; NULL if there is none. */
	struct batch *batch;

	/* The place of the lock in that batch. */
	size_t slot;

	/* reclaim.c: the acquire that acquires the lock again, and the last connection for which
	 * that was tried. */
	struct pawl_call *reclaim;
	unsigned reclaim_connection;

	/* Acquiring the lock again has just failed. */
	bool reclaim_failed;
	struct pawl_terms terms;

	/* With release_on_disconnect, what the lock is acquired again with (reclaim.c). */
	struct lock_inputs inputs;

	/* leave.c: the transfer, while `leaving`. */
	struct leave *leave;

	/* extend.c: the extensions that the program has asked for and that are under way. */
	struct list extensions;

	/* session_binding.c: whether the lock ends with its connection, the connection that it is
	 * known to be bound to, and the first one that it was bound to. */
	bool binding;
	unsigned bound_connection, first_connection;
	pawl_lost_fn *on_lost;
	pawl_renewed_fn *on_renewed;
	pawl_asked_fn *on_asked;

	/* The watch for on_asked. */
	struct pawl_watch *watch;
	void *arg;

	/* The two fields below are used while the lock is being acquired. */
	pawl_locked_fn *locked;
	void *locked_arg;
};

/* Takes the outcome of an extension that was sent at `sent_at` over the connection with that
 * number. This may call the program, which may free the lock. */
void lock_extended(struct pawl_lock *lock, struct instant sent_at, unsigned connection_number,
	const struct pawl_extended *outcome);
/* Returns whether the deadline has passed. */
bool lock_is_over(const struct pawl_lock *lock);
/* Notes that the lock no longer counts for the shortest lease. The new shortest lease is computed
 * only when somebody asks for it, so that a thousand locks that end at once cost one walk over the
 * locks. */
void lock_note_gone(const struct pawl_lock *lock);
/* What the alarms of a lock call. */
void lock_on_renew_alarm(struct alarm *alarm);
void lock_on_warn_alarm(struct alarm *alarm);
/* Sets when to extend next, after a success. */
void lock_schedule(struct pawl_lock *lock, bool at_once);
/* Makes the lock lost for good: no answer brings it back. This calls the program, which may free
 * the lock. */
void lock_lose(struct pawl_lock *lock, int cause);
/* The client lets go of the lock by its key and lock_id: the lock counts as lost at once, and the
 * program is told in the next round of the loop. */
void lock_released(struct pawl_lock *lock);
/* The cluster allows no longer lease than this: the lock is extended for as long from now on.
 * Returns false if its lease is no longer than that. */
bool lock_lower_lease(struct pawl_lock *lock, span_ns most);
/* docs/protocol.md, Shorten: gives up the trust beyond the new lease, for which the lock is to be
 * extended from now on. It is extended again once lock_extended is told of the outcome, or
 * lock_schedule is called. */
void lock_shorten(struct pawl_lock *lock, span_ns lease);
/* The lock is extended for that long from now on. */
void lock_set_lease(struct pawl_lock *lock, span_ns lease);
void lock_destroy(struct pawl_lock *lock);
static inline bool permits_equal(struct permits a, struct permits b) {
	return permits_within(a, b) && permits_within(b, a);
}
/* Returns the numbers as a set. */
struct permits lock_slots_of(const uint32_t *slots, size_t count);
/* Notes that the lock was granted for longer, or for other permit numbers, or under the next
 * connection (`moved`). */
void lock_take_grant(struct pawl_lock *lock, struct instant deadline, struct permits slots,
	bool moved);
/* lock_new makes a lock as the options say, which is not held yet. It returns 0 or an error of
 * pawl_watch_start. lock_begin takes what was granted for the lock over the present connection. It
 * returns true and the handle that stands for the lock now; this is another handle if the lock_id
 * is held already. It returns false if the lease was over when the answer came, or if the lock is
 * no longer the program's; the lock is then being released. lock_begin frees `lock` unless it is
 * the handle. */
int lock_new(struct pawl *client, const struct pawl_lock_options *options, struct pawl_bytes key,
	struct pawl_lock **out);
bool lock_begin(struct pawl_lock *lock, const struct lock_grant *grant, struct pawl_lock **out);
/* Notes the lease that the request asked for in the end. */
void lock_take_lease(struct pawl_lock *lock, const struct pawl_call *call);
const char *lock_lost_why(const struct lock_grant *grant);
/* Returns 0 or PAWL_EINVAL. */
int lock_options_check(const struct pawl *client, const struct pawl_lock_options *options);
struct pawl_request lock_request(const struct pawl_lock_options *options);
void locks_free_all(struct pawl *client);

/* Returns the shortest lease of the locks that are kept now; 0 if there are none. */
span_ns locks_shortest(struct pawl *client);

/* entering.c: notes that a call was made, which will be sent. */
void entering_asked(struct pawl_call *call);
/* The lease of the lock is shortened under that order: acquires of it that are under way say
 * nothing any more about how long it may be trusted. */
void entering_shortened(struct pawl_lock *lock, uint32_t order);
/* Returns whether this client trusts a lock with that lock_id now, or may trust it again. */
bool lock_trusted(const struct pawl *client, struct pawl_id lock_id);
/* Changes the terms to those with which the lock has to be acquired: if it is held already, these
 * are the terms with which it is held. */
void entering_terms(const struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id,
	struct pawl_terms *terms);
/* entering_held returns the handle that the grant is for, or NULL. entering_allowed returns whether
 * this handle, or a new one for NULL, may be handed out for the grant. entering_again enters the
 * handle once more. */
struct pawl_lock *entering_held(const struct pawl_lock *like, const struct lock_grant *grant);
bool entering_allowed(const struct pawl_lock *held, const struct lock_grant *grant);
void entering_again(struct pawl_lock *held, const struct lock_grant *grant);

/* extend.c: the handle is gone; the outcomes of its extensions are only told. */
void extend_orphans(struct pawl_lock *lock);

/* leave.c: the handle of a transfer under way is gone. */
void leave_orphan(struct leave *leave);
/* Nobody must be told the outcome of the transfer any more. */
void leave_silently(struct leave *leave);

/* ---- reclaim.c: acquiring again a lock that cannot be bound by extending it ---- */

/* Notes that the update was done. */
void reclaim_note_update(struct pawl *client, const struct request_copy *request);
/* Returns 0 or PAWL_ENOMEM. */
int reclaim_prepare(struct pawl_lock *lock, const struct pawl_lock_options *options);
void reclaim_done(struct pawl_lock *lock);
/* Begins to acquire the lock again; lock_extended takes the outcome. Returns false if that is of no
 * use, or if it cannot begin. */
bool reclaim_start(struct pawl_lock *lock);
void reclaim_forget(struct pawl_lock *lock);

/* renew.c: extends the locks that are due, in batches. */
void renew_turn(struct pawl *client);
/* Takes the lock out of everything that is due or under way. */
void renew_forget(struct pawl_lock *lock);

#endif
