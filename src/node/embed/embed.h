/* embed.h: inside libpawl-node: a node and the program's calls on it. include/pawl/node.h is the outside.
 *
 * Callbacks run from one event of their own, `deliver`, so that the program may do anything in them, even free the node:
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

#define EMBED_CALLS_MAX 65536

struct embed_told { /* what on_changed is about */
	enum core_state state;
	bool master, settled, complete;
	uint64_t epoch;
};

struct pawl_node {
	struct event_base *base;
	struct allocator alloc;
	struct node_config *config;
	struct node *node;
	struct log log;
	pawl_node_log_fn *on_line;
	pawl_node_changed_fn *on_changed;
	void *arg;
	char identity[NODE_NAME_MAX + 8]; /* under which the program's locks are held */
	char host[HOST_NAME_MAX + 1];     /* where it runs; empty: not known */
	bool started, doomed;
	unsigned busy; /* callbacks under way */
	struct event *deliver;
	struct map calls;  /* by id */
	struct list under_way, done;
	uint64_t last_id;
	bool changed;
	struct embed_told told;
	pawl_node_drained_fn *drained;
	void *drained_arg;
	bool draining, drained_due;
	int drained_error;
	struct arena read; /* bytes of the last read */
};

struct pawl_node_call {
	struct map_node by_id;
	struct list among; /* under way, or done */
	struct pawl_node *node;
	uint64_t id;
	struct instant asked;
	pawl_node_done_fn *done;
	void *arg;
	struct slice key; /* of an acquire and a bond, in `bytes` */
	bool rolls_back;  /* an acquire: when it is canceled */
	struct id128 lock_id;
	struct pawl_node_result result;
	struct pawl_entry *entries; /* of a list, which may come in several replies: with room for so many */
	size_t room;
	struct arena bytes;
};

/* embed_options.c: 0, PAWL_EINVAL or PAWL_ENOMEM with *problem set. */
int embed_options_read(const struct pawl_node_options *options, struct node_config **out, struct problem *problem);

/* embed_change.c: 0 or PAWL_EINVAL; what is read points into `from` and into itself. */
struct embed_change {
	struct core_change change;
	struct core_change_node nodes[PAWL_CHANGE_NODES_MAX];
};
int embed_change_read(const struct pawl_change *from, struct embed_change *out);

/* embed_request.c: 0, PAWL_EINVAL or PAWL_EIO (no randomness); what is read points into `from` and into the room. */
struct embed_request {
	struct embed_change change;
	uint8_t label[LABEL_MAX];
};
int embed_request_read(const struct pawl_node *node, const struct pawl_request *from, struct embed_request *room, struct core_request *out);

/* embed_ask.c */
void embed_on_reply(void *ctx, const struct core_reply *reply);
void embed_finish(struct pawl_node_call *take_call); /* calls back and frees */
void embed_cancel_all(struct pawl_node *node);

/* embed_entry.c: 0 or PAWL_ENOMEM; what is given out is in the arena, bytes with a NUL behind them. */
extern const struct pawl_bytes embed_no_bytes;
extern const struct pawl_entry embed_no_entry;
int embed_entry(struct arena *arena, const struct core_entry *from, bool contested, struct pawl_entry *out);
int embed_waiter(struct arena *arena, const struct core_waiter *from, const char *node, struct pawl_waiter *out);
int embed_bytes(struct arena *arena, struct slice from, struct pawl_bytes *out);
int embed_text(struct arena *arena, struct slice from, const char **out);
int embed_slots(struct arena *arena, const struct terms *terms, const uint32_t **out, size_t *out_count);
enum pawl_mode embed_mode(const struct terms *terms);

/* embed_read.c */
int embed_seq_copy(struct arena *arena, struct ballot from, struct pawl_bytes *out);
bool embed_seq_parse(struct pawl_bytes from, struct ballot *out); /* false: it is none */
int64_t embed_age_ms(const struct core_status *status);           /* -1: not known */

#endif
