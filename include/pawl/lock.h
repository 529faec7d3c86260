/* lock.h: struct pawl_lock, a held lock that the library renews; included by pawl.h, whose rules for styles, threads, callbacks
 * and errors are in force here.
 */
#ifndef PAWL_LOCK_H
#define PAWL_LOCK_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The lock cannot be kept, or is gone: called once, the library has stopped renewing, stop what the lock protects.
 * pawl_lock_valid_ms tells how long that may take. Causes: PAWL_ELOST: a node said that it is not yours any more (0 ms are
 * left): released through another handle, broken by an administrator, or, with release_on_disconnect, bound to a connection
 * that is gone (0 ms are left as well). PAWL_EDENIED: this identity may not extend it any more. Otherwise what failed last:
 * PAWL_EUNREACHABLE, PAWL_ENOQUORUM, PAWL_ETIMEOUT, ..., warn_ms before the deadline; or at the deadline where the loop was
 * late. The handle stays until it is released or freed. */
typedef void pawl_lost_fn(struct pawl_lock *lock, int cause, void *arg);
/* An extension succeeded: the deadline is later now. */
typedef void pawl_renewed_fn(struct pawl_lock *lock, void *arg);

/* Somebody asks the holder to let go (PAWL_ASK_RELEASE). Nothing happens by itself. */
struct pawl_asked { /* borrowed within the callback */
	struct pawl_bytes by; /* the owner that asks */
	struct pawl_bytes to; /* in whose favour (pawl_lock_transfer); may be empty */
	int32_t priority;
};
typedef void pawl_asked_fn(struct pawl_lock *lock, const struct pawl_asked *asked, void *arg);

struct pawl_lock_options { /* zero: the default */
	struct pawl_bytes key;
	uint32_t lease_ms;       /* default 30000. Renewed each time a third of it has passed */
	uint32_t wait_ms;        /* 0: one try */
	uint32_t timeout_ms;     /* as in struct pawl_request */
	struct pawl_bytes owner; /* default: as in the client's options */
	struct pawl_bytes value;
	struct pawl_id lock_id;  /* default: a new one */
	/* How long before the deadline to give up when no extension has succeeded; default: a sixth of the lease. The time that
	 * stopping takes belongs in here. At most half of the lease. */
	uint32_t warn_ms;
	bool no_renewal; /* the lease runs out by itself; on_lost comes warn_ms before, with PAWL_ETIMEOUT */
	pawl_lost_fn *on_lost;       /* may be NULL: then look at pawl_lock_valid_ms or pawl_lock_error */
	pawl_renewed_fn *on_renewed; /* may be NULL */
	void *arg;                   /* for all callbacks */
	struct pawl_terms terms;     /* shared, permits, priority, lock delay, release on disconnect: pawl.h */
	struct pawl_bytes label;     /* default: as in the client's options */
	pawl_asked_fn *on_asked;     /* may be NULL; else the library watches the key while the lock is held */
};

/* For a program whose locks have release_on_disconnect, and that starts what must be gone before anybody else has them: each
 * new connection's descriptor, before a lock can be bound to it. Whoever keeps a copy of it (dup, SCM_RIGHTS) and outlives the
 * program keeps the lock until its copy is closed, or until the lease is over. Nothing else may be done with it; nothing may be
 * called in the callback. NULL: no more. */
typedef void pawl_connected_fn(int fd, void *arg);
void pawl_on_connected(struct pawl *client, pawl_connected_fn *connected, void *arg);

/* Blocking: 0 and a lock, or the error of PAWL_ACQUIRE. out_result may be NULL; otherwise free it in any case. */
int pawl_lock_acquire(struct pawl *client, const struct pawl_lock_options *options, struct pawl_lock **out_lock,
	struct pawl_result **out_result);

/* lock: yours from now on, NULL if take_result->error is not 0. */
typedef void pawl_locked_fn(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg);
/* Event-driven; as pawl_start. pawl_cancel ends it. */
int pawl_lock_start(struct pawl *client, const struct pawl_lock_options *options, pawl_locked_fn *done, void *arg,
	struct pawl_call **out_call);

/* How long the lock may still be trusted, in ms rounded down; 0 once the deadline has passed, for ever, and after a node said
 * that it is lost. Counted from the instant at which the last request that was granted was sent, by CLOCK_BOOTTIME and
 * CLOCK_MONOTONIC_RAW: whichever says less. Cheap, reads only these clocks. A write that must not happen without the lock
 * is either over before this time is, or carries the token to a resource that checks it. */
int64_t pawl_lock_valid_ms(const struct pawl_lock *lock);
/* The deadline as readings of the two clocks, in ns: over as soon as either is reached. For a process that guards another. */
void pawl_lock_deadline(const struct pawl_lock *lock, int64_t *out_boottime_ns, int64_t *out_monotonic_raw_ns);
/* The fencing token: grows with every acquisition of the key. It may grow while the lock is held, too (after a repeat at
 * another node): use the present one. */
uint64_t pawl_lock_token(const struct pawl_lock *lock);
/* What it excludes now: PAWL_SHARED from the call of a downgrade on, or of a PAWL_ACQUIRE of its lock_id as a shared one. */
enum pawl_mode pawl_lock_mode(const struct pawl_lock *lock);
/* Which permits of the semaphore are held: their number is returned, the first `room` of them are written to `out_slots`, in
 * order. 0 for other locks. Numbers go from 0 to of - 1, no two holders have the same one: each may stand for a thing. They
 * are held until the deadline; a lock that had to be acquired again by the library (on_renewed) may have others: use the
 * present ones. */
size_t pawl_lock_slots(const struct pawl_lock *lock, uint32_t *out_slots, size_t room);
struct pawl_id pawl_lock_id(const struct pawl_lock *lock);
/* Borrowed, until the lock is freed. */
struct pawl_bytes pawl_lock_key(const struct pawl_lock *lock);
/* 0 while the library keeps the lock, otherwise the cause that on_lost was called with (or is about to be). */
int pawl_lock_error(const struct pawl_lock *lock);

/* Blocking: PAWL_UPDATE of this lock. expect may be NULL: whatever the present value is. out_result as in pawl_call. */
int pawl_lock_update(struct pawl_lock *lock, struct pawl_bytes value, const struct pawl_bytes *expect,
	struct pawl_result **out_result);
/* Event-driven. The handle may be freed meanwhile. */
int pawl_lock_update_start(struct pawl_lock *lock, struct pawl_bytes value, const struct pawl_bytes *expect,
	pawl_done_fn *done, void *arg, struct pawl_call **out_call);

/* ---- letting go ---- */

/* Blocking: stops trusting the lock at once, releases it, and frees the handle whatever comes of that. 0, or why the release
 * is not known to have happened (then the lease runs out by itself). NULL is allowed.
 * While the lock has been entered more than once (below) this only leaves it once: 0, and it stays held. */
int pawl_lock_release(struct pawl_lock *take_lock);
/* Event-driven: the handle is gone when this returns, also when it fails. done may be NULL (and is not called where the lock
 * is only left). Repeated until timeout_ms. */
int pawl_lock_release_start(struct pawl_lock *take_lock, pawl_done_fn *done, void *arg);
/* Forgets the lock without releasing it, however often it was entered: no renewal, no callback; the lease runs out by itself.
 * NULL is allowed. */
void pawl_lock_free(struct pawl_lock *take_lock);

/* Blocking: makes an exclusive lock a shared one without letting go. From the call on it is PAWL_SHARED for this handle,
 * whatever comes of it: nothing is to be done under it any more that others who read must not see. 0: others may share it now.
 * An error: perhaps they may; repeating is safe. PAWL_EINVAL: it is not exclusive. out_result as in pawl_call. */
int pawl_lock_downgrade(struct pawl_lock *lock, struct pawl_result **out_result);
/* Event-driven. The handle may be freed meanwhile. */
int pawl_lock_downgrade_start(struct pawl_lock *lock, pawl_done_fn *done, void *arg, struct pawl_call **out_call);

/* Blocking: releases in favour of the waiter whose owner is `to`, who is next whoever waits ahead of it. From the call on the
 * lock is not trusted (0 ms), whoever has entered it. 0: released; PAWL_ENOTFOUND: nobody of this name waits, nothing was
 * released, and the lock is kept as before (unless its time came meanwhile: pawl_lock_error tells). Any other error: the
 * library releases it without a successor. The handle is yours to free (pawl_lock_free) in any case; on_lost does not come
 * where this released it. PAWL_EINVAL: it is lost already, or a transfer is under way. PAWL_EBUSY: it
 * is being bound to another connection in just this moment. */
int pawl_lock_transfer(struct pawl_lock *lock, struct pawl_bytes to, struct pawl_result **out_result);
/* Event-driven. The handle may be freed meanwhile. */
int pawl_lock_transfer_start(struct pawl_lock *lock, struct pawl_bytes to, pawl_done_fn *done, void *arg);

/* ---- entering again ---- */

/* A lock begins entered once. A part of the program that needs a lock which another part holds already enters it, and leaves
 * it as often. Acquiring again in the same client with the key and lock_id of a lock that is held is the same: the node is
 * asked (so the outcome is a fresh one), the handle that is there is handed back, entered once more. Each pawl_lock_release or
 * pawl_lock_leave ends one of them; the release of the last one releases the lock.
 *
 * What the handle has decides what the node is asked: its options stay those of the first time, release_on_disconnect among
 * them, and an exclusive lock stays exclusive for the part that wants to share it. The numbers of a semaphore stay those that
 * pawl_lock_slots tells, whatever the outcome says. A part that wants an exclusive lock is refused where the handle is a shared
 * one (PAWL_EMISMATCH, PAWL_ELOST). A lock_id that is released, handed over or downgraded while it is being acquired, or that
 * two acquires ask for at once that differ, gives no handle but the one that is held: PAWL_ELOST. */

/* The number of times it is entered now; PAWL_ELOST: it is not held any more (see pawl_lock_error). */
int pawl_lock_enter(struct pawl_lock *lock);
/* The number of times that are left, at least 1; PAWL_EINVAL: only one is left, which pawl_lock_release ends. */
int pawl_lock_leave(struct pawl_lock *lock);

/* ---- several keys ---- */

/* All of the keys or none, in one request and without deadlock, in whatever order clients name them. options.key, lock_id, and
 * terms.mode, permits and of are ignored, all others are common to them; on_lost and the other callbacks come for each lock.
 * Each has a handle, its own token, and is released by itself; they are renewed together. At most PAWL_KEYS_MAX, no key twice.
 * A key with the lock_id of a lock that is held enters that one; PAWL_EINVAL: it is not wanted as it is held (its mode, or
 * release_on_disconnect). */

/* Blocking: 0, and out_locks[i] is the lock of keys[i]; or the error of PAWL_ACQUIRE: none is held; result.key tells about which. */
int pawl_locks_acquire(struct pawl *client, const struct pawl_lock_options *options, const struct pawl_key_item *keys,
	size_t key_count, struct pawl_lock **out_locks, struct pawl_result **out_result);

/* locks: key_count of them, each yours from now on, the array itself borrowed; NULL if take_result->error is not 0. */
typedef void pawl_locks_done_fn(struct pawl_lock *const *locks, size_t count, struct pawl_result *take_result, void *arg);
/* Event-driven; as pawl_lock_start. */
int pawl_locks_start(struct pawl *client, const struct pawl_lock_options *options, const struct pawl_key_item *keys,
	size_t key_count, pawl_locks_done_fn *done, void *arg, struct pawl_call **out_call);

/* Blocking: releases all of them, as pawl_lock_release. 0, or the first error. */
int pawl_locks_release(struct pawl_lock *const *take_locks, size_t count);

#ifdef __cplusplus
}
#endif
#endif
