/* cluster_sim.h: a whole cluster in one thread, with real cores and real frames, and with simulated
 * clocks, links, disks and clients.
 *
 * True time is known here and to nobody in the cluster. Nothing happens by itself: sim_step takes
 * the next event. The same seed and the same calls give the same run.
 */
#ifndef PAWL_SIM_CLUSTER_H
#define PAWL_SIM_CLUSTER_H

#include <stdio.h>

#include "core.h"
#include "prng.h"
#include "sim_clock.h"
#include "sim_trace.h"

struct sim;
struct sim_session;

#define SIM_NODES_MAX 16
struct sim_options {
	uint64_t seed;
	/* The initial masters, 1 .. MASTERS_MAX. Their names are n1, n2, ...; their indexes 0, 1,
	 * ... */
	uint32_t masters;
	/* Nodes that are in no configuration until somebody adds them. Their names and indexes
	 * follow those of the masters. */
	uint32_t further;
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;
	struct core_limits limits;
	/* How long a frame takes, one way. */
	span_ns delay_min, delay_max;
	/* How long a request or a reply takes between client and node, one way. */
	span_ns session_delay_min, session_delay_max;
	/* The longest time until a loop that was woken runs. */
	span_ns loop_lag_max;
	/* How long a write to disk takes. */
	span_ns disk_min, disk_max;
	/* The time until a broken link is dialled again. */
	span_ns reconnect_min, reconnect_max;
	/* 0: the core's default. */
	span_ns replication_interval;
	/* Masters that lost their files come back without an operator. */
	bool auto_replace;
	/* core_check runs after every nth step of a node; 0: never. */
	uint32_t check_every;
	/* Replicas check for double grants. */
	bool check_grants;
	/* Every clock shows true time. Otherwise clocks have offsets, and rates within the
	 * drift. */
	bool plain_clocks;
	/* A power of two; 0: 4096. */
	size_t trace_records;
};
/* Options with which a run without faults is easy to read: 3 masters, exact clocks, delays of 1 ms,
 * request_timeout 100 ms, promise_timeout 200 ms, max_lease 10 s. */
struct sim_options sim_options_plain(void);

/* The nodes are not started yet. Free it with sim_free. */
struct sim *sim_new(const struct sim_options *options);
void sim_free(struct sim *sim);

/* ---- time ---- */
/* True time in nanoseconds. */
int64_t sim_now(const struct sim *sim);
/* Takes one event. False: nothing will ever happen any more. */
bool sim_step(struct sim *sim);
void sim_run_for(struct sim *sim, span_ns span);
/* Runs until the condition holds (true) or until `limit` of true time has passed (false). */
bool sim_run_until(struct sim *sim, bool (*condition)(void *ctx), void *ctx, span_ns limit);
void sim_at(struct sim *sim, int64_t at, void (*fn)(void *ctx, uint64_t arg), void *ctx,
	uint64_t arg);
struct prng *sim_prng(struct sim *sim);

/* ---- nodes ---- */
enum sim_side_file { SIM_SIDE_KEEP, SIM_SIDE_LOSE };
void sim_node_start(struct sim *sim, uint32_t node);
void sim_start_all(struct sim *sim);
uint32_t sim_nodes(const struct sim *sim);
/* The index of a node by its name, TRACE_NONE if there is none; and the name of a node. */
uint32_t sim_node_named(const struct sim *sim, const char *name);
const char *sim_node_name(const struct sim *sim, uint32_t node);
/* The key that a message of this round was about; TRACE_NONE if it is no longer known. */
uint32_t sim_round_key(struct sim *sim, uint64_t round);

/* The node at this index of a running node's table of peers; TRACE_NONE: none. */
uint32_t sim_node_at_peer(const struct sim *sim, uint32_t node, uint32_t peer);
/* Somebody watches all keys at the node from now on, or nobody does; also when it starts anew. At
 * first somebody does. */
void sim_node_watch(struct sim *sim, uint32_t node, bool watched);
bool sim_node_watched(const struct sim *sim, uint32_t node);
/* The process dies, and what was not on disk is lost. With `machine` its peers and clients do not
 * notice at once, and its clocks start anew. */
void sim_node_kill(struct sim *sim, uint32_t node, bool machine);
/* The node stops voting, writes its side file and ends. After `crash_after` frames the process dies
 * and leaves half a file; UINT32_MAX: it does not die. */
void sim_node_drain(struct sim *sim, uint32_t node, uint32_t crash_after);
void sim_node_lose_side_file(struct sim *sim, uint32_t node);
/* For a node that does not run: all its files are gone, and it comes back with a new identity. */
void sim_node_lose_files(struct sim *sim, uint32_t node);
bool sim_node_running(const struct sim *sim, uint32_t node);
/* A number of the node's process, which grows with every start. */
uint64_t sim_node_incarnation(const struct sim *sim, uint32_t node);
/* The process stands still, while clocks and network go on. */
void sim_node_pause(struct sim *sim, uint32_t node, span_ns span);
bool sim_node_stands_still(const struct sim *sim, uint32_t node);
/* Ends a pause before its time. */
void sim_node_continue(struct sim *sim, uint32_t node);
/* The machine sleeps: the raw clock stands still, too. */
void sim_node_suspend(struct sim *sim, uint32_t node, span_ns span);
void sim_node_rates(struct sim *sim, uint32_t node, int64_t boot_ppb, int64_t raw_ppb);
/* From now on writes take this long, and fail when `fails` is set. */
void sim_node_disk(struct sim *sim, uint32_t node, span_ns min, span_ns max, bool fails);
/* NULL: the node does not run. */
struct core *sim_node_core(struct sim *sim, uint32_t node);
struct instant sim_node_clock(const struct sim *sim, uint32_t node);
const struct durable *sim_node_durable(const struct sim *sim, uint32_t node);
/* For a node that does not run. */
void sim_node_durable_set(struct sim *sim, uint32_t node, const struct durable *durable);

/* Sends one well-formed message in a frame of its own, as a node that lies would. The head of the
 * frame says what the receiver wants to hear. False: there is no link. */
bool sim_forge(struct sim *sim, uint32_t from, uint32_t to, const struct message *m);
/* sim_forged makes the head of such a frame; sim_forge_frame sends a frame with any head. False:
 * there is no link, or it is not a valid frame. */
struct frame sim_forged(struct sim *sim, uint32_t from, uint32_t to);
bool sim_forge_frame(struct sim *sim, uint32_t from, uint32_t to, const struct frame *frame);
/* A node whose frames are altered on their way out, and a listener that hears what is said to
 * it. */
#define SIM_TAMPERED 4
struct sim_liar {
	uint32_t node;
	/* How far ahead of its own clock all its frames say that they are. */
	uint64_t ahead;
	void (*heard)(void *ctx, const struct frame *frame);
	/* The frame has at most SIM_TAMPERED messages, which may be altered. False: it leaves
	 * unaltered. */
	bool (*tampers)(void *ctx, uint32_t to, struct frame *frame, struct message *messages);
	void *ctx;
};
/* NULL: nobody lies. */
void sim_liar_set(struct sim *sim, const struct sim_liar *liar);
/* The memory that the node's core has now, in bytes. */
size_t sim_node_memory(const struct sim *sim, uint32_t node);
/* How many frames with a part of a snapshot have left for the node. */
uint64_t sim_snapshots_to(const struct sim *sim, uint32_t node);

/* ---- network; `from` and `to` always differ ---- */
/* Cuts one way of a link: what is sent piles up. */
void sim_cut(struct sim *sim, uint32_t from, uint32_t to, bool cut);
/* Cuts both ways to all other nodes. */
void sim_isolate(struct sim *sim, uint32_t node, bool cut);
/* The two ends notice the break at different times. */
void sim_link_close(struct sim *sim, uint32_t a, uint32_t b, bool mid_frame);
/* Whether the link is up at both ends. */
bool sim_linked(const struct sim *sim, uint32_t a, uint32_t b);
void sim_delays(struct sim *sim, span_ns min, span_ns max);
/* Adds a delay to every frame of that way. */
void sim_link_delay(struct sim *sim, uint32_t from, uint32_t to, span_ns extra);

enum sim_target_action {
	SIM_TARGET_NONE,
	/* What follows on the link is late, too. */
	SIM_TARGET_DELAY,
	/* The frame vanishes, as it never would with TCP. */
	SIM_TARGET_LOSE,
	/* Other frames overtake it, as they never would with TCP. */
	SIM_TARGET_LATE,
	/* The link breaks behind the frame. */
	SIM_TARGET_CLOSE,
	SIM_TARGET_KILL_SENDER,
	/* It dies after it has handled the frame; its answer may have left. */
	SIM_TARGET_KILL_RECEIVER,
	SIM_TARGET_PAUSE_SENDER,
	SIM_TARGET_PAUSE_RECEIVER
};
#define SIM_TARGET_ACTIONS 9
struct sim_adversary {
	uint32_t lose_ppm, duplicate_ppm, reorder_ppm, split_ppm, spike_ppm;
	/* The longest delay of reordered and doubled frames, and of spikes. */
	span_ns late_max;
	/* A set of MESSAGE_BIT: frames that carry one of these messages meet `action` with a chance
	 * of target_ppm. */
	message_set kinds;
	uint32_t target_ppm;
	enum sim_target_action action;
	span_ns target_max;
	/* A commit or an extension asks for far more than any lease may last. */
	uint32_t lease_ppm;
	/* A frame's clock is raised beyond what can be right. */
	uint32_t clock_ppm;
	/* A node stands still for up to late_max between its step and the sending. */
	uint32_t stall_ppm;
};
/* NULL: there is no adversary. */
void sim_adversary_set(struct sim *sim, const struct sim_adversary *adversary);

/* What may run short at any node, by chance. */
struct sim_shortage {
	/* Allocations of a core fail. */
	uint32_t alloc_ppm;
	/* A frame does not fit into the backlog of its link, and the link is lost with it. */
	uint32_t full_ppm;
};
/* NULL: nothing runs short any more, not even where it was to go on. */
void sim_shortage_set(struct sim *sim, const struct sim_shortage *shortage);
/* For this span `ppm` of a million of the node's allocations fail. */
void sim_node_short(struct sim *sim, uint32_t node, span_ns span, uint32_t ppm);
void sim_link_full(struct sim *sim, uint32_t from, uint32_t to, span_ns span);
/* How often something has run short. */
uint64_t sim_shortages(const struct sim *sim);

/* ---- clients ---- */
/* A client's machine. */
struct sim_actor {
	struct sim_clock clock;
	int64_t paused_until;
	/* Its number in the trace. */
	uint32_t number;
};
void sim_actor_init(struct sim *sim, struct sim_actor *actor, uint32_t number);
struct instant sim_actor_clock(const struct sim *sim, const struct sim_actor *actor);
bool sim_actor_paused(const struct sim *sim, const struct sim_actor *actor);
void sim_actor_pause(struct sim *sim, struct sim_actor *actor, span_ns span);
void sim_actor_suspend(struct sim *sim, struct sim_actor *actor, span_ns span);

#define SIM_TEXT_MAX 64
#define SIM_GOT_MAX 8
/* A copy of the core's reply that outlives the step. */
struct sim_reply {
	/* Its slices and lists must not be used. */
	struct core_reply r;
	/* Only of CHANGE. */
	char why[4 * SIM_TEXT_MAX];
	char entry_owner[SIM_TEXT_MAX], entry_value[SIM_TEXT_MAX];
	size_t entry_owner_size, entry_value_size;
	/* Only of WAITERS. */
	struct id128 first_waiter;
	/* Only of ACQUIRE_ALL: the first locks, without their keys. */
	struct core_lock_got got[SIM_GOT_MAX];
};
struct sim_handler {
	/* Called on the client's machine. */
	void (*reply)(void *ctx, const struct sim_reply *reply);
	/* The connection broke; not called after sim_session_close. */
	void (*closed)(void *ctx);
	void *ctx;
};
/* Connects to the node. If the node does not run, the connection breaks soon, and `closed` says so.
 * It lives until sim_free. */
struct sim_session *sim_connect(struct sim *sim, struct sim_actor *actor, uint32_t node,
	struct sim_handler handler);
void sim_session_close(struct sim_session *session);
bool sim_session_open(const struct sim_session *session);
/* What is sent either way piles up for that long. */
void sim_session_cut(struct sim_session *session, span_ns span);
/* Whether it is open and nothing piles up. */
bool sim_session_flows(const struct sim_session *session);
/* Fills in request->id and ->client, and copies everything that the request points to. Returns the
 * id. */
uint64_t sim_send(struct sim_session *session, const struct core_request *request);

/* ---- observing ---- */
struct sim_observer {
	/* Called right after the step. */
	void (*handled)(void *ctx, uint32_t node, uint32_t from, const struct frame *frame);
	void (*sent)(void *ctx, uint32_t node, uint32_t to, const struct frame *frame);
	/* Called as the reply leaves the node. */
	void (*replied)(void *ctx, uint32_t node, const struct core_reply *reply);
	/* Called right before the request is handled. */
	void (*asked)(void *ctx, uint32_t node, const struct core_request *request);
	void (*stepped)(void *ctx, uint32_t node);
	void (*watch_event)(void *ctx, uint32_t node, const struct core_watch_event *watch_event);
	void *ctx;
};
void sim_observe(struct sim *sim, struct sim_observer observer);
/* Looks at a node's core right before each of its steps, and right after it; and at what leaves. */
struct sim_follower {
	void (*begins)(void *ctx, uint32_t node, const struct core_event *event);
	void (*ended)(void *ctx, uint32_t node);
	void (*sent)(void *ctx, uint32_t node, uint32_t to, const struct frame *frame);
	void (*replied)(void *ctx, uint32_t node, const struct core_reply *reply);
	void *ctx;
};
void sim_follow(struct sim *sim, struct sim_follower follower);
struct sim_trace *sim_trace(struct sim *sim);
/* `what` is a static text. */
void sim_trace_fault(struct sim *sim, const char *what, uint32_t node, uint32_t other, uint64_t a);
/* COUNT_TOTAL counts, over all nodes and all their lives. */
const uint64_t *sim_counts(struct sim *sim);
uint64_t sim_frames(const struct sim *sim);
uint64_t sim_steps(const struct sim *sim);

#endif
