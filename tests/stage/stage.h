/* stage.h: a few real cores on a stage, moved by hand: nothing is delivered, no time passes and no node dies unless the test
 * says so. Messages go through the real codec and wait in the links, so that a test stops the cluster between any two of them.
 * All memory comes from the allocators handed in, so that a whole stage can also be copied and put back (tests/model).
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
	uint32_t masters; /* n1, n2, ...: index 0, 1, ...; until the configuration changes that is also the core's slot */
	uint32_t replicas; /* after the masters; the nodes come to life as members of epoch 1, in which the masters have voted before */
	uint32_t outside;  /* after those: nodes that are in no configuration, and know the initial masters */
	bool auto_replace;
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;
	struct core_limits limits;
	const struct allocator *own;  /* of the stage itself: must not fail */
	const struct allocator *core; /* of the cores */
	uint64_t seed;
	bool unchecked;   /* core_check is not run after every step */
	uint32_t replies; /* how many are kept; 0: 256 */
};

struct stage_frame { /* under way on a link */
	struct stage_frame *next;
	message_set kinds; /* of MESSAGE_BIT */
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

struct stage_row { /* of a list, or of those who wait */
	struct stage_text key, owner, value, label;
	struct terms terms;
	uint64_t token;
	struct id128 lock_id;
	bool show_lock_id;
};

struct stage_witness { /* what a master says about a key */
	enum status status;
	bool home;
	uint32_t waiting, count;
	bool more;
	struct { enum core_saying_kind kind; bool barred, show_lock_id; struct id128 lock_id; span_ns remaining; } sayings[STAGE_ROWS];
};

struct stage_reply { /* a copy; the slices of `r` are not to be used */
	struct core_reply r;
	struct stage_text owner, value, why, failed_key;
	struct stage_row rows[STAGE_ROWS];
	struct stage_witness witnesses[STAGE_ROWS];
};

#define STAGE_NEWS 64
struct stage_news { /* a copy; the slices of `n` are not to be used */
	uint32_t node;
	struct core_watch_event n;
	struct stage_text key, owner, value, label;
};

struct stage_node {
	struct core *core; /* NULL: does not run */
	struct core_out *out;
	struct durable disk;
	char address[24]; /* where it is found */
	uint32_t slot_of[STAGE_NODES], node_of[NODES_MAX]; /* of the core's table of peers; STAGE_NOBODY: no such */
	bool paused, disk_held, disk_fails;
	bool no_master; /* the others find that it must not be one, when they are linked with it next */
	bool down_pending[STAGE_NODES]; /* lost while it was paused */
	int64_t boot_offset, raw_offset; /* its clocks against true time */
	int64_t rate_ppb;
	struct stage_frame *side; /* the side file of a drain, newest first */
	bool side_whole;
};

struct stage {
	struct stage_options options;
	int64_t now; /* true time */
	struct config birth;
	uint32_t count; /* of nodes: masters, replicas, and those outside */
	struct stage_node nodes[STAGE_NODES];
	bool up[STAGE_NODES][STAGE_NODES];  /* symmetric: a link is there */
	bool cut[STAGE_NODES][STAGE_NODES]; /* symmetric: no new link is made */
	bool held[STAGE_NODES][STAGE_NODES];
	message_set stops[STAGE_NODES][STAGE_NODES]; /* kinds that stage_settle does not deliver */
	message_set loses[STAGE_NODES][STAGE_NODES]; /* kinds that are lost when they are sent */
	struct stage_fifo links[STAGE_NODES][STAGE_NODES];
	uint64_t sent[STAGE_NODES][STAGE_NODES][MESSAGE_KIND_MAX + 1]; /* messages, by kind */
	uint64_t requests;
	struct stage_reply *replies; /* a ring of options.replies */
	uint64_t reply_count;
	struct { uint32_t node; struct core_note note; } notes[STAGE_NOTES];
	uint64_t note_count;
	struct stage_news *watch_event; /* a ring of STAGE_NEWS; NULL: nobody wants any */
	uint64_t watch_event_count, watch_event_read;
	struct buffer scratch;
	struct peer_decoder decoder;
};

struct stage_options stage_options_plain(void); /* 3 masters, request 100 ms, promise 200 ms, leases to 10 s, libc's memory */
struct stage *stage_new(const struct stage_options *options);
void stage_free(struct stage *s);

/* ---- nodes ---- */
bool stage_start(struct stage *s, uint32_t node); /* false: no memory */
struct stage *stage_born(const struct stage_options *options); /* all started, linked, and the masters voting */
void stage_kill(struct stage *s, uint32_t node);
void stage_wipe(struct stage *s, uint32_t node); /* kills it; its disk is lost, so that it starts with a new identity */
void stage_drain(struct stage *s, uint32_t node); /* writes the side file and ends; the next start takes it */
void stage_pause(struct stage *s, uint32_t node);
void stage_continue(struct stage *s, uint32_t node);
void stage_step(struct stage *s, uint32_t node, const struct core_event *event);
void stage_flush(struct stage *s, uint32_t node); /* what may leave leaves: after a disk was let go */
uint32_t stage_slot(const struct stage *s, uint32_t node, uint32_t other); /* in the table of `node`; STAGE_NOBODY */
struct instant stage_clock(const struct stage *s, uint32_t node);
struct core_status stage_status(const struct stage *s, uint32_t node);
bool stage_noted(const struct stage *s, uint32_t node, enum core_note_kind kind);
uint64_t stage_count(const struct stage *s, enum core_count count); /* over all that run */

/* ---- links ---- */
void stage_mend(struct stage *s);                              /* makes every link that may be */
void stage_break(struct stage *s, uint32_t a, uint32_t b);     /* what is under way is lost */
void stage_close(struct stage *s, uint32_t who, uint32_t other); /* in order: the other one is told who did it */
void stage_cut(struct stage *s, uint32_t a, uint32_t b, bool cut); /* breaks it, and none is made until it heals */
void stage_isolate(struct stage *s, uint32_t node, bool cut);
bool stage_deliver(struct stage *s, uint32_t from, uint32_t to); /* the next frame, held or not; false: there is none */
void stage_drop(struct stage *s, uint32_t from, uint32_t to);    /* the next frame is lost, if there is one */
bool stage_head_is(const struct stage *s, uint32_t from, uint32_t to, enum message_kind kind);
/* Everything but what is held or stopped, until nothing moves. */
void stage_settle(struct stage *s);
void stage_stop(struct stage *s, uint32_t from, uint32_t to, enum message_kind kind, bool stop);
/* Messages of a kind are lost from now on, and nothing else of their frames. */
void stage_lose(struct stage *s, uint32_t from, uint32_t to, enum message_kind kind, bool lose);
/* One message of `from` is handled at `to` now, whatever is under way. */
void stage_inject(struct stage *s, uint32_t from, uint32_t to, const struct message *m);
uint64_t stage_sent(const struct stage *s, enum message_kind kind); /* so far, over all links */

/* ---- time ---- */
void stage_wait(struct stage *s, span_ns span); /* passes in steps of the nodes' deadlines, and settles after each */
void stage_jump(struct stage *s, span_ns span); /* passes at once; nobody does anything */
void stage_tick(struct stage *s);               /* those whose deadline has come take a turn */
bool stage_until_voting(struct stage *s, uint32_t node, span_ns limit);

/* ---- clients ---- */
struct id128 stage_lock(uint8_t number);
/* Fills in the id; the client is the node's number + 1 unless it is set. Does not settle. */
uint64_t stage_ask(struct stage *s, uint32_t node, struct core_request request);
const struct stage_reply *stage_answer(const struct stage *s, uint64_t id); /* NULL: none yet */
void stage_client_gone(struct stage *s, uint32_t node, uint64_t client);
struct core_request stage_acquire(const char *key, struct id128 lock_id, span_ns lease, span_ns wait);
struct core_request stage_request(enum core_op op, const char *key, struct id128 lock_id);
/* Asks, settles, and returns the error; PAWL_ECLOSED: no answer yet. */
int stage_do(struct stage *s, uint32_t node, struct core_request request);
const struct stage_reply *stage_last(const struct stage *s); /* the newest reply */

/* ---- news ---- */
void stage_want_news(struct stage *s, uint32_t node);
const struct stage_news *stage_next_news(struct stage *s, uint32_t node); /* of this node, in order; drops those of others; NULL: no more */

/* ---- shared by the stage's files ---- */
void stage_take_news(struct stage *s, uint32_t node, const struct core_watch_event *watch_event);
void stage_link_down(struct stage *s, uint32_t a, uint32_t b, bool closed);
void stage_link_send(struct stage *s, uint32_t from, uint32_t to, const struct frame *frame);
void stage_step_done(struct stage *s, uint32_t node); /* after every core_step */
void stage_take_reply(struct stage *s, const struct core_reply *reply);
void stage_fifo_clear(struct stage *s, struct stage_fifo *f);
bool stage_awake(const struct stage *s, uint32_t node);

#endif
