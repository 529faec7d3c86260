/* sim_impl.h: what the files of the simulated cluster share. Tests use cluster_sim.h. */
#ifndef PAWL_SIM_IMPL_H
#define PAWL_SIM_IMPL_H

#include "buffer.h"
#include "cluster_sim.h"
#include "peer.h"
#include "sim_queue.h"

enum sim_item_kind { ITEM_FRAME, ITEM_HELLO, ITEM_END, ITEM_REQUEST, ITEM_GONE, ITEM_PERSISTED };

/* Something on its way to a node, or in its sockets. */
struct sim_item {
	struct sim_item *next;
	enum sim_item_kind kind;
	/* When it arrives. */
	int64_t at;
	/* Of FRAME, HELLO and END. */
	struct sim_link *link;
	/* The end of the link at which it arrives. */
	uint32_t end;
	/* Of HELLO. */
	struct id128 id;
	/* Of HELLO. */
	uint64_t boot;
	/* Of END: the other side closed the link; otherwise the network broke. */
	bool closed;
	/* Of FRAME: the kinds of its messages. */
	message_set kinds;
	/* Of FRAME: it is not the whole frame. */
	bool piece;
	/* Of GONE. */
	uint64_t session;
	/* Of REQUEST. */
	struct core_request request;
	/* Of PERSISTED. */
	uint64_t seq;
	/* Of PERSISTED. */
	bool ok;
	size_t size;
	/* Of FRAME: the bytes as on the wire. Of REQUEST: what its slices point to. */
	uint8_t bytes[];
};

struct sim_fifo {
	struct sim_item *head, *tail;
};

struct sim_end {
	struct sim *sim;
	/* `number` is 0 or 1: which end of the link it is. */
	uint32_t node, number;
	struct sim_link *link;
	/* Of the node's process. */
	uint64_t incarnation;
	bool open;
	/* What is under way to this end. */
	struct sim_fifo coming;
	int64_t last_at;
	bool pumping;
	/* The bytes of a frame that is not complete yet. */
	struct buffer partial;
};

struct sim_link {
	/* The next of all links of the run. */
	struct sim_link *next;
	struct sim_end ends[2];
};

struct sim_write {
	bool busy, fails;
	uint64_t seq, number;
	struct durable state;
};

struct sim_side {
	struct sim_item *frames, *last;
	bool complete;
};

struct sim_node {
	struct sim *sim;
	uint32_t index;
	char name[16];
	struct sim_clock clock;
	struct alloc_counter memory;
	struct allocator alloc;
	/* NULL: the node does not run. */
	struct core *core;
	struct core_out *out;
	uint64_t incarnation;
	/* Nobody watches here at the moment. */
	bool unwatched;
	int64_t paused_until;
	/* The number of the present pause. */
	uint64_t pauses;
	/* It will stand still before it sends. */
	bool stall;
	/* It stood still between its step and the sending. */
	bool flush_held;
	/* What is synced to disk. */
	struct durable disk;
	struct sim_write write;
	uint64_t writes;
	span_ns disk_min, disk_max;
	bool disk_fails;
	struct sim_side side;
	/* The links that the core takes to be up. Their nodes are in its table of peers. */
	struct sim_link *links[SIM_NODES_MAX];
	/* The peer index of a node in the core's table of peers, and the node at a peer index;
	 * TRACE_NONE: there is none. */
	uint32_t peer_of[SIM_NODES_MAX], node_of[NODES_MAX];
	struct sim_fifo inbox;
	/* It is in the middle of a frame. */
	bool in_pieces;
	bool woken;
	/* The number of the timer that counts. */
	uint64_t tick_number;
	int64_t tick_at;
	uint64_t counts_seen[COUNT_TOTAL];
	/* Steps since the last core_check. */
	uint32_t unchecked;
	struct allocator libc;
	/* Of sim_shortage.c: until when memory, or the backlog of a link, is short. */
	int64_t short_until, full_until[SIM_NODES_MAX];
	uint32_t short_ppm;
	/* The bit set of nodes whose links were lost in sending. */
	uint32_t lost;
};

#define SIM_BINDINGS_MAX 64
/* A lock that ends when the client's side closes the connection, as far as the node knows. */
struct sim_binding {
	/* The request, while it has no answer; 0: it has been answered. */
	uint64_t request;
	char key[16];
	struct id128 lock;
	uint32_t binding;
};

struct sim_session {
	struct sim *sim;
	struct sim_actor *actor;
	struct sim_handler handler;
	uint32_t node;
	uint64_t number, incarnation;
	/* Open at the client. */
	bool open;
	/* Open at the node. */
	bool node_open;
	/* Until when what is sent piles up; and when the last thing each way arrives. */
	int64_t cut_until, to_node_at, to_client_at;
	struct sim_fifo to_node;
	struct sim_parcel *to_client, *to_client_last;
	/* SIM_BINDINGS_MAX of them, once there is one: most sessions never bind a lock. */
	struct sim_binding *bindings;
	uint32_t binding_count;
};

/* A reply on its way. */
struct sim_parcel {
	struct sim_parcel *next;
	struct sim_reply reply;
};

/* A pair of nodes a < b. */
struct sim_pair {
	/* The latest link between them. */
	struct sim_link *link;
	bool dialling;
};

#define SIM_ROUNDS 4096
/* Marks the id of a client request where rounds are meant. */
#define SIM_REQUEST ((uint64_t)1 << 63)
/* The key of a record that concerns some key, but nobody knows which. */
#define SIM_NO_KEY (UINT32_MAX - 1)
/* What a round is about, for the trace. */
struct sim_round {
	uint64_t round;
	uint32_t key, lock;
};

struct sim {
	struct sim_options options;
	int64_t now;
	struct prng prng;
	struct sim_queue queue;
	struct config birth;
	uint32_t n;
	struct sim_node nodes[SIM_NODES_MAX];
	struct sim_pair pairs[SIM_NODES_MAX][SIM_NODES_MAX];
	bool cut[SIM_NODES_MAX][SIM_NODES_MAX];
	span_ns extra[SIM_NODES_MAX][SIM_NODES_MAX];
	struct sim_link *links;
	struct sim_session **sessions;
	size_t session_count, session_capacity;
	struct sim_adversary adversary;
	struct sim_shortage shortage;
	struct prng shortage_prng;
	/* Which frames are handled in pieces. */
	struct prng pieces_prng;
	uint64_t shortages;
	struct sim_observer observer;
	/* `begins` is NULL: nobody follows. */
	struct sim_follower follower;
	/* `heard` is NULL: nobody lies. */
	struct sim_liar liar;
	struct sim_trace trace;
	struct sim_round rounds[SIM_ROUNDS];
	uint64_t requests, frames, steps;
	uint64_t snapshots_to[SIM_NODES_MAX];
	uint64_t counts[COUNT_TOTAL];
	/* Of the simulator itself. */
	struct allocator alloc;
	/* For encoding. */
	struct buffer scratch;
	struct peer_decoder decoder;
};

span_ns sim_between(struct sim *sim, span_ns min, span_ns max);
bool sim_ppm(struct sim *sim, uint32_t ppm);
void sim_fifo_put(struct sim_fifo *f, struct sim_item *item);
struct sim_item *sim_fifo_take(struct sim_fifo *f);
void sim_fifo_clear(struct sim_fifo *f);
struct sim_item *sim_item_new(enum sim_item_kind kind, size_t size);
void sim_clock_draw(struct sim *sim, struct sim_clock *clock, bool fresh_boot);

/* ---- sim_node.c ---- */
void sim_node_init(struct sim *sim, uint32_t index);
void sim_node_done(struct sim_node *node);
bool sim_node_paused(const struct sim_node *node);
/* Puts the item into the node's sockets, and wakes the node. */
void sim_node_deliver(struct sim_node *node, struct sim_item *take_item);
void sim_node_wake(struct sim_node *node);
void sim_node_step(struct sim_node *node, const struct core_event *event);
/* The process is gone. */
void sim_node_end(struct sim_node *node, bool quiet);
/* Call it after whatever may have changed the core's table of peers. */
void sim_node_table(struct sim_node *node);

/* ---- sim_turn.c: one turn of a node's loop ---- */
void sim_turn_flush(struct sim_node *node);
/* Between two pieces of a frame of that link: handles what comes next, if it is of no such link. */
void sim_turn_between(struct sim_node *node, const struct sim_link *link);

/* ---- sim_disk.c ---- */
/* Makes an empty directory: the node has a new identity. */
void sim_disk_fresh(struct sim_node *node);
void sim_disk_begin(struct sim_node *node);
void sim_disk_crash(struct sim_node *node);
void sim_disk_restore(struct sim_node *node, bool *out_restored);
void sim_disk_side_clear(struct sim_node *node);

/* ---- sim_link.c ---- */
void sim_link_dial(struct sim *sim, uint32_t a, uint32_t b);
void sim_link_send(struct sim_node *node, uint32_t to, const struct frame *frame);
/* Sends what is in sim->scratch. */
void sim_link_put(struct sim_node *node, uint32_t to, const struct frame *frame);
/* Handles the bytes of one item. False: they are no frame. */
bool sim_link_receive(struct sim_end *end, struct sim_item *item);
void sim_link_hello(struct sim_end *to, struct id128 id, uint64_t boot);
bool sim_link_alive(const struct sim_end *end);
/* The node closes this end. The other end hears of it unless `quiet` is set. */
void sim_link_drop(struct sim_end *end, bool quiet);
void sim_link_node_ends(struct sim_node *node, bool quiet);
void sim_link_free_all(struct sim *sim);

/* ---- sim_adversary.c ---- */
struct sim_fate {
	bool lost, twice, overtaken, split, closes;
	span_ns late;
};
struct sim_fate sim_adversary_sends(struct sim_node *node, uint32_t to, message_set kinds);
void sim_adversary_handled(struct sim_node *node, message_set kinds);

/* ---- sim_liar.c ---- */
/* Room for a frame that is altered. */
struct sim_lie {
	struct frame frame;
	struct message messages[SIM_TAMPERED];
};
const struct frame *sim_liar_says(struct sim_node *node, uint32_t to, const struct frame *frame,
	struct sim_lie *room);

/* ---- sim_shortage.c ---- */
struct allocator sim_shortage_allocator(struct sim_node *node);
/* Whether there is no room for what is to leave for the node now. */
bool sim_shortage_full(struct sim_node *node, uint32_t to);

/* ---- sim_session.c ---- */
/* The node's side: a request that names a session binding has come; the connection is closed. */
void sim_session_asked(struct sim_node *node, const struct core_request *request);
void sim_session_gone(struct sim_node *node, uint64_t session);
void sim_session_reply(struct sim_node *node, const struct core_reply *reply);
void sim_session_node_ends(struct sim_node *node, bool quiet);
void sim_session_free_all(struct sim *sim);

/* ---- sim_look.c ---- */
void sim_look_frame(struct sim_node *node, uint32_t other, enum sim_trace_kind kind,
	const struct frame *frame);
void sim_look_subject(struct sim *sim, uint64_t round, uint32_t key, uint32_t lock);
void sim_look_recall(struct sim *sim, uint64_t round, struct sim_trace_record *record);
void sim_look_counts(struct sim_node *node);
void sim_look_watch_event(struct sim_node *node, const struct core_watch_event *watch_event);
void sim_look_note(struct sim_node *node, const struct core_note *note);

#endif
