/* cluster_sim.h: a whole cluster in one thread: real cores, real frames, simulated clocks, links, disks and clients.
 *
 * True time is known here and to nobody in the cluster. Nothing happens by itself: sim_step takes the next event. The
 * same seed and the same calls give the same run.
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
	uint32_t masters; /* the initial ones, 1 .. MASTERS_MAX: called n1, n2, ...; index 0, 1, ... */
	uint32_t further; /* nodes that are in no configuration until somebody adds them; their names and indexes come next */
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;
	struct core_limits limits;
	span_ns delay_min, delay_max;         /* of a frame, one way */
	span_ns session_delay_min, session_delay_max; /* between client and node, one way */
	span_ns loop_lag_max;                 /* until a loop that was woken runs */
	span_ns disk_min, disk_max;           /* of a write to disk */
	span_ns reconnect_min, reconnect_max; /* until a broken link is dialled again */
	span_ns replication_interval;         /* 0: the core's default */
	bool auto_replace;                    /* masters that lost their files come back by themselves */
	uint32_t check_every;                 /* core_check after every nth step of a node; 0: never */
	bool plain_clocks;                    /* every clock is true time; otherwise offsets and rates within the drift */
	size_t trace_records;                 /* power of two; 0: 4096 */
};
/* Options with which a run without faults is quick to read: 3 masters, exact clocks, 1 ms delays, request_timeout 100 ms, promise_timeout
 * 200 ms, max_lease 10 s. */
struct sim_options sim_options_plain(void);

struct sim *sim_new(const struct sim_options *options); /* nodes are not started */
void sim_free(struct sim *sim);

/* ---- time ---- */
int64_t sim_now(const struct sim *sim); /* true time, ns */
bool sim_step(struct sim *sim);         /* one event; false: nothing will ever happen */
void sim_run_for(struct sim *sim, span_ns span);
/* Until the condition holds (true) or `limit` of true time has passed (false). */
bool sim_run_until(struct sim *sim, bool (*condition)(void *ctx), void *ctx, span_ns limit);
void sim_at(struct sim *sim, int64_t at, void (*fn)(void *ctx, uint64_t arg), void *ctx, uint64_t arg);
struct prng *sim_prng(struct sim *sim);

/* ---- nodes ---- */
enum sim_side_file { SIM_SIDE_KEEP, SIM_SIDE_LOSE };
void sim_node_start(struct sim *sim, uint32_t node);
void sim_start_all(struct sim *sim);
uint32_t sim_nodes(const struct sim *sim);
/* Index of a node by its name, TRACE_NONE if there is none; and the name. */
uint32_t sim_node_named(const struct sim *sim, const char *name);
const char *sim_node_name(const struct sim *sim, uint32_t node);
/* The key that a message of this round was about, TRACE_NONE if it is not known any more. */
uint32_t sim_round_key(struct sim *sim, uint64_t round);

/* Who stands in this peer of a running node's table of peers; TRACE_NONE: nobody. */
uint32_t sim_node_at_peer(const struct sim *sim, uint32_t node, uint32_t peer);
/* The process dies; what was not on disk is lost. `machine`: peers and clients hear nothing, and its clocks start anew. */
void sim_node_kill(struct sim *sim, uint32_t node, bool machine);
/* Stops voting, writes the side file and ends; `crash_after` frames (UINT32_MAX: never) the process dies and leaves half a file. */
void sim_node_drain(struct sim *sim, uint32_t node, uint32_t crash_after);
void sim_node_lose_side_file(struct sim *sim, uint32_t node);
/* While it does not run: all its files are gone, it comes back with a new identity. */
void sim_node_lose_files(struct sim *sim, uint32_t node);
bool sim_node_running(const struct sim *sim, uint32_t node);
uint64_t sim_node_incarnation(const struct sim *sim, uint32_t node); /* of its process; grows with every start */
void sim_node_pause(struct sim *sim, uint32_t node, span_ns span);    /* the process stands still, clocks and network go on */
void sim_node_continue(struct sim *sim, uint32_t node);               /* before its time */
void sim_node_suspend(struct sim *sim, uint32_t node, span_ns span);  /* the machine sleeps: raw stands too */
void sim_node_rates(struct sim *sim, uint32_t node, int64_t boot_ppb, int64_t raw_ppb);
/* Writes take this long from now on, and fail when `fails`. */
void sim_node_disk(struct sim *sim, uint32_t node, span_ns min, span_ns max, bool fails);
struct core *sim_node_core(struct sim *sim, uint32_t node); /* NULL: not running */
struct instant sim_node_clock(const struct sim *sim, uint32_t node);
const struct durable *sim_node_durable(const struct sim *sim, uint32_t node);
void sim_node_durable_set(struct sim *sim, uint32_t node, const struct durable *durable); /* while it does not run */

/* One well-formed message in a frame of its own, as a node that lies would send it; its frame says what the receiver wants to hear. False:
 * there is no link. */
bool sim_forge(struct sim *sim, uint32_t from, uint32_t to, const struct message *m);
/* The head of such a frame; and a frame with whatever head. False: there is no link, or it is no frame. */
struct frame sim_forged(struct sim *sim, uint32_t from, uint32_t to);
bool sim_forge_frame(struct sim *sim, uint32_t from, uint32_t to, const struct frame *frame);
/* A node whose frames are altered on their way out, and who hears what is said to it. */
#define SIM_TAMPERED 4
struct sim_liar {
	uint32_t node;
	uint64_t ahead; /* all its frames say a clock so far ahead of its own */
	void (*heard)(void *ctx, const struct frame *frame);
	/* The frame has at most SIM_TAMPERED messages, which may be altered. False: it leaves as it was. */
	bool (*tampers)(void *ctx, uint32_t to, struct frame *frame, struct message *messages);
	void *ctx;
};
void sim_liar_set(struct sim *sim, const struct sim_liar *liar); /* NULL: none */
size_t sim_node_memory(const struct sim *sim, uint32_t node);    /* that its core has now */
uint64_t sim_snapshots_to(const struct sim *sim, uint32_t node); /* frames with a part of a snapshot that left for it */

/* ---- network; from == to never ---- */
void sim_cut(struct sim *sim, uint32_t from, uint32_t to, bool cut); /* one way: what is sent piles up */
void sim_isolate(struct sim *sim, uint32_t node, bool cut);          /* both ways to all */
void sim_link_close(struct sim *sim, uint32_t a, uint32_t b, bool mid_frame); /* noticed at both ends at different times */
bool sim_linked(const struct sim *sim, uint32_t a, uint32_t b);      /* both ends up */
void sim_delays(struct sim *sim, span_ns min, span_ns max);
void sim_link_delay(struct sim *sim, uint32_t from, uint32_t to, span_ns extra); /* added to every frame of that way */

enum sim_target_action {
	SIM_TARGET_NONE,
	SIM_TARGET_DELAY,         /* what follows on the link is late, too */
	SIM_TARGET_LOSE,          /* the frame vanishes (not as TCP would) */
	SIM_TARGET_LATE,          /* the frame is overtaken by others (not as TCP would) */
	SIM_TARGET_CLOSE,         /* the link breaks behind the frame */
	SIM_TARGET_KILL_SENDER,
	SIM_TARGET_KILL_RECEIVER, /* after it handled the frame, its answer may have left */
	SIM_TARGET_PAUSE_SENDER,
	SIM_TARGET_PAUSE_RECEIVER
};
#define SIM_TARGET_ACTIONS 9
struct sim_adversary {
	uint32_t lose_ppm, duplicate_ppm, reorder_ppm, split_ppm, spike_ppm;
	span_ns late_max;  /* of reordered and doubled frames and of spikes */
	message_set kinds;    /* bit (1 << enum message_kind): frames that carry one of these meet `action` with target_ppm */
	uint32_t target_ppm;
	enum sim_target_action action;
	span_ns target_max;
	uint32_t lease_ppm; /* a commit or an extension asks for far more than any lease may last */
	uint32_t clock_ppm; /* a frame's clock is raised beyond what can be right */
	uint32_t stall_ppm; /* a node stands still for up to late_max between its step and the sending */
};
void sim_adversary_set(struct sim *sim, const struct sim_adversary *adversary); /* NULL: none */

struct sim_shortage { /* of every node: by chance */
	uint32_t alloc_ppm; /* allocations of a core fail */
	uint32_t full_ppm;  /* a frame does not fit into the backlog of its link, which is lost with it */
};
void sim_shortage_set(struct sim *sim, const struct sim_shortage *shortage); /* NULL: none, and none goes on */
void sim_node_short(struct sim *sim, uint32_t node, span_ns span, uint32_t ppm); /* for so long so many of its allocations fail */
void sim_link_full(struct sim *sim, uint32_t from, uint32_t to, span_ns span);
uint64_t sim_shortages(const struct sim *sim); /* how often something fell short */

/* ---- clients ---- */
struct sim_actor { /* a client's machine */
	struct sim_clock clock;
	int64_t paused_until;
	uint32_t number; /* for the trace */
};
void sim_actor_init(struct sim *sim, struct sim_actor *actor, uint32_t number);
struct instant sim_actor_clock(const struct sim *sim, const struct sim_actor *actor);
bool sim_actor_paused(const struct sim *sim, const struct sim_actor *actor);
void sim_actor_pause(struct sim *sim, struct sim_actor *actor, span_ns span);
void sim_actor_suspend(struct sim *sim, struct sim_actor *actor, span_ns span);

#define SIM_TEXT_MAX 64
#define SIM_GOT_MAX 8
struct sim_reply { /* a copy of the core's reply that outlives the step */
	struct core_reply r; /* its slices and lists are not to be used */
	char why[4 * SIM_TEXT_MAX]; /* CHANGE */
	char entry_owner[SIM_TEXT_MAX], entry_value[SIM_TEXT_MAX];
	size_t entry_owner_size, entry_value_size;
	struct id128 first_waiter; /* WAITERS */
	struct core_lock_got got[SIM_GOT_MAX]; /* ACQUIRE_ALL: the first of them, without their keys */
};
struct sim_handler {
	void (*reply)(void *ctx, const struct sim_reply *reply); /* on the client's machine */
	void (*closed)(void *ctx);                               /* the connection broke; not after sim_session_close */
	void *ctx;
};
/* A connection to the node; breaks at once (soon, by `closed`) if the node does not run. Lives until sim_free. */
struct sim_session *sim_connect(struct sim *sim, struct sim_actor *actor, uint32_t node, struct sim_handler handler);
void sim_session_close(struct sim_session *session);
bool sim_session_open(const struct sim_session *session);
void sim_session_cut(struct sim_session *session, span_ns span); /* what is sent piles up that long */
bool sim_session_flows(const struct sim_session *session); /* it is open, and nothing piles up */
/* request->id and ->client are filled in; everything it points to is copied. Returns the id. */
uint64_t sim_send(struct sim_session *session, const struct core_request *request);

/* ---- looking on ---- */
struct sim_observer {
	void (*handled)(void *ctx, uint32_t node, uint32_t from, const struct frame *frame); /* right after the step */
	void (*sent)(void *ctx, uint32_t node, uint32_t to, const struct frame *frame);
	void (*replied)(void *ctx, uint32_t node, const struct core_reply *reply); /* as it leaves the node */
	void (*asked)(void *ctx, uint32_t node, const struct core_request *request); /* right before it is handled */
	void (*stepped)(void *ctx, uint32_t node);
	void (*watch_event)(void *ctx, uint32_t node, const struct core_watch_event *watch_event);
	void *ctx;
};
void sim_observe(struct sim *sim, struct sim_observer observer);
struct sim_trace *sim_trace(struct sim *sim);
void sim_trace_fault(struct sim *sim, const char *what, uint32_t node, uint32_t other, uint64_t a); /* static text */
const uint64_t *sim_counts(struct sim *sim); /* COUNT_TOTAL, over all nodes and all their lives */
uint64_t sim_frames(const struct sim *sim);
uint64_t sim_steps(const struct sim *sim);

#endif
