/* fuzz_member.c: a member that lies, after the hello. There are three masters on a stage
 * (tests/stage), with real cores and the real codec. The core of one of them runs like the others'.
 * In addition that master says whatever the input chooses: what was said before with other fields,
 * answers to it, messages of any kind, bytes. And what its core sends is altered on the way. In
 * between the input lets clients and operators ask, time pass, and links, nodes and disks fail.
 * Every invariant is checked after every step. In the end the liar is gone for good: if the set is
 * what it was, the others vote, and grant a key, within the waits of the protocol. */
#include "fuzz.h"

#include <stdio.h>

#include "fuzz_member.h"

#define ACTS 250
/* The limit for one input. Lies may keep others talking, which is no fault of theirs. */
#define DELIVERIES 3000
#define MAX_LEASE (500 * SPAN_MS)

/* ---- the liar's frames ---- */

static bool linked(const struct member *w, uint32_t to) {
	return to != MEMBER_LIAR && w->s->up[MEMBER_LIAR][to] && w->s->up[to][MEMBER_LIAR] &&
		stage_awake(w->s, to) && stage_peer(w->s, to, MEMBER_LIAR) != STAGE_NOBODY;
}

/* Does what the receiver's own link would do: the packet is scanned, decoded and handled, or the
 * link is reset. */
static void arrive(struct member *w, uint32_t to) {
	struct slice body;
	struct frame frame;
	if (peer_scan(buffer_slice(&w->bytes), PEER_BODY_BYTES_MAX, &body, NULL) ==
		PEER_SCAN_COMPLETE && peer_frame_decode(&w->decoder, body, &frame) == 0) {
		stage_step(w->s, to, &(struct core_event){ .kind = CORE_FRAME,
			.peer = stage_peer(w->s, to, MEMBER_LIAR), .frame = &frame });
	} else {
		stage_break(w->s, MEMBER_LIAR, to);
	}
}

/* Makes a packet. False: these messages have none. */
static bool wrap(struct member *w, uint32_t to, const struct message *messages, size_t count,
	uint8_t odd) {
	struct core_status status = stage_status(w->s, to);
	struct frame frame = { .epoch = status.epoch, .config_hash = status.config_hash,
		.sender = w->said_id[to], .boot = w->said_boot[to], .clock = status.clock,
		.flags = FRAME_VOTING | (odd & 1 ? FRAME_COMPLETE : 0), .messages = messages,
		.count = count };
	if (odd & 2) {
		frame.clock = lies_number(&w->lies);
		frame.flags ^= odd & 4 ? FRAME_VOTING : 0;
	}
	if ((odd & 0x38) == 0x38) {
		frame.epoch = lies_count(&w->lies, frame.epoch);
		frame.config_hash ^= odd >> 6;
	}
	buffer_clear(&w->bytes);
	if (peer_frame_encode(&frame, &w->bytes) != 0) {
		return false;
	}
	/* Bytes that are no frame, or another one. */
	if ((odd & 0x3f) == 0x34) {
		for (int i = 1 + odd / 64; i > 0; i--) {
			const size_t at = (size_t)member_next(w) << 8 | member_next(w);
			w->bytes.data[at % w->bytes.size] ^= member_next(w);
		}
	}
	return true;
}

static void lie(struct member *w, uint32_t to) {
	static struct lies_seen kept[MEMBER_MESSAGES];
	struct message messages[MEMBER_MESSAGES];
	const uint8_t odd = member_next(w);
	const size_t count = 1 + (odd >> 6) % MEMBER_MESSAGES;
	struct lies *lies = linked(w, to) ? member_lies(w) : NULL;
	if (!lies) {
		return;
	}
	/* The next message may take the room of this one's blob. */
	for (size_t i = 0; i < count; i++) {
		size_t used = 0;
		kept[i].m = lies_message(lies);
		lies_keep(&kept[i], &kept[i].m.blob, &used);
		messages[i] = kept[i].m;
	}
	if (wrap(w, to, messages, count, odd)) {
		arrive(w, to);
	}
}

/* ---- what cores send ---- */

/* Sends a frame of the liar with one field of a message altered, and without the messages behind
 * it. False: the input does not want that. */
static bool tamper(struct member *w, uint32_t to, const struct frame *frame) {
	struct message messages[MEMBER_MESSAGES];
	const size_t count = frame->count < MEMBER_MESSAGES ? frame->count : MEMBER_MESSAGES;
	struct lies *lies = w->tampers && count && linked(w, to) ? member_lies(w) : NULL;
	if (!lies || member_next(w) < 160) {
		return false;
	}
	memcpy(messages, frame->messages, count * sizeof *messages);
	lies_alter(lies, &messages[count - 1]);
	lies_trim(&messages[count - 1]);
	return wrap(w, to, messages, count, frame->flags & FRAME_COMPLETE ? 1 : 0);
}

/* Delivers the first frame under way. */
static void deliver(struct member *w, uint32_t from, uint32_t to) {
	const struct stage_frame *f = w->s->links[from][to].head;
	struct slice body;
	struct frame frame;
	CHECK(peer_scan(slice_of(f->bytes, f->size), PEER_BODY_BYTES_MAX, &body, NULL) ==
		PEER_SCAN_COMPLETE);
	CHECK(peer_frame_decode(&w->decoder, body, &frame) == 0);
	for (size_t i = 0; i < frame.count; i++) {
		lies_see(&w->lies, &frame.messages[i]);
	}
	if (from == MEMBER_LIAR && tamper(w, to, &frame)) {
		stage_drop(w->s, from, to);
		arrive(w, to);
	} else {
		stage_deliver(w->s, from, to);
	}
}

static void settle(struct member *w) {
	for (bool any = true; any;) {
		any = false;
		for (uint32_t from = 0; from < w->s->count; from++) {
			for (uint32_t to = 0; to < w->s->count; to++) {
				if (w->deliveries && w->s->links[from][to].head &&
					stage_awake(w->s, to)) {
					w->deliveries--;
					deliver(w, from, to);
					any = true;
				}
			}
		}
	}
}

/* Links are made anew. The liar says hello as itself again, with its present boot. */
static void mend(struct member *w) {
	for (uint32_t i = 0; i < w->s->count; i++) {
		if (i != MEMBER_LIAR && !w->s->up[i][MEMBER_LIAR] && member_runs(w, MEMBER_LIAR)) {
			w->said_id[i] = w->s->nodes[MEMBER_LIAR].disk.node_id;
			w->said_boot[i] = stage_status(w->s, MEMBER_LIAR).boot;
		}
	}
	stage_mend(w->s);
}

/* Time passes in steps of the nodes' deadlines, and all that is under way arrives after each. */
static void pass(struct member *w, span_ns span) {
	const int64_t end = w->s->now + span;
	settle(w);
	while (w->s->now < end) {
		span_ns step = end - w->s->now;
		for (uint32_t i = 0; i < w->s->count; i++) {
			if (stage_awake(w->s, i)) {
				const span_ns left =
					clock_saturating_add(core_deadline(w->s->nodes[i].core),
					-stage_clock(w->s, i).boot);
				step = left < step ? left : step;
			}
		}
		w->s->now += step > SPAN_MS ? step : SPAN_MS;
		stage_tick(w->s);
		if (!w->cut) {
			mend(w);
		}
		settle(w);
	}
}

/* ---- what clients and operators ask ---- */

static void ask(struct member *w, uint32_t node) {
	static const span_ns spans[] = { 0, 100 * SPAN_MS, 200 * SPAN_MS, 400 * SPAN_MS,
		500 * SPAN_MS, SPAN_S };
	const uint8_t flags = member_next(w), op = member_next(w);
	struct core_request r = { .op = (enum core_op)(op % CORE_OPS), .admin = flags & 1,
		.deadline_kept = flags & 2, .quorum = flags & 4, .now = flags & 8,
		.for_free = flags & 16, .expect_seq = flags & 32, .prefix = flags & 64,
		.binding = op >> 7, .client = 1 + (op >> 5 & 1) };
	r.op = r.op == CORE_CHANGE || flags & 128 ? CORE_ACQUIRE : r.op;
	if (!member_lies(w)) {
		return;
	}
	r.key = lies_key(&w->lies);
	r.lock_id = stage_lock((uint8_t)(1 + member_next_of(w, 4)));
	r.lease = spans[1 + (op >> 5) % 5];
	r.wait = spans[flags % 6];
	r.owner = slice_str(op & 1 ? "a" : "b");
	r.to = slice_str("a");
	r.value = lies_text(&w->lies);
	r.terms = lies_terms(&w->lies, (struct terms){ .of = MODE_EXCLUSIVE });
	r.terms.set = (struct permits){ { 0, 0 } };
	r.terms = terms_valid(&r.terms) ? r.terms : (struct terms){ .of = MODE_EXCLUSIVE };
	r.token = flags & 32 ? lies_token(&w->lies) : 0;
	if (r.op == CORE_ACQUIRE && (flags & 0x18) == 0x18) {
		const struct core_lock both[] = { { slice_str("k"), stage_lock(5), 0, 0 },
			{ slice_str("m"), stage_lock(6), 0, 0 } };
		r.op = CORE_ACQUIRE_ALL;
		r.locks = both;
		r.lock_count = 2;
		stage_ask(w->s, node, r);
	} else {
		stage_ask(w->s, node, r);
	}
}

static void ask_change(struct member *w, uint32_t node) {
	static const char *const names[MEMBER_NODES] = { "n1", "n2", "n3", "n4" };
	const uint8_t how = member_next(w);
	struct core_change c = { .kind = (enum change_kind)(how % CHANGE_SET_NODES),
		.name = slice_str(names[how >> 3 & 3]), .other = slice_str(names[how >> 5 & 3]),
		.anyway = how & 128 };
	c.name = c.kind == CHANGE_ADD_REPLICA ? slice_str("n4") : c.name;
	stage_ask(w->s, node,
		(struct core_request){ .op = CORE_CHANGE, .admin = true, .change = &c });
}

/* ---- faults ---- */

/* The liar begins a link anew, as itself or as somebody else. */
static void hello(struct member *w, uint32_t to) {
	const uint8_t how = member_next(w);
	if (!linked(w, to)) {
		return;
	}
	w->said_id[to] = w->s->nodes[how & 1 ? how >> 1 & 3 : MEMBER_LIAR].disk.node_id;
	w->said_boot[to] = how & 8 ? (uint64_t)(how >> 4) + 1 : w->said_boot[to];
	stage_step(w->s, to, &(struct core_event){ .kind = CORE_PEER_UP, .peer = stage_peer(w->s,
		to, MEMBER_LIAR), .peer_id = w->said_id[to], .peer_boot = w->said_boot[to] });
}

static void come_and_go(struct member *w, uint32_t node, uint8_t how) {
	struct stage_node *n = &w->s->nodes[node];
	if (!n->core) {
		CHECK(stage_start(w->s, node));
	} else if (n->paused) {
		stage_continue(w->s, node);
	} else if (how & 1) {
		stage_pause(w->s, node);
	} else if (how & 2) {
		stage_drain(w->s, node);
	} else if (how & 4 && how & 8 && node == MEMBER_LAST) {
		stage_wipe(w->s, node);
	} else {
		stage_kill(w->s, node);
	}
}

static void disk(struct member *w, uint32_t node, uint8_t how) {
	struct stage_node *n = &w->s->nodes[node];
	n->disk_held = how & 1;
	n->disk_fails = how & 2;
	if (stage_awake(w->s, node) && !n->disk_held) {
		stage_flush(w->s, node);
	}
}

static void fault(struct member *w) {
	const uint8_t how = member_next(w);
	const uint32_t node = how >> 4 & 3, other = how >> 6;
	switch (how & 7) {
	case 0: case 1: come_and_go(w, node, member_next(w)); break;
	case 2: disk(w, node, (uint8_t)(how >> 6)); break;
	case 3: stage_break(w->s, node, other); break;
	case 4: stage_close(w->s, node, other); break;
	case 5: w->cut = !w->cut; break;
	case 6:
		if (stage_awake(w->s, node)) {
			stage_client_gone(w->s, node, 1 + (how >> 7));
		}
		break;
	default: stage_jump(w->s, (how >> 4) * 60 * SPAN_MS); break;
	}
}

/* ---- the end ---- */

static bool set_unchanged(const struct member *w, uint32_t node) {
	const struct durable *d = &w->s->nodes[node].disk;
	return d->config.epoch == 1 && d->decree_config.epoch == 0;
}

/* The liar is gone, and nothing is wrong with the others. */
static void heal(struct member *w) {
	w->size = 0;
	w->cut = false;
	w->deliveries = UINT32_MAX;
	stage_kill(w->s, MEMBER_LIAR);
	for (uint32_t i = 0; i < w->s->count; i++) {
		struct stage_node *n = &w->s->nodes[i];
		n->disk_held = n->disk_fails = false;
		if (i != MEMBER_LIAR && !n->core) {
			CHECK(stage_start(w->s, i));
		} else if (n->paused) {
			stage_continue(w->s, i);
		} else if (n->core) {
			stage_flush(w->s, i);
		}
	}
}

/* A clock that was raised far above another's is followed only at the pace of time (section 9), for
 * which there is not enough time here. */
static bool clocks_near(const struct member *w) {
	const uint64_t a = stage_status(w->s, 0).clock, b = stage_status(w->s, 1).clock;
	return (a > b ? a - b : b - a) <= CLOCK_JUMP_MAX + SPAN_S;
}

static void evaluate(struct member *w) {
	heal(w);
	if (!set_unchanged(w, 0) || !set_unchanged(w, 1) || !clocks_near(w)) {
		pass(w, 200 * SPAN_MS);
		return;
	}
	/* It takes long, and nobody lies any more. */
	w->s->options.unchecked = true;
	pass(w, 6 * MAX_LEASE);
	uint64_t asked[2];
	for (uint32_t node = 0; node < 2; node++) {
		asked[node] = stage_ask(w->s, node, stage_acquire(node ? "second" : "first",
			stage_lock((uint8_t)(0x40 + node)), MAX_LEASE, SPAN_S));
	}
	pass(w, SPAN_S);
	for (uint32_t node = 0; node < 2; node++) {
		if (!set_unchanged(w, 0) || !set_unchanged(w, 1)) {
			/* By a change that somebody had asked for before. */
			return;
		}
		const struct stage_reply *reply = stage_answer(w->s, asked[node]);
		CHECK(stage_status(w->s, node).state == CORE_VOTING);
		CHECK(reply && reply->r.error == 0);
	}
}

/* ---- the whole ---- */

static void act(struct member *w) {
	static const span_ns spans[] = { SPAN_MS, 30 * SPAN_MS, 110 * SPAN_MS, 600 * SPAN_MS };
	const uint8_t b = member_next(w);
	const uint32_t node = b >> 4 & 1;
	switch (b & 15) {
	case 0: case 1: case 2: case 3: case 4: case 5: lie(w,
		b & 32 && b & 64 ? MEMBER_LAST : node); break;
	case 6: case 7: case 8:
		if (stage_awake(w->s, b >> 4 & 3)) {
			ask(w, b >> 4 & 3);
		}
		break;
	case 9: case 10: case 11: settle(w); break;
	case 12: pass(w, spans[b >> 4 & 3]); break;
	case 13: fault(w); break;
	case 14: hello(w, node); break;
	default:
		if (stage_awake(w->s, b >> 4 & 3)) {
			ask_change(w, b >> 4 & 3);
		}
		break;
	}
}

static void begin(struct member *w, const struct allocator *own, const struct allocator *core,
	uint8_t how) {
	struct stage_options options = stage_options_plain();
	options.own = own;
	options.core = core;
	options.max_lease = MAX_LEASE;
	options.outside = 1;
	options.auto_replace = how & 1;
	options.unchecked = true;
	options.limits = (struct core_limits){ .released = 8, .keys = 8, .waiters = 8,
		.waiters_per_key = 4, .rounds = 16, .catching_up = 4, .holders_per_key = 4,
		.log_bytes = 4096 };
	w->s = stage_born(&options);
	w->s->options.unchecked = false;
	w->tampers = how & 2;
	w->deliveries = DELIVERIES;
	for (uint32_t i = 0; i < MEMBER_NODES; i++) {
		w->said_id[i] = w->s->nodes[MEMBER_LIAR].disk.node_id;
		w->said_boot[i] = stage_status(w->s, MEMBER_LIAR).boot;
	}
	peer_decoder_init(&w->decoder, own);
	buffer_init(&w->bytes, own, PEER_PREFIX_BYTES + PEER_BODY_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct member w;
	struct alloc_counter memory = { 0, 0 };
	struct allocator own = alloc_libc(NULL), core = alloc_libc(&memory);
	memset(&w, 0, sizeof w);
	w.data = data;
	w.size = size;
	begin(&w, &own, &core, member_next(&w));
	for (int i = 0; i < ACTS && w.size; i++) {
		act(&w);
	}
	evaluate(&w);
	stage_free(w.s);
	peer_decoder_done(&w.decoder);
	buffer_done(&w.bytes);
	CHECK(memory.used == 0);
	return 0;
}
