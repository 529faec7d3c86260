/* reply.h: what a client may ask a core for, and what it is told; part of core.h. */
#ifndef PAWL_CLUSTER_REPLY_H
#define PAWL_CLUSTER_REPLY_H

#include "message.h"

enum core_op {
	CORE_ACQUIRE,
	CORE_EXTEND,
	CORE_UPDATE,
	CORE_RELEASE,
	CORE_GET,
	CORE_LIST,
	CORE_WAIT,
	CORE_WAITERS,
	CORE_BREAK,
	CORE_BINDING,  /* key, lock_id, wait: the lock ends when this node is gone for so long (section 2, Release on disconnect); answered
	             * only then, with PAWL_ELOST, or when it is released here; CORE_CLIENT_GONE ends the bond, not the lock */
	CORE_CHANGE, /* of the configuration (section 6); for administrators only, which the driver sees to */
	CORE_DOWNGRADE,   /* key, lock_id: the holder's exclusive lock becomes a shared one (section 10) */
	CORE_TRANSFER,    /* key, lock_id, to: releases in favour of the waiter whose owner is `to`; PAWL_ENOTFOUND: nobody of this name
	                   * waits, and nothing was released (section 5, Succession) */
	CORE_ASK,         /* key, owner, to, terms.priority: asks the holder to let go; reaches those who watch the key at any node */
	CORE_EXPLAIN,     /* key: what each master says */
	CORE_ACQUIRE_ALL  /* locks: all of these keys or none (section 11); lease, wait, owner, value, label, terms.priority and
	                   * terms.delay are common to them */
};

struct core_entry { /* a key as reads show it */
	struct slice key, owner, value, identity;
	uint64_t token;
	struct id128 lock_id;
	bool show_lock_id; /* the caller acquired it or is an administrator */
	span_ns remaining; /* of the lease, without the lock delay after it */
	struct ballot value_seq;
	struct terms terms;
	struct slice label;
	span_ns age;       /* since it was acquired */
	bool closing;      /* the lease is over and its lock delay runs: nobody holds the key, and nobody gets it yet */
	span_ns closed_for; /* closing: how long still */
	uint32_t holders;  /* LIST, core_look: how many hold the key */
};

struct core_waiter {
	struct slice key; /* with `prefix` */
	struct slice label;
	struct terms terms;
	struct slice owner, identity;
	struct id128 lock_id, node;
	bool show_lock_id;
	span_ns since;
};

enum core_saying_kind { SAYING_RECORD, SAYING_PROMISE, SAYING_PARKED };
struct core_saying { /* EXPLAIN: one thing that stands on the key at a master */
	enum core_saying_kind kind;
	struct core_entry entry; /* a promise, a kept request: only lock_id, terms, remaining (of the promise) */
	bool barred;             /* a record that may not be extended any more */
};

struct core_witness { /* EXPLAIN: one master */
	uint32_t peer;
	enum status status; /* STATUS_OK: it votes and answered; STATUS_RECOVERING, STATUS_EPOCH; STATUS_ABSENT: silent */
	bool home;          /* it keeps the key's queue */
	uint32_t waiting;   /* at the home: how many wait */
	const struct core_saying *sayings;
	uint32_t count;
	bool more;          /* it has more than that */
};

struct core_lock_got { /* ACQUIRE_ALL: one of them, in the order of the request */
	struct slice key;
	struct id128 lock_id;
	uint64_t token;
	struct terms terms;
};

struct core_reply {
	uint64_t id, client;
	enum core_op op;
	int error; /* 0 or a PAWL_E... of the client protocol */
	struct id128 lock_id;
	uint64_t token;
	span_ns valid;            /* ACQUIRE, EXTEND */
	uint32_t quorum, votes, acks;
	span_ns waited;           /* ACQUIRE */
	bool released;            /* RELEASE; BREAK: something was broken */
	bool forced;              /* BREAK: at once, whatever the holder believes */
	uint64_t epoch;           /* CHANGE: the present one, as the next three */
	bool settled, complete;
	uint64_t missing;         /* bit set of peers: masters that do not vote in it yet */
	struct slice why;         /* CHANGE with an error or a warning: a sentence that names the culprit and the remedy */
	bool held, contested;     /* reads; PAWL_EHELD: who holds is in `entry` when held */
	bool recovering;          /* a local read on a node that recovers */
	bool replica;             /* reads: answered by a replica, ... */
	span_ns age;              /* ... whose view may be so old; SPAN_MAX: it has not followed anybody yet */
	struct core_entry entry;  /* reads, PAWL_EHELD, PAWL_EMISMATCH (the present value) */
	struct ballot value_seq;  /* UPDATE */
	const struct core_entry *entries; /* LIST */
	const struct core_waiter *waiters; /* WAITERS */
	const struct core_witness *witnesses; /* EXPLAIN: the masters, in their order */
	const struct core_lock_got *got;      /* ACQUIRE_ALL */
	size_t count;         /* of the one of these lists that the op gives */
	struct terms terms;   /* ACQUIRE: what was got; a semaphore: which permits */
	uint32_t reached;     /* ASK: how many watchers were told */
	struct slice failed_key; /* ACQUIRE_ALL with an error: the key that it is about; empty: none */
	const struct core_entry *holders; /* GET, WAIT, and PAWL_EHELD of a key with several holders: all of them; entry is the first */
	uint32_t holder_count;
	bool more;            /* the list was cut short */
	bool goes_on;         /* LIST: the entries come in several replies, and this is not the last of them. An error takes the place of all */
	uint32_t cost;        /* LIST: what was done for it since the reply before, in as many simple requests */
	uint64_t silent;      /* PAWL_ENOQUORUM: bit set of peers (core_peer_*) that were silent */
	span_ns limit;        /* PAWL_ETOOLONG: the longest lease; PAWL_EBADREQUEST: the shortest */
	const char *field;    /* PAWL_EBADREQUEST, PAWL_EFULL, PAWL_ETOOLARGE: which field or limit; static storage */
};

#endif
