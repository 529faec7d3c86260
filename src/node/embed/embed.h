/* embed.h: a node inside a program, and the program's calls on it. Only the code of libpawl-node
 * includes this; the public header is include/pawl/node.h.
 *
 * Callbacks run from an event of their own, `deliver`, so that the program may do anything in them,
 * and even free the node:
 *
 *   driver_flush --reply, state, drained--> marked here --deliver--> the program's callbacks
 */
#ifndef PAWL_NODE_EMBED_H
#define PAWL_NODE_EMBED_H

#include <limits.h>

#include "buffer.h"
#include "config_file.h"
#include "driver.h"
#include "list.h"
#include "map.h"
#include "node.h"
#include "pawl/node.h"

/* The largest number of calls under way at once. */
#define EMBED_CALLS_MAX 65536

/* What the program was last told through on_changed. */
struct embed_told {
	enum core_state state;
	bool master, settled, complete;
	uint64_t epoch;
};

/* A node inside a program. */
struct pawl_node {
	struct event_base *base;
	struct allocator alloc;
	struct node_config *config;
	struct node *node;
	struct log log;
	pawl_node_log_fn *on_line;
	pawl_node_changed_fn *on_changed;
	void *arg;

	/* The identity under which the program's locks are held. */
	char identity[NODE_NAME_MAX + 8];
	/* The machine on which the node runs; empty if it is not known. */
	char host[HOST_NAME_MAX + 1];

	/* `started`: pawl_node_start has succeeded. `doomed`: the node is to be freed as soon as no
	 * callback is under way. */
	bool started, doomed;

	/* The number of callbacks under way. */
	unsigned busy;
	/* Calls the callbacks that are due, on the next turn of the loop. */
	struct event *deliver;

	/* The calls under way, by id. */
	struct map calls;
	/* The calls under way, and the calls whose callback is due. */
	struct list under_way, done;

	/* The id of the last call. */
	uint64_t last_id;

	/* on_changed is due. */
	bool changed;
	struct embed_told told;

	/* The callback of pawl_node_drain. `draining`: that was called. `drained_due`: the callback
	 * is to be called, with `drained_error`. */
	pawl_node_drained_fn *drained;
	void *drained_arg;
	bool draining, drained_due;
	int drained_error;

	/* The bytes of the last read. */
	struct arena read;
};

/* A request of the program. */
struct pawl_node_call {
	struct map_node by_id;
	/* Linked into `under_way` or `done` of the node. */
	struct list among;
	struct pawl_node *node;
	uint64_t id;
	/* When the program made the call. */
	struct instant asked;
	pawl_node_done_fn *done;
	void *arg;

	/* The key of an acquire or of a session binding; it lies in `bytes`. */
	struct slice key;
	/* This is an acquire, so what it got is released when it is canceled. */
	bool rolls_back;
	struct id128 lock_id;

	struct pawl_node_result result;
	/* The entries of a list, which may come in several replies. There is space for `room` of
	 * them. */
	struct pawl_entry *entries;
	size_t room;

	/* The bytes that the key, the result and the entries point to. */
	struct arena bytes;
};

/* Reads the options of a program. Returns 0; or PAWL_EINVAL or PAWL_ENOMEM with *problem set
 * (embed_options.c). */
int embed_options_read(const struct pawl_node_options *options, struct node_config **out,
	struct problem *problem);

/* A change as the core takes it. What is read points into the program's struct and into this
 * one. */
struct embed_change {
	struct core_change change;
	struct core_change_node nodes[PAWL_CHANGE_NODES_MAX];
};
/* Returns 0 or PAWL_EINVAL (embed_change.c). */
int embed_change_read(const struct pawl_change *from, struct embed_change *out);

/* Room for what a request needs besides itself. */
struct embed_request {
	struct embed_change change;
	uint8_t label[LABEL_MAX];
};
/* Reads a request of the program; what is read points into `from` and into `room`. Returns 0,
 * PAWL_EINVAL, or PAWL_EIO if there is no randomness (embed_request.c). */
int embed_request_read(const struct pawl_node *node, const struct pawl_request *from,
	struct embed_request *room, struct core_request *out);

/* Takes a reply of the core (embed_ask.c). */
void embed_on_reply(void *ctx, const struct core_reply *reply);
/* Calls back, and frees the call. */
void embed_finish(struct pawl_node_call *take_call);

/* Ends all calls with PAWL_ECANCELED. */
void embed_cancel_all(struct pawl_node *node);

/* The functions below are in embed_entry.c. They return 0 or PAWL_ENOMEM. What they give is in the
 * arena; bytes have a NUL after them. */
extern const struct pawl_bytes embed_no_bytes;
extern const struct pawl_entry embed_no_entry;
int embed_entry(struct arena *arena, const struct core_entry *from, bool contested,
	struct pawl_entry *out);
int embed_waiter(struct arena *arena, const struct core_waiter *from, const char *node,
	struct pawl_waiter *out);
int embed_bytes(struct arena *arena, struct slice from, struct pawl_bytes *out);
int embed_text(struct arena *arena, struct slice from, const char **out);
int embed_slots(struct arena *arena, const struct terms *terms, const uint32_t **out,
	size_t *out_count);
enum pawl_mode embed_mode(const struct terms *terms);

/* The functions below are in embed_read.c. */
int embed_seq_copy(struct arena *arena, struct ballot from, struct pawl_bytes *out);
/* Returns false if `from` is not a sequence of a value. */
bool embed_seq_parse(struct pawl_bytes from, struct ballot *out);
/* Returns -1 if the age is not known. */
int64_t embed_age_ms(const struct core_status *status);

#endif
