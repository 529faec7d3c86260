/* lock.h: a held lock and what its holder may count on.
 *
 *   acquiring --answer--> kept --release or free--> gone
 *                          | warn_ms before the deadline without an extension, or a node said so
 *                          v
 *                         lost (final: no answer brings it back) --release or free--> gone
 */
#ifndef PAWL_CLIENT_LOCK_H
#define PAWL_CLIENT_LOCK_H

#include "call.h"

struct batch;

struct pawl_lock {
	struct list link; /* in hub->locks, once held */
	struct list due;  /* in hub->due: to be extended in this turn */
	struct pawl *hub;
	uint8_t *key;
	size_t key_size;
	struct pawl_id lock_id;
	uint64_t token;
	span_ns lease, warn;
	bool no_renewal;
	struct instant deadline;
	int cause;       /* not 0: lost */
	int last_error;  /* of the extensions since the last one that succeeded */
	unsigned failures;
	struct alarm renew_alarm, warn_alarm;
	int64_t renew_at; /* on CLOCK_BOOTTIME, while the alarm is set */
	struct batch *batch; /* the extension under way */
	size_t slot;         /* in it */
	pawl_lost_fn *on_lost;
	pawl_renewed_fn *on_renewed;
	void *arg;
	/* while it is being acquired */
	pawl_locked_fn *locked;
	void *locked_arg;
};

/* The outcome of an extension that was sent at `sent_at`. May call the program, which may free the lock. */
void lock_extended(struct pawl_lock *lock, struct instant sent_at, const struct pawl_extended *outcome);
/* When to extend next, after a success. */
void lock_schedule(struct pawl_lock *lock, bool at_once);
/* A lock of this client with that lock_id is trusted now. */
bool lock_believed(const struct pawl *hub, struct pawl_id lock_id);
void locks_free_all(struct pawl *hub);

/* renew.c: extends what is due, in batches. */
void renew_turn(struct pawl *hub);
/* The lock takes no part any more in what is under way or due. */
void renew_forget(struct pawl_lock *lock);

#endif
