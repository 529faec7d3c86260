/* sim_link.c: the links between nodes. As with TCP, each way of a link keeps the order, unless the
 * adversary says otherwise. */
#include <stdlib.h>

#include "check.h"
#include "sim_impl.h"

/* ---- arriving ---- */

static void pump(void *ctx, uint64_t arg);

static void arm_pump(struct sim_end *end) {
	if (!end->pumping && end->coming.head) {
		end->pumping = true;
		sim_at(end->sim, end->coming.head->at, pump, end, 0);
	}
}

static uint32_t other_node(const struct sim_end *end) {
	return end->link->ends[!end->number].node;
}

bool sim_link_alive(const struct sim_end *end) {
	const struct sim_node *node = &end->sim->nodes[end->node];
	return end->open && node->core && node->incarnation == end->incarnation;
}

static void pump(void *ctx, uint64_t arg) {
	(void)arg;
	struct sim_end *end = ctx;
	end->pumping = false;
	if (!sim_link_alive(end)) {
		sim_fifo_clear(&end->coming);
		return;
	}
	if (end->sim->cut[other_node(end)][end->node]) {
		/* It piles up until the cut heals. */
		return;
	}
	while (end->coming.head && end->coming.head->at <= end->sim->now) {
		sim_node_deliver(&end->sim->nodes[end->node], sim_fifo_take(&end->coming));
	}
	arm_pump(end);
}

/* Puts the item where its time of arrival belongs. Without the adversary, `at` never falls. */
static void put_coming(struct sim_end *end, struct sim_item *item) {
	struct sim_item **at = &end->coming.head;
	if (!end->coming.tail || end->coming.tail->at <= item->at) {
		sim_fifo_put(&end->coming, item);
	} else {
		while ((*at)->at <= item->at) {
			at = &(*at)->next;
		}
		item->next = *at;
		*at = item;
	}
	arm_pump(end);
}

static int64_t arrival(struct sim_end *end, span_ns late, bool overtaken) {
	struct sim *sim = end->sim;
	int64_t at = sim->now + sim_between(sim, sim->options.delay_min, sim->options.delay_max) +
		sim->extra[other_node(end)][end->node] + late;
	if (!overtaken) {
		end->last_at = at = at > end->last_at ? at : end->last_at;
	}
	return at;
}

static struct sim_item *item_for(struct sim_end *end, enum sim_item_kind kind, size_t size,
	int64_t at) {
	struct sim_item *item = sim_item_new(kind, size);
	item->link = end->link;
	item->end = end->number;
	item->at = at;
	return item;
}

void sim_link_hello(struct sim_end *to, struct id128 id, uint64_t boot) {
	struct sim_item *item = item_for(to, ITEM_HELLO, 0, arrival(to, 0, false));
	item->id = id;
	item->boot = boot;
	put_coming(to, item);
}

/* `closed`: the other side closed the link; otherwise the network broke. */
static void put_end(struct sim_end *to, span_ns late, bool closed) {
	struct sim_item *item = item_for(to, ITEM_END, 0, arrival(to, late, false));
	item->closed = closed;
	put_coming(to, item);
}

/* ---- sending ---- */

static void put_bytes(struct sim_end *to, const uint8_t *bytes, size_t size, message_set kinds,
	const struct sim_fate *fate) {
	struct sim_item *item = item_for(to, ITEM_FRAME, size,
		arrival(to, fate->late, fate->overtaken));
	memcpy(item->bytes, bytes, size);
	item->kinds = kinds;
	item->piece = fate->split;
	put_coming(to, item);
}

static message_set kinds_of(const struct frame *frame) {
	message_set kinds = 0;
	for (size_t i = 0; i < frame->count; i++) {
		kinds |= MESSAGE_BIT(frame->messages[i].kind);
	}
	return kinds;
}

/* Asks for leases that no coordinator would ask for: a master has to refuse them (R5). */
static struct message *stretch_leases(const struct frame *frame, span_ns lease) {
	struct message *messages = malloc(frame->count * sizeof *messages);
	CHECK(messages != NULL);
	memcpy(messages, frame->messages, frame->count * sizeof *messages);
	for (size_t i = 0; i < frame->count; i++) {
		if (messages[i].kind == MESSAGE_COMMIT || messages[i].kind == MESSAGE_EXTEND ||
			messages[i].kind == MESSAGE_EXTEND_PERMITS ||
			messages[i].kind == MESSAGE_LEARN) {
			messages[i].lease_us = (uint64_t)lease / 1000;
		}
	}
	return messages;
}

static void encode(struct sim *sim, const struct frame *frame) {
	struct frame copy = *frame;
	struct message *stretched = NULL;
	if (sim_ppm(sim, sim->adversary.lease_ppm)) {
		copy.messages = stretched = stretch_leases(frame, 20 * sim->options.max_lease);
	}
	if (sim_ppm(sim, sim->adversary.clock_ppm)) {
		copy.clock += CLOCK_JUMP_MAX + CLOCK_JUMP_MAX / 2;
	}
	buffer_clear(&sim->scratch);
	CHECK(peer_frame_encode(&copy, &sim->scratch) == 0);
	free(stretched);
}

void sim_link_send(struct sim_node *node, uint32_t to, const struct frame *frame) {
	struct sim *sim = node->sim;
	struct sim_link *link = node->links[to];
	struct sim_end *far = &link->ends[link->ends[0].node == node->index ? 1 : 0];
	sim->frames++;
	sim_look_frame(node, to, TRACE_SENT, frame);
	if (sim->follower.begins) {
		sim->follower.sent(sim->follower.ctx, node->index, to, frame);
	}
	if (sim->observer.sent) {
		sim->observer.sent(sim->observer.ctx, node->index, to, frame);
	}
	if (!sim_link_alive(far)) {
		return;
	}
	struct sim_lie room;
	frame = sim_liar_says(node, to, frame, &room);
	message_set kinds = kinds_of(frame);
	sim->snapshots_to[to] += (kinds &
		(MESSAGE_BIT(MESSAGE_SNAPSHOT_RECORD) | MESSAGE_BIT(MESSAGE_SNAPSHOT_RELEASED))) !=
		0;
	struct sim_fate fate = sim_adversary_sends(node, to, kinds);
	if (fate.lost) {
		return;
	}
	encode(sim, frame);
	size_t size = sim->scratch.size,
		first = fate.split ? 1 + (size_t)prng_below(&sim->prng, size - 1) : size;
	put_bytes(far, sim->scratch.data, first, first == size ? kinds : 0, &fate);
	/* A link that breaks in mid-frame never brings the rest. */
	if (first < size && !fate.closes) {
		put_bytes(far, sim->scratch.data + first, size - first, kinds, &fate);
	}
	if (fate.twice && first == size) {
		fate.overtaken = true;
		fate.late = sim_between(sim, 0, sim->adversary.late_max);
		put_bytes(far, sim->scratch.data, size, kinds, &fate);
	}
	if (fate.closes) {
		put_end(far, 0, false);
		struct sim_end *near = &link->ends[!far->number];
		put_end(near, sim_between(sim, 0, sim->options.request_timeout), false);
	}
}

void sim_link_put(struct sim_node *node, uint32_t to, const struct frame *frame) {
	struct sim *sim = node->sim;
	struct sim_link *link = node->links[to];
	struct sim_end *far = &link->ends[link->ends[0].node == node->index ? 1 : 0];
	put_bytes(far, sim->scratch.data, sim->scratch.size, kinds_of(frame),
		&(struct sim_fate){ .lost = false });
}

uint64_t sim_snapshots_to(const struct sim *sim, uint32_t node) {
	return sim->snapshots_to[node];
}

/* ---- receiving ---- */

/* How many messages of a frame are handled at once, if not all of them are. */
#define PIECE_MAX 4
/* One frame out of so many is handled in pieces. */
#define PIECES_OF 8

static void handle_piece(struct sim_end *end, const struct frame *frame) {
	struct sim *sim = end->sim;
	struct sim_node *node = &sim->nodes[end->node];
	uint32_t from = other_node(end);
	sim_look_frame(node, from, TRACE_HANDLED, frame);
	sim_node_step(node, &(struct core_event){ .kind = CORE_FRAME, .peer = node->peer_of[from],
		.frame = frame });
	if (sim->observer.handled) {
		sim->observer.handled(sim->observer.ctx, node->index, from, frame);
	}
}

/* Tells whether the node goes on with what is left of a frame: the link may have been lost. */
static bool goes_on(const struct sim_end *end) {
	const struct sim_node *node = &end->sim->nodes[end->node];
	uint32_t from = other_node(end);
	return end->open && node->core && node->links[from] == end->link &&
		node->peer_of[from] != TRACE_NONE;
}

/* The daemon handles a long frame in pieces, and other things in between (section 9). */
static bool handle_pieces(struct sim_end *end, struct slice body) {
	struct sim *sim = end->sim;
	struct sim_node *node = &sim->nodes[end->node];
	struct peer_progress progress = { .begun = false };
	bool good = true;
	node->in_pieces = true;
	do {
		struct frame frame;
		size_t most = 1 + (size_t)prng_below(&sim->pieces_prng, PIECE_MAX);
		good = peer_frame_decode_some(&sim->decoder, body, most, &progress, &frame) == 0;
		if (good) {
			handle_piece(end, &frame);
			sim_turn_between(node, end->link);
		}
	} while (good && progress.left > 0 && goes_on(end));
	node->in_pieces = false;
	return good;
}

static bool handle_frame(struct sim_end *end, struct slice body, message_set kinds) {
	struct sim *sim = end->sim;
	struct sim_node *node = &sim->nodes[end->node];
	struct frame frame;
	if (!node->in_pieces && prng_below(&sim->pieces_prng, PIECES_OF) == 0) {
		if (!handle_pieces(end, body)) {
			return false;
		}
	} else if (peer_frame_decode(&sim->decoder, body, &frame)) {
		return false;
	} else {
		handle_piece(end, &frame);
	}
	sim_adversary_handled(node, kinds);
	return true;
}

bool sim_link_receive(struct sim_end *end, struct sim_item *item) {
	struct sim *sim = end->sim;
	struct sim_node *node = &sim->nodes[end->node];
	if (node->links[other_node(end)] != end->link) {
		/* It overtook the hello: nobody listens yet. */
		return true;
	}
	struct slice in = slice_of(item->bytes, item->size), body;
	bool whole = end->partial.size == 0 &&
		peer_scan(in, PEER_BODY_BYTES_MAX, &body, NULL) == PEER_SCAN_COMPLETE;
	if (!whole) {
		CHECK(buffer_append(&end->partial, item->bytes, item->size) == 0);
		in = buffer_slice(&end->partial);
		switch (peer_scan(in, PEER_BODY_BYTES_MAX, &body, NULL)) {
		case PEER_SCAN_MORE:
			return true;
		case PEER_SCAN_GARBAGE:
			return false;
		case PEER_SCAN_COMPLETE:
			break;
		}
		if (body.size + PEER_PREFIX_BYTES != in.size) {
			return false;
		}
	}
	bool good = handle_frame(end, body, item->kinds);
	/* Only the halves of two frames that the adversary has mixed up are no frame. */
	CHECK(good || item->piece || !whole);
	buffer_clear(&end->partial);
	return good;
}

/* ---- breaking ---- */

void sim_link_drop(struct sim_end *end, bool quiet) {
	if (!end->open) {
		return;
	}
	struct sim_node *node = &end->sim->nodes[end->node];
	struct sim_end *far = &end->link->ends[!end->number];
	end->open = false;
	sim_fifo_clear(&end->coming);
	buffer_clear(&end->partial);
	if (node->links[far->node] == end->link) {
		node->links[far->node] = NULL;
	}
	if (!quiet && sim_link_alive(far)) {
		put_end(far, 0, true);
	}
	sim_link_dial(end->sim, end->node, far->node);
}

void sim_link_node_ends(struct sim_node *node, bool quiet) {
	for (struct sim_link *link = node->sim->links; link; link = link->next) {
		for (int i = 0; i < 2; i++) {
			if (link->ends[i].node == node->index) {
				sim_link_drop(&link->ends[i], quiet);
			}
		}
	}
}

void sim_link_close(struct sim *sim, uint32_t a, uint32_t b, bool mid_frame) {
	struct sim_link *link = sim->pairs[a < b ? a : b][a < b ? b : a].link;
	if (!link) {
		return;
	}
	sim_trace_fault(sim, "break link", a, b, mid_frame);
	for (int i = 0; i < 2; i++) {
		struct sim_end *end = &link->ends[i];
		if (!sim_link_alive(end)) {
			continue;
		}
		struct sim_item *last = end->coming.tail;
		if (mid_frame && last && last->kind == ITEM_FRAME && last->size > 1) {
			last->size /= 2;
			last->kinds = 0;
		}
		put_end(end, sim_between(sim, 0, sim->options.request_timeout / 2), false);
	}
}

bool sim_linked(const struct sim *sim, uint32_t a, uint32_t b) {
	return sim->nodes[a].core && sim->nodes[b].core && sim->nodes[a].links[b] &&
		sim->nodes[a].links[b] == sim->nodes[b].links[a];
}

/* ---- cutting ---- */

void sim_cut(struct sim *sim, uint32_t from, uint32_t to, bool cut) {
	if (from == to || sim->cut[from][to] == cut) {
		return;
	}
	sim_trace_fault(sim, cut ? "cut to" : "heal to", from, to, 0);
	sim->cut[from][to] = cut;
	for (struct sim_link *link = cut ? NULL : sim->links; link; link = link->next) {
		for (int i = 0; i < 2; i++) {
			struct sim_end *end = &link->ends[i];
			if (end->node == to && other_node(end) == from) {
				arm_pump(end);
			}
		}
	}
}

void sim_isolate(struct sim *sim, uint32_t node, bool cut) {
	for (uint32_t i = 0; i < sim->n; i++) {
		sim_cut(sim, node, i, cut);
		sim_cut(sim, i, node, cut);
	}
}

void sim_delays(struct sim *sim, span_ns min, span_ns max) {
	sim->options.delay_min = min;
	sim->options.delay_max = max;
}

void sim_link_delay(struct sim *sim, uint32_t from, uint32_t to, span_ns extra) {
	sim->extra[from][to] = extra;
}

void sim_link_free_all(struct sim *sim) {
	while (sim->links) {
		struct sim_link *link = sim->links;
		sim->links = link->next;
		for (int i = 0; i < 2; i++) {
			sim_fifo_clear(&link->ends[i].coming);
			buffer_done(&link->ends[i].partial);
		}
		free(link);
	}
}
