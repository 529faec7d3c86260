/* sim_impl.h: what the files of the simulated cluster share; tests use cluster_sim.h. */
#ifndef PAWL_SIM_IMPL_H
#define PAWL_SIM_IMPL_H

#include "buffer.h"
#include "cluster_sim.h"
#include "peer.h"
#include "sim_queue.h"

enum sim_item_kind { ITEM_FRAME, ITEM_HELLO, ITEM_END, ITEM_REQUEST, ITEM_GONE, ITEM_PERSISTED };

/* Something on its way to a node or in its sockets. */
struct sim_item {
	struct sim_item *next;
	enum sim_item_kind kind;
	int64_t at;               /* when it arrives */
	struct sim_link *link;    /* FRAME, HELLO, END */
	uint32_t end;             /* of the link: where it arrives */
	struct id128 id;          /* HELLO */
	uint64_t boot;            /* HELLO */
	bool closed;              /* END: the other side did it */
	message_set kinds;           /* FRAME: kinds of its messages */
	bool piece;               /* FRAME: not the whole of it */
	uint64_t session;         /* GONE */
	struct core_request request; /* REQUEST */
	uint64_t seq;             /* PERSISTED */
	bool ok;                  /* PERSISTED */
	size_t size;
	uint8_t bytes[];          /* FRAME: bytes as on the wire; REQUEST: what its slices point to */
};

struct sim_fifo {
	struct sim_item *head, *tail;
};

struct sim_end {
	struct sim *sim;
	uint32_t node, number; /* number: 0 or 1, the end within the link */
	struct sim_link *link;
	uint64_t incarnation;  /* of the node's process */
	bool open;
	struct sim_fifo coming; /* under way to this end */
	int64_t last_at;
	bool pumping;
	struct buffer partial; /* bytes of a frame that is not complete */
};

struct sim_link {
	struct sim_link *next; /* all links of the run */
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
	struct core *core; /* NULL: not running */
	struct core_out *out;
	uint64_t incarnation;
	int64_t paused_until;
	uint64_t pauses;     /* number of the present pause */
	bool stall;          /* will stand still before it sends */
	bool flush_held;     /* stood still between the step and the sending */
	struct durable disk; /* what is synced */
	struct sim_write write;
	uint64_t writes;
	span_ns disk_min, disk_max;
	bool disk_fails;
	struct sim_side side;
	struct sim_link *links[SIM_NODES_MAX]; /* those the core believes up: their nodes have a slot */
	uint32_t peer_of[SIM_NODES_MAX], node_of[NODES_MAX]; /* of the core's table of peers; TRACE_NONE: no such */
	struct sim_fifo inbox;
	bool woken;
	uint64_t tick_number; /* of the tick that counts */
	int64_t tick_at;
	uint64_t counts_seen[COUNT_TOTAL];
	uint32_t unchecked; /* steps since the last core_check */
	struct allocator libc;
	int64_t short_until, full_until[SIM_NODES_MAX]; /* sim_shortage.c */
	uint32_t short_ppm;
	uint32_t lost; /* bit set of nodes: links that were lost in sending */
};

#define SIM_BINDINGS_MAX 64
struct sim_binding { /* a lock that ends when the client's side closes the connection, as far as the node knows */
	uint64_t request; /* without an answer yet; 0: answered */
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
	bool open;      /* at the client */
	bool node_open; /* at the node */
	int64_t cut_until, to_node_at, to_client_at; /* when the last thing each way arrives */
	struct sim_fifo to_node;
	struct sim_parcel *to_client, *to_client_last;
	struct sim_binding *bindings; /* SIM_BINDINGS_MAX, once there is one: most sessions never bind anything */
	uint32_t binding_count;
};

struct sim_parcel { /* a reply on its way */
	struct sim_parcel *next;
	struct sim_reply reply;
};

struct sim_pair { /* nodes a < b */
	struct sim_link *link; /* the latest */
	bool dialling;
};

#define SIM_ROUNDS 4096
#define SIM_REQUEST ((uint64_t)1 << 63) /* a client's request, where rounds are meant */
#define SIM_NO_KEY (UINT32_MAX - 1) /* of a record that concerns some key, nobody knows which */
struct sim_round { /* for the trace: what a round is about */
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
	uint64_t shortages;
	struct sim_observer observer;
	struct sim_liar liar; /* heard: NULL: none */
	struct sim_trace trace;
	struct sim_round rounds[SIM_ROUNDS];
	uint64_t requests, frames, steps;
	uint64_t snapshots_to[SIM_NODES_MAX];
	uint64_t counts[COUNT_TOTAL];
	struct allocator alloc; /* of the simulator itself */
	struct buffer scratch;  /* encoding */
	struct peer_decoder decoder;
};

span_ns sim_between(struct sim *sim, span_ns min, span_ns max);
bool sim_ppm(struct sim *sim, uint32_t ppm);
void sim_fifo_put(struct sim_fifo *f, struct sim_item *item);
struct sim_item *sim_fifo_take(struct sim_fifo *f);
void sim_fifo_clear(struct sim_fifo *f);
struct sim_item *sim_item_new(enum sim_item_kind kind, size_t size);
void sim_clock_draw(struct sim *sim, struct sim_clock *clock, bool fresh_boot);

/* sim_node.c */
void sim_node_init(struct sim *sim, uint32_t index);
void sim_node_done(struct sim_node *node);
bool sim_node_paused(const struct sim_node *node);
void sim_node_deliver(struct sim_node *node, struct sim_item *take_item); /* into its sockets; wakes it */
void sim_node_wake(struct sim_node *node);
void sim_node_step(struct sim_node *node, const struct core_event *event);
void sim_node_end(struct sim_node *node, bool quiet); /* the process is gone */
void sim_node_table(struct sim_node *node); /* after whatever may have changed the core's table of peers */

/* sim_turn.c: one turn of a node's loop */
void sim_turn_flush(struct sim_node *node);

/* sim_disk.c */
void sim_disk_fresh(struct sim_node *node); /* an empty directory: a new identity */
void sim_disk_begin(struct sim_node *node);
void sim_disk_crash(struct sim_node *node);
void sim_disk_restore(struct sim_node *node, bool *out_restored);
void sim_disk_side_clear(struct sim_node *node);

/* sim_link.c */
void sim_link_dial(struct sim *sim, uint32_t a, uint32_t b);
void sim_link_send(struct sim_node *node, uint32_t to, const struct frame *frame);
void sim_link_put(struct sim_node *node, uint32_t to, const struct frame *frame); /* what is in sim->scratch */
bool sim_link_receive(struct sim_end *end, struct sim_item *item); /* handles the bytes of one item */
void sim_link_hello(struct sim_end *to, struct id128 id, uint64_t boot);
bool sim_link_alive(const struct sim_end *end);
/* This end is closed by its node; the other hears of it unless `quiet`. */
void sim_link_drop(struct sim_end *end, bool quiet);
void sim_link_node_ends(struct sim_node *node, bool quiet);
void sim_link_free_all(struct sim *sim);

/* sim_adversary.c */
struct sim_fate {
	bool lost, twice, overtaken, split, closes;
	span_ns late;
};
struct sim_fate sim_adversary_sends(struct sim_node *node, uint32_t to, message_set kinds);
void sim_adversary_handled(struct sim_node *node, message_set kinds);

/* sim_liar.c */
struct sim_lie { /* room for a frame that is altered */
	struct frame frame;
	struct message messages[SIM_TAMPERED];
};
const struct frame *sim_liar_says(struct sim_node *node, uint32_t to, const struct frame *frame, struct sim_lie *room);

/* sim_shortage.c */
struct allocator sim_shortage_allocator(struct sim_node *node);
bool sim_shortage_full(struct sim_node *node, uint32_t to); /* what is to leave for it now does not fit */

/* sim_session.c */
/* The node's side: a request that names a bond has come; the connection is closed. */
void sim_session_asked(struct sim_node *node, const struct core_request *request);
void sim_session_gone(struct sim_node *node, uint64_t session);
void sim_session_reply(struct sim_node *node, const struct core_reply *reply);
void sim_session_node_ends(struct sim_node *node, bool quiet);
void sim_session_free_all(struct sim *sim);

/* sim_look.c */
void sim_look_frame(struct sim_node *node, uint32_t other, enum sim_trace_kind kind, const struct frame *frame);
void sim_look_subject(struct sim *sim, uint64_t round, uint32_t key, uint32_t lock);
void sim_look_recall(struct sim *sim, uint64_t round, struct sim_trace_record *record);
void sim_look_counts(struct sim_node *node);
void sim_look_watch_event(struct sim_node *node, const struct core_watch_event *watch_event);
void sim_look_note(struct sim_node *node, const struct core_note *note);

#endif
