/* sim_liar.c: a node that says other things than its core does: what it sends is altered, and
 * frames are sent that its core knows nothing of. */
#include "sim_impl.h"

void sim_liar_set(struct sim *sim, const struct sim_liar *liar) {
	sim->liar = liar ? *liar : (struct sim_liar){ .node = TRACE_NONE };
}

/* Returns what leaves for `to` instead of the frame; mostly that is the frame itself. */
const struct frame *sim_liar_says(struct sim_node *node, uint32_t to, const struct frame *frame,
	struct sim_lie *room) {
	const struct sim_liar *liar = &node->sim->liar;
	if (!liar->heard || (node->index != liar->node && to != liar->node)) {
		return frame;
	}
	liar->heard(liar->ctx, frame);
	if (node->index != liar->node) {
		return frame;
	}
	room->frame = *frame;
	room->frame.clock = frame->clock < TOKEN_MAX - liar->ahead ? frame->clock + liar->ahead
		: TOKEN_MAX;
	if (frame->count > 0 && frame->count <= SIM_TAMPERED) {
		memcpy(room->messages, frame->messages, frame->count * sizeof *frame->messages);
		struct frame said = room->frame;
		said.messages = room->messages;
		room->frame = liar->tampers(liar->ctx, to, &said, room->messages) ? said
			: room->frame;
	}
	return &room->frame;
}

struct frame sim_forged(struct sim *sim, uint32_t from, uint32_t to) {
	struct core_status of, own;
	core_status(sim->nodes[to].core, sim_node_clock(sim, to), &of);
	core_status(sim->nodes[from].core, sim_node_clock(sim, from), &own);
	return (struct frame){ .epoch = of.epoch, .config_hash = of.config_hash,
		.sender = sim->nodes[from].disk.node_id, .boot = own.boot,
		.clock = own.clock < TOKEN_MAX - sim->liar.ahead ? own.clock + sim->liar.ahead
		: TOKEN_MAX, .flags = FRAME_VOTING | FRAME_COMPLETE };
}

bool sim_forge_frame(struct sim *sim, uint32_t from, uint32_t to, const struct frame *frame) {
	buffer_clear(&sim->scratch);
	if (!sim_linked(sim, from, to) || peer_frame_encode(frame, &sim->scratch) != 0) {
		return false;
	}
	sim_link_put(&sim->nodes[from], to, frame);
	return true;
}

bool sim_forge(struct sim *sim, uint32_t from, uint32_t to, const struct message *m) {
	if (!sim_linked(sim, from, to)) {
		return false;
	}
	struct frame frame = sim_forged(sim, from, to);
	frame.messages = m;
	frame.count = 1;
	return sim_forge_frame(sim, from, to, &frame);
}

size_t sim_node_memory(const struct sim *sim, uint32_t node) {
	return sim->nodes[node].memory.used;
}
