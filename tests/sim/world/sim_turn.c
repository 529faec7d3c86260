/* sim_turn.c: one turn of a node's loop: first everything that has arrived, then time, then
 * everything that may leave. */
#include <stdlib.h>

#include "check.h"
#include "pawl/error.h"
#include "sim_impl.h"

static void turn(void *ctx, uint64_t arg);

void sim_node_wake(struct sim_node *node) {
	if (node->core && !node->woken && !sim_node_paused(node)) {
		node->woken = true;
		sim_at(node->sim, node->sim->now +
			sim_between(node->sim, 0, node->sim->options.loop_lag_max), turn, node, 0);
	}
}

void sim_node_deliver(struct sim_node *node, struct sim_item *take_item) {
	if (!node->core) {
		free(take_item);
		return;
	}
	sim_fifo_put(&node->inbox, take_item);
	sim_node_wake(node);
}

static void handle_hello(struct sim_node *node, const struct sim_item *item) {
	struct sim_end *end = &item->link->ends[item->end];
	uint32_t from = item->link->ends[!item->end].node;
	if (!end->open) {
		return;
	}
	struct sim_link *old = node->links[from];
	/* A new link replaces the old one. */
	if (old) {
		uint32_t side = old->ends[0].node == node->index ? 0 : 1;
		sim_link_drop(&old->ends[side], false);
		sim_node_step(node, &(struct core_event){ .kind = CORE_PEER_DOWN,
			.peer = node->peer_of[from] });
	}
	if (node->peer_of[from] == TRACE_NONE) {
		int peer = core_welcome(node->core, node->sim->nodes[from].name);
		sim_node_table(node);
		if (peer < 0) {
			sim_link_drop(end, false);
			return;
		}
		CHECK(node->peer_of[from] == (uint32_t)peer);
	}
	node->links[from] = item->link;
	sim_trace_fault(node->sim, "link up to", node->index, from, item->boot);
	sim_node_step(node, &(struct core_event){ .kind = CORE_PEER_UP, .peer = node->peer_of[from],
		.peer_id = item->id, .peer_boot = item->boot });
}

static void handle_end(struct sim_node *node, const struct sim_item *item) {
	struct sim_end *end = &item->link->ends[item->end];
	uint32_t from = item->link->ends[!item->end].node;
	bool told = node->links[from] == item->link;
	sim_link_drop(end, false);
	if (told) {
		sim_trace_fault(node->sim, "link down to", node->index, from, item->closed);
		sim_node_step(node, &(struct core_event){ .kind = CORE_PEER_DOWN,
			.peer = node->peer_of[from], .closed = item->closed });
	}
}

/* As the daemon does, it answers with memory of its own. */
static void refuse_unheard(struct sim_node *node, const struct core_request *request) {
	if (core_out_unheard(node->out)) {
		const struct core_reply busy = { .id = request->id, .client = request->client,
			.op = request->op, .error = PAWL_EBUSY, .field = "memory" };
		sim_session_reply(node, &busy);
	}
}

static void handle_request(struct sim_node *node, struct sim_item *item) {
	struct core_request *request = &item->request;
	struct sim_trace_record r = { .at = node->sim->now, .kind = TRACE_REQUEST,
		.node = node->index, .other = (uint32_t)request->client,
		.key = sim_name_key_number(request->key),
		.lock = sim_name_lock_number(request->lock_id), .token = request->token,
		.a = request->id, .b = (uint64_t)request->lease / 1000000 };
	r.text = sim_op_name(request->op);
	sim_look_subject(node->sim, SIM_REQUEST | request->id, r.key, r.lock);
	sim_trace_add(&node->sim->trace, &r);
	if (node->sim->observer.asked) {
		node->sim->observer.asked(node->sim->observer.ctx, node->index, request);
	}
	sim_session_asked(node, request);
	sim_node_step(node, &(struct core_event){ .kind = CORE_REQUEST, .request = request });
	refuse_unheard(node, request);
}

static void handle(struct sim_node *node, struct sim_item *item) {
	switch (item->kind) {
	case ITEM_FRAME:
		if (item->link->ends[item->end].open &&
			!sim_link_receive(&item->link->ends[item->end], item)) {
			handle_end(node, item);
		}
		break;
	case ITEM_HELLO:
		handle_hello(node, item);
		break;
	case ITEM_END:
		if (item->link->ends[item->end].open) {
			handle_end(node, item);
		}
		break;
	case ITEM_REQUEST:
		handle_request(node, item);
		break;
	case ITEM_GONE:
		sim_node_step(node,
			&(struct core_event){ .kind = CORE_CLIENT_GONE, .client = item->session });
		sim_session_gone(node, item->session);
		break;
	case ITEM_PERSISTED:
		sim_node_step(node, &(struct core_event){ .kind = CORE_PERSISTED,
			.persist_seq = item->seq, .persist_ok = item->ok });
		break;
	}
}

/* A node never takes a link that it has closed to be up. */
static void check_known(const struct sim_node *node, uint32_t peer) {
	struct core_status status;
	core_status(node->core, sim_clock_read(&node->clock, node->sim->now), &status);
	CHECK(!status.peers[peer].linked);
}

/* Links that the core gives up take what is unread and unsent with them, also between two items of
 * one turn. */
static void reset_links(struct sim_node *node) {
	uint64_t resets = core_out_resets(node->out);
	for (uint32_t peer = 0; resets; peer++, resets >>= 1) {
		if (resets & 1) {
			struct sim_link *link = node->node_of[peer] == TRACE_NONE ? NULL
				: node->links[node->node_of[peer]];
			if (link) {
				sim_trace_fault(node->sim, "reset link to", node->index,
					node->node_of[peer], 0);
				check_known(node, peer);
				sim_link_drop(&link->ends[link->ends[0].node == node->index ? 0
					: 1], false);
			}
		}
	}
}

void sim_turn_between(struct sim_node *node, const struct sim_link *link) {
	reset_links(node);
	const struct sim_item *next = node->inbox.head;
	bool of_link = next && (next->kind == ITEM_FRAME || next->kind == ITEM_HELLO ||
		next->kind == ITEM_END) && next->link == link;
	if (next && !of_link && node->core) {
		struct sim_item *item = sim_fifo_take(&node->inbox);
		handle(node, item);
		reset_links(node);
		free(item);
	}
}

static void handle_inbox(struct sim_node *node) {
	for (struct sim_item *item; (item = sim_fifo_take(&node->inbox));) {
		handle(node, item);
		reset_links(node);
		free(item);
	}
}

static void tick(void *ctx, uint64_t arg) {
	struct sim_node *node = ctx;
	if (node->tick_number == arg && node->core) {
		node->tick_at = INT64_MAX;
		sim_node_wake(node);
	}
}

static void arm_tick(struct sim_node *node) {
	int64_t at = sim_clock_when(&node->clock, node->sim->now, core_deadline(node->core));
	if (at == node->tick_at) {
		return;
	}
	node->tick_number++;
	node->tick_at = at;
	if (at != INT64_MAX) {
		sim_at(node->sim, at, tick, node, node->tick_number);
	}
}

static void send_frames(struct sim_node *node) {
	struct frame frame;
	for (uint32_t i = 0; i < node->sim->n; i++) {
		while (i != node->index && node->links[i] &&
			core_out_frame(node->out, node->peer_of[i], &frame)) {
			struct sim_link *link = node->links[i];
			if (sim_shortage_full(node, i)) {
				sim_trace_fault(node->sim, "no room for a frame: drops link to",
					node->index, i, 0);
				sim_link_drop(&link->ends[link->ends[0].node == node->index ? 0
					: 1], false);
				node->lost |= 1u << i;
			} else {
				sim_link_send(node, i, &frame);
			}
			core_out_sent(node->out, node->peer_of[i]);
		}
	}
}

/* As the daemon does (src/node/driver/driver.c), it tells the core before anything else steps
 * it. */
static bool tell_lost(struct sim_node *node) {
	bool any = node->lost != 0;
	for (uint32_t i = 0; node->lost; i++) {
		if (node->lost >> i & 1) {
			node->lost &= ~(1u << i);
			if (node->peer_of[i] != TRACE_NONE) {
				sim_node_step(node, &(struct core_event){ .kind = CORE_PEER_DOWN,
					.peer = node->peer_of[i] });
				reset_links(node);
			}
		}
	}
	return any;
}

void sim_turn_flush(struct sim_node *node) {
	reset_links(node);
	sim_disk_begin(node);
	do {
		send_frames(node);
	} while (tell_lost(node));
	const struct core_reply *reply;
	while ((reply = core_out_reply(node->out))) {
		sim_session_reply(node, reply);
	}
	const struct core_watch_event *watch_event;
	while ((watch_event = core_out_watch_event(node->out))) {
		sim_look_watch_event(node, watch_event);
		if (node->sim->observer.watch_event) {
			node->sim->observer.watch_event(node->sim->observer.ctx, node->index,
				watch_event);
		}
	}
	const struct core_note *note;
	while ((note = core_out_note(node->out))) {
		sim_look_note(node, note);
	}
	core_out_clear(node->out);
	arm_tick(node);
}

static void turn(void *ctx, uint64_t arg) {
	(void)arg;
	struct sim_node *node = ctx;
	node->woken = false;
	if (!node->core || sim_node_paused(node)) {
		return;
	}
	if (node->flush_held) {
		node->flush_held = false;
		sim_turn_flush(node);
	}
	handle_inbox(node);
	if (core_deadline(node->core) <= sim_clock_read(&node->clock, node->sim->now).boot) {
		sim_node_step(node, &(struct core_event){ .kind = CORE_TICK });
	}
	if (node->stall || sim_ppm(node->sim, node->sim->adversary.stall_ppm)) {
		node->stall = false;
		node->flush_held = true;
		sim_node_pause(node->sim, node->index,
			sim_between(node->sim, 0, node->sim->adversary.late_max));
		return;
	}
	sim_turn_flush(node);
}
