/* node.h: libpawl-node, a node of a Pawl cluster inside your own process.
 *
 * What pawld is as a process of its own, struct pawl_node is on your event loop: a replica near the application, or a
 * master. Reads are function calls on this process's memory. Writes are coordinated by this node itself, without a hop to
 * another one. The node has a name, a state directory and an address for the other nodes like any other; an operator adds it
 * to the cluster, promotes, replaces and removes it with `pawl cluster`.
 *
 *   pawl_node_new -> pawl_node_start -> (reads, pawl_node_ask)* -> pawl_node_drain (a planned stop) -> pawl_node_free
 *
 * Everything happens on the loop: IT MUST NOT STAND STILL. A loop that stands for longer than the cluster's request_timeout
 * loses its links to the other nodes, as a machine that was paused does. (Only the writes of the state file and look-ups of
 * names have threads of their own.)
 *
 * Several nodes may live in one process, on one loop or on several. Threads: a node and its calls belong to the thread of
 * its loop. After fork() only the parent may use a node; the child may only exec or exit.
 *
 * Callbacks run inside the loop, never inside the function that started the call. In a callback, unless it says otherwise,
 * every function of this header may be called, also pawl_node_free.
 *
 * Errors: functions return 0 or a negative PAWL_E... (error.h). PAWL_ENOMEM is possible wherever an int is returned and
 * leaves everything as it was. Durations are milliseconds. Bytes and strings that are passed in are borrowed for the call
 * only. Link with libpawl as well (pkg-config pawl-node): identities, the texts of errors and clients are there.
 */
#ifndef PAWL_NODE_H
#define PAWL_NODE_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_node;
struct pawl_node_call; /* a request under way */

/* ---- one node ---- */

struct pawl_node_master { /* of those with which the cluster was born */
	const char *name, *address; /* host:port for other nodes */
};

enum pawl_node_state {
	PAWL_NODE_UNBORN,     /* an initial master before the cluster is born */
	PAWL_NODE_OUTSIDE,    /* not in the cluster: not added yet, or removed */
	PAWL_NODE_FOLLOWING,  /* a replica */
	PAWL_NODE_HANDOVER,   /* becomes a master: takes over what the ones before know */
	PAWL_NODE_RECOVERING, /* a master that lost its memory */
	PAWL_NODE_VOTING,     /* a master */
	PAWL_NODE_DRAINED     /* stops soon */
};

/* The node's state, role or epoch has changed: pawl_node_status tells. Only the latest of several changes in one turn of the
 * loop is told. */
typedef void pawl_node_changed_fn(struct pawl_node *node, void *arg);

/* A line for the program's log, without time and end of line; level: 3 error, 4 warning, 5 notice, 6 info, as in syslog. May
 * be called from within any function of this header, but pawl_node_get and the like, and must call none of them. */
typedef void pawl_node_log_fn(int level, const char *line, void *arg);

struct pawl_node_options { /* zero means the default everywhere; everything is copied but base */
	struct event_base *base; /* the program's loop; it must outlive the node, which keeps it running */
	const char *name;        /* of this node: letters, digits and - . _ ; its certificate must carry it */
	const char *cluster;     /* the cluster's name, the same on every node */
	const char *state_dir;   /* absolute; made with mode 0700 if it is missing. Never shared, never a copy of another node's */

	/* With whom the cluster was born: a node that is not among them asks them for the cluster and waits until it is added. */
	const struct pawl_node_master *masters;
	size_t master_count; /* 1 to 9 */

	/* Where other nodes connect: host:port; default: this node's address in `masters`. Port 0, only for a node that is not
	 * among them: any that is free, see pawl_node_address. */
	const char *listen_peer;
	const char *advertise;     /* the address at which they reach it; default: this node's in `masters` */
	const char *listen_client; /* where clients connect, as in pawld's configuration; several with commas; default: nobody does */
	bool insecure;             /* listeners and masters outside loopback without TLS are refused unless this is set */

	const char *ca_file, *cert_file, *key_file; /* PEM, absolute paths: all three, or none: no TLS */
	/* Certificates that are no good any more, as [tls] revoked and crl of pawld: a list, resp. CRLs in PEM. NULL: none. */
	const char *revoked_file, *crl_file;
	const char *acl_file;      /* who may do what at listen_client, as [acl] file of pawld; absolute path. NULL: there are no rules */
	bool any_key_mode;         /* as [tls] any_key_mode: the key file may be one that other users can read */

	/* Timing, for the birth of a cluster only, and then the same on all masters; from then on the cluster's own counts. */
	uint32_t max_lease_ms;       /* default 60000 */
	uint32_t request_timeout_ms; /* default 1000; 10 .. 60000, at most half of max_lease_ms */
	uint32_t promise_timeout_ms; /* default 2000 */
	uint32_t clock_drift_ppm;    /* default 10000: 1 % */

	uint32_t replication_interval_ms; /* default 5 */
	bool auto_replace;                /* as [cluster] auto_replace of pawld */

	/* Limits; at one the answer is PAWL_EFULL or PAWL_EBUSY. Give all masters the same. */
	uint64_t keys;         /* held at a time; default 4000000 */
	uint64_t memory_bytes; /* for them; default 4 GiB */
	uint64_t log_bytes;    /* of the transaction log; default 16 MiB */
	uint32_t value_bytes;  /* default 65536, at most 1 MiB */
	uint32_t lease_min_ms; /* default 100 */

	pawl_node_log_fn *log; /* NULL: nothing is logged */
	int log_level;         /* lines of greater levels are left out; 0: 6 */
	pawl_node_changed_fn *on_changed; /* may be NULL */
	void *arg;             /* for both */
};

#define PAWL_NODE_WHY 768 /* room for a sentence that says what is wrong and what to do */

/* Locks and reads the state directory, opens nothing else. 0 and a node; or, with a sentence in `why`: PAWL_EINVAL (an option
 * is not valid, or they do not fit together), PAWL_EIO (the state directory: locked by another process, damaged, of another
 * node or cluster, not writable), PAWL_ENOMEM. */
int pawl_node_new(const struct pawl_node_options *options, struct pawl_node **out_node, char why[PAWL_NODE_WHY]);

/* Loads the certificates, opens the listeners, begins to talk to the other nodes; writes the state file, which blocks for a
 * moment. Once. Errors as above, and PAWL_ETLS; the node is then good for pawl_node_free only. */
int pawl_node_start(struct pawl_node *node, char why[PAWL_NODE_WHY]);

/* Reads the files for TLS again: certificates and key for connections to come; those of revoked certificates are closed. 0, or with a
 * sentence in `why`, and everything as it was: PAWL_ETLS, PAWL_ENOMEM, PAWL_EINVAL (the node was not started). */
int pawl_node_reload(struct pawl_node *node, char why[PAWL_NODE_WHY]);

/* Before a planned stop of a master: it stops voting and writes what it knows, so that its next start is a mere pause. Also
 * right for a replica, where it costs nothing. `done` is called once, with 0 or PAWL_EIO (its next start then recovers as
 * after a crash), unless the node is freed before; it may be NULL. From then on the node answers PAWL_ERECOVERING. PAWL_EBUSY:
 * it is draining already. */
typedef void pawl_node_drained_fn(struct pawl_node *node, int error, void *arg);
int pawl_node_drain(struct pawl_node *node, pawl_node_drained_fn *done, void *arg);

/* Closes everything, and waits for a write of the state file that is under way. Calls under way end with PAWL_ECANCELED, their
 * callbacks run before this returns (or, when it was called in a callback, after that one has returned); locks that they may
 * have got run out by themselves. NULL is allowed. */
void pawl_node_free(struct pawl_node *node);

/* Where other nodes connect, as it is really bound ("127.0.0.1:41234"); NULL before the start. Valid until pawl_node_free. */
const char *pawl_node_address(const struct pawl_node *node);
/* The same of the n-th listener for clients; NULL: there is none. */
const char *pawl_node_client_address(const struct pawl_node *node, size_t n);

/* ---- how it does ---- */

struct pawl_node_status {
	enum pawl_node_state state;
	bool master;           /* in the present configuration */
	uint64_t epoch;        /* of that configuration; 0: it knows of none */
	bool settled, complete; /* a majority of the masters votes in it, resp. all do, as far as this node knows */
	uint32_t quorum, voting; /* how many masters a grant needs, and how many vote that this node is linked with, itself included */
	const char *waits_for; /* a sentence, or "": nothing. Static storage */
	int64_t left_ms;       /* PAWL_NODE_RECOVERING: until it votes at the latest; 0: not known */
	int64_t age_ms;        /* how old a replica's view may be; 0 of a voting master, -1: not known */
	const char *follows;   /* a replica: the master that it follows; "": none. Until the node next gets to run */
	uint64_t keys;         /* held */
	uint64_t waiters;      /* in the queues at this node */
	uint64_t memory_bytes;
	uint32_t peers;        /* for pawl_node_peer */
};
void pawl_node_status(const struct pawl_node *node, struct pawl_node_status *out_status);

struct pawl_node_peer {
	const char *name, *address; /* until the node next gets to run */
	bool self, master, member;  /* member: of the present configuration */
	bool linked, voting;
	int64_t round_trip_us;      /* of the last ping; -1: none yet */
};
/* The nodes that this one has to do with, masters first. False: index is not below status.peers. */
bool pawl_node_peer(const struct pawl_node *node, uint32_t index, struct pawl_node_peer *out_peer);

/* ---- reads: this process's memory ---- */

/* Who holds the key, as far as this node knows; see age_ms for how old that may be. True: held, and *out_entry is set, its
 * bytes valid until the next read of this node or until the node next gets to run. entry.contested and the other fields are
 * as in pawl.h; lock_id is always there. False: free, unknown, or no memory for the bytes. A read is a glance: what must not
 * happen without the lock carries its token. */
bool pawl_node_get(struct pawl_node *node, struct pawl_bytes key, struct pawl_entry *out_entry);

/* Calls `visit` for each held key that begins with `prefix`, in no order, until it returns false. Takes time in the number of all
 * keys. `visit` may call no function on this node; its entry's bytes are valid within it only. 0, or PAWL_ENOMEM: some were
 * left out. Ordered, and in pieces: pawl_node_ask with PAWL_LIST. */
typedef bool pawl_node_visit_fn(const struct pawl_entry *entry, void *arg);
int pawl_node_each(struct pawl_node *node, struct pawl_bytes prefix, pawl_node_visit_fn *visit, void *arg);

/* ---- requests ---- */

/* Trust in a lock is over as soon as either clock has reached this; {0, 0}: at once. */
struct pawl_node_deadline {
	int64_t boottime_ns, monotonic_raw_ns;
};
/* What is left of it now: 0 once it is over. Reads only clocks. */
int64_t pawl_node_left_ms(struct pawl_node_deadline deadline);

struct pawl_node_result { /* borrowed within the callback; what a method does not give is zero, strings are never NULL */
	enum pawl_method method;
	int error;           /* 0 or a PAWL_E... */
	const char *message; /* a sentence for people, "" on success */
	const char *field;   /* PAWL_EBADREQUEST, PAWL_ETOOLARGE, PAWL_EFULL: which; else "" */
	struct pawl_id lock_id;
	uint64_t token;
	struct pawl_node_deadline deadline; /* acquire, extend: how long the lock may be trusted; counted from pawl_node_ask */
	uint32_t quorum, votes, acks;
	int64_t waited_ms;
	bool released;
	enum pawl_mode mode;   /* acquire, downgrade */
	const uint32_t *slots; /* acquire of permits: their numbers */
	size_t slot_count;
	uint32_t reached;      /* ask for release */
	struct pawl_bytes value_seq;
	struct pawl_entry entry; /* get, wait; PAWL_EHELD: the holder, if entry.held; PAWL_EMISMATCH: the present value */
	bool recovering;
	int64_t age_ms; /* reads: as in the status */
	const struct pawl_entry *entries; /* list */
	size_t entry_count;
	bool more;
	const struct pawl_waiter *waiters;
	size_t waiter_count;
	uint64_t epoch;         /* change: the present one, as the next two */
	bool settled, complete;
	const char *why;        /* a warning, or what is in the way of the change, and the remedy */
};

typedef void pawl_node_done_fn(struct pawl_node *node, const struct pawl_node_result *result, void *arg);

/* What pawl_start is for a client, without a connection: PAWL_ACQUIRE, PAWL_EXTEND (of one lock: key and lock_id),
 * PAWL_UPDATE, PAWL_RELEASE, PAWL_DOWNGRADE, PAWL_TRANSFER, PAWL_ASK_RELEASE, PAWL_GET, PAWL_LIST, PAWL_WAIT, PAWL_WAITERS,
 * PAWL_BREAK, PAWL_CHANGE, with the meaning that pawl.h gives them. (Several keys at once, explanations, watches, and locks that
 * renew themselves: pawl_node_client.)
 * Differences: the node tries for as long as the cluster's request_timeout (beyond wait_ms) and repeats nothing; timeout_ms
 * `locks`, `keys` and terms.release_on_disconnect are not for here (PAWL_EINVAL); an acquire that failed is taken back by the node. A lock is not renewed by
 * itself: extend it at a third of its lease, with deadline_kept set if the program keeps the deadline, which it should.
 * `done` is called once unless this fails or the call is canceled; NULL: nobody is interested. out_call may be NULL; it is
 * valid until `done` runs. 0, PAWL_EINVAL, PAWL_EBUSY (too many under way), PAWL_ENOMEM. */
int pawl_node_ask(struct pawl_node *node, const struct pawl_request *request, pawl_node_done_fn *done, void *arg,
	struct pawl_node_call **out_call);
/* Ends a call without its callback. What an acquire got, or may yet get, is released in the background. */
void pawl_node_cancel(struct pawl_node_call *take_call);

/* ---- a client of this node ---- */

/* A client (pawl.h) that talks to this node inside the process, through a pair of sockets on the same loop: locks that renew
 * themselves, watches and elections, as for any client, without a listener and without another process. Its requests are
 * trusted as those of pawl_node_ask are, and its locks are held in the node's name; `owner` is the node's name by default.
 * options->base, endpoints and the files for TLS are not for here (PAWL_EINVAL); the rest is as for pawl_new, and
 * `options` may be NULL. Until the node is started the client's calls wait.
 * FREE IT (pawl_free) BEFORE THE NODE. 0, PAWL_EINVAL, PAWL_EIO, PAWL_ENOMEM. */
int pawl_node_client(struct pawl_node *node, const struct pawl_options *options, struct pawl **out_client);

/* ---- locks that end with this process ---- */

/* Asks the masters to end a lock that was acquired through this node as soon as they see that this node's links are closed, if
 * it is not back within grace_ms: when the process dies, its locks are free in milliseconds and not after their leases.
 * (A machine that loses its power or its network closes nothing: then the lease counts.)
 *
 * The price: the lock may also be lost while the process lives, when its links to too many masters are closed for the grace
 * time. So it may be trusted until the deadline of its lease AND while pawl_node_bond_left_ms is above 0. `ended` is called
 * once, unless this fails or the call is canceled: with PAWL_ELOST, before any master lets go, where the loop runs; or with 0
 * when the lock was released through this node. pawl_node_cancel ends this and not the lock, which may be trusted by its
 * lease alone when it has been extended after that. Extend the lock as any other;
 * choose a grace time above a second where masters are restarted one by one, or the network hiccups.
 * 0, PAWL_EINVAL, PAWL_EBUSY, PAWL_ENOMEM. */
int pawl_node_release_on_disconnect(struct pawl_node *node, struct pawl_bytes key, const struct pawl_id *lock_id, uint32_t grace_ms,
	pawl_node_done_fn *ended, void *arg, struct pawl_node_call **out_call);
/* How long the lock still lasts if none of the links that are closed now comes back; INT64_MAX: as long as its lease. */
int64_t pawl_node_bond_left_ms(const struct pawl_node_call *bond);

#ifdef __cplusplus
}
#endif
#endif
