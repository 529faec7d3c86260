/* sim_disk.c: what survives a process: the state file, which changes as a whole and only when it is
 * synced, and the side file of a drain. */
#include <stdlib.h>

#include "check.h"
#include "sim_impl.h"

static void write_ends(void *ctx, uint64_t arg) {
	struct sim_node *node = ctx;
	struct sim_write *w = &node->write;
	if (!w->busy || w->number != arg) {
		/* The process died meanwhile, and sim_disk_crash has decided. */
		return;
	}
	w->busy = false;
	if (!w->fails) {
		node->disk = w->state;
	}
	struct sim_item *item = sim_item_new(ITEM_PERSISTED, 0);
	item->seq = w->seq;
	item->ok = !w->fails;
	sim_node_deliver(node, item);
}

void sim_disk_begin(struct sim_node *node) {
	struct sim_write *w = &node->write;
	if (w->busy || !core_out_persist(node->out, &w->state, &w->seq)) {
		return;
	}
	w->busy = true;
	w->number = ++node->writes;
	w->fails = node->disk_fails;
	sim_at(node->sim, node->sim->now + sim_between(node->sim, node->disk_min, node->disk_max),
		write_ends, node, w->number);
}

/* A write under way is either whole or did not happen. */
void sim_disk_crash(struct sim_node *node) {
	if (node->write.busy && !node->write.fails && prng_chance(&node->sim->prng, 1, 2)) {
		node->disk = node->write.state;
	}
	node->write = (struct sim_write){ 0 };
}

void sim_disk_side_clear(struct sim_node *node) {
	for (struct sim_item *item = node->side.frames; item;) {
		struct sim_item *next = item->next;
		free(item);
		item = next;
	}
	node->side = (struct sim_side){ 0 };
}

void sim_node_lose_side_file(struct sim *sim, uint32_t node) {
	sim_disk_side_clear(&sim->nodes[node]);
}

void sim_disk_fresh(struct sim_node *node) {
	node->disk = (struct durable){ 0 };
	for (size_t i = 0; i < sizeof node->disk.node_id.b; i++) {
		node->disk.node_id.b[i] = (uint8_t)(1 + prng_below(&node->sim->prng, 255));
	}
}

void sim_node_lose_files(struct sim *sim, uint32_t index) {
	CHECK(!sim->nodes[index].core);
	sim_trace_fault(sim, "loses its files", index, TRACE_NONE, 0);
	sim_disk_side_clear(&sim->nodes[index]);
	sim_disk_fresh(&sim->nodes[index]);
}

static void side_append(struct sim_node *node, const struct frame *frame) {
	struct buffer *scratch = &node->sim->scratch;
	buffer_clear(scratch);
	CHECK(peer_frame_encode(frame, scratch) == 0);
	struct sim_item *item = sim_item_new(ITEM_FRAME, scratch->size);
	memcpy(item->bytes, scratch->data, scratch->size);
	if (node->side.last) {
		node->side.last->next = item;
	} else {
		node->side.frames = item;
	}
	node->side.last = item;
}

void sim_node_drain(struct sim *sim, uint32_t index, uint32_t crash_after) {
	struct sim_node *node = &sim->nodes[index];
	if (!node->core) {
		return;
	}
	sim_trace_fault(sim, "drain", index, TRACE_NONE, crash_after);
	sim_disk_side_clear(node);
	sim_node_step(node, &(struct core_event){ .kind = CORE_DRAIN });
	struct frame frame;
	uint32_t written = 0;
	while (written < crash_after &&
		core_drain_frame(node->core, sim_clock_read(&node->clock, sim->now), &frame)) {
		side_append(node, &frame);
		written++;
	}
	node->side.complete = written < crash_after;
	if (node->side.complete) {
		sim_turn_flush(node);
	}
	sim_node_end(node, false);
}

/* Feeds the side file to a core that was just made. The file is taken away first: it serves one
 * start only, whether it is complete or not. */
void sim_disk_restore(struct sim_node *node, bool *out_restored) {
	struct sim_side side = node->side;
	node->side = (struct sim_side){ 0 };
	struct peer_decoder decoder;
	peer_decoder_init(&decoder, &node->sim->alloc);
	for (struct sim_item *item = side.frames; item;) {
		struct sim_item *next = item->next;
		struct slice body;
		struct frame frame;
		if (side.complete) {
			CHECK(peer_scan(slice_of(item->bytes, item->size), PEER_BODY_BYTES_MAX,
				&body, NULL) == PEER_SCAN_COMPLETE);
			CHECK(peer_frame_decode(&decoder, body, &frame) == 0);
			sim_node_step(node,
				&(struct core_event){ .kind = CORE_RESTORE, .frame = &frame });
		}
		free(item);
		item = next;
	}
	peer_decoder_done(&decoder);
	*out_restored = side.complete;
}
