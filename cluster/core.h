/* core.h: the protocol as a pure machine: state in, event and time in, effects out. No sockets, clocks, threads or logs.
 *
 * A driver (the daemon, the simulator) calls core_step for every event, then empties the core_out: sends the frames,
 * delivers the replies, persists, resets links. What must not leave before something is on disk is held back in here.
 */
#ifndef PAWL_CLUSTER_CORE_H
#define PAWL_CLUSTER_CORE_H

#include "alloc.h"
#include "config.h"
#include "counts.h"
#include "message.h"
#include "reply.h"
#include "siphash.h"

struct core;
struct core_out;

/* ---- what is kept on disk (section 1); the driver stores it whole, atomically, synced ---- */
struct durable {
	struct id128 node_id;
	uint64_t boot;    /* of the last start */
	uint64_t ceiling; /* no vote left while the clock was above */
	bool voted;       /* has voted in config.epoch */
	bool pledged;     /* `config` with epoch 1 is this node's pledge, not written as chosen yet (birth) */
	bool complete;    /* all masters of config.epoch are known to have voted in it */
	bool voted_before; /* had ever voted before it adopted config.epoch: as a source without memory it has forgotten (section 6) */
	span_ns max_lease_seen, request_timeout_seen; /* the largest it ever voted under */
	struct config config; /* the last one adopted, also when this node is not in it (any more); epoch 0: none yet */
	/* The decree on the configuration that follows (section 6): the highest ballot promised, and what was accepted. */
	struct ballot decree_promised, decree_accepted;
	struct config decree_config; /* epoch 0: nothing was accepted */
};

struct core_limits { /* 0 anywhere: the default */
	uint64_t keys, memory_bytes;
	uint64_t log_bytes; /* of the transaction log (section 7) */
	uint32_t value_bytes, waiters, waiters_per_key, waiters_per_client, released, rounds, unfinished;
	uint32_t holders_per_key; /* that may share it */
	uint32_t report_first, report_piece, report_value, reports; /* section 3, Reports */
	uint32_t list_piece; /* entries in one reply to a list */
	span_ns lease_min;
};

struct core_options {
	const struct allocator *alloc;   /* borrowed */
	struct siphash_key hash_key;     /* random, secret */
	uint64_t seed;                   /* for pauses */
	struct core_limits limits;
	const char *name;                /* of this node */
	const char *address;             /* where the others reach this node, or NULL; only a forced start of a node that is in no
	                                  * configuration needs it, which else has it from there */
	const struct config *birth;      /* epoch 0, the initial masters without identities; used while durable has no epoch. A node
	                                  * that is not among them waits until it is added (CORE_OUTSIDE) */
	span_ns replication_interval;    /* 0: 5 ms; how long a batch for replicas may wait (section 7) */
	bool auto_replace;               /* a master that comes back with a new identity gets its place without an operator */
	const struct durable *durable;   /* as loaded, or fresh: node_id set, everything else zero */
};

/* 0, PAWL_ENOMEM or PAWL_EINVAL (configuration not usable). All options are copied. */
int core_new(const struct core_options *options, struct core **out);
void core_free(struct core *core);

/* ---- events ---- */

struct core_lock { /* one of CORE_ACQUIRE_ALL */
	struct slice key;
	struct id128 lock_id; /* always set */
	uint16_t of, count;   /* as in struct terms */
};

enum change_kind {
	CHANGE_ADD_REPLICA, /* name, address (may be empty when this node is linked with it already) */
	CHANGE_PROMOTE,     /* name: of a replica */
	CHANGE_DEMOTE,      /* name: a master becomes a replica */
	CHANGE_REMOVE,      /* name */
	CHANGE_REPLACE,     /* name leaves, other takes its place (a replica; or the same name: its new identity) */
	CHANGE_SET_NODES,   /* nodes: the whole set */
	CHANGE_SET_TIMING,  /* those that are not 0 */
	CHANGE_FORCE        /* starts over with this node as the only master (section 6); needs `anyway` */
};

struct core_change_node {
	struct slice name, address; /* address: empty: as it is known */
	bool master;
};

struct core_change {
	enum change_kind kind;
	struct slice name, other, address;
	const struct core_change_node *nodes;
	uint32_t node_count;
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;
	bool has_drift; /* drift_ppm is given */
	bool anyway;    /* even if the new set has no quorum as far as this node sees, or fewer masters than before survive */
};

struct core_request {
	uint64_t id;     /* the driver's, unique among its open requests; given back in the reply */
	uint64_t client; /* the connection; CORE_CLIENT_GONE ends what it waits for */
	enum core_op op;
	struct slice key; /* LIST: the prefix */
	struct slice owner, value, identity; /* identity: who the connection has proven to be; empty: a local caller */
	bool admin;                          /* sees every lock_id */
	struct id128 lock_id;                /* always set for ACQUIRE (the driver draws one when the client gave none) */
	span_ns lease, wait;                 /* wait: ACQUIRE 0 = try once; WAIT the timeout */
	uint64_t token;                      /* EXTEND, BREAK; 0: not named */
	bool deadline_kept;                  /* EXTEND: the caller keeps its own deadline */
	bool quorum;                         /* GET */
	bool now;                            /* BREAK */
	bool for_free;                       /* WAIT: for free, else for held */
	bool expect_value, expect_seq;       /* UPDATE: what is expected, if anything; with both set either will do */
	struct slice expected;
	struct ballot expected_seq;
	const struct core_change *change; /* CHANGE; borrowed for the step, like all slices in it */
	struct slice after; /* LIST: first key is the first one after this; empty: from the start */
	uint32_t limit;     /* LIST, WAITERS with `prefix`: at most (1 .. 1000; 0: 100) */
	struct terms terms; /* ACQUIRE: what it excludes, priority, lock delay (the set is empty); ASK: priority */
	struct slice label; /* ACQUIRE: what the holder says about itself; opaque */
	uint32_t binding;      /* EXTEND: the lock ends with this connection of its holder from now on; RELEASE: only if no later one has been
	                     * named since; 0: not named. (Of an acquire it is in `terms`.) */
	struct slice to;    /* TRANSFER, ASK: the owner of a waiter; ASK: may be empty */
	bool prefix;        /* WAITERS: of all keys that begin with `key` */
	const struct core_lock *locks; /* ACQUIRE_ALL; borrowed for the step */
	uint32_t lock_count;           /* 1 .. CORE_LOCKS_MAX */
};
#define CORE_LOCKS_MAX 64

enum core_event_kind {
	CORE_START,       /* first, once; after all CORE_RESTORE */
	CORE_RESTORE,     /* a frame of the side file that a drain wrote, before CORE_START */
	CORE_TICK,        /* time has passed */
	CORE_FRAME,       /* a frame arrived on the link of `peer`; `now` was read after its last byte was received */
	CORE_PEER_UP,     /* a link to the node at `peer` is up; it proved to be this name and said this identity and boot */
	CORE_PEER_DOWN,
	CORE_REQUEST,
	CORE_CLIENT_GONE, /* the connection `client` is closed */
	CORE_PERSISTED,   /* `persist_seq` is on disk (persist_ok), or could not be written */
	CORE_DRAIN        /* stop voting for a planned stop; then pull core_drain_frame until it returns false */
};

struct core_event {
	enum core_event_kind kind;
	uint32_t peer;             /* index in core_peer_*: FRAME, PEER_UP, PEER_DOWN */
	const struct frame *frame; /* FRAME, RESTORE; borrowed for the step */
	struct id128 peer_id;      /* PEER_UP */
	uint64_t peer_boot;        /* PEER_UP */
	bool peer_no_master;       /* PEER_UP: what it proved does not let it be a master: no change makes it one */
	const struct core_request *request; /* borrowed for the step */
	uint64_t client;
	uint64_t persist_seq;
	bool persist_ok;
	bool closed;   /* PEER_DOWN: the other side closed the link, in order or by a reset */
	bool restored; /* START: a complete side file was restored; this start is only a pause (section 4) */
};

/* One step. `now` never goes back between steps. Never blocks, never fails: what cannot be done is answered or dropped. */
void core_step(struct core *core, const struct core_event *event, struct instant now, struct core_out *out);
/* The CLOCK_BOOTTIME instant at which CORE_TICK is due at the latest. */
int64_t core_deadline(const struct core *core);
/* CHECKs every invariant; costs time in the number of keys. */
void core_check(const struct core *core);
/* The side file of a drain: the next frame to write (valid until the next call), false after the last. */
bool core_drain_frame(struct core *core, struct instant now, struct frame *frame);

/* ---- effects ---- */
const char *core_count_name(enum core_count count);
const uint64_t *core_counts(const struct core *core); /* COUNT_TOTAL of them, since core_new */

enum core_note_kind { /* what an operator should read in the log */
	NOTE_BORN,
	NOTE_BIRTH_DIFFERS,  /* peer's pledge differs: `text` names what; `value` 1: its cluster is born */
	NOTE_BIRTH_STRANGER, /* peer's identity is not the one of the configuration: its state was lost or is another's */
	NOTE_VOTING,         /* `text`: by birth, rejoining, waiting, or drain */
	NOTE_RECOVERING,
	NOTE_DRAINING,
	NOTE_CLOCK_REFUSED,  /* peer; value: its clock */
	NOTE_LEASE_REFUSED,  /* peer; value: ns */
	NOTE_CLOCK_BEHIND,
	NOTE_LINK_RESET,     /* peer */
	NOTE_STOOD_STILL,    /* value: ns */
	NOTE_WRONG_EPOCH,    /* peer; value: its epoch */
	NOTE_CONTESTED,      /* text: nothing; key */
	NOTE_CONTESTED_ENDED,
	NOTE_BROKEN,         /* key; value: token; text: identity of who did it */
	NOTE_OUTSIDE,        /* it is in no configuration (value 0: never was; else the epoch that removed it) */
	NOTE_FOLLOWING,      /* peer: the master that is followed from now on */
	NOTE_ADOPTED,        /* value: the epoch; text: what this node is in it */
	NOTE_CONFLICT,       /* peer; value: epoch: it has another configuration under the same number; if enough masters have, this node stops voting */
	NOTE_UNPROVEN,       /* value: epoch: this node is told of a later one, and cannot believe it */
	NOTE_COMPLETE,       /* value: epoch: all its masters vote */
	NOTE_ROLE_REFUSED,   /* peer: a change would have made it a master, which it must not be */
	NOTE_CHANGE,         /* text: a step of a change that is coordinated here; value: epoch */
	NOTE_FORCED          /* value: epoch */
};
struct core_note {
	enum core_note_kind kind;
	uint32_t peer;
	uint64_t value;
	const char *text; /* static storage, or NULL */
	struct slice key;
};

/* What has become of keys as this node sees them: its own table's changes, in order; what a client watches is made of these. */
enum core_watch_event_kind {
	WATCH_EVENT_ACQUIRED,
	WATCH_EVENT_UPDATED,    /* the value */
	WATCH_EVENT_DOWNGRADED, /* exclusive to shared */
	WATCH_EVENT_RELEASED,   /* by its holder */
	WATCH_EVENT_EXPIRED,    /* its lease (and lock delay) is over */
	WATCH_EVENT_LOST,       /* taken away: broken, or its node or client is gone */
	WATCH_EVENT_ASKED,      /* somebody asks the holder to let go: owner: who asks, value: in whose favour (may be empty), terms.priority */
	WATCH_EVENT_MISSED         /* changes may have been missed here: of `key`, or (no key) the table was replaced, or a master could not be heard */
};
struct core_watch_event {
	enum core_watch_event_kind kind;
	struct slice key, owner, identity, value, label;
	struct id128 lock_id;
	uint64_t token;
	struct ballot value_seq;
	struct terms terms;
};

/* An out belongs to one core; its contents live until core_out_clear, at the latest before the next turn of the loop. */
struct core_out *core_out_new(struct core *core); /* NULL: no memory */
void core_out_free(struct core_out *out);

/* Fills the frame of everything that may leave for the peer now, at most about FRAME_BYTES_MAX; false: nothing may.
 * Call core_out_sent afterwards, then again until false. Frames of a peer without a link are dropped by the core itself. */
bool core_out_frame(struct core_out *out, uint32_t peer, struct frame *frame);
void core_out_sent(struct core_out *out, uint32_t peer);
/* The next reply that may leave now, or NULL; valid until core_out_clear. */
const struct core_reply *core_out_reply(struct core_out *out);
/* True: the request of the last step was not taken, because there is no memory even for an answer. The driver says so (PAWL_EBUSY). */
bool core_out_unheard(const struct core_out *out);
const struct core_note *core_out_note(struct core_out *out);
/* The next piece of news; valid until core_out_clear. Nothing is collected before core_want_news. */
const struct core_watch_event *core_out_watch_event(struct core_out *out);
void core_want_watch_events(struct core *core, bool wanted);
/* How many clients of this node would be told of a request to let go of this key: the driver sets it; NULL: none. */
void core_count_watchers(struct core *core, uint32_t (*count)(void *ctx, struct slice key), void *ctx);
/* Links to be reset now (all bytes unread and unsent dropped): bit set of peers; reading clears it. The core has handled the
 * loss already: the driver sends no CORE_PEER_DOWN for it. */
uint64_t core_out_resets(struct core_out *out);
/* Something to persist: *state and *seq are set, the driver answers with CORE_PERSISTED for this or a later seq. The driver
 * may have one write under way and take the newest state when it is done. */
bool core_out_persist(struct core_out *out, struct durable *state, uint64_t *seq);
/* Frees what was sent and replied. What is held back stays. Call once a turn of the loop. */
void core_out_clear(struct core_out *out);

/* True once after the table of peers has changed (who is at which index, and where to reach it): to be asked after every step,
 * before anything else is done with an index. A link belongs to the node's name and goes with it to its new index; links of
 * names that are not in the table any more are dropped, and told to nobody. */
bool core_out_peers_changed(struct core_out *out);

/* ---- looking in ---- */
/* Peers: the nodes of the configuration in its order, masters first; then masters of the epoch before that are not in it; then
 * guests: nodes that are not in (yet). The node itself is one of them. */
uint32_t core_peer_count(const struct core *core); /* slots 0 .. count-1; the node itself is one of them */
uint32_t core_self(const struct core *core);
const struct config_node *core_peer(const struct core *core, uint32_t peer); /* a guest's address may be empty */
/* Whether this node dials the peer (else it waits to be dialled): of two members the one whose name is smaller. */
bool core_peer_dialled(const struct core *core, uint32_t peer);
/* A node of this name said hello that is not in the table: the index at which it is a guest from now on, or PAWL_EFULL. Ask
 * core_out_peers_changed then, and go on with CORE_PEER_UP. A guest is gone when its link is. */
int core_welcome(struct core *core, const char *name, struct core_out *out);

enum core_state {
	CORE_UNBORN,     /* an initial master before birth */
	CORE_OUTSIDE,    /* in no configuration: never added, or removed */
	CORE_FOLLOWING,  /* a replica */
	CORE_HANDOVER,   /* a master of an epoch in which it has never voted: it takes over from the masters of the one before */
	CORE_RECOVERING, /* a master that has voted in this epoch and has lost its memory */
	CORE_VOTING,
	CORE_DRAINED
};

struct core_peer_status {
	bool linked, voting;
	span_ns round_trip; /* of the last ping; 0: none yet */
	uint64_t boot;
	bool master, member; /* member: in the configuration */
	bool stranger;       /* it has the name of a member, but another identity */
	bool other_epoch;    /* it has not adopted this epoch (yet), or another */
	/* Replication, where the other knows it: the place in this node's log that a follower has acknowledged. */
	bool follows;
	uint64_t position;   /* valid when `follows` */
};

struct core_change_status { /* of the change that is coordinated here; step NULL: none */
	const char *step;     /* "waiting for n4 to answer", ...; valid until the core's next step */
	uint64_t done, total; /* of records to be copied beforehand; 0: unknown */
	uint64_t epoch;       /* that it is to have */
};

struct core_status {
	enum core_state state;
	const char *waits_for; /* RECOVERING, UNBORN: static text */
	span_ns left;          /* RECOVERING: until it votes by waiting at the latest; 0: unknown */
	uint64_t epoch, config_hash, clock, ceiling, boot;
	uint32_t quorum, voting_linked; /* voting_linked: masters that vote in this epoch and are linked, itself included */
	bool master, settled, complete;
	uint64_t missing;     /* bit set of peers: masters that do not vote in this epoch, as far as this node sees */
	uint32_t config_nodes; /* peers below are of the configuration */
	/* Replication (section 7) */
	uint64_t log_next, log_oldest, log_bytes; /* this node's log: the next number, the oldest still there */
	int following;        /* a replica: the peer it follows, or -1 */
	bool catching_up;     /* ... a snapshot of it is still arriving, of `snapshot_done` records so far */
	uint64_t snapshot_done, position; /* position: in that master's log */
	span_ns age;          /* a replica's: SPAN_MAX: unknown */
	struct core_change_status change;
	uint64_t keys, held, promises, waiters, rounds, unfinished, granted_leases, memory_bytes;
	struct core_peer_status peers[NODES_MAX];
};
void core_status(const struct core *core, struct instant now, struct core_status *status);
const struct config *core_config(const struct core *core); /* of the present epoch, or the one to be born with */
/* A key as a local read shows it, at `now`, which may be later than the last step. False: nothing stands there; where only a lock delay
 * runs it is true, with entry.closing. Slices point into the core
 * and are good until its next step. */
struct core_inspect {
	bool contested;
	struct core_entry entry;
};
bool core_inspect(const struct core *core, struct slice key, struct instant now, struct core_inspect *out);
/* All held keys with the prefix, in no order, until `visit` returns false; it must not touch the core. */
void core_inspect_each(const struct core *core, struct slice prefix, struct instant now,
	bool (*visit)(void *ctx, const struct core_inspect *look), void *ctx);
/* When a lock that is bound to this node (CORE_BOND) ends, unless links come back before: INSTANT_FOREVER: by its lease only; a
 * time of the past: it is not bound. */
struct instant core_binding_end(const struct core *core, struct slice key, struct id128 lock_id);
/* A lock_id's record here, for tests and the simulator: true if live. */
bool core_peek(const struct core *core, struct slice key, struct id128 lock_id, uint64_t *token, uint64_t *noted);

#endif
