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
struct leave;

/* What it was acquired with, in one block; the value is the one that was written last. Without bytes: not known. */
struct lock_own {
	uint8_t *bytes;
	size_t size, owner, label, value;
};

struct lock_grant { /* what a node gave */
	struct pawl_id lock_id;
	uint64_t token;
	enum pawl_mode mode;
	const uint32_t *slots;
	size_t slot_count;
	struct instant deadline;
	bool waited_long; /* longer than the lease */
	bool crossed;     /* something else was asked under its lock_id meanwhile: struct pawl_call */
};

struct pawl_lock {
	struct list link; /* in client->locks, once held */
	struct list due;  /* in client->due: to be extended in this turn */
	struct pawl *client;
	uint8_t *key;
	size_t key_size;
	struct pawl_id lock_id;
	uint64_t token;
	enum pawl_mode mode;
	struct permits slots; /* of a semaphore */
	int entered;
	span_ns lease, warn;
	bool no_renewal;
	bool leaving; /* a transfer is under way: not trusted, but may be again */
	struct instant deadline;
	int cause;       /* not 0: lost */
	int last_error;  /* of the extensions since the last one that succeeded */
	unsigned failures;
	struct alarm renew_alarm, warn_alarm;
	int64_t renew_at; /* on CLOCK_BOOTTIME, while the alarm is set */
	struct batch *batch; /* the extension under way */
	size_t slot;         /* in it */
	struct pawl_call *reclaim; /* acquiring again (below), and the last connection that this was tried for */
	unsigned reclaim_connection;
	bool reclaim_failed; /* just now */
	struct pawl_terms terms;
	struct lock_own own; /* with release_on_disconnect */
	struct leave *leave; /* leave.c: the transfer, while leaving */
	bool binding; /* session_binding.c: it ends with its connection: the one it is known to be bound to, and the first one */
	unsigned bound_connection, first_connection;
	pawl_lost_fn *on_lost;
	pawl_renewed_fn *on_renewed;
	pawl_asked_fn *on_asked;
	struct pawl_watch *watch; /* for on_asked */
	void *arg;
	/* while it is being acquired */
	pawl_locked_fn *locked;
	void *locked_arg;
};

/* The outcome of an extension that was sent at `sent_at` over the connection with that number. May call the program, which may free
 * the lock. */
void lock_extended(struct pawl_lock *lock, struct instant sent_at, unsigned connection_number, const struct pawl_extended *outcome);
/* When to extend next, after a success. */
void lock_schedule(struct pawl_lock *lock, bool at_once);
/* Final: no answer brings it back. Calls the program, which may free it. */
void lock_lose(struct pawl_lock *lock, int cause);
void lock_destroy(struct pawl_lock *lock);
static inline bool permits_equal(struct permits a, struct permits b) {
	return permits_within(a, b) && permits_within(b, a);
}
/* The numbers as a set. */
struct permits lock_slots_of(const uint32_t *slots, size_t count);
/* Granted for longer, or for other numbers. */
void lock_take_grant(struct pawl_lock *lock, struct instant deadline, struct permits slots);
/* A lock as the options say, not held yet: 0 or an error of pawl_watch_start. And what was granted for it over the present connection:
 * true, and the handle that stands for it now, which is another one if the lock_id is held already; false: over when the answer
 * came, or not the program's any more (it is being released). `lock` is freed unless it is the handle. */
int lock_new(struct pawl *client, const struct pawl_lock_options *options, struct pawl_bytes key, struct pawl_lock **out);
bool lock_begin(struct pawl_lock *lock, const struct lock_grant *grant, struct pawl_lock **out);
const char *lock_lost_why(const struct lock_grant *grant);
/* 0 or PAWL_EINVAL. */
int lock_options_check(const struct pawl *client, const struct pawl_lock_options *options);
struct pawl_request lock_request(const struct pawl_lock_options *options);
void locks_free_all(struct pawl *client);

/* The shortest lease of the locks that are kept now; 0: there are none. */
span_ns locks_shortest(struct pawl *client);

/* entering.c: that a call is asked from now on. */
void entering_asked(struct pawl_call *call);
/* A lock of this client with that lock_id is trusted now, or may be again. */
bool lock_believed(const struct pawl *client, struct pawl_id lock_id);
/* As what is to be acquired has to be asked for: where it is held, as it is held. */
void entering_terms(const struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id, struct pawl_terms *terms);
/* The handle that the grant is for, or NULL; whether that one, or NULL: a new one, may be handed out for it; and one entry more. */
struct pawl_lock *entering_held(const struct pawl_lock *like, const struct lock_grant *grant);
bool entering_allowed(const struct pawl_lock *held, const struct lock_grant *grant);
void entering_again(struct pawl_lock *held, const struct lock_grant *grant);

/* leave.c: the handle of a transfer under way is gone. */
void leave_orphan(struct leave *leave);
/* Nobody is to be told of its outcome any more. */
void leave_silently(struct leave *leave);

/* reclaim.c: acquiring again what cannot be bound by extending it. */
void reclaim_note_update(struct pawl *client, const struct request_copy *request); /* that update was done */
int reclaim_prepare(struct pawl_lock *lock, const struct pawl_lock_options *options); /* 0 or PAWL_ENOMEM */
void reclaim_done(struct pawl_lock *lock);
bool reclaim_start(struct pawl_lock *lock); /* false: it is of no use, or cannot begin. Ends in lock_extended */
void reclaim_forget(struct pawl_lock *lock);

/* renew.c: extends what is due, in batches. */
void renew_turn(struct pawl *client);
/* The lock takes no part any more in what is under way or due. */
void renew_forget(struct pawl_lock *lock);

#endif
