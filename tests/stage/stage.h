/* stage.h: a few real cores on a stage, moved by hand. Nothing is delivered, no time passes and no
 * node dies unless the test says so. Messages go through the real codec and wait in the links, so
 * that a test can stop the cluster between any two of them.
 *
 * All memory comes from the allocators handed in, so that a whole stage can also be copied and put
 * back (tests/model).
 */
#ifndef PAWL_TESTS_STAGE_H
#define PAWL_TESTS_STAGE_H

#include "alloc.h"
#include "buffer.h"
#include "core.h"
#include "peer.h"
#include "pawl/error.h"

#define STAGE_NODES (NODES_MAX < 8 ? NODES_MAX : 8)
#define STAGE_NOBODY UINT32_MAX
#define STAGE_NOTES 64
#define STAGE_TEXT 96
#define STAGE_ROWS 8

struct stage_options {
	/* The masters n1, n2, ... have the indexes 0, 1, ... Until the configuration changes, those
	 * are also their peer indexes. */
	uint32_t masters;
	/* They come after the masters. The nodes come to life as members of epoch 1, in which the
	 * masters have voted before. */
	uint32_t replicas;
	/* They come after the replicas: nodes that are in no configuration, and know the initial
	 * masters. */
	uint32_t outside;
	bool auto_replace;
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;
	struct core_limits limits;
	/* The memory of the stage itself; it must not fail. */
	const struct allocator *own;
	/* The memory of the cores. */
	const struct allocator *core;
	uint64_t seed;
	/* core_check does not run after every step. */
	bool unchecked;
	/* How many replies are kept; 0: 256. */
	uint32_t replies;
};

/* A frame under way on a link. */
struct stage_frame {
	struct stage_frame *next;
	/* A set of MESSAGE_BIT. */
	message_set kinds;
	size_t size;
	uint8_t bytes[];
};

struct stage_fifo {
	struct stage_frame *head, *tail;
	uint32_t count;
};

struct stage_text {
	char bytes[STAGE_TEXT];
	size_t size;
};

/* A row of a list, or of a reply about waiters. */
struct stage_row {
	struct stage_text key, owner, value, label;
	struct terms terms;
	uint64_t token;
	struct id128 lock_id;
	bool show_lock_id;
};

/* What a master says about a key. */
struct stage_report {
	enum status status;
	bool home;
	uint32_t waiting, count;
	bool more;
	struct { enum core_reported_kind kind; bool barred, show_lock_id; struct id128 lock_id;
		span_ns remaining; } items[STAGE_ROWS];
};

/* A copy of a reply. The slices and pointers of `r` must not be used. */
struct stage_reply {
	struct core_reply r;
	struct core_times times;
	struct stage_text owner, value, why, failed_key;
	struct stage_row rows[STAGE_ROWS];
	struct stage_report reports[STAGE_ROWS];
};

#define STAGE_EVENTS 64
/* A copy of a watch event. The slices of `event` must not be used. */
struct stage_event {
	uint32_t node;
	struct core_watch_event event;
	struct stage_text key, owner, value, label;
};

struct stage_node {
	/* NULL: the node does not run. */
	struct core *core;
	struct core_out *out;
	struct durable disk;
	/* Where the others reach it. */
	char address[24];
	/* The peer index of a node in the core's table of peers, and the node at a peer index;
	 * STAGE_NOBODY: there is none. */
	uint32_t peer_of[STAGE_NODES], node_of[NODES_MAX];
	bool paused, disk_held, disk_fails;
	/* The others find that it must not be a master, when they are linked with it next. */
	bool no_master;
	/* The link was lost while the node was paused. */
	bool down_pending[STAGE_NODES];
	/* The offsets of its clocks from true time, in nanoseconds. */
	int64_t boot_offset, raw_offset;
	int64_t rate_ppb;
	/* The side file of a drain, its newest frame first. */
	struct stage_frame *side;
	bool side_whole;
};

struct stage {
	struct stage_options options;
	/* True time in nanoseconds. */
	int64_t now;
	struct config birth;
	/* How many nodes there are: masters, replicas, and those outside. */
	uint32_t count;
	struct stage_node nodes[STAGE_NODES];
	/* Whether there is a link; symmetric. */
	bool up[STAGE_NODES][STAGE_NODES];
	/* Whether no new link is made; symmetric. */
	bool cut[STAGE_NODES][STAGE_NODES];
	bool held[STAGE_NODES][STAGE_NODES];
	/* The kinds of messages that stage_settle does not deliver. */
	message_set stops[STAGE_NODES][STAGE_NODES];
	/* The kinds of messages that are lost when they are sent. */
	message_set loses[STAGE_NODES][STAGE_NODES];
	struct stage_fifo links[STAGE_NODES][STAGE_NODES];
	/* How many messages of each kind were sent. */
	uint64_t sent[STAGE_NODES][STAGE_NODES][MESSAGE_KIND_MAX + 1];
	uint64_t requests;
	/* A ring of options.replies copies. */
	struct stage_reply *replies;
	uint64_t reply_count;
	struct { uint32_t node; struct core_note note; } notes[STAGE_NOTES];
	uint64_t note_count;
	/* A ring of STAGE_EVENTS copies; NULL: nobody wants any. */
	struct stage_event *events;
	uint64_t events_count, events_read;
	struct buffer scratch;
	struct peer_decoder decoder;
};

/* 3 masters, request_timeout 100 ms, promise_timeout 200 ms, leases of at most 10 s, and libc's
 * memory. */
struct stage_options stage_options_plain(void);
struct stage *stage_new(const struct stage_options *options);
void stage_free(struct stage *s);

/* ---- nodes ---- */
/* False: there is no memory. */
bool stage_start(struct stage *s, uint32_t node);
/* All nodes are started and linked, and the masters vote. */
struct stage *stage_born(const struct stage_options *options);
void stage_kill(struct stage *s, uint32_t node);
/* Kills the node. Its disk is lost, so that it starts with a new identity. */
void stage_wipe(struct stage *s, uint32_t node);
/* The node writes its side file and ends. The next start takes the file. */
void stage_drain(struct stage *s, uint32_t node);
void stage_pause(struct stage *s, uint32_t node);
void stage_continue(struct stage *s, uint32_t node);
void stage_step(struct stage *s, uint32_t node, const struct core_event *event);
/* Whatever may leave leaves now. Call it after a held disk was let go. */
void stage_flush(struct stage *s, uint32_t node);
/* The peer index of `other` in the table of `node`, or STAGE_NOBODY. */
uint32_t stage_peer(const struct stage *s, uint32_t node, uint32_t other);
struct instant stage_clock(const struct stage *s, uint32_t node);
struct core_status stage_status(const struct stage *s, uint32_t node);
bool stage_noted(const struct stage *s, uint32_t node, enum core_note_kind kind);
/* The sum over all nodes that run. */
uint64_t stage_count(const struct stage *s, enum core_count count);

/* ---- links ---- */
/* Makes every link that may be made. */
void stage_mend(struct stage *s);
/* What is under way is lost. */
void stage_break(struct stage *s, uint32_t a, uint32_t b);
/* Closes the link in order: the other node is told who did it. */
void stage_close(struct stage *s, uint32_t who, uint32_t other);
/* Breaks the link, and none is made until the cut heals. */
void stage_cut(struct stage *s, uint32_t a, uint32_t b, bool cut);
void stage_isolate(struct stage *s, uint32_t node, bool cut);
/* Delivers the next frame, held or not. False: there is none. */
bool stage_deliver(struct stage *s, uint32_t from, uint32_t to);
/* The next frame is lost, if there is one. */
void stage_drop(struct stage *s, uint32_t from, uint32_t to);
bool stage_head_is(const struct stage *s, uint32_t from, uint32_t to, enum message_kind kind);
/* Delivers everything but what is held or stopped, until nothing moves. */
void stage_settle(struct stage *s);
void stage_stop(struct stage *s, uint32_t from, uint32_t to, enum message_kind kind, bool stop);
/* From now on messages of a kind are lost, and nothing else of their frames. */
void stage_lose(struct stage *s, uint32_t from, uint32_t to, enum message_kind kind, bool lose);
/* One message of `from` is handled at `to` now, whatever is under way. */
void stage_inject(struct stage *s, uint32_t from, uint32_t to, const struct message *m);
/* How many were sent so far, over all links. */
uint64_t stage_sent(const struct stage *s, enum message_kind kind);

/* ---- time ---- */
/* Time passes in steps of the nodes' deadlines, and the stage settles after each. */
void stage_wait(struct stage *s, span_ns span);
/* Time passes at once, and nobody does anything. */
void stage_jump(struct stage *s, span_ns span);
/* The nodes whose deadline has come take a turn. */
void stage_tick(struct stage *s);
bool stage_until_voting(struct stage *s, uint32_t node, span_ns limit);

/* ---- clients ---- */
struct id128 stage_lock(uint8_t number);
/* Fills in the id; the client is the node's number + 1 unless it is set. Does not settle. */
uint64_t stage_ask(struct stage *s, uint32_t node, struct core_request request);
/* NULL: there is no answer yet. */
const struct stage_reply *stage_answer(const struct stage *s, uint64_t id);
void stage_client_gone(struct stage *s, uint32_t node, uint64_t client);
struct core_request stage_acquire(const char *key, struct id128 lock_id, span_ns lease,
	span_ns wait);
struct core_request stage_request(enum core_op op, const char *key, struct id128 lock_id);
/* Asks, settles, and returns the error; PAWL_ECLOSED: there is no answer yet. */
int stage_do(struct stage *s, uint32_t node, struct core_request request);
/* The newest reply. */
const struct stage_reply *stage_last(const struct stage *s);

/* ---- watch events ---- */
void stage_want_events(struct stage *s, uint32_t node);
/* The next event of this node, in order. It drops those of other nodes. NULL: there are no more. */
const struct stage_event *stage_next_event(struct stage *s, uint32_t node);

/* ---- shared by the stage's files ---- */
void stage_take_event(struct stage *s, uint32_t node, const struct core_watch_event *watch_event);
void stage_link_down(struct stage *s, uint32_t a, uint32_t b, bool closed);
void stage_link_send(struct stage *s, uint32_t from, uint32_t to, const struct frame *frame);
/* Call it after every core_step. */
void stage_step_done(struct stage *s, uint32_t node);
void stage_take_reply(struct stage *s, const struct core_reply *reply);
void stage_fifo_clear(struct stage *s, struct stage_fifo *f);
bool stage_awake(const struct stage *s, uint32_t node);

#endif
