/* core.h: the protocol as a pure machine: state, an event and the time go in, effects come out. It
 * has no sockets, clocks, threads or logs.
 *
 * A driver (the daemon, the simulator) calls core_step for every event. Then it empties the
 * core_out: it sends the frames, delivers the replies, persists the state and resets links. The
 * core itself holds back what must not leave before something is on disk. */
#ifndef PAWL_CLUSTER_CORE_H
#define PAWL_CLUSTER_CORE_H

#include "alloc.h"
#include "config.h"
#include "core_figures.h"
#include "core_hot.h"
#include "core_limits.h"
#include "core_notes.h"
#include "core_status.h"
#include "counts.h"
#include "message.h"
#include "reply.h"
#include "siphash.h"

struct core;
struct core_out;

/* ---- what is kept on disk (section 1) ---- */

/* The driver stores this struct as a whole, atomically, and syncs it. */
struct durable {
	/* The identity of this node, which was made with its state file. */
	struct id128 node_id;
	/* The number of the last start. */
	uint64_t boot;
	/* The clock reservation: no vote has left this node while its clock was above it. */
	uint64_t ceiling;

	/* This node has voted in the epoch of `config`. */
	bool voted;
	/* `config`, with epoch 1, is this node's pledge, and nobody has written it as chosen yet
	 * (section 6, Birth). */
	bool pledged;
	/* All masters of the epoch of `config` are known to have voted in it. */
	bool complete;
	/* This node had voted in some epoch before it adopted `config`. As a source that has no
	 * memory it has forgotten, instead of never having voted (section 6). */
	bool voted_before;
	/* The largest timing constants under which this node ever voted, in nanoseconds. */
	span_ns max_lease_seen, request_timeout_seen;

	/* The configuration that was adopted last, even if this node is not in it; its epoch is 0
	 * as long as there is none. */
	struct config config;
	/* The decree on the configuration that follows `config` (section 6): the highest ballot
	 * that this node has promised, and the ballot under which it has accepted
	 * `decree_config`. */
	struct ballot decree_promised, decree_accepted;
	/* The configuration that was accepted; its epoch is 0 if none was. */
	struct config decree_config;
};

struct core_options {
	/* The allocator is borrowed: it must outlive the core. */
	const struct allocator *alloc;
	/* The key of all hash tables. It must be random and secret. */
	struct siphash_key hash_key;
	/* The seed of random pauses and random names. */
	uint64_t seed;
	/* Bounds of what the core keeps; 0 stands for a default. */
	struct core_limits limits;
	/* The name of this node. */
	const char *name;
	/* The address at which the others reach this node, or NULL. Only the forced start of a node
	 * that is in no configuration needs it; any other node has it from its configuration. */
	const char *address;
	/* A configuration of epoch 0 with the initial masters, without identities. It is used as
	 * long as `durable` has no epoch. A node that is not among these masters waits until it is
	 * added (CORE_OUTSIDE). */
	const struct config *birth;
	/* How long a batch for replicas may wait (section 7), in nanoseconds; 0 stands for 5 ms. */
	span_ns replication_interval;
	/* A master that comes back with a new identity is given its place without an operator. */
	bool auto_replace;
	/* As a replica this node looks for double grants in what the masters tell (grants/). */
	bool check_grants;
	/* Keys that are counted apart (core_figures.h), or NULL. */
	const struct key_groups *groups;
	/* The durable state as it was loaded. When it is fresh, node_id is set and everything else
	 * is zero. */
	const struct durable *durable;
};

/* Makes a core. All options are copied. Returns 0, PAWL_ENOMEM, or PAWL_EINVAL when the
 * configuration is not usable. The caller frees *out with core_free. */
int core_new(const struct core_options *options, struct core **out);
void core_free(struct core *core);

/* ---- events ---- */

/* One of the locks of CORE_ACQUIRE_ALL. */
struct core_lock {
	/* The key. */
	struct slice key;
	/* It is always set. */
	struct id128 lock_id;
	/* The mode and the number of permits, as in struct terms. */
	uint16_t of, count;
};

enum change_kind {
	/* Adds the replica `name` at `address`, which may be empty if this node is linked with it
	 * already. */
	CHANGE_ADD_REPLICA,
	/* Makes the replica `name` a master. */
	CHANGE_PROMOTE,
	/* Makes the master `name` a replica. */
	CHANGE_DEMOTE,
	/* Removes the node `name`. */
	CHANGE_REMOVE,
	/* The node `name` leaves, and `other` takes its place. `other` is a replica or a new node;
	 * or it is the same name, which stands for the node's new identity. */
	CHANGE_REPLACE,
	/* Replaces the whole set by `nodes`. */
	CHANGE_SET_NODES,
	/* Changes the timing constants that are not 0. */
	CHANGE_SET_TIMING,
	/* Starts the cluster over with this node as the only master (section 6). It needs
	 * `anyway`. */
	CHANGE_FORCE
};

struct core_change_node {
	/* The name, and the address as host:port. An empty address stands for the one that is
	 * known. */
	struct slice name, address;
	/* It is to be a master; else a replica. */
	bool master;
};

struct core_change {
	/* What is to be changed; it says which of the fields below count. */
	enum change_kind kind;
	/* What the kind says about them. */
	struct slice name, other, address;
	/* SET_NODES: the whole set. */
	const struct core_change_node *nodes;
	uint32_t node_count;
	/* The new timing constants in nanoseconds; 0 leaves one as it is. */
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;
	/* drift_ppm is given. */
	bool has_drift;
	/* The change is made even if the new set has no quorum as far as this node sees, or if
	 * fewer masters than before survive. */
	bool anyway;
};

/* What a client asks for. The slices are borrowed for the step. A field that names operations in
 * front of its description is used by these alone. */
struct core_request {
	/* A number of the driver's, unique among its open requests. The reply gives it back. */
	uint64_t id;
	/* The connection that the request came over. CORE_CLIENT_GONE ends what the client waits
	 * for. */
	uint64_t client;
	/* What is asked for. */
	enum core_op op;
	/* The key. LIST: the prefix of the keys. And its hash, if core_value_bytes has noted it;
	 * else 0. */
	struct slice key;
	uint64_t key_hash;
	/* The owner; the value; and the identity that the connection has proven, which is empty for
	 * a local caller. */
	struct slice owner, value, identity;
	/* The caller is an administrator, who sees every lock_id. */
	bool admin;
	/* The lock_id. For ACQUIRE it is always set: the driver draws one when the client gave
	 * none. */
	struct id128 lock_id;
	/* The lease, and the time to wait, in nanoseconds. ACQUIRE: a wait of 0 tries once. WAIT:
	 * the wait is the timeout. */
	span_ns lease, wait;
	/* EXTEND, BREAK: the fencing token; 0 names none. */
	uint64_t token;
	/* EXTEND: the caller keeps its own deadline. */
	bool deadline_kept;
	/* GET: the read asks a quorum; else it is local. */
	bool quorum;
	/* BREAK: the lock ends at once, whatever its holder believes. */
	bool now;
	/* WAIT: the caller waits until the key is free; else until it is held. */
	bool for_free;
	/* UPDATE, RELEASE: which of `expected` and `expected_seq` are given; either is enough. */
	bool expect_value, expect_seq;
	struct slice expected;
	struct ballot expected_seq;
	/* RELEASE: for how long the key stays closed, in nanoseconds. */
	span_ns closes;
	/* CHANGE: what is to be changed, borrowed for the step with all its slices. */
	const struct core_change *change;
	/* LIST: it begins with the first key after this one; if this is empty, with the first. */
	struct slice after;
	/* LIST, WAITERS with `prefix`: the most entries that are wanted, 1 .. 1000; 0: 100. */
	uint32_t limit;
	/* ACQUIRE: the lock terms, with an empty set. ASK: the priority alone. */
	struct terms terms;
	/* ACQUIRE: what the holder says about itself. The protocol does not read it. */
	struct slice label;
	/* EXTEND: the lock ends with this connection of its holder from now on. RELEASE: the lock
	 * is released only if no later connection has been named since. 0 names none. For ACQUIRE
	 * the number is in `terms`. */
	uint32_t binding;
	/* ACQUIRE, EXTEND: the number is an order only (section 2, Shorten): the lock ends with no
	 * connection. And EXTEND: the lease becomes shorter, if it was longer. */
	bool ordered, shorten;
	/* TRANSFER, ASK: the owner of a waiter. ASK: it may be empty. */
	struct slice to;
	/* WAITERS: the caller wants the waiters of all keys that begin with `key`. */
	bool prefix;
	/* ACQUIRE_ALL: the locks, 1 .. CORE_LOCKS_MAX of them, borrowed for the step. */
	const struct core_lock *locks;
	uint32_t lock_count;
};
#define CORE_LOCKS_MAX 64

enum core_event_kind {
	/* The node starts. This event comes once, after all CORE_RESTORE and before all others. */
	CORE_START,
	/* A frame of the side file that a drain wrote. It comes before CORE_START. */
	CORE_RESTORE,
	/* Time has passed. */
	CORE_TICK,
	/* A frame has arrived on the link of `peer`; `now` was read after its last byte was
	 * received. */
	CORE_FRAME,
	/* A link to the node at `peer` is up. That node has proven its name, and has said its
	 * identity and boot. */
	CORE_PEER_UP,
	/* The link of `peer` is gone. */
	CORE_PEER_DOWN,
	/* A client asks for something. */
	CORE_REQUEST,
	/* The connection `client` is closed. */
	CORE_CLIENT_GONE,
	/* The request `request_id` of the connection `client`, which acquires, is to wait no
	 * longer: its wait is over now. If it is about to get the lock, it gets it. Nothing happens
	 * if there is no such request. */
	CORE_END_WAIT,
	/* The state `persist_seq` is on disk (persist_ok), or could not be written. */
	CORE_PERSISTED,
	/* The node is to stop voting for a planned stop. Then the driver calls core_drain_frame
	 * until that returns false. */
	CORE_DRAIN
};

/* A field that names events in front of its description is used by these alone. */
struct core_event {
	/* What has happened. */
	enum core_event_kind kind;
	/* FRAME, PEER_UP, PEER_DOWN: a peer index, as in core_peer. */
	uint32_t peer;
	/* FRAME, RESTORE: the frame, borrowed for the step. */
	const struct frame *frame;
	/* PEER_UP: the identity and the boot that the other end has said. */
	struct id128 peer_id;
	uint64_t peer_boot;
	/* PEER_UP: what the other end has proven does not let it be, or become, a master. */
	bool peer_no_master;
	/* REQUEST: the request, borrowed for the step. */
	const struct core_request *request;
	/* CLIENT_GONE, END_WAIT: the connection. */
	uint64_t client;
	/* END_WAIT: core_request.id. */
	uint64_t request_id;
	/* PERSISTED: the number of the state that was written, and whether it is on disk. */
	uint64_t persist_seq;
	bool persist_ok;
	/* PEER_DOWN: the other side has closed the link, in order or by a reset. */
	bool closed;
	/* PEER_DOWN: the link was not read since then, and may have ended before; zero: it was. */
	struct instant since;
	/* START: a complete side file was restored, so this start is only a pause (section 4). */
	bool restored;
};

/* Makes one step. `now` never goes back between steps. A step never blocks and never fails: what
 * cannot be done is answered or dropped. */
void core_step(struct core *core, const struct core_event *event, struct instant now,
	struct core_out *out);
/* Returns the instant of CLOCK_BOOTTIME, in nanoseconds, at which CORE_TICK is due at the
 * latest. */
int64_t core_deadline(const struct core *core);
/* CHECKs every invariant. The time that this takes grows with the number of keys. */
void core_check(const struct core *core);
/* Fills in the next frame of the side file of a drain, valid until the next call. `now` is a time
 * of the core like that of a step: neither goes back behind the other. Returns false after the last
 * one. */
bool core_drain_frame(struct core *core, struct instant now, struct frame *frame);

/* ---- effects ---- */

/* Returns the name of a counter, in static storage. */
const char *core_count_name(enum core_count count);
/* Returns the COUNT_TOTAL counters. They count from core_new on and live as long as the core. */
const uint64_t *core_counts(const struct core *core);

/* Makes the effects of one core, or returns NULL if there is no memory. Its contents live until
 * core_out_clear, at most until the next turn of the loop. The caller frees it with
 * core_out_free. */
struct core_out *core_out_new(struct core *core);
void core_out_free(struct core_out *out);

/* Fills in a frame, at most about FRAME_BYTES_MAX long, with what may leave for the peer now.
 * Returns false if nothing may leave. The driver calls core_out_sent afterwards, and then
 * core_out_frame again until it returns false. The core itself drops the frames of a peer that has
 * no link. */
bool core_out_frame(struct core_out *out, uint32_t peer, struct frame *frame);
void core_out_sent(struct core_out *out, uint32_t peer);
/* Returns the next reply that may leave now, or NULL. It is valid until core_out_clear. */
const struct core_reply *core_out_reply(struct core_out *out);
/* Tells whether the request of the last step was not taken because there is no memory even for an
 * answer. Then the driver answers it with PAWL_EBUSY. */
bool core_out_unheard(const struct core_out *out);
/* Returns the next note for the log, or NULL. It is valid until core_out_clear. */
const struct core_note *core_out_note(struct core_out *out);
/* Returns the next watch event, or NULL. It is valid until core_out_clear. Nothing is collected
 * before core_want_watch_events. */
const struct core_watch_event *core_out_watch_event(struct core_out *out);
/* Says whether somebody watches at this node. */
void core_want_watch_events(struct core *core, bool wanted);
/* Sets the function that tells how many clients of this node would hear a request to let go of the
 * key. With NULL there are none. */
void core_count_watchers(struct core *core, uint32_t (*count)(void *ctx, struct slice key),
	void *ctx);
/* Returns the links to be reset now, as a bit set of peers, and clears it. All bytes that are
 * unread or unsent on them are dropped. The core has handled the loss already, so the driver sends
 * no CORE_PEER_DOWN for it. */
uint64_t core_out_resets(struct core_out *out);
/* Returns true if there is something to persist, and sets *state and *seq. The driver answers with
 * CORE_PERSISTED for this seq or a later one. It may have one write under way, and take the newest
 * state when that is done. */
bool core_out_persist(struct core_out *out, struct durable *state, uint64_t *seq);
/* Frees what was sent and replied. What is held back stays. The driver calls it once in a turn of
 * the loop. */
void core_out_clear(struct core_out *out);

/* Returns true once after the table of peers has changed. The table says which node is at which
 * index, and where to reach it. The driver asks after every step, before it does anything else with
 * an index. A link belongs to the name of the node and goes with it to its new index. Links of
 * names that are not in the table any more are dropped, and nobody is told of their end. */
bool core_out_peers_changed(struct core_out *out);

/* ---- looking in ---- */

/* The table of peers has the nodes of the configuration in its order, masters first; then masters
 * of the previous epoch that are not in it; then non-members. The node itself is one of them. A
 * peer index is 0 .. core_peer_count - 1. */
uint32_t core_peer_count(const struct core *core);
/* Returns the peer index of this node. */
uint32_t core_self(const struct core *core);
/* Returns the node at an index. The address of a non-member may be empty. */
const struct config_node *core_peer(const struct core *core, uint32_t peer);
/* Tells whether this node dials the peer; else it waits to be dialled. Of two members the one with
 * the smaller name dials. */
bool core_peer_dialled(const struct core *core, uint32_t peer);
/* A node with a name that is not in the table said hello. Returns the index at which it is a
 * non-member from now on, or PAWL_EFULL. The driver asks core_out_peers_changed then, and goes on
 * with CORE_PEER_UP. A non-member leaves the table when its link is gone. */
int core_welcome(struct core *core, const char *name);

/* Returns the configuration of the present epoch, or the one that the cluster is to be born
 * with. */
const struct config *core_config(const struct core *core);
/* From now on replies say where the time of their operation went (core_reply.times), for requests
 * that take longer than `after`; 0 turns that off. */
void core_time_slow(struct core *core, span_ns after);

/* Shows a key as a local read does, at `now`, which may be later than the last step. Returns false
 * if nothing stands on the key. Where only a lock delay runs it returns true, with entry.closing.
 * The slices point into the core and are good until its next step. */
struct core_inspect {
	/* Masters know several holders of the key that exclude each other. */
	bool contested;
	/* The key and its holder. */
	struct core_entry entry;
};
bool core_inspect(const struct core *core, struct slice key, struct instant now,
	struct core_inspect *out);
/* Shows the held leases of one key in this node's table at `now`, at most `most` of them, until
 * `visit` returns false. `visit` must not touch the core. Returns false if there are more. */
bool core_inspect_holders(const struct core *core, struct slice key, struct instant now,
	uint32_t most, bool (*visit)(void *ctx, const struct core_entry *entry), void *ctx);
/* Returns the bytes of the values of the key's records, of the first few if there are many. Notes
 * the hash of the request's key, which must not change after that. */
uint64_t core_value_bytes(const struct core *core, struct core_request *request);
/* Shows all held keys with the prefix, in no order, until `visit` returns false. `visit` must not
 * touch the core. */
void core_inspect_each(const struct core *core, struct slice prefix, struct instant now,
	bool (*visit)(void *ctx, const struct core_inspect *look), void *ctx);
/* Returns the instant at which a lock that is bound to this node (CORE_BINDING) ends, unless links
 * come back before. INSTANT_FOREVER means that the lock ends by its lease only, an instant of the
 * past that it is not bound. */
struct instant core_binding_end(const struct core *core, struct slice key, struct id128 lock_id);
/* Returns true if this node has a live record of the lock_id, and sets *token and *noted. It serves
 * tests and the simulator. */
bool core_peek(const struct core *core, struct slice key, struct id128 lock_id, uint64_t *token,
	uint64_t *noted);

#endif
