/* request.h: the methods of a node, and the request that asks for one of them. pawl.h includes it;
 * pawl_call and pawl_start send requests.
 */
#ifndef PAWL_REQUEST_H
#define PAWL_REQUEST_H

#include "change.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each method names the fields of struct pawl_request that it reads, the fields of struct
 * pawl_result that it sets, and the errors that mean something special for it. */
enum pawl_method {
	/* Takes `key` for `lease_ms`, and waits at most `wait_ms` for it (0 tries once). It also
	 * reads owner, value, label, `terms` and lock_id (the library draws one if none is given).
	 * It sets lock_id, token, valid_ms, quorum, votes, acks, waited_ms, mode and slots. With
	 * `keys` it takes all of these keys or none; `keys` then replaces key, lock_id, and mode,
	 * permits and of in terms. It sets `got`, valid_ms and waited_ms. pawl_lock_acquire and
	 * pawl_locks_acquire do the same and renew the locks. The library repeats the request at
	 * the next node when the connection is lost or this node does not reach a quorum. If it
	 * fails in a way that could leave the key held, the library releases the lock_id in the
	 * background. After any error the caller does not hold the key. PAWL_EHELD: `entry` tells
	 * the holder if that is known. Other errors are PAWL_ETIMEOUT, PAWL_ENOQUORUM,
	 * PAWL_ETOOLONG, PAWL_EFULL, PAWL_EBUSY, ... */
	PAWL_ACQUIRE = 1,
	/* Extends a lease to `lease_ms` from the moment of sending. It reads key and lock_id, or
	 * `locks` for many at once; token (optional) and deadline_kept. It sets valid_ms, token and
	 * acks; for `locks` it sets one result for each in `extended`. Errors: PAWL_ELOST,
	 * PAWL_EUNSURE, PAWL_ENOQUORUM. */
	PAWL_EXTEND,
	/* Sets the value of a held key. It reads key, lock_id and value; with `expect` or
	 * `expect_seq` it writes only if that is the present value. It sets value_seq.
	 * PAWL_EMISMATCH: `entry` has the present value. PAWL_ELOST: the lock is gone.
	 * PAWL_EUNSURE: the update may still take effect. PAWL_EUNSURE is also the outcome when the
	 * connection was lost after sending: the library does not repeat an update, because the
	 * repeat could undo what others have written since. */
	PAWL_UPDATE,
	/* Gives up a lock. It reads key and lock_id. It sets `released`, which is false when the
	 * lock was no longer held; this includes a repeat after a lost connection that finds the
	 * lock already released by the first try. */
	PAWL_RELEASE,
	/* Reads `key` from the node's memory, or from a quorum of masters with `quorum`. It sets
	 * entry, node, role and age_ms. Error: PAWL_EINDETERMINATE. */
	PAWL_GET,
	/* Lists the held keys that begin with `key`, in order. It reads limit (1 to 1000; 0 means
	 * 100) and after. It sets entries and more. */
	PAWL_LIST,
	/* Waits until `key` is held, or until it is free with `for_free`, for at most wait_ms. It
	 * sets what PAWL_GET sets. Error: PAWL_ETIMEOUT. */
	PAWL_WAIT,
	/* Lists who waits for `key`, in the order of the queue. With `prefix` it lists the waiters
	 * of all keys that begin with `key`, in the order of keys, with limit as in PAWL_LIST. It
	 * sets waiters and more. */
	PAWL_WAITERS,
	/* Bars the holder of `key` that has `token` from extending, so that the key is free when
	 * its lease ends. With `now` it frees the key at once, although its holder may still
	 * believe that it has the lock. It sets `released` and perhaps `warning`. Only
	 * administrators may do this. */
	PAWL_BREAK,
	/* Shows the status of the node. Everything is in `tree`: node, role, state, epoch, masters,
	 * replicas, peers, ... */
	PAWL_STATUS,
	/* Checks that a node answers. It sets node and version. */
	PAWL_PING,
	/* Prepares the node that is asked for a planned stop: it stops voting and writes what it
	 * knows to its disk. The library never repeats this at another node. Only administrators
	 * may do this. */
	PAWL_DRAIN,
	/* Changes the cluster as `change` says (change.h). It sets epoch, settled, complete,
	 * missing and warning. A change may take long; wait_ms limits its time (0 means 10
	 * minutes). Meanwhile PAWL_STATUS on the same client shows the progress (`change` in its
	 * tree). PAWL_EMISMATCH: another change came first. PAWL_EUNSETTLED: the previous change is
	 * not over. Other errors are PAWL_EBUSY, PAWL_ENOQUORUM, PAWL_ENOTFOUND, ... */
	PAWL_CHANGE,
	/* Makes an exclusive lock a shared one. It reads key and lock_id, and sets mode. From the
	 * moment of the call do not trust the lock as exclusive, whatever the outcome. Errors:
	 * PAWL_ELOST, PAWL_EUNSURE, PAWL_ENOQUORUM. pawl_lock_downgrade does this for a struct
	 * pawl_lock. */
	PAWL_DOWNGRADE,
	/* Gives up a lock in favour of the waiter whose owner is `to`. It reads key, lock_id and
	 * to, and sets `released`. From the moment of the call do not trust the lock.
	 * PAWL_ENOTFOUND: nobody of this name waits, and nothing was released. The library never
	 * repeats this at another node; if the answer is lost, the outcome is PAWL_EUNSURE.
	 * pawl_lock_transfer does this for a struct pawl_lock. */
	PAWL_TRANSFER,
	/* Asks the holder of `key` to let go: those who watch the key get an event. It also reads
	 * owner (who asks), to (in whose favour; may be empty) and terms.priority. It sets
	 * `reached`, the number of watchers that were told. The holder, if it is among them,
	 * decides. */
	PAWL_ASK_RELEASE,
	/* Explains why `key` is held or free. It sets entry and holders; `tree` has what each
	 * master reports: masters: [{node, state, home, waiting, records, promise, kept}], as
	 * docs/client-protocol.md describes it. `more` means that there may be further holders.
	 * Error: PAWL_EINDETERMINATE. */
	PAWL_EXPLAIN,
	/* watch.h sends these two. From a program they are refused with PAWL_EINVAL. */
	PAWL_WATCH,
	PAWL_UNWATCH,
	/* Lists the connections with the node. It reads limit, `client` (go on after this number)
	 * and shares. It sets node and more; `tree` has `clients` or `shares`. */
	PAWL_CLIENTS,
	/* Ends the connection `client` of the node that is asked. The library never repeats this at
	 * another node. Only administrators may do this. PAWL_ENOTFOUND: there is no such
	 * connection. */
	PAWL_KICK,
	/* Asks whether the access rules allow the method whose name is in `to`. It reads key (or,
	 * with `prefix`, a prefix), terms.priority, `owner` (the identity in question; 0 bytes mean
	 * the caller's own) and the identity's group ids in `value`. The answer is in `tree`. */
	PAWL_CAN,
	/* What the node has counted, and the keys that stand out. It reads `key`: only keys that
	 * begin with it are listed. It sets node; `tree` has the rest, as docs/client-protocol.md
	 * describes it. */
	PAWL_TOP,
	/* The last method has this number, too. */
	PAWL_METHOD_LAST = PAWL_TOP
};

/* One of the keys that are acquired together. */
struct pawl_key_item {
	/* The key: 1 to 512 bytes. */
	struct pawl_bytes key;
	/* Give a lock_id for each of the keys, or for none of them: then the library draws them. */
	struct pawl_id lock_id;
	/* PAWL_EXCLUSIVE or PAWL_SHARED; see struct pawl_terms. */
	enum pawl_mode mode;
	/* The permits of a semaphore; see struct pawl_terms. */
	uint32_t permits, of;
};

/* The largest number of keys that can be acquired together. */
#define PAWL_KEYS_MAX 64

/* One of the locks that are extended together. */
struct pawl_extend_item {
	/* The key of the lock. */
	struct pawl_bytes key;
	/* The lock_id with which it was acquired. */
	struct pawl_id lock_id;
	/* The new lease in ms; 0 means 30000, or the cluster's max_lease if that is less. */
	uint32_t lease_ms;
	/* The number of the session binding, as docs/client-protocol.md describes it for
	 * release_on_disconnect; 0 means that it is not given. Only the library itself needs it. */
	uint32_t bond;
	/* The token that the caller has; 0 means that it is not given. slots are the permit numbers
	 * that the caller has: number n is bit n % 64 of slots[n / 64]; 0 means that they are not
	 * given. */
	uint64_t token, slots[2];
};

/* One request. A zero field is not given, or means the default. A method ignores the fields that it
 * does not read. The library copies the request, so everything is borrowed for the call only. If
 * the lease is not given, and the cluster's max_lease is below 30000 ms, the lease is max_lease,
 * less the lock delay, if there is one. */
struct pawl_request {
	/* What is asked for. */
	enum pawl_method method;
	/* The key; a prefix for PAWL_LIST, and where `prefix` is set. 1 to 512 bytes. */
	struct pawl_bytes key;
	struct pawl_id lock_id;
	/* The lease in ms (0 means the default, see above), and how long the node may wait in ms
	 * (PAWL_FOREVER means without an end). */
	uint32_t lease_ms, wait_ms;
	/* How long the request may take beyond wait_ms, in ms; 0 means the time in the client's
	 * options. */
	uint32_t timeout_ms;
	/* The name of the caller, shown to others; 0 bytes mean the owner in the client's
	 * options. */
	struct pawl_bytes owner;
	struct pawl_bytes value;
	/* PAWL_UPDATE: the expected present value. It is given if data is not NULL, so that an
	 * empty value can be expected. */
	struct pawl_bytes expect;
	/* PAWL_UPDATE: the value_seq of the expected present value. */
	struct pawl_bytes expect_seq;
	/* The token of the holder in question, and for PAWL_EXTEND the permit numbers; see struct
	 * pawl_extend_item. */
	uint64_t token, slots[2];
	/* PAWL_EXTEND: the caller keeps the deadline itself, and drops an answer that comes too
	 * late. */
	bool deadline_kept;
	/* PAWL_EXTEND: several locks, at most 1000. */
	const struct pawl_extend_item *locks;
	size_t lock_count;
	/* quorum: PAWL_GET. now: PAWL_BREAK. for_free: PAWL_WAIT. shares: PAWL_CLIENTS lists how
	 * much of the node each identity and each address has, and `client` is then the number of a
	 * share. */
	bool quorum, now, for_free, shares;
	/* The largest number of items that a list may have. */
	uint32_t limit;
	/* PAWL_LIST: go on after this key. */
	struct pawl_bytes after;
	/* PAWL_CHANGE: what to change. */
	const struct pawl_change *change;
	/* PAWL_ACQUIRE. PAWL_ASK_RELEASE and PAWL_CAN use only the priority. */
	struct pawl_terms terms;
	/* PAWL_ACQUIRE: a label of at most 128 bytes, shown to others; 0 bytes mean the label in
	 * the client's options. */
	struct pawl_bytes label;
	/* PAWL_ACQUIRE: others are shown that the key is an election. */
	bool election;
	/* PAWL_TRANSFER, PAWL_ASK_RELEASE: the owner of a waiter. PAWL_CAN: the name of a
	 * method. */
	struct pawl_bytes to;
	/* PAWL_ACQUIRE: several keys, at most PAWL_KEYS_MAX, with no key twice. */
	const struct pawl_key_item *keys;
	size_t key_count;
	/* PAWL_WAITERS, PAWL_CAN: `key` is a prefix. */
	bool prefix;
	/* PAWL_CLIENTS, PAWL_KICK: the number of a connection. */
	uint64_t client;
	/* The traceparent of this request; NULL means the one in the client's options. Anything
	 * else than a traceparent is PAWL_EINVAL. */
	const char *trace;
	/* PAWL_ACQUIRE, PAWL_EXTEND: for whom the lock is, when nodes look for deadlocks: 16 random
	 * bytes. All zero means the client for an acquire, and nobody for an extension. Give each
	 * thread or task a party of its own if several share a client. */
	struct pawl_id party;
};

/* What a request may say besides, with pawl_call_with and pawl_start_with. A zero field is not
 * given. Nodes of release 0.2.0 refuse all of it (PAWL_EBADREQUEST). */
struct pawl_with {
	/* PAWL_RELEASE: for how long nobody gets the key after the release, in ms. It counts by the
	 * clocks of the masters, from the first repeat of the request that reached one. If the lock
	 * was not held any more, nothing is closed; after an error that is not known. It may be at
	 * most the cluster's max_lease (PAWL_ETOOLONG). */
	uint32_t close_ms;
	/* PAWL_EXTEND of one lock, PAWL_ACQUIRE: the greatest order that was named for the lock, as
	 * docs/client-protocol.md describes it (shorten). */
	uint32_t order;
	/* PAWL_EXTEND of one lock: the lease ends when the new one is over, even if that is
	 * earlier. `order` must be above any that was named for the lock. From the moment of the
	 * call trust the lock for the new lease at most, whatever the outcome. */
	bool shorten;
};

#ifdef __cplusplus
}
#endif
#endif
