/* lock.h: struct pawl_lock, a held lock that the library renews. pawl.h includes this header, and
 * its rules for styles, threads, callbacks and errors apply here.
 */
#ifndef PAWL_LOCK_H
#define PAWL_LOCK_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The lock cannot be kept, or is gone. The library calls this once and has then stopped renewing
 * the lock: stop what the lock protects. pawl_lock_valid_ms tells how much time is left for that.
 * The causes are:
 *   - PAWL_ELOST: the lock is no longer yours. A node said so, or this client has released or
 *     transferred it by its lock_id, through another handle or by a request of its own. Or it
 *     was broken by an administrator, or, with release_on_disconnect, bound to a connection that
 *     is gone. Or its deadline had passed when the library was called again, because the process
 *     stood still. 0 ms are left.
 *   - PAWL_EDENIED: this identity may not extend the lock any more.
 *   - PAWL_EUNREACHABLE, PAWL_ENOQUORUM, PAWL_ETIMEOUT, ...: the last failure to extend the lock.
 *     This comes warn_ms before the deadline, or later if the loop was late.
 * The handle stays until you release or free it. */
typedef void pawl_lost_fn(struct pawl_lock *lock, int cause, void *arg);
/* An extension succeeded, so the deadline is later now. */
typedef void pawl_renewed_fn(struct pawl_lock *lock, void *arg);

/* Somebody asks the holder to let go (PAWL_ASK_RELEASE). It is borrowed within the callback. */
struct pawl_asked {
	/* The owner that asks. */
	struct pawl_bytes by;
	/* The owner in whose favour to let go, for pawl_lock_transfer; may be empty. */
	struct pawl_bytes to;
	/* The priority of the one that asks. */
	int32_t priority;
};
/* Tells the holder that it is asked to let go. Nothing else happens; the program decides. */
typedef void pawl_asked_fn(struct pawl_lock *lock, const struct pawl_asked *asked, void *arg);

/* The options of a lock. A zero field means the default. Everything is copied. */
struct pawl_lock_options {
	/* The key: 1 to 512 bytes. */
	struct pawl_bytes key;
	/* The lease in ms; the default is 30000, or the cluster's max_lease if that is less. The
	 * library renews it whenever a third of it has passed. */
	uint32_t lease_ms;
	/* How long to wait for the lock, in ms; 0, the default, tries once, and PAWL_FOREVER waits
	 * without an end. */
	uint32_t wait_ms;
	/* How long the request may take beyond wait_ms, in ms; the default is the time in the
	 * client's options. */
	uint32_t timeout_ms;
	/* The default is the owner in the client's options. */
	struct pawl_bytes owner;
	/* A value that is stored with the lock. */
	struct pawl_bytes value;
	/* The default is a new lock_id. */
	struct pawl_id lock_id;
	/* How long before the deadline the library gives up if no extension has succeeded, in ms;
	 * the default is a sixth of the lease, and at most half of the lease is allowed. Choose the
	 * time that your program needs to stop. */
	uint32_t warn_ms;
	/* The library does not renew the lock, and the lease runs out by itself. on_lost then comes
	 * warn_ms before the deadline with PAWL_ETIMEOUT. */
	bool no_renewal;
	/* This may be NULL; then use pawl_lock_valid_ms or pawl_lock_error. */
	pawl_lost_fn *on_lost;
	/* This may be NULL. */
	pawl_renewed_fn *on_renewed;
	/* Passed to all callbacks. */
	void *arg;
	/* Mode, permits, priority, lock delay and release_on_disconnect (types.h). */
	struct pawl_terms terms;
	/* The default is the label in the client's options. */
	struct pawl_bytes label;
	/* Others are shown that the key is an election, and that this is its leader or a candidate.
	 * election.h sets this. */
	bool election;
	/* This may be NULL. Otherwise the library watches the key while the lock is held. A node
	 * has room for a limited number of watches (pawl_lock_asked_error). */
	pawl_asked_fn *on_asked;
	/* As in struct pawl_request: for whom the lock is, when nodes look for deadlocks. */
	struct pawl_id party;
};

/* Tells the program the file descriptor of each new connection, before a lock can be bound to it.
 * This is for a program that holds locks with release_on_disconnect and starts other processes
 * which must be gone before anybody else has these locks. A process that keeps a copy of the
 * descriptor (dup, SCM_RIGHTS) and outlives the program keeps the lock until it closes the copy, or
 * until the lease is over. The program may do nothing else with the descriptor, and the callback
 * may call nothing. */
typedef void pawl_connected_fn(int fd, void *arg);
/* Sets this callback for a client. NULL ends it. */
void pawl_on_connected(struct pawl *client, pawl_connected_fn *connected, void *arg);

/* Blocking: acquires a lock. Returns 0 and the lock, or the error of PAWL_ACQUIRE. out_result may
 * be NULL; otherwise free the result in any case. pawl_wake interrupts this, as it does every
 * blocking call. */
int pawl_lock_acquire(struct pawl *client, const struct pawl_lock_options *options,
	struct pawl_lock **out_lock, struct pawl_result **out_result);

/* Takes over the lock and the result. The lock is NULL if take_result->error is not 0. */
typedef void pawl_locked_fn(struct pawl_lock *take_lock, struct pawl_result *take_result,
	void *arg);
/* Event-driven: acquires a lock. It works like pawl_start, and pawl_cancel ends it. */
int pawl_lock_start(struct pawl *client, const struct pawl_lock_options *options,
	pawl_locked_fn *done, void *arg, struct pawl_call **out_call);

/* Returns how long the lock may still be trusted at least, in ms rounded down. Once the deadline
 * has passed, or a node has said that the lock is lost, it returns 0 for ever. The time counts from
 * the moment at which the last granted request was sent, by CLOCK_BOOTTIME and by
 * CLOCK_MONOTONIC_RAW; the clock that says less counts. This is cheap, because it only reads these
 * clocks. A write that must not happen without the lock must either end before this time is over,
 * or carry the token to a resource that checks it. */
int64_t pawl_lock_valid_ms(const struct pawl_lock *lock);
/* Gives the deadline as readings of the two clocks, in ns. The deadline has passed as soon as
 * either clock reaches its reading. This is for a process that guards another one. */
void pawl_lock_deadline(const struct pawl_lock *lock, int64_t *out_boottime_ns,
	int64_t *out_monotonic_raw_ns);
/* Returns the fencing token, which grows with every acquisition of the key. It may also grow while
 * the lock is held, after a repeat at another node; so ask for it each time. */
uint64_t pawl_lock_token(const struct pawl_lock *lock);
/* Returns the present mode. It is PAWL_SHARED from the moment at which a downgrade is called, or at
 * which a PAWL_ACQUIRE asks for the same lock_id as a shared lock. */
enum pawl_mode pawl_lock_mode(const struct pawl_lock *lock);
/* Gives the permit numbers that the lock holds. It returns how many there are, and writes the first
 * `room` of them to `out_slots`, in order. For other locks it returns 0. The numbers go from 0 to
 * `of` - 1, and no two holders have the same one, so each number may stand for a thing. They are
 * held until the deadline. If the library had to acquire the lock again (on_renewed), the lock may
 * have other numbers; so ask for them each time. */
size_t pawl_lock_slots(const struct pawl_lock *lock, uint32_t *out_slots, size_t room);
/* Returns the lock_id. */
struct pawl_id pawl_lock_id(const struct pawl_lock *lock);
/* Returns the key, borrowed until the lock is freed. */
struct pawl_bytes pawl_lock_key(const struct pawl_lock *lock);
/* Returns 0 while the library keeps the lock; otherwise the cause that on_lost was called with, or
 * is about to be called with. */
int pawl_lock_error(const struct pawl_lock *lock);
/* Returns 0, or why on_asked is not called although others may ask: PAWL_EFULL, because the node
 * has no room for more watches of this client (`watches_per_client` in its configuration, 1,000
 * unless it says otherwise); the library asks again while the lock is held, so this may pass. Or an
 * error that is final, such as PAWL_EDENIED. The lock itself is held nevertheless. */
int pawl_lock_asked_error(const struct pawl_lock *lock);

/* Blocking: extends the lock now, although the library does that by itself: before a step that
 * needs all of the lease. If lease_ms is not 0, the library renews the lock for that long from now
 * on; what the lock has is never shortened (pawl_lock_shorten does that). Returns 0, or an error of
 * PAWL_EXTEND: after PAWL_ELOST, PAWL_ENOTFOUND and PAWL_EDENIED the lock is lost (on_lost), and
 * after any other error it is kept as before. PAWL_EINVAL: the lock is lost already, or a transfer
 * is under way. PAWL_EBUSY: the lock is just being bound to another connection. out_result is as in
 * pawl_call. */
int pawl_lock_extend(struct pawl_lock *lock, uint32_t lease_ms, struct pawl_result **out_result);
/* Event-driven: does the same. The lock may be freed before `done` runs. */
int pawl_lock_extend_start(struct pawl_lock *lock, uint32_t lease_ms, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call);

/* Blocking: makes the lease end within lease_ms from now, which must not be more than the lease of
 * the lock. From now on the library renews the lock for that long, if it renews it. From the moment
 * of the call pawl_lock_valid_ms gives at most the new lease, whatever the outcome, and no answer
 * to an earlier request makes it more (such a pawl_lock_extend ends with PAWL_EUNSURE). Returns 0,
 * or an error of PAWL_EXTEND: after PAWL_ELOST, PAWL_ENOTFOUND and PAWL_EDENIED the lock is lost
 * (on_lost). After any other error it is kept for the new lease, and others may have to wait for
 * the key until the first lease would have been over. Nodes of release 0.2.0 refuse it with
 * PAWL_EBADREQUEST. PAWL_EINVAL: lease_ms is 0 or too long, the lock is lost already, a transfer is
 * under way, or the lock has release_on_disconnect, which cannot be shortened. If no request could
 * be made (*out_result is NULL), nothing has changed.
 *
 * The handle counts how often its lease was shortened, and its requests say so. So do not free the
 * handle without a release and then acquire or extend its lock_id: nodes could not tell what was
 * asked for last. out_result is as in pawl_call. */
int pawl_lock_shorten(struct pawl_lock *lock, uint32_t lease_ms, struct pawl_result **out_result);
/* Event-driven: does the same. The lock may be freed before `done` runs. */
int pawl_lock_shorten_start(struct pawl_lock *lock, uint32_t lease_ms, pawl_done_fn *done,
	void *arg, struct pawl_call **out_call);

/* Blocking: sets the value of the key (PAWL_UPDATE). expect may be NULL, which allows any present
 * value. out_result is as in pawl_call. */
int pawl_lock_update(struct pawl_lock *lock, struct pawl_bytes value,
	const struct pawl_bytes *expect, struct pawl_result **out_result);
/* Event-driven: does the same. The lock may be freed before `done` runs. */
int pawl_lock_update_start(struct pawl_lock *lock, struct pawl_bytes value,
	const struct pawl_bytes *expect, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call);

/* ---- letting go ---- */

/* Blocking: stops trusting the lock at once, releases it, and frees the handle whatever the
 * outcome. Returns 0, or the error because of which the release may not have happened; the lease
 * then runs out by itself. NULL is allowed. If the lock has been entered more than once (see
 * below), this only leaves it once: it returns 0, and the lock stays held. */
int pawl_lock_release(struct pawl_lock *take_lock);
/* Event-driven: does the same. The handle is gone when this returns, even if it fails. done may be
 * NULL, and is not called if this only leaves the lock. The library repeats the release until
 * timeout_ms has passed. */
int pawl_lock_release_start(struct pawl_lock *take_lock, pawl_done_fn *done, void *arg);
/* Blocking and event-driven: release the lock as the two functions above do, and close the key:
 * nobody gets it for close_ms after that (struct pawl_with says more). The repeats of the release
 * say so, too. If this only leaves the lock, nothing is closed. Nodes of release 0.2.0 refuse it
 * (PAWL_EBADREQUEST); the lease then runs out by itself. */
int pawl_lock_release_closing(struct pawl_lock *take_lock, uint32_t close_ms);
int pawl_lock_release_closing_start(struct pawl_lock *take_lock, uint32_t close_ms,
	pawl_done_fn *done, void *arg);
/* Frees the lock without releasing it, however often it was entered. The library stops renewing it,
 * no callback comes, and the lease runs out by itself. NULL is allowed. */
void pawl_lock_free(struct pawl_lock *take_lock);

/* Blocking: makes an exclusive lock a shared one without letting go. From the moment of the call
 * this handle has the mode PAWL_SHARED, whatever the outcome: do nothing under it any more that
 * other readers must not see. Returns 0 when others may share the lock. After an error others
 * perhaps may share it; you can safely repeat the call. PAWL_EINVAL: the lock is not exclusive.
 * out_result is as in pawl_call. */
int pawl_lock_downgrade(struct pawl_lock *lock, struct pawl_result **out_result);
/* Event-driven: does the same. The lock may be freed before `done` runs. */
int pawl_lock_downgrade_start(struct pawl_lock *lock, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call);

/* Blocking: releases the lock in favour of the waiter whose owner is `to`, whoever waits ahead of
 * it. From the moment of the call nobody who has entered the lock may trust it (0 ms).
 *   - 0: the lock is released.
 *   - PAWL_ENOTFOUND: nobody of this name waits, nothing was released, and the lock is kept as
 *     before, unless its deadline has passed meanwhile (pawl_lock_error tells).
 *   - PAWL_EINVAL: the lock is lost already, or a transfer is under way.
 *   - PAWL_EBUSY: the lock is just being bound to another connection.
 *   - After any other error the library releases the lock without a successor.
 * You must free the handle (pawl_lock_free) in any case. on_lost does not come if this call
 * released the lock. */
int pawl_lock_transfer(struct pawl_lock *lock, struct pawl_bytes to,
	struct pawl_result **out_result);
/* Event-driven: does the same. The lock may be freed before `done` runs. */
int pawl_lock_transfer_start(struct pawl_lock *lock, struct pawl_bytes to, pawl_done_fn *done,
	void *arg);

/* ---- entering again ---- */

/* A new lock has been entered once. A part of the program that needs a lock which another part
 * already holds enters the lock, and leaves it later. Each pawl_lock_release or pawl_lock_leave
 * leaves it once; the last pawl_lock_release releases the lock. Acquiring the key and lock_id of a
 * held lock again in the same client also enters it: the library asks the node, so that the outcome
 * is a fresh one, and gives the handle that is already there.
 *
 * The handle decides what the library asks of the node. Its options stay those of the first time,
 * including release_on_disconnect. An exclusive lock stays exclusive for a part that wants to share
 * it. The permit numbers stay those that pawl_lock_slots gives, whatever the outcome says. A part
 * that wants an exclusive lock is refused if the handle is a shared one (PAWL_EMISMATCH,
 * PAWL_ELOST). If a lock_id is released, transferred or downgraded while it is being acquired, or
 * if two different acquires ask for it at once, the only handle for it is the one that is held; the
 * others get PAWL_ELOST. */

/* Enters the lock once more. Returns how often it is entered now, or PAWL_ELOST if it is no longer
 * held (see pawl_lock_error). */
int pawl_lock_enter(struct pawl_lock *lock);
/* Leaves the lock once. Returns how often it is still entered, which is at least 1. PAWL_EINVAL: it
 * is entered only once; pawl_lock_release ends that. */
int pawl_lock_leave(struct pawl_lock *lock);

/* ---- several keys ---- */

/* The functions below acquire all of the keys or none, in one request and without deadlock, in
 * whatever order clients give them. At most PAWL_KEYS_MAX keys are allowed, and no key twice. In
 * the options, key, lock_id, and mode, permits and of in terms are ignored; all other options apply
 * to each lock, and on_lost and the other callbacks come for each lock. Each lock has its own
 * handle and token and is released by itself; the library renews them together. A key with the
 * lock_id of a held lock enters that lock. PAWL_EINVAL: the held lock has another mode or another
 * release_on_disconnect than is wanted. */

/* Blocking: returns 0, and out_locks[i] is the lock of keys[i]; or the error of PAWL_ACQUIRE, and
 * no lock is held. result.key is then the key that the error is about. */
int pawl_locks_acquire(struct pawl *client, const struct pawl_lock_options *options,
	const struct pawl_key_item *keys, size_t key_count, struct pawl_lock **out_locks,
	struct pawl_result **out_result);

/* Takes over each of the `count` locks and the result. The array itself is borrowed. locks is NULL
 * if take_result->error is not 0. */
typedef void pawl_locks_done_fn(struct pawl_lock *const *locks, size_t count,
	struct pawl_result *take_result, void *arg);
/* Event-driven: does the same, as pawl_lock_start. */
int pawl_locks_start(struct pawl *client, const struct pawl_lock_options *options,
	const struct pawl_key_item *keys, size_t key_count, pawl_locks_done_fn *done, void *arg,
	struct pawl_call **out_call);

/* Blocking: releases all of the locks, as pawl_lock_release does. Returns 0, or the first error. */
int pawl_locks_release(struct pawl_lock *const *take_locks, size_t count);

#ifdef __cplusplus
}
#endif
#endif
