/* reply.h: the operations that a client may ask a core for, and the answers. Part of core.h. */
#ifndef PAWL_CLUSTER_REPLY_H
#define PAWL_CLUSTER_REPLY_H

#include "message.h"

/* Operations. The comments name the fields of struct core_request that a less common one uses. */
enum core_op {
	/* No operation: a request that was not filled in. It is refused. */
	CORE_NONE,
	CORE_ACQUIRE,
	CORE_EXTEND,
	CORE_UPDATE,
	CORE_RELEASE,
	CORE_GET,
	CORE_LIST,
	CORE_WAIT,
	CORE_WAITERS,
	CORE_BREAK,
	/* key, lock_id, wait: binds the lock to this node, so that it ends when this node has been
	 * gone for that long (section 2, Release on disconnect). It is answered only then, with
	 * PAWL_ELOST, or when the lock is released here. CORE_CLIENT_GONE ends the binding and not
	 * the lock. */
	CORE_BINDING,
	/* Changes the configuration (section 6). It is for administrators only; the driver checks
	 * that. */
	CORE_CHANGE,
	/* key, lock_id: makes the holder's exclusive lock a shared one (section 10). */
	CORE_DOWNGRADE,
	/* key, lock_id, to: releases the lock in favour of the waiter whose owner is `to`. With
	 * PAWL_ENOTFOUND nobody of this name waits, and nothing was released (section 10,
	 * Hand-over). */
	CORE_TRANSFER,
	/* key, owner, to, terms.priority: asks the holder to let go. Everybody who watches the key
	 * at any node is told. */
	CORE_ASK,
	/* key: says what each master has for the key. */
	CORE_EXPLAIN,
	/* locks: acquires all of these keys or none (section 11). They have lease, wait, owner,
	 * value, label, terms.priority and terms.delay in common. */
	CORE_ACQUIRE_ALL
};
/* One more than the last value of enum core_op. */
#define CORE_OPS (CORE_ACQUIRE_ALL + 1)

/* A key with its holder, as reads show it. */
struct core_entry {
	/* The key; and the holder's owner, value and identity. */
	struct slice key, owner, value, identity;
	/* The fencing token. */
	uint64_t token;
	/* The lock_id of the holder. */
	struct id128 lock_id;
	/* The caller may see the lock_id: it acquired the lock, or is an administrator. */
	bool show_lock_id;
	/* What remains of the lease in nanoseconds, without the lock delay after it: until the
	 * latest end that the masters named, or that this node knows, by their clocks. */
	span_ns remaining;
	/* GET with a quorum: the next two are known; and a quorum has the order in `terms`
	 * (section 2, Shorten). */
	bool weighed, order_settled;
	/* For how long a quorum has the lock, unless it is released, shortened or broken, and after
	 * how long its lease is over, unless it is extended: by any clock, from the answer on, in
	 * nanoseconds. Nobody else is granted the key before `at_least` has passed. */
	span_ns at_least, at_most;
	/* The ballot of the value. */
	struct ballot value_seq;
	/* The lock terms, with the permit numbers of a semaphore. */
	struct terms terms;
	/* What the holder says about itself. */
	struct slice label;
	/* The time since the lock was acquired, in nanoseconds. */
	span_ns age;
	/* The lease is over and its lock delay runs: nobody holds the key, and nobody gets it
	 * yet. */
	bool closing;
	/* With `closing`: how long the key is still closed, in nanoseconds. */
	span_ns closed_for;
	/* LIST, core_inspect: how many hold the key. */
	uint32_t holders;
};

/* Somebody who waits for a key. */
struct core_waiter {
	/* The key, if the request had `prefix`. */
	struct slice key;
	/* What the waiter says about itself. */
	struct slice label;
	/* The lock terms that it wants. */
	struct terms terms;
	/* The waiter's owner and identity. */
	struct slice owner, identity;
	/* The lock_id, and the node that coordinates the request. */
	struct id128 lock_id, node;
	/* The caller may see the lock_id. */
	bool show_lock_id;
	/* How long it has waited, in nanoseconds. */
	span_ns since;
};

enum core_reported_kind { REPORTED_RECORD, REPORTED_PROMISE, REPORTED_PARKED };
/* EXPLAIN: one thing that a master reports. */
struct core_reported {
	/* What it is. */
	enum core_reported_kind kind;
	/* Of a promise or a parked request only the lock_id, the terms and, for the promise,
	 * `remaining` are set. */
	struct core_entry entry;
	/* The record may not be extended any more. */
	bool barred;
};

/* EXPLAIN: what one master reports of the key. */
struct core_report {
	/* The peer index of the master. */
	uint32_t peer;
	/* STATUS_OK: the master votes and has answered. STATUS_RECOVERING, STATUS_EPOCH: it does
	 * not vote in this epoch. STATUS_ABSENT: it was silent. */
	enum status status;
	/* The master is the home of the key. */
	bool home;
	/* At the home: how many wait in the key's queue. */
	uint32_t waiting;
	/* What it has for the key. */
	const struct core_reported *items;
	uint32_t count;
	/* The master has more than these. */
	bool more;
};

/* ACQUIRE_ALL: one of the locks that were acquired. */
struct core_lock_got {
	/* The key. */
	struct slice key;
	/* The lock_id of its lock. */
	struct id128 lock_id;
	/* The fencing token of its lock. */
	uint64_t token;
	/* Its terms; of a semaphore, with the permit numbers. */
	struct terms terms;
};

/* Where the time of an operation went. */
struct core_times {
	/* ACQUIRE, ACQUIRE_ALL: in queues, and with a turn, which others may still keep waiting. */
	span_ns queued;
	/* Before the last round of questions to the masters was sent, without the above; and since
	 * then. An acquire asks for promises before, and commits in the last round. */
	span_ns before, round;
	/* A bit set of peers: masters that answered late, or not at all. */
	uint64_t late;
};

/* The answer to a request. A field that names operations or errors in front of its description is
 * set for these alone. Slices and lists are valid until core_out_clear. */
struct core_reply {
	/* The request's own numbers. */
	uint64_t id, client;
	/* What was asked for. */
	enum core_op op;
	/* 0, or a PAWL_E... of the client protocol. */
	int error;
	/* The lock_id of the request, or the one that was drawn for it. */
	struct id128 lock_id;
	/* The fencing token; 0: there is none. */
	uint64_t token;
	/* ACQUIRE, EXTEND: for how long the lock is valid, in nanoseconds (section 2, What the
	 * holder may count on). */
	span_ns valid;
	/* How many masters a quorum has, how many promised, and how many accepted. */
	uint32_t quorum, votes, acks;
	/* ACQUIRE: the time that the request waited, in nanoseconds. */
	span_ns waited;
	/* PAWL_ETIMEOUT: there was time left, and CORE_END_WAIT has ended the wait. */
	bool wait_cut;
	/* RELEASE: the lock was released. BREAK: something was broken. */
	bool released;
	/* BREAK: the lock has ended at once, whatever its holder believes. */
	bool forced;
	/* CHANGE: the present epoch, and whether it is settled and complete (section 6). */
	uint64_t epoch;
	bool settled, complete;
	/* CHANGE: a bit set of peers: the masters that do not vote in that epoch yet. */
	uint64_t missing;
	/* With an error, or for a CHANGE with a warning: a sentence that names the culprit and the
	 * remedy. It may be empty. */
	struct slice why;
	/* PAWL_EHELD, PAWL_ETIMEOUT: how many permits the semaphore has as which the key is held,
	 * if the request names another number; otherwise 0. */
	uint32_t other_of;
	/* Reads: somebody holds the key, and the key is contested. PAWL_EHELD: with `held`, `entry`
	 * says who holds it. */
	bool held, contested;
	/* A local read: this node recovers. */
	bool recovering;
	/* Reads: a replica has answered, and its view may be `age` nanoseconds old. SPAN_MAX means
	 * that it has not followed anybody yet. */
	bool replica;
	span_ns age;
	/* Reads: the key. PAWL_EHELD: its holder. PAWL_EMISMATCH: the present value. */
	struct core_entry entry;
	/* UPDATE: the ballot of the value. */
	struct ballot value_seq;

	/* LIST, WAITERS, EXPLAIN (the masters in their order) and ACQUIRE_ALL (the locks in the
	 * order of the request): `count` elements of one of these lists: */
	const struct core_entry *entries;
	const struct core_waiter *waiters;
	const struct core_report *reports;
	const struct core_lock_got *got;
	size_t count;

	/* ACQUIRE: the terms that were granted; of a semaphore, with the permit numbers. */
	struct terms terms;
	/* ASK: how many watchers were told. */
	uint32_t reached;
	/* ACQUIRE_ALL with an error: the key that the error is about; it is empty if there is
	 * none. */
	struct slice failed_key;
	/* GET, WAIT, and PAWL_EHELD of a key with several holders: all of them. `entry` is the
	 * first. */
	const struct core_entry *holders;
	uint32_t holder_count;
	/* The list was cut short. */
	bool more;
	/* LIST: the entries come in several replies, and this is not the last one. An error takes
	 * the place of all of them. */
	bool goes_on;
	/* The work for the operation that nobody has paid for yet (for a list: the work since the
	 * previous reply), as the number of simple requests that would cost as much. */
	uint32_t cost;
	/* NULL without core_time_slow, and if there was no memory. */
	struct core_times *times;
	/* PAWL_ENOQUORUM: bit sets of peers (core_peer): the masters that were silent, and those
	 * that are linked with this node and do not vote. */
	uint64_t silent, not_voting;
	/* PAWL_ETOOLONG: the longest lease in nanoseconds. PAWL_EBADREQUEST: the shortest one. */
	span_ns limit;
	/* PAWL_EBADREQUEST, PAWL_EFULL, PAWL_ETOOLARGE: the field or limit that the error is about;
	 * static storage. */
	const char *field;
};

#endif
