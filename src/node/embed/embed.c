/* embed.c: the life of a node inside a program. */
#include "embed.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pawl/error.h"
#include "time_source.h"

/* The largest size of one read: one entry with room to spare. */
#define READ_BYTES_MAX ((size_t)8 << 20)

static int embed_fail(int error, char why[PAWL_NODE_WHY], const char *text) {
	snprintf(why, PAWL_NODE_WHY, "%s", text);
	return error;
}

/* ---- what the program is told ---- */

static void embed_on_line(void *ctx, enum log_level level, const char *text) {
	struct pawl_node *node = ctx;
	node->on_line((int)level, text, node->arg);
}

static void embed_on_changed(void *ctx) {
	struct pawl_node *node = ctx;
	const struct driver *d = node_driver(node->node);
	struct core_status s;
	core_status(d->core, d->last, &s);
	const struct embed_told now = { s.state, s.master, s.settled, s.complete, s.epoch };
	if (now.state != node->told.state || now.master != node->told.master
		|| now.settled != node->told.settled || now.complete != node->told.complete
		|| now.epoch != node->told.epoch) {
		node->told = now;
		node->changed = true;
		event_active(node->deliver, EV_TIMEOUT, 0);
	}
}

static void embed_on_drained(void *ctx, int error) {
	struct pawl_node *node = ctx;
	node->drained_due = true;
	node->drained_error = error;
	event_active(node->deliver, EV_TIMEOUT, 0);
}

static void embed_destroy(struct pawl_node *node) {
	node->doomed = true;
	/* A callback that frees the node once more does nothing. */
	node->busy++;
	embed_cancel_all(node);
	node_free(node->node);
	if (node->deliver) {
		event_free(node->deliver);
	}
	map_done(&node->calls);
	arena_done(&node->read);
	node_config_free(node->config);
	free(node);
}

static void embed_deliver(evutil_socket_t fd, short what, void *ctx) {
	struct pawl_node *node = ctx;
	struct list *first;
	(void)fd;
	(void)what;
	node->busy++;
	while (!node->doomed && (first = list_first(&node->done)) != NULL) {
		embed_finish(CONTAINER_OF(first, struct pawl_node_call, among));
	}
	if (!node->doomed && node->changed) {
		node->changed = false;
		if (node->on_changed) {
			node->on_changed(node, node->arg);
		}
	}
	if (!node->doomed && node->drained_due) {
		node->drained_due = false;
		if (node->drained) {
			node->drained(node, node->drained_error, node->drained_arg);
		}
	}
	node->busy--;
	if (node->doomed) {
		embed_destroy(node);
	}
}

/* ---- life ---- */

static void embed_set_log(struct pawl_node *node, const struct pawl_node_options *o) {
	node->on_line = o->log;
	node->log.line = embed_on_line;
	node->log.ctx = node;
	/* Without a function for the lines, no level is important enough. */
	if (o->log) {
		node->log.level = o->log_level ? (enum log_level)o->log_level : LEVEL_INFO;
	}
}

static int embed_make(struct pawl_node *node, const struct pawl_node_options *o,
	char why[PAWL_NODE_WHY]) {
	struct problem problem;
	char text[NODE_WHY_BYTES] = "";
	int error = embed_options_read(o, &node->config, &problem);
	if (error) {
		return embed_fail(error, why, problem.text);
	}
	embed_set_log(node, o);
	if (gethostname(node->host, sizeof node->host - 1) != 0) {
		node->host[0] = '\0';
	}
	snprintf(node->identity, sizeof node->identity, "node:%s", node->config->name);
	const struct node_options options = { .base = node->base, .config = node->config,
		.log = &node->log };
	node->deliver = event_new(node->base, -1, 0, embed_deliver, node);
	if (!node->deliver || map_init(&node->calls, &node->alloc) != 0) {
		return embed_fail(PAWL_ENOMEM, why, "out of memory");
	}
	error = node_new(&options, &node->node, text);
	return error ? embed_fail(error, why, text) : 0;
}

int pawl_node_new(const struct pawl_node_options *options, struct pawl_node **out_node,
	char why[PAWL_NODE_WHY]) {
	if (!options || !options->base || !out_node
		|| (!options->masters && options->master_count)) {
		return embed_fail(PAWL_EINVAL, why, "options: base is missing, or master_count is "
			"set without masters");
	}
	struct pawl_node *node = calloc(1, sizeof *node);
	if (!node) {
		return embed_fail(PAWL_ENOMEM, why, "out of memory");
	}
	node->base = options->base;
	node->on_changed = options->on_changed;
	node->arg = options->arg;
	node->alloc = alloc_libc(NULL);
	list_init(&node->under_way);
	list_init(&node->done);
	arena_init(&node->read, &node->alloc, READ_BYTES_MAX);
	int error = embed_make(node, options, why);
	if (error) {
		embed_destroy(node);
		return error;
	}
	struct driver *d = node_driver(node->node);
	d->on_reply = embed_on_reply;
	d->on_changed = embed_on_changed;
	d->local_ctx = node;
	*out_node = node;
	return 0;
}

int pawl_node_start(struct pawl_node *node, char why[PAWL_NODE_WHY]) {
	char text[NODE_WHY_BYTES] = "";
	if (node->started || node->doomed) {
		return embed_fail(PAWL_EINVAL, why, "the node has already been started");
	}
	node->started = true;
	int error = node_start(node->node, text);
	if (error) {
		node->started = false;
		return embed_fail(error, why, text);
	}
	return 0;
}

int pawl_node_reload(struct pawl_node *node, char why[PAWL_NODE_WHY]) {
	char text[NODE_WHY_BYTES] = "";
	if (!node->started || node->doomed) {
		return embed_fail(PAWL_EINVAL, why, "the node has not been started");
	}
	struct rights *before = node->config->rights;
	struct problem problem = { "" };
	node->config->rights = NULL;
	int error = node_config_read_rights(node->config, &problem);
	snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, problem.text);
	error = error ? error : node_reload(node->node, node->config, text);
	if (error) {
		rights_free(node->config->rights);
		node->config->rights = before;
		return embed_fail(error, why, text);
	}
	rights_free(before);
	return 0;
}

int pawl_node_drain(struct pawl_node *node, pawl_node_drained_fn *done, void *arg) {
	if (!node->started || node->doomed) {
		return PAWL_EINVAL;
	}
	if (node->draining) {
		return PAWL_EBUSY;
	}
	int error = node_drain(node->node, embed_on_drained, node);
	if (!error) {
		node->draining = true;
		node->drained = done;
		node->drained_arg = arg;
	}
	return error;
}

void pawl_node_free(struct pawl_node *node) {
	if (!node || node->doomed) {
		return;
	}
	node->doomed = true;
	if (node->busy == 0) {
		embed_destroy(node);
	}
}

const char *pawl_node_address(const struct pawl_node *node) {
	return node_peer_address(node->node);
}

const char *pawl_node_client_address(const struct pawl_node *node, size_t n) {
	return node_client_address(node->node, n);
}
