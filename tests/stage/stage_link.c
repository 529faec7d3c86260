/* stage_link.c: the links. Each way keeps the order, and everything waits until it is delivered. */
#include <stdio.h>

#include "check.h"
#include "stage.h"

static void fifo_put(struct stage_fifo *f, struct stage_frame *frame) {
	frame->next = NULL;
	if (f->tail) {
		f->tail->next = frame;
	} else {
		f->head = frame;
	}
	f->tail = frame;
	f->count++;
}

static struct stage_frame *fifo_take(struct stage_fifo *f) {
	struct stage_frame *frame = f->head;
	if (frame) {
		f->head = frame->next;
		f->tail = f->head ? f->tail : NULL;
		f->count--;
	}
	return frame;
}

void stage_fifo_clear(struct stage *s, struct stage_fifo *f) {
	for (struct stage_frame *frame; (frame = fifo_take(f)) != NULL;) {
		alloc_free(s->options.own, frame, sizeof *frame + frame->size);
	}
}

static void send(struct stage *s, uint32_t from, uint32_t to, const struct frame *frame) {
	buffer_clear(&s->scratch);
	CHECK(peer_frame_encode(frame, &s->scratch) == 0);
	struct stage_frame *copy = alloc_new(s->options.own, sizeof *copy + s->scratch.size);
	CHECK(copy != NULL);
	copy->size = s->scratch.size;
	memcpy(copy->bytes, s->scratch.data, copy->size);
	for (size_t i = 0; i < frame->count; i++) {
		copy->kinds |= MESSAGE_BIT(frame->messages[i].kind);
		s->sent[from][to][frame->messages[i].kind]++;
	}
	fifo_put(&s->links[from][to], copy);
}

void stage_link_send(struct stage *s, uint32_t from, uint32_t to, const struct frame *frame) {
	if (!s->up[from][to]) {
		return;
	}
	if (s->loses[from][to] == 0) {
		send(s, from, to, frame);
		return;
	}
	struct frame rest = *frame;
	struct message *kept = alloc_new(s->options.own, (frame->count + 1) * sizeof *kept);
	CHECK(kept != NULL);
	rest.messages = kept;
	rest.count = 0;
	for (size_t i = 0; i < frame->count; i++) {
		if (!(s->loses[from][to] >> frame->messages[i].kind & 1)) {
			kept[rest.count++] = frame->messages[i];
		}
	}
	send(s, from, to, &rest);
	alloc_free(s->options.own, kept, (frame->count + 1) * sizeof *kept);
}

bool stage_deliver(struct stage *s, uint32_t from, uint32_t to) {
	struct stage_frame *f = stage_awake(s, to) ? fifo_take(&s->links[from][to]) : NULL;
	if (f == NULL) {
		return false;
	}
	struct slice body;
	struct frame frame;
	CHECK(peer_scan(slice_of(f->bytes, f->size), PEER_BODY_BYTES_MAX, &body, NULL) ==
		PEER_SCAN_COMPLETE);
	CHECK(peer_frame_decode(&s->decoder, body, &frame) == 0);
	stage_step(s, to, &(struct core_event){ .kind = CORE_FRAME, .peer = stage_peer(s, to, from),
		.frame = &frame });
	alloc_free(s->options.own, f, sizeof *f + f->size);
	return true;
}

void stage_drop(struct stage *s, uint32_t from, uint32_t to) {
	struct stage_frame *f = fifo_take(&s->links[from][to]);
	if (f) {
		alloc_free(s->options.own, f, sizeof *f + f->size);
	}
}

bool stage_head_is(const struct stage *s, uint32_t from, uint32_t to, enum message_kind kind) {
	const struct stage_frame *f = s->links[from][to].head;
	return f && (f->kinds >> kind & 1);
}

static bool may_pass(const struct stage *s, uint32_t from, uint32_t to) {
	const struct stage_frame *f = s->links[from][to].head;
	return f && stage_awake(s, to) && !s->held[from][to] && !(f->kinds & s->stops[from][to]);
}

void stage_settle(struct stage *s) {
	uint32_t delivered = 0;
	for (bool any = true; any;) {
		any = false;
		for (uint32_t from = 0; from < s->count; from++) {
			for (uint32_t to = 0; to < s->count; to++) {
				if (may_pass(s, from, to)) {
					any = stage_deliver(s, from, to);
					/* Otherwise they talk for ever. */
					CHECK(++delivered < 100000);
				}
			}
		}
	}
}

void stage_stop(struct stage *s, uint32_t from, uint32_t to, enum message_kind kind, bool stop) {
	message_set bit = MESSAGE_BIT(kind);
	s->stops[from][to] = stop ? s->stops[from][to] | bit : s->stops[from][to] & ~bit;
}

void stage_lose(struct stage *s, uint32_t from, uint32_t to, enum message_kind kind, bool lose) {
	message_set bit = MESSAGE_BIT(kind);
	s->loses[from][to] = lose ? s->loses[from][to] | bit : s->loses[from][to] & ~bit;
}

uint64_t stage_sent(const struct stage *s, enum message_kind kind) {
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		for (uint32_t j = 0; j < s->count; j++) {
			n += s->sent[i][j][kind];
		}
	}
	return n;
}

/* ---- making and breaking ---- */

/* What is under way both ways is lost. `node` is told now, or when it goes on. `closed`: the peer
 * closed the link. */
void stage_link_down(struct stage *s, uint32_t node, uint32_t peer, bool closed) {
	s->up[node][peer] = false;
	stage_fifo_clear(s, &s->links[node][peer]);
	stage_fifo_clear(s, &s->links[peer][node]);
	if (stage_awake(s, node) && stage_peer(s, node, peer) != STAGE_NOBODY) {
		stage_step(s, node, &(struct core_event){ .kind = CORE_PEER_DOWN,
			.peer = stage_peer(s, node, peer), .closed = closed });
	} else if (!stage_awake(s, node)) {
		s->nodes[node].down_pending[peer] = s->nodes[node].core != NULL;
	}
}

void stage_break(struct stage *s, uint32_t a, uint32_t b) {
	if (s->up[a][b]) {
		s->up[a][b] = s->up[b][a] = false;
		stage_link_down(s, a, b, false);
		stage_link_down(s, b, a, false);
	}
}

void stage_close(struct stage *s, uint32_t who, uint32_t other) {
	if (s->up[who][other]) {
		s->up[who][other] = s->up[other][who] = false;
		stage_link_down(s, who, other, false);
		stage_link_down(s, other, who, true);
	}
}

void stage_cut(struct stage *s, uint32_t a, uint32_t b, bool cut) {
	s->cut[a][b] = s->cut[b][a] = cut;
	if (cut) {
		stage_break(s, a, b);
	}
}

void stage_isolate(struct stage *s, uint32_t node, bool cut) {
	for (uint32_t i = 0; i < s->count; i++) {
		if (i != node) {
			stage_cut(s, node, i, cut);
		}
	}
}

static void peer_up(struct stage *s, uint32_t node, uint32_t peer) {
	struct stage_node *n = &s->nodes[node];
	if (!s->up[node][peer]) {
		/* The other end did not take the link. */
		return;
	}
	if (n->peer_of[peer] == STAGE_NOBODY) {
		char name[16];
		snprintf(name, sizeof name, "n%u", peer + 1);
		CHECK(core_welcome(n->core, name) >= 0);
		stage_step_done(s, node);
	}
	stage_step(s, node, &(struct core_event){ .kind = CORE_PEER_UP, .peer = n->peer_of[peer],
		.peer_id = s->nodes[peer].disk.node_id, .peer_boot = stage_status(s, peer).boot,
		.peer_no_master = s->nodes[peer].no_master });
}

/* Whether the node knows the other one and its address, and the link is its to make. */
static bool dials(const struct stage *s, uint32_t node, uint32_t peer) {
	const struct core *core = s->nodes[node].core;
	uint32_t index = stage_peer(s, node, peer);
	return index != STAGE_NOBODY && core_peer_dialled(core, index) &&
		strcmp(core_peer(core, index)->address, s->nodes[peer].address) == 0;
}

void stage_mend(struct stage *s) {
	for (uint32_t a = 0; a < s->count; a++) {
		for (uint32_t b = a + 1; b < s->count; b++) {
			if (!s->up[a][b] && !s->cut[a][b] && stage_awake(s, a) &&
				stage_awake(s, b) && (dials(s, a, b) || dials(s, b, a))) {
				s->up[a][b] = s->up[b][a] = true;
				peer_up(s, a, b);
				peer_up(s, b, a);
			}
		}
	}
}

/* ---- a message that no node has just sent: late, repeated, or one that no right node would send
 * ---- */

void stage_inject(struct stage *s, uint32_t from, uint32_t to, const struct message *m) {
	struct core_status status = stage_status(s, to);
	struct core_status sender = stage_status(s, from);
	struct frame frame = { .epoch = status.epoch, .config_hash = status.config_hash,
		.sender = s->nodes[from].disk.node_id, .boot = sender.boot, .clock = sender.clock,
		.flags = FRAME_VOTING, .messages = m, .count = 1 };
	stage_step(s, to, &(struct core_event){ .kind = CORE_FRAME, .peer = stage_peer(s, to, from),
		.frame = &frame });
}
