/* pawl.h: libpawl, the client of Pawl: leases and locks agreed by a quorum.
 *
 * Layers, each usable alone:
 *   - struct pawl: a client. It keeps one connection to one of its endpoints, moves on to the next when that one fails,
 *     and repeats there what was under way (with the same lock_id, which is safe).
 *   - pawl_call and pawl_start: one request to a node, blocking or with a callback.
 *   - struct pawl_lock (lock.h, which this header includes): a held lock that the library renews, and that knows how long it
 *     may still be trusted. Exclusive, shared, permits of a semaphore; several keys at once.
 *   - struct pawl_watch (watch.h): what becomes of keys; struct pawl_election (election.h): one leader among many candidates;
 *     struct pawl_fence (fence.h): for what a lock protects: the highest tokens seen.
 *
 * Two styles:
 *   - Blocking: options.base is NULL, the client has a loop of its own, which runs only inside blocking calls (pawl_call,
 *     pawl_poll, pawl_lock_acquire, pawl_lock_update, pawl_lock_release). There are no threads: LOCKS ARE RENEWED ONLY WHILE
 *     ONE OF THESE CALLS RUNS. A program that works for longer than a third of its lease calls pawl_poll(client, 0) now and
 *     then, at least four times in each lease.
 *   - Event-driven: options.base is the program's own loop, everything happens in there, and the blocking calls are refused
 *     with PAWL_EINVAL. pawl_start and the other ..._start functions may be used in both styles.
 *
 * Threads: a client, its locks, calls and results belong to one thread at a time; clients of different threads are
 * independent of each other. After fork() only the parent may use a client; the child may only exec or exit.
 *
 * Callbacks run inside the loop, never inside the function that started the call. In a callback every function of this
 * header may be called but the blocking ones (PAWL_EINVAL), also pawl_free.
 *
 * Errors: functions return 0 or a negative PAWL_E... (error.h). PAWL_EINVAL: an argument is not valid, or a blocking call
 * where none is allowed. PAWL_ENOMEM is possible wherever an int is returned and leaves everything as it was.
 * Durations are milliseconds. Bytes that are passed in are borrowed for the call only.
 */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "change.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct event_base; /* libevent's */
struct pawl;       /* a client */
struct pawl_call;  /* a request under way */
struct pawl_lock;  /* a lock that is held, or was */

/* The library's version, "0.1.0"; static storage. */
const char *pawl_version(void);

/* ---- bytes and identities ---- */

/* Keys, owners and values are any bytes. Those that the library hands out are followed by a NUL that is not counted. */
struct pawl_bytes {
	const void *data; /* may be NULL only if size is 0 */
	size_t size;
};

/* The bytes of a string without its NUL; NULL gives {NULL, 0}. */
struct pawl_bytes pawl_str(const char *s);

/* The identity of one acquisition. All zero: none. Use each once; see docs/client-guide.md for when one may be repeated. */
struct pawl_id {
	uint8_t bytes[16];
};

#define PAWL_ID_TEXT 33 /* 32 hex digits and a NUL */

/* A random one. 0, or PAWL_EIO when the system has no randomness. */
int pawl_id_new(struct pawl_id *out_id);
/* From 32 hex digits of either case. 0 or PAWL_EINVAL. */
int pawl_id_parse(const char *text, struct pawl_id *out_id);
/* To 32 lower-case hex digits. */
void pawl_id_format(const struct pawl_id *id, char out_text[PAWL_ID_TEXT]);
bool pawl_id_none(const struct pawl_id *id);

/* ---- the client ---- */

struct pawl_options { /* zero means the default everywhere; everything is copied but base */
	/* One or more of "host:port", "tls://host:port", "unix:/path", separated by commas; "[::1]:7000" for IPv6. At most 32.
	 * Tried in this order, beginning with the first; the next when one fails. Names are looked up with getaddrinfo, which
	 * may block, when the endpoint is first used and again when none of its addresses answers. */
	const char *endpoints;
	/* The program's loop; it must outlive the client, which keeps it running. NULL: blocking style. */
	struct event_base *base;

	/* TLS, used by the tls:// endpoints. Files are read by pawl_new. TLS 1.3 only. */
	const char *ca_file;     /* PEM: who may vouch for nodes; needed for tls:// */
	const char *cert_file;   /* PEM: the client's certificate (and chain); with key_file or neither */
	const char *key_file;    /* PEM */
	const char *server_name; /* the name or address a node's certificate must carry; default: the endpoint's host */

	struct pawl_bytes owner; /* for acquisitions that name none: shown to others; default "host:pid" */
	struct pawl_bytes label; /* likewise; default: none. Host name and process id are shown in any case */

	/* How long a request may take over all nodes that are tried, beyond its wait_ms; default 5000. */
	uint32_t timeout_ms;
	/* How long connecting to one endpoint may take, TLS included, before the next is tried; default 1000. */
	uint32_t connect_timeout_ms;
	/* How long a connection on which an answer is awaited may be silent before the next node is tried (it is pinged after
	 * half of this; a node answers pings at once, whatever it waits for); default 2000. While locks are held this and
	 * connect_timeout_ms are not more than a sixth of the shortest lease. */
	uint32_t silence_ms;
};

/* 0 and a client, or PAWL_EINVAL (an endpoint or option is not valid), PAWL_ETLS (a certificate or key cannot be used),
 * PAWL_EIO (no loop or timer), PAWL_ENOMEM. Does not connect: the first request does. out_message, if not NULL, is set to a
 * sentence that says what is wrong (static or thread-local storage, until the next pawl_new of the thread). */
int pawl_new(const struct pawl_options *options, struct pawl **out_client, const char **out_message);

/* Closes the connection. Calls under way end with PAWL_ECANCELED, their callbacks run before this returns (or, when it was
 * called in a callback, after that one has returned). Acquires under way are released as far as that can be done without
 * waiting. Locks that are left are freed, not released. NULL is allowed. */
void pawl_free(struct pawl *client);

/* Blocking style: runs the loop for at most timeout_ms (0: what is due now), so that locks are renewed, answers arrive and
 * callbacks run; returns earlier once a callback has run. 0, or PAWL_EINVAL (the loop is the program's, or in a callback). */
int pawl_poll(struct pawl *client, uint32_t timeout_ms);

/* The endpoint that the client is connected with, as it was written in the options; "" for none. Valid until the next call. */
const char *pawl_endpoint(const struct pawl *client);

/* ---- requests ---- */

enum pawl_method {
	/* Takes `key` for `lease_ms`; waits at most `wait_ms` (0: one try). Also: owner, value, lock_id (none: drawn by the
	 * library), `terms` and what goes with them. Gives lock_id, token, valid_ms, quorum, votes, acks, waited_ms, mode, slots.
	 * With `keys` instead of key, lock_id and terms.mode, permits, of: all of them or none; gives `got`, valid_ms, waited_ms.
	 * pawl_lock_acquire and pawl_locks_acquire do this and renew.
	 * Repeated at the next node when the connection is lost or this one does not reach a quorum. When it fails in a way that
	 * could leave the key held the library releases the lock_id in the background. PAWL_EHELD (`entry` tells the holder if
	 * that is known), PAWL_ETIMEOUT, PAWL_ENOQUORUM, PAWL_ETOOLONG, PAWL_EFULL, PAWL_EBUSY, ... : the caller does not hold
	 * the key. */
	PAWL_ACQUIRE = 1,
	/* Prolongs to `lease_ms` from the sending: key and lock_id, or many in `locks`; token (optional), deadline_kept.
	 * Gives valid_ms, token, acks; for `locks` one result each in `extended`. PAWL_ELOST, PAWL_EUNSURE, PAWL_ENOQUORUM. */
	PAWL_EXTEND,
	/* Sets the value of a held key: key, lock_id, value; if `expect` or `expect_seq` is named only if that is the present
	 * one. Gives value_seq. PAWL_EMISMATCH (`entry` has the present value), PAWL_ELOST, PAWL_EUNSURE (it may still take
	 * effect; also when the connection was lost after sending, because a repeat could undo what others wrote since). */
	PAWL_UPDATE,
	/* Gives up: key, lock_id. Gives `released`: false when it was not held any more (also when a repeat after a lost
	 * connection finds that the first one was done). */
	PAWL_RELEASE,
	/* Reads `key`: from the node's memory, or `quorum`. Gives entry, node, role, age_ms. PAWL_EINDETERMINATE. */
	PAWL_GET,
	/* Keys that begin with `key`, in order: limit (0: 100, at most 1000), after. Gives entries, more. */
	PAWL_LIST,
	/* Waits until `key` is held, or free with `for_free`, for at most wait_ms. Gives what PAWL_GET gives. PAWL_ETIMEOUT. */
	PAWL_WAIT,
	/* Who waits for `key`, in order; with `prefix` for all keys that begin with it, in order (limit as in PAWL_LIST). Gives waiters. */
	PAWL_WAITERS,
	/* Bars the holder of `key` with `token` from extending; with `now` frees the key at once, although its holder may still
	 * believe to hold it. Gives `released` and perhaps a warning in `tree`. For administrators. */
	PAWL_BREAK,
	/* How the node does. Gives everything in `tree`: node, role, state, epoch, masters, replicas, peers, ... */
	PAWL_STATUS,
	PAWL_PING, /* gives node and version */
	/* Before a planned stop: the node that is asked stops voting and writes what it knows. Never repeated at another. */
	PAWL_DRAIN,
	/* Changes the cluster: `change` (change.h). Gives epoch, settled, complete, missing, warning. May take long, wait_ms is how
	 * long (0: 10 minutes); PAWL_STATUS on the same client tells meanwhile how far it is (`change` in its tree). PAWL_EMISMATCH:
	 * another change came first. PAWL_EUNSETTLED: the one before is not over. PAWL_EBUSY, PAWL_ENOQUORUM, PAWL_ENOTFOUND, ... */
	PAWL_CHANGE,
	/* Makes an exclusive lock a shared one: key, lock_id. It is not to be trusted as exclusive from before the call, whatever
	 * comes of it. Gives mode. PAWL_ELOST, PAWL_EUNSURE, PAWL_ENOQUORUM. pawl_lock_downgrade does this for a lock. */
	PAWL_DOWNGRADE,
	/* Gives up in favour of the waiter whose owner is `to`: key, lock_id, to. The lock is not to be trusted from before the call.
	 * Gives `released`. PAWL_ENOTFOUND: nobody of this name waits, and nothing was released. Never repeated at another node
	 * (PAWL_EUNSURE where the answer was lost). pawl_lock_transfer does this for a lock. */
	PAWL_TRANSFER,
	/* Asks the holder of `key` to let go: an event for those who watch the key. Also: owner (who asks), to (in whose favour; may
	 * be empty), terms.priority. Gives `reached`: how many watchers were told; the holder decides, if it is among them. */
	PAWL_ASK_RELEASE,
	/* What stands on `key`: gives entry, and in `tree` what each master says: masters: [{node, state, home, waiting,
	 * records, promise, kept}], see docs/client-protocol.md; more: there may be further holders. PAWL_EINDETERMINATE. */
	PAWL_EXPLAIN,
	PAWL_WATCH, PAWL_UNWATCH, /* what watch.h sends; PAWL_EINVAL from a program */
	/* Who is connected with the node: limit, `client` (those that came after it). Gives node, more, and `clients` in `tree`. */
	PAWL_CLIENTS,
	/* Ends the connection `client` of the node. Never repeated at another. For administrators. PAWL_ENOTFOUND. */
	PAWL_KICK,
	PAWL_CAN /* whether access rules allow the method `to`: key or prefix, terms.priority; of `owner` (0 bytes: oneself), gids in `value` */
};

enum pawl_mode {
	PAWL_EXCLUSIVE, /* nobody else */
	PAWL_SHARED,    /* together with others who are shared: readers */
	PAWL_PERMITS    /* so many permits of a semaphore; only in results: a request names `permits` and `of` */
};
#define PAWL_PERMITS_MAX 128 /* of one semaphore */

/* What a lock excludes, and how it is waited for. All holders of a semaphore name the same `of`: permits of semaphores of
 * different sizes exclude each other, as everything else does but shared and shared. */
struct pawl_terms { /* zero: exclusive, no priority, no delay */
	enum pawl_mode mode;      /* PAWL_EXCLUSIVE or PAWL_SHARED; ignored where permits is not 0 */
	uint32_t permits, of;     /* so many of a semaphore that has `of` in all (1 to PAWL_PERMITS_MAX) */
	int32_t priority;         /* who waits with a greater one is earlier; among equals first come, first served */
	/* How long the key stays closed after the lease has run out (or the connection has broken) without a release. */
	uint32_t lock_delay_ms;
	/* The lock ends with this client's connection: when the process dies the node sees that at once and frees the lock, in
	 * milliseconds and not after the lease. When the node is gone, or hangs, the lock stays, and the library binds it to its next
	 * connection; only when that cannot be done in time is it lost. Not for a plain PAWL_ACQUIRE (PAWL_EINVAL). */
	bool release_on_disconnect;
};

struct pawl_key_item { /* one of several keys */
	struct pawl_bytes key;
	struct pawl_id lock_id; /* none: drawn by the library; all are named, or none is */
	enum pawl_mode mode;
	uint32_t permits, of;
};
#define PAWL_KEYS_MAX 64
struct pawl_extend_item {
	struct pawl_bytes key;
	struct pawl_id lock_id;
	uint32_t lease_ms; /* 0: 30000 */
	uint32_t bond;     /* docs/client-protocol.md, release_on_disconnect; 0: not named. For the library itself */
	uint64_t token, slots[2]; /* 0: not named. slots: of permits, those that one has: number n is bit n % 64 of slots[n / 64] */
};

struct pawl_request { /* zero: not named, or the default; what a method does not know is ignored */
	enum pawl_method method;
	struct pawl_bytes key; /* PAWL_LIST: the prefix */
	struct pawl_id lock_id;
	uint32_t lease_ms, wait_ms; /* lease_ms 0: 30000 */
	uint32_t timeout_ms;     /* beyond wait_ms; 0: as in the client's options */
	struct pawl_bytes owner; /* 0 bytes: as in the client's options */
	struct pawl_bytes value;
	struct pawl_bytes expect; /* named when data is not NULL (an empty value can be expected) */
	struct pawl_bytes expect_seq;
	uint64_t token, slots[2]; /* slots: PAWL_EXTEND, as in struct pawl_extend_item */
	bool deadline_kept; /* the caller keeps the deadline itself and drops an answer that comes too late */
	const struct pawl_extend_item *locks;
	size_t lock_count; /* at most 1000 */
	bool quorum, now, for_free, shares; /* shares: PAWL_CLIENTS: what each identity and each address has of the node, `client` is the number of a share */
	uint32_t limit;
	struct pawl_bytes after;
	const struct pawl_change *change; /* PAWL_CHANGE; borrowed for the call only, as all that it points to */
	struct pawl_terms terms;          /* PAWL_ACQUIRE; PAWL_ASK_RELEASE: its priority */
	struct pawl_bytes label;          /* PAWL_ACQUIRE: shown to others; 0 bytes: as in the client's options. At most 128 bytes */
	struct pawl_bytes to;             /* PAWL_TRANSFER, PAWL_ASK_RELEASE: the owner of a waiter */
	const struct pawl_key_item *keys; /* PAWL_ACQUIRE */
	size_t key_count;                 /* at most PAWL_KEYS_MAX, no key twice */
	bool prefix;                      /* PAWL_WAITERS, PAWL_CAN: key is a prefix */
	uint64_t client;                  /* PAWL_CLIENTS, PAWL_KICK: the number of a connection */
};

/* ---- results ---- */

/* A tree of what a node said, for fields that have no place in struct pawl_result (status, details of an error). */
enum pawl_kind { PAWL_NIL, PAWL_BOOL, PAWL_INT, PAWL_REAL, PAWL_TEXT, PAWL_BYTES, PAWL_ARRAY, PAWL_MAP };

struct pawl_value {
	enum pawl_kind kind;
	bool boolean;
	bool above;       /* PAWL_INT: integer is to be read as uint64_t, it does not fit int64_t */
	int64_t integer;  /* PAWL_INT */
	double real;      /* PAWL_REAL */
	struct pawl_bytes bytes;        /* PAWL_TEXT, PAWL_BYTES */
	const struct pawl_value *items; /* PAWL_ARRAY: count; PAWL_MAP: 2 * count, each key before its value */
	size_t count;
};

/* The value under `key` in a map; NULL if there is none or `map` is NULL or no map. Borrowed. */
const struct pawl_value *pawl_value_get(const struct pawl_value *map, const char *key);

struct pawl_entry { /* a key as reads show it */
	bool held;
	bool contested; /* after a recovery several may hold it: nobody gets it until one is left */
	struct pawl_bytes key; /* in PAWL_LIST */
	struct pawl_bytes owner, value;
	struct pawl_bytes value_seq; /* names the write of the value; opaque, for expect_seq */
	uint64_t token;
	int64_t remaining_ms;   /* of the lease as the node sees it; its holder stops earlier */
	struct pawl_id lock_id; /* none unless this client may see it */
	enum pawl_mode mode;
	uint32_t permits, of;   /* PAWL_PERMITS */
	const uint32_t *slots;  /* PAWL_PERMITS: which ones, from 0; `permits` of them. NULL: not said */
	int64_t held_ms;        /* since it was acquired; -1: not said */
	int64_t lock_delay_ms;
	int64_t pid;            /* of the holder, 0: not said */
	const char *label, *host; /* what the holder says about itself; "" for nothing */
	const char *identity;     /* the name in its certificate; "" for none */
	bool closing;           /* the lease is over and its lock delay runs: nobody holds the key (held is false), or gets it yet */
	int64_t closing_ms;     /* for how long */
	uint32_t holders;       /* how many hold the key (at least 1 where held) */
};

struct pawl_extended { /* one of a batch */
	int error;
	uint32_t acks;
	uint64_t token, slots[2]; /* slots: of permits: those that it is for; one has these and no others from now on */
	int64_t valid_ms;         /* from the sending */
};

struct pawl_waiter {
	struct pawl_bytes owner;
	int64_t since_ms;
	const char *node;
	struct pawl_id lock_id; /* none unless this client may see it */
	struct pawl_bytes key;  /* with `prefix` */
	enum pawl_mode mode;
	uint32_t permits, of;
	int32_t priority;
	int64_t pid;
	const char *label, *host, *identity;
};

struct pawl_got { /* one of several keys that were acquired, in the order of request.keys */
	struct pawl_bytes key;
	struct pawl_id lock_id;
	uint64_t token;
	enum pawl_mode mode;
	const uint32_t *slots; /* of a semaphore */
	size_t slot_count;
};

/* What came out of a request. Owned by who got it until pawl_result_free, independent of the client; what a method does not
 * give is zero, strings are never NULL. */
struct pawl_result {
	enum pawl_method method;
	int error;            /* 0 or a PAWL_E... */
	const char *message;  /* a sentence for people, "" on success */
	const char *endpoint; /* who answered; "" if nobody did */
	const char *field;    /* PAWL_EBADREQUEST, PAWL_ETOOLARGE, PAWL_EFULL: which; else "" */

	struct pawl_id lock_id;
	uint64_t token;
	int64_t valid_ms; /* counted from the sending: pawl_result_valid_ms tells what is left */
	uint32_t quorum, votes, acks;
	int64_t waited_ms;
	const struct pawl_extended *extended; /* in the order of request.locks */
	size_t extended_count;
	enum pawl_mode mode;       /* PAWL_ACQUIRE, PAWL_DOWNGRADE */
	const uint32_t *slots;     /* PAWL_ACQUIRE, PAWL_EXTEND of permits: their numbers, 0 to of - 1; no two holders have the same one */
	size_t slot_count;
	const struct pawl_got *got; /* PAWL_ACQUIRE with `keys` */
	size_t got_count;
	struct pawl_bytes key;     /* PAWL_ACQUIRE with `keys`, errors: the one it is about; else empty */
	uint32_t reached;          /* PAWL_ASK_RELEASE */
	struct pawl_bytes value_seq; /* PAWL_UPDATE */
	bool released;
	struct pawl_entry entry; /* reads; PAWL_EHELD: the holder, if entry.held; PAWL_EMISMATCH: the present value */
	const struct pawl_entry *holders; /* where several hold the key: all of them, entry is the first; else NULL */
	size_t holder_count;
	const char *node, *role, *version;
	bool recovering;
	int64_t age_ms; /* how old a replica's view may be; -1: not said (a master) */
	const struct pawl_entry *entries;
	size_t entry_count;
	bool more; /* of PAWL_LIST, PAWL_WAITERS, PAWL_CLIENTS */
	const struct pawl_waiter *waiters;
	size_t waiter_count;
	uint64_t epoch; /* PAWL_CHANGE: the present one; a majority of its masters votes in it, all of them do */
	bool settled, complete;
	const char *const *missing; /* names of its masters that do not */
	size_t missing_count;
	const char *warning; /* of a change or a break that was done, "" if there is nothing to warn of */

	const struct pawl_value *tree; /* the whole result or error map as the node sent it; NULL when no node answered */
};

/* What is left of valid_ms now, by the clock that says less: 0 once it is over, for ever. Reads only clocks. */
int64_t pawl_result_valid_ms(const struct pawl_result *result);
void pawl_result_free(struct pawl_result *take_result); /* NULL is allowed */

/* Blocking: sends the request and waits for its outcome. Returns result->error (or PAWL_EINVAL, PAWL_ENOMEM when it could
 * not be sent, with *out_result NULL). out_result may be NULL; otherwise free it, also after an error.
 * From the library itself: PAWL_EUNREACHABLE or PAWL_ETLS (no node could be talked to within the time), PAWL_ETIMEOUT (nodes
 * were silent), PAWL_ETOOLARGE (the request is larger than a frame), PAWL_EPROTOCOL (what a node answered is not Pawl). */
int pawl_call(struct pawl *client, const struct pawl_request *request, struct pawl_result **out_result);

/* The result is the callback's to free. */
typedef void pawl_done_fn(struct pawl_result *take_result, void *arg);

/* Event-driven: `done` is called exactly once, unless this fails or the call is canceled. Hundreds may be under way; what is
 * started in one turn of the loop leaves in one write. out_call may be NULL; it is valid until `done` runs. done may be
 * NULL: nobody is interested. 0, PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EBUSY (too many under way: 65536), PAWL_ENOMEM. */
int pawl_start(struct pawl *client, const struct pawl_request *request, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call);

/* Ends a call without its callback. An acquire that was sent is released in the background. */
void pawl_cancel(struct pawl_call *take_call);

/* ---- fencing ---- */

/* For a resource that a lock protects: *highest is the highest token it has seen under this key, 0 at first, kept for as long
 * as what it protects, and read and written in the same transaction. true: the holder of `token` is the newest one seen, and
 * *highest is raised to it; let it read and write. false: somebody newer was here, refuse it. Token 0 is always refused.
 * fence.h keeps such numbers in a file, and knows readers. */
bool pawl_fence_check(uint64_t *highest, uint64_t token);

#ifdef __cplusplus
}
#endif

#include "lock.h"
#endif
