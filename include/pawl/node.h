/* node.h: libpawl-node, a node of a Pawl cluster inside your own process.
 *
 * struct pawl_node is on your event loop what pawld is as a process of its own: a replica near the
 * application, or a master. Reads are function calls on the memory of this process. This node
 * itself coordinates writes, without a detour through another node. Like any other node it has a
 * name, a state directory and an address for the other nodes; an operator adds it to the cluster,
 * promotes, replaces and removes it with `pawl cluster`.
 *
 *  pawl_node_new -> pawl_node_start -> (reads, pawl_node_ask)* -> pawl_node_drain -> pawl_node_free
 *
 * Everything happens on the loop, so THE LOOP MUST KEEP RUNNING. If it stands still for longer than
 * the cluster's request_timeout, the node loses its links to the other nodes, as a paused machine
 * does. (Only writing the state file and looking up names have threads of their own.)
 *
 * Several nodes may live in one process, on one loop or on several. Threads: a node and its calls
 * belong to the thread of its loop. After fork() only the parent may use a node; the child may only
 * exec or exit.
 *
 * Callbacks run inside the loop, never inside the function that started the call. Unless its
 * description says otherwise, a callback may call every function of this header, including
 * pawl_node_free.
 *
 * Errors: functions return 0 or a negative PAWL_E... value (error.h). Every function that returns
 * an error may return PAWL_ENOMEM, which leaves everything as it was. Durations are in
 * milliseconds. Bytes and strings that are passed in are borrowed for the call only. Link with
 * libpawl as well (pkg-config pawl-node), which has the lock_ids, the texts of errors and the
 * clients.
 */
#ifndef PAWL_NODE_H
#define PAWL_NODE_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_node;
/* A request under way. */
struct pawl_node_call;

/* ---- one node ---- */

/* One of the masters with which the cluster was born. */
struct pawl_node_master {
	/* The name of the master. */
	const char *name;
	/* host:port for other nodes. */
	const char *address;
};

enum pawl_node_state {
	/* An initial master, before the cluster is born. */
	PAWL_NODE_UNBORN,
	/* The node is not in the cluster: it was not added yet, or it was removed. */
	PAWL_NODE_OUTSIDE,
	/* A replica. */
	PAWL_NODE_FOLLOWING,
	/* The node is becoming a master, and is taking over what the previous masters know. */
	PAWL_NODE_HANDOVER,
	/* A master that has lost its memory. */
	PAWL_NODE_RECOVERING,
	/* A master that votes. */
	PAWL_NODE_VOTING,
	/* The node is drained and will stop soon. */
	PAWL_NODE_DRAINED
};

/* The state, role or epoch of the node has changed; pawl_node_status tells it. If several changes
 * happen in one turn of the loop, this comes once. */
typedef void pawl_node_changed_fn(struct pawl_node *node, void *arg);

/* Takes a line for the program's log, without time and end of line. The levels are those of syslog:
 * 3 error, 4 warning, 5 notice, 6 info. This may be called from within any function of this header
 * except pawl_node_get and the other reads, and it must call none of them. */
typedef void pawl_node_log_fn(int level, const char *line, void *arg);

/* The options of a node. A zero field means the default. Everything except base is copied. */
struct pawl_node_options {
	/* The program's loop. It must outlive the node, and the node keeps it running. */
	struct event_base *base;
	/* The name of this node: letters, digits and - . _ ; its certificate must carry it. */
	const char *name;
	/* The name of the cluster, the same on every node. */
	const char *cluster;
	/* The absolute path of the state directory, which is made with mode 0700 if it is missing.
	 * Never share it, and never use a copy of another node's. */
	const char *state_dir;

	/* The 1 to 9 masters with which the cluster was born. A node that is not one of them asks
	 * them for the cluster, and waits until it is added. */
	const struct pawl_node_master *masters;
	size_t master_count;

	/* Where this node listens for other nodes, as host:port. The default is this node's address
	 * in `masters`. A node that is not one of the masters may use port 0, which takes any free
	 * port; see pawl_node_address. */
	const char *listen_peer;
	/* The address at which other nodes reach this one. The default is its address in
	 * `masters`. */
	const char *advertise;
	/* Where this node listens for clients, as in the configuration of pawld; several are
	 * separated by commas. By default it does not listen for clients. */
	const char *listen_client;
	/* Allows listeners and masters outside loopback without TLS, which are refused
	 * otherwise. */
	bool insecure;

	/* Absolute paths of files in PEM. Give all three, or none for a node without TLS. */
	const char *ca_file, *cert_file, *key_file;
	/* The certificates that are withdrawn, as [tls] revoked and [tls] crl of pawld: a list, and
	 * CRLs in PEM. NULL means that there are none. */
	const char *revoked_file, *crl_file;
	/* The absolute path of the access rules for listen_client, as [acl] file of pawld. NULL
	 * means that there are no rules. */
	const char *acl_file;
	/* Allows a key file that other users can read, as [tls] any_key_mode of pawld. */
	bool any_key_mode;

	/* The next four fields are the timing with which a cluster is born; give all masters the
	 * same. From then on the cluster's own timing counts.
	 *
	 * The longest lease, in ms; the default is 60000. */
	uint32_t max_lease_ms;
	/* How long a node waits for the masters' answers, in ms: 10 to 60000, and at most half of
	 * max_lease_ms; the default is 1000. */
	uint32_t request_timeout_ms;
	/* How long a promise lasts, in ms; the default is 2000. */
	uint32_t promise_timeout_ms;
	/* How far the rates of clocks may be off, in millionths; the default is 10000 (1 %). */
	uint32_t clock_drift_ppm;

	/* How often a master sends its log to replicas, in ms; the default is 5. */
	uint32_t replication_interval_ms;
	/* The same as [cluster] auto_replace of pawld. */
	bool auto_replace;

	/* The next five fields are limits; give all masters the same. Beyond a limit the answer is
	 * PAWL_EFULL or PAWL_EBUSY.
	 *
	 * The number of keys that may be held at a time; the default is 4000000. */
	uint64_t keys;
	/* The memory for these keys, in bytes; the default is 4 GiB. */
	uint64_t memory_bytes;
	/* The size of the transaction log, in bytes; the default is 16 MiB. */
	uint64_t log_bytes;
	/* The size of a value, in bytes; the default is 65536, and at most 1 MiB is allowed. */
	uint32_t value_bytes;
	/* The shortest lease, in ms; the default is 100. */
	uint32_t lease_min_ms;

	/* NULL means that nothing is logged. */
	pawl_node_log_fn *log;
	/* Lines of higher levels are left out; 0 means level 6. */
	int log_level;
	/* This may be NULL. */
	pawl_node_changed_fn *on_changed;
	/* Passed to both callbacks. */
	void *arg;
};

/* The room in bytes for a sentence that says what is wrong and what to do. */
#define PAWL_NODE_WHY 768

/* Makes a node: it locks and reads the state directory, and opens nothing else. Returns 0 and the
 * node, or an error and a sentence in `why`: PAWL_EINVAL (an option is not valid, or options do not
 * fit together), PAWL_EIO (the state directory is locked by another process, damaged, not writable,
 * or belongs to another node or cluster) or PAWL_ENOMEM. Free the node with pawl_node_free. */
int pawl_node_new(const struct pawl_node_options *options, struct pawl_node **out_node,
	char why[PAWL_NODE_WHY]);

/* Starts the node: it loads the certificates, opens the listeners and begins to talk to the other
 * nodes. It also writes the state file, which blocks for a moment. Call this once. The errors are
 * those of pawl_node_new, and PAWL_ETLS; after an error the node can only be freed. */
int pawl_node_start(struct pawl_node *node, char why[PAWL_NODE_WHY]);

/* Reads the files for TLS, the withdrawn certificates and the access rules again. New connections
 * use the new certificates and key; connections whose certificate is withdrawn are closed; the new
 * rules apply from the next request on. Returns 0. After an error everything is as it was, and
 * `why` has a sentence: PAWL_ETLS, PAWL_ENOMEM, PAWL_EIO (the access rules cannot be read) or
 * PAWL_EINVAL (they have a mistake, or the node was not started). */
int pawl_node_reload(struct pawl_node *node, char why[PAWL_NODE_WHY]);

/* The node is drained: `error` is 0, or PAWL_EIO if its next start recovers as after a crash. */
typedef void pawl_node_drained_fn(struct pawl_node *node, int error, void *arg);
/* Prepares a master for a planned stop: it stops voting and writes what it knows, so that its next
 * start is only a short pause. A replica may do this too; it costs nothing there. `done` is called
 * once, unless the node is freed before; it may be NULL. From the moment of the call the node
 * answers PAWL_ERECOVERING. PAWL_EBUSY: the node is already draining. */
int pawl_node_drain(struct pawl_node *node, pawl_node_drained_fn *done, void *arg);

/* Closes and frees the node, and waits for a write of the state file that is under way. Calls under
 * way end with PAWL_ECANCELED, and their callbacks run before this returns; if this is called in a
 * callback, they run after that callback has returned. Locks that these calls may have got run out
 * by themselves. NULL is allowed. */
void pawl_node_free(struct pawl_node *node);

/* Returns the address at which the node really listens for other nodes, such as "127.0.0.1:41234".
 * NULL before the start. The text is valid until pawl_node_free. */
const char *pawl_node_address(const struct pawl_node *node);
/* Returns the same for the n-th listener for clients; NULL if there is no such listener. */
const char *pawl_node_client_address(const struct pawl_node *node, size_t n);

/* ---- status ---- */

struct pawl_node_status {
	/* What the node is at the moment. */
	enum pawl_node_state state;
	/* The node is a master in the present configuration. */
	bool master;
	/* The epoch of the present configuration; 0 means that the node knows of none. */
	uint64_t epoch;
	/* `settled`: as far as this node knows, a majority of the masters votes in this epoch.
	 * `complete`: as far as it knows, all of them do. */
	bool settled, complete;
	/* How many masters a grant needs, and how many vote of those that this node is linked with,
	 * itself included. */
	uint32_t quorum, voting;
	/* A sentence that says what the node waits for, or "". It is in static storage. */
	const char *waits_for;
	/* PAWL_NODE_RECOVERING: the node votes after this time at the latest, in ms; 0 means that
	 * this is not known. */
	int64_t left_ms;
	/* How old a replica's view may be, in ms; 0 on a master that votes, -1 if it is not
	 * known. */
	int64_t age_ms;
	/* On a replica the master that it follows, or "". It is valid until the loop runs again. */
	const char *follows;
	/* The number of keys that are held. */
	uint64_t keys;
	/* The number of waiters in the queues at this node. */
	uint64_t waiters;
	/* The memory that the node uses for keys, in bytes. */
	uint64_t memory_bytes;
	/* The number of nodes that pawl_node_peer tells about. */
	uint32_t peers;
};
/* Gives the present status. */
void pawl_node_status(const struct pawl_node *node, struct pawl_node_status *out_status);

/* One of the nodes that this node has to do with. */
struct pawl_node_peer {
	/* These are valid until the loop runs again. */
	const char *name, *address;
	/* Whether the peer is this node itself, whether it is a master, and whether it is a member
	 * of the present configuration. */
	bool self, master, member;
	/* Whether this node has a link to the peer, and whether the peer votes. */
	bool linked, voting;
	/* The round trip of the last ping, in microseconds; -1 means that there was none yet. */
	int64_t round_trip_us;
};
/* Gives a peer; masters come first. Returns false if index is not below status.peers. */
bool pawl_node_peer(const struct pawl_node *node, uint32_t index, struct pawl_node_peer *out_peer);

/* ---- reads from the memory of this process ---- */

/* Gives the holder of the key as far as this node knows; see age_ms for how old that may be.
 * Returns true and *out_entry if the key is held; the bytes of the entry are valid until the next
 * read of this node, or until the loop runs again. entry.contested and the other fields are as in
 * result.h; lock_id is always set. Returns false if the key is free or unknown, or if there is no
 * memory for the bytes. What a read shows may change at once: a write that must not happen without
 * the lock carries its token. */
bool pawl_node_get(struct pawl_node *node, struct pawl_bytes key, struct pawl_entry *out_entry);

/* Sees one held key. It returns false to end the reading. It may call no function on this node. The
 * bytes of the entry are valid within this callback only. */
typedef bool pawl_node_visit_fn(const struct pawl_entry *entry, void *arg);
/* Calls `visit` for each held key that begins with `prefix`, in no particular order. The time that
 * this takes grows with the number of all keys. Returns 0, or PAWL_ENOMEM if some keys were left
 * out. To read in order and in pieces use pawl_node_ask with PAWL_LIST. */
int pawl_node_each(struct pawl_node *node, struct pawl_bytes prefix, pawl_node_visit_fn *visit,
	void *arg);

/* ---- requests ---- */

/* A deadline on two clocks, in ns. A lock may no longer be trusted as soon as either clock has
 * reached its value. {0, 0} has always passed. */
struct pawl_node_deadline {
	int64_t boottime_ns, monotonic_raw_ns;
};
/* Returns how much time is left until the deadline at least, in ms; 0 once it has passed. It only
 * reads clocks. */
int64_t pawl_node_left_ms(struct pawl_node_deadline deadline);

/* The outcome of a request. It is borrowed within the callback. Fields that a method does not set
 * are zero; strings are never NULL. */
struct pawl_node_result {
	/* What was asked for. */
	enum pawl_method method;
	/* 0 or a PAWL_E... value. */
	int error;
	/* A sentence for people; "" on success. */
	const char *message;
	/* PAWL_EBADREQUEST, PAWL_ETOOLARGE, PAWL_EFULL: the name of the parameter or limit;
	 * otherwise "". */
	const char *field;
	/* The lock_id that the request had, or that was drawn for it. */
	struct pawl_id lock_id;
	/* The fencing token of the lock. */
	uint64_t token;
	/* PAWL_ACQUIRE, PAWL_EXTEND: how long the lock may be trusted, counted from
	 * pawl_node_ask. */
	struct pawl_node_deadline deadline;
	/* How many masters are needed, how many gave a promise, and how many stored the lease. */
	uint32_t quorum, votes, acks;
	/* How long the request waited for others, in ms. */
	int64_t waited_ms;
	/* PAWL_RELEASE, PAWL_TRANSFER: the lock was held, and is no longer. PAWL_BREAK: the lock
	 * was broken. */
	bool released;
	/* PAWL_ACQUIRE, PAWL_DOWNGRADE. */
	enum pawl_mode mode;
	/* PAWL_ACQUIRE of permits: the permit numbers. */
	const uint32_t *slots;
	size_t slot_count;
	/* PAWL_ASK_RELEASE: how many watchers were told. */
	uint32_t reached;
	/* PAWL_UPDATE: the name of this write. */
	struct pawl_bytes value_seq;
	/* PAWL_GET, PAWL_WAIT: what the node shows. PAWL_EHELD: the holder, if entry.held.
	 * PAWL_EMISMATCH: the present value. */
	struct pawl_entry entry;
	/* The node is recovering, so it may not know every holder. */
	bool recovering;
	/* For reads how old the view may be, in ms; see struct pawl_node_status. */
	int64_t age_ms;
	/* PAWL_LIST: the held keys. */
	const struct pawl_entry *entries;
	size_t entry_count;
	/* PAWL_LIST, PAWL_WAITERS: the answer does not have everything. */
	bool more;
	/* PAWL_WAITERS. */
	const struct pawl_waiter *waiters;
	size_t waiter_count;
	/* PAWL_CHANGE: the present epoch. */
	uint64_t epoch;
	/* PAWL_CHANGE. `settled`: a majority of the masters votes in this epoch. `complete`: all
	 * of them do. */
	bool settled, complete;
	/* PAWL_CHANGE: a warning, or what prevents the change and how to remove that. */
	const char *why;
};

/* Tells the outcome of a request. */
typedef void pawl_node_done_fn(struct pawl_node *node, const struct pawl_node_result *result,
	void *arg);

/* Starts a request at this node, as pawl_start does for a client, but without a connection. The
 * methods are PAWL_ACQUIRE, PAWL_EXTEND (of one lock, by key and lock_id), PAWL_UPDATE,
 * PAWL_RELEASE, PAWL_DOWNGRADE, PAWL_TRANSFER, PAWL_ASK_RELEASE, PAWL_GET, PAWL_LIST, PAWL_WAIT,
 * PAWL_WAITERS, PAWL_BREAK and PAWL_CHANGE, as request.h describes them. For several keys at once,
 * explanations, watches, and locks that renew themselves use pawl_node_client.
 *
 * There are these differences:
 *   - The node tries for as long as the cluster's request_timeout (beyond wait_ms), and repeats
 *     nothing.
 *   - timeout_ms, `locks`, `keys` and terms.release_on_disconnect are refused (PAWL_EINVAL).
 *   - The node itself takes back an acquire that has failed.
 *   - A lock is not renewed by itself: extend it whenever a third of its lease has passed. Set
 *     deadline_kept if the program keeps the deadline, which it should.
 *
 * `done` is called once, unless this function fails or the call is canceled; it may be NULL if
 * nobody wants the outcome. out_call may be NULL; the call is valid until `done` runs. Returns 0,
 * PAWL_EINVAL, PAWL_EBUSY (too many requests are under way) or PAWL_ENOMEM. */
int pawl_node_ask(struct pawl_node *node, const struct pawl_request *request,
	pawl_node_done_fn *done, void *arg, struct pawl_node_call **out_call);
/* Ends a call without its callback. What an acquire got, or may yet get, is released in the
 * background. */
void pawl_node_cancel(struct pawl_node_call *take_call);

/* ---- a client of this node ---- */

/* Makes a client (pawl.h) that talks to this node inside the process, through a pair of sockets on
 * the same loop. It has locks that renew themselves, watches and elections like any client, without
 * a listener and without another process. Its requests are trusted in the same way as those of
 * pawl_node_ask. Its locks are held in the node's name, and `owner` is the node's name by default.
 * options->base, endpoints and the files for TLS are refused (PAWL_EINVAL); the other options are
 * as for pawl_new, and `options` may be NULL. Until the node is started, the client's calls wait.
 * FREE THE CLIENT (pawl_free) BEFORE THE NODE. Returns 0, PAWL_EINVAL, PAWL_EIO or PAWL_ENOMEM. */
int pawl_node_client(struct pawl_node *node, const struct pawl_options *options,
	struct pawl **out_client);

/* ---- locks that end with this process ---- */

/* Makes a lock that was acquired through this node end with the node. The masters end the lock as
 * soon as they see that this node's links are closed, unless the node is back within grace_ms. So
 * when the process dies, its locks are free within milliseconds and not only after their leases. (A
 * machine that loses its power or its network closes nothing; then the lease counts.)
 *
 * In return the lock may also be lost while the process lives, if its links to too many masters
 * stay closed for the grace time. So trust the lock only until the deadline of its lease AND while
 * pawl_node_bond_left_ms is above 0. Choose a grace time above a second if masters are restarted
 * one by one, or if the network has short failures. Extend the lock like any other.
 *
 * `ended` is called once, unless this function fails or the call is canceled. It gets PAWL_ELOST
 * before any master lets go (if the loop runs), or 0 when the lock was released through this node.
 * pawl_node_cancel ends this session binding and not the lock: once the lock has been extended
 * after that, it may be trusted by its lease alone. Returns 0, PAWL_EINVAL, PAWL_EBUSY or
 * PAWL_ENOMEM. */
int pawl_node_release_on_disconnect(struct pawl_node *node, struct pawl_bytes key,
	const struct pawl_id *lock_id, uint32_t grace_ms, pawl_node_done_fn *ended, void *arg,
	struct pawl_node_call **out_call);
/* Returns how long the lock still lasts at least, if none of the links that are closed now comes
 * back, in ms. INT64_MAX means that it lasts as long as its lease. */
int64_t pawl_node_bond_left_ms(const struct pawl_node_call *bond);

#ifdef __cplusplus
}
#endif
#endif
