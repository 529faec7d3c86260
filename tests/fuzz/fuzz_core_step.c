/* fuzz_core_step.c: events for one master of three: what its peers say, well-typed but otherwise
 * anything; requests; time; links; the disk. Every invariant holds after every step, no request is
 * answered twice, and every byte of memory comes back. */
#include <stdio.h>

#include "fuzz.h"

#include "fuzz_core.h"

/* ---- what peers say ---- */

static void step(struct world *w, const struct core_event *event);

static uint64_t clock_of(const struct world *w) {
	struct core_status status;
	core_status(w->core, w->now, &status);
	return status.clock < TOKEN_MAX ? status.clock : TOKEN_MAX;
}

static void send_frame(struct world *w, uint32_t peer, const struct message *messages, size_t count,
	bool right) {
	uint8_t odd = right ? 0 : next(w);
	const struct config *c = config_now(w);
	struct config later = config_after(c, odd >> 3);
	uint32_t node = node_at(w, peer);
	struct frame frame = { .epoch = odd == 1 ? c->epoch + 1 : c->epoch, .config_hash = odd == 2
		? 5 : config_hash(odd == 1 ? &later : c), .sender = node_id(odd == 3 ? 0 : node),
		.boot = odd == 4 ? 9 : w->boots[node], .clock = right
		? clock_of(w) : pick_number(w), .flags = (odd & 0x80 ? 0 : FRAME_VOTING) |
		(odd & 0x40 ? 0 : FRAME_COMPLETE), .messages = messages, .count = count };
	step(w, &(struct core_event){ .kind = CORE_FRAME, .peer = peer, .frame = &frame });
}

static void say(struct world *w, uint32_t peer) {
	static uint8_t bytes[CONFIG_BYTES_MAX];
	struct message messages[MESSAGES];
	size_t count = 1 + next_of(w, MESSAGES);
	for (size_t i = 0; i < count; i++) {
		messages[i] = pick_message(w, bytes);
	}
	send_frame(w, peer, messages, count, false);
}

/* What a master that has the key would say. */
static struct message likely_message(struct world *w, uint8_t b) {
	uint64_t clock = clock_of(w);
	return (struct message){ .status = b & 1 ? (enum status)next_of(w, STATUS_MAX + 1)
		: STATUS_OK, .flags = b & 2 ? 0 : FLAG_HAD | FLAG_COUNTS,
		.key = slice_str("k"), .lock_id = { { (uint8_t)(b >> 4 & 3) } }, .token = clock,
		.noted = b & 4 ? clock : 0, .clock = clock, .lease_us = 500000, .left_us = 500000,
		.ballot = { clock, b >> 2 & 1, 1 }, .prepared = { clock, b >> 3 & 1, 1 },
		.value = slice_str("value") };
}

/* Fills in what is said about the set itself, and to followers, as a node would that has none of
 * it, or more. */
static void answer_of_the_set(struct world *w, const struct message *asked, uint32_t how,
	struct message *m, uint8_t *bytes) {
	static const enum message_kind feed[] = { MESSAGE_FEED_BEGIN, MESSAGE_FEED_RECORD,
		MESSAGE_FEED_GONE, MESSAGE_FEED_BATCH, MESSAGE_FEED_ECHO, MESSAGE_FEED_END,
		MESSAGE_FEED_WATCH_EVENT };
	m->ballot = asked->ballot;
	m->prepared = (struct ballot){ 0, 0, 0 };
	m->number = asked->number + how % 4;
	m->log = asked->log ? asked->log : 1;
	m->echo = asked->echo;
	m->part = how & 1;
	m->parts = 2;
	if (asked->kind == MESSAGE_FOLLOW) {
		m->kind = feed[how % 7];
		m->flags = how & 8 ? FLAG_WHOLE | FLAG_STAGING : 0;
	} else if (asked->kind >= MESSAGE_FEED_BEGIN && asked->kind <= MESSAGE_FEED_END) {
		m->kind = MESSAGE_FEED_ACK;
	} else if (asked->kind == MESSAGE_DECREE_PREPARE || asked->kind == MESSAGE_DECREE_ACCEPT ||
		asked->kind == MESSAGE_COPY_AHEAD) {
		m->kind = (enum message_kind)(asked->kind + 1);
		if (how & 8 && m->kind == MESSAGE_DECREE_PROMISE) {
			m->prepared = (struct ballot){ 1, 2, 1 };
			fill_config(w, m, bytes);
		}
	} else {
		m->kind = MESSAGE_CONFIG;
		fill_config(w, m, bytes);
	}
}

/* Answers one of the latest messages of the node as a master would. */
static void answer(struct world *w) {
	uint8_t b = next(w), c = next(w);
	static uint8_t bytes[CONFIG_BYTES_MAX];
	static const enum message_kind snapshot[] = { MESSAGE_SNAPSHOT_RECORD,
		MESSAGE_SNAPSHOT_RELEASED, MESSAGE_SNAPSHOT_CHUNK, MESSAGE_SNAPSHOT_END,
		MESSAGE_SNAPSHOT_READY, MESSAGE_SNAPSHOT_LOST };
	const uint32_t back = 1 + b % 8;
	if (w->said_count < back) {
		return;
	}
	uint32_t at = (w->said_count - back) % RING;
	if (w->said_to[at] >= core_peer_count(w->core) || w->said_to[at] == core_self(w->core)) {
		/* The table has changed since. */
		return;
	}
	const struct message *asked = &w->said[at];
	struct message m = c >= 224 ? pick_message(w, bytes) : likely_message(w, c);
	m.round = asked->round;
	m.lock_id = id128_zero(asked->lock_id) ? m.lock_id : asked->lock_id;
	if (asked->kind >= MESSAGE_CONFIG) {
		answer_of_the_set(w, asked, b >> 3, &m, bytes);
	} else if (asked->kind == MESSAGE_SNAPSHOT) {
		m.kind = snapshot[(b >> 3) % (sizeof snapshot / sizeof *snapshot)];
		m.flags = asked->flags & FLAG_HANDOVER ? (uint32_t)(FLAG_REMEMBERS << c % 3) : 0;
	} else if (asked->kind == MESSAGE_ENQUEUE) {
		m.kind = b & 8 ? MESSAGE_TURN : MESSAGE_ENQUEUE_ANSWER;
	} else if (asked->kind < MESSAGE_SNAPSHOT || asked->kind == MESSAGE_PING) {
		/* An answer has the number after its request's. */
		m.kind = (enum message_kind)(asked->kind + 1);
	} else {
		m.kind = asked->kind;
		m.blob = slice_of(w->pledge, w->pledge_size);
	}
	send_frame(w, w->said_to[at], &m, 1, c < 240);
}

/* ---- what clients ask ---- */

static void ask(struct world *w) {
	static const span_ns spans[] = { 0, 100 * SPAN_MS, 500 * SPAN_MS, SPAN_S, 2 * SPAN_S, -1,
		SPAN_MAX };
	if (w->requests + 1 >= REQUESTS) {
		return;
	}
	uint8_t flags = next(w);
	struct core_request r = { .id = ++w->requests, .admin = flags & 1,
		.deadline_kept = flags & 2, .quorum = flags & 4, .now = flags & 8,
		.for_free = flags & 16, .expect_value = flags & 32, .expect_seq = flags & 128 };
	/* These are statements one after the other, so that the bytes are drawn in their order. */
	r.client = 1 + next_of(w, 3);
	r.op = (enum core_op)next_of(w, CORE_BINDING + 1);
	r.key = pick_key(w);
	r.lock_id = pick_id(w);
	r.owner = pick_text(w);
	r.value = pick_text(w);
	r.identity = pick_text(w);
	r.lease = spans[next_of(w, 7)];
	r.wait = spans[next_of(w, 7)];
	r.expected = pick_text(w);
	r.after = pick_text(w);
	r.token = flags & 64 ? pick_number(w) : 0;
	r.limit = (uint32_t)next_of(w, 3);
	w->state[r.id] = 1;
	step(w, &(struct core_event){ .kind = CORE_REQUEST, .request = &r });
}

/* Makes a request of an operator. */
static void ask_change(struct world *w) {
	static const char *const names[NODES] = { "n1", "n2", "n3", "n4", "n5" };
	struct core_change_node nodes[NODES];
	uint8_t masters = next(w), flags = next(w);
	if (w->requests + 1 >= REQUESTS) {
		return;
	}
	struct core_change c = { .nodes = nodes, .anyway = flags & 1, .drift_ppm = flags,
		.has_drift = flags & 2 };
	c.kind = (enum change_kind)next_of(w, CHANGE_FORCE + 1);
	c.name = slice_str(names[next_of(w, NODES)]);
	c.other = slice_str(names[next_of(w, NODES)]);
	c.address = flags & 4 ? slice_str("n4:7118") : slice_of(NULL, 0);
	c.max_lease = flags & 8 ? 2 * SPAN_S : 0;
	c.request_timeout = flags & 16 ? 50 * SPAN_MS : 0;
	for (uint32_t i = 0; i < 2 * NODES; i++) {
		bool master = masters >> i % NODES & 1;
		if (master == (i < NODES) && (master || flags & 32)) {
			nodes[c.node_count++] =
				(struct core_change_node){ slice_str(names[i % NODES]),
				flags & 64 ? slice_str("n:1") : slice_of(NULL, 0), master };
		}
	}
	struct core_request r = { .id = ++w->requests, .client = 1, .op = CORE_CHANGE,
		.admin = true, .change = &c };
	w->state[r.id] = 1;
	step(w, &(struct core_event){ .kind = CORE_REQUEST, .request = &r });
}

/* ---- after a step ---- */

static void listen(struct world *w, uint32_t peer) {
	struct frame frame;
	while (core_out_frame(w->out, peer, &frame)) {
		for (size_t i = 0; i < frame.count; i++) {
			if (frame.messages[i].kind == MESSAGE_PLEDGE) {
				w->pledge_size = frame.messages[i].blob.size;
				memcpy(w->pledge, frame.messages[i].blob.data, w->pledge_size);
			}
			w->said_to[w->said_count % RING] = peer;
			struct message *copy = &w->said[w->said_count++ % RING];
			*copy = (struct message){ .kind = frame.messages[i].kind,
				.round = frame.messages[i].round,
				.attempt = frame.messages[i].attempt,
				.lock_id = frame.messages[i].lock_id,
				.ballot = frame.messages[i].ballot,
				.number = frame.messages[i].number, .log = frame.messages[i].log,
				.echo = frame.messages[i].echo, .flags = frame.messages[i].flags };
		}
		core_out_sent(w->out, peer);
	}
}

static void step(struct world *w, const struct core_event *event) {
	core_step(w->core, event, w->now, w->out);
	core_check(w->core);
	if (core_out_peers_changed(w->out)) {
		CHECK(core_self(w->core) < core_peer_count(w->core) &&
			core_peer_count(w->core) <= NODES_MAX);
	}
	core_out_resets(w->out);
	while (core_out_persist(w->out, &w->durable, &w->persist_seq)) {
		w->persisting = !w->good_disk;
		if (w->good_disk) {
			core_step(w->core, &(struct core_event){ .kind = CORE_PERSISTED,
				.persist_seq = w->persist_seq, .persist_ok = true }, w->now,
				w->out);
		} else {
			break;
		}
	}
	for (uint32_t peer = 0; peer < core_peer_count(w->core); peer++) {
		if (peer != core_self(w->core)) {
			listen(w, peer);
		}
	}
	const struct core_reply *reply;
	while ((reply = core_out_reply(w->out)) != NULL) {
		CHECK(reply->id < REQUESTS && w->state[reply->id] == 1);
		w->state[reply->id] = reply->goes_on ? 1 : 2;
	}
	while (core_out_note(w->out) != NULL) {
	}
	core_out_clear(w->out);
}

/* A tenth of a second passes in which the peers keep their links alive. */
static void quiet_time(struct world *w) {
	for (int i = 0; i < 5; i++) {
		uint32_t said = w->said_count > 8 ? w->said_count - 8 : 0;
		w->now = instant_add(w->now, 26 * SPAN_MS);
		step(w, &(struct core_event){ .kind = CORE_TICK });
		for (; said < w->said_count; said++) {
			if (w->said[said % RING].kind == MESSAGE_PING &&
				w->said_to[said % RING] < core_peer_count(w->core) &&
				w->said_to[said % RING] != core_self(w->core)) {
				struct message pong = { .kind = MESSAGE_PONG,
					.round = w->said[said % RING].round };
				send_frame(w, w->said_to[said % RING], &pong, 1, true);
			}
		}
	}
}

static void pass(struct world *w) {
	static const span_ns spans[] = { 0, SPAN_MS, 25 * SPAN_MS, 90 * SPAN_MS, 100 * SPAN_MS,
		101 * SPAN_MS, 600 * SPAN_MS, 3 * SPAN_S };
	uint8_t b = next(w);
	span_ns span = spans[b & 7];
	w->now.boot += span;
	w->now.raw += b & 8 ? 0 : span;
	step(w, &(struct core_event){ .kind = CORE_TICK });
}

static void persisted(struct world *w) {
	if (w->persisting) {
		bool ok = next_of(w, 4) != 0;
		w->persisting = false;
		step(w, &(struct core_event){ .kind = CORE_PERSISTED, .persist_seq = w->persist_seq,
			.persist_ok = ok });
	}
}

static void drain(struct world *w) {
	struct frame frame;
	step(w, &(struct core_event){ .kind = CORE_DRAIN });
	while (core_drain_frame(w->core, w->now, &frame)) {
		CHECK(frame.count > 0);
	}
}

static void peer_up(struct world *w, uint32_t peer, bool stranger) {
	uint32_t node = node_at(w, peer);
	step(w, &(struct core_event){ .kind = CORE_PEER_UP, .peer = peer,
		.peer_id = node_id(stranger ? 0 : node), .peer_boot = w->boots[node] });
}

/* A node that may not be in the table says hello. */
static void welcome(struct world *w) {
	static const char *const names[NODES] = { "n2", "n3", "n4", "n5", "n6" };
	uint8_t b = next(w);
	int peer = core_welcome(w->core, names[b % NODES]);
	core_out_peers_changed(w->out);
	if (peer >= 0) {
		CHECK((uint32_t)peer < core_peer_count(w->core) &&
			strcmp(core_peer(w->core, (uint32_t)peer)->name, names[b % NODES]) == 0);
		peer_up(w, (uint32_t)peer, b & 128);
	}
}

/* Draws one of the other nodes. The first two need no byte of their own. */
static uint32_t pick_peer(struct world *w, uint32_t one) {
	uint32_t others = core_peer_count(w->core) - 1;
	uint32_t at = others > 2 ? (uint32_t)next_of(w, others) : others > 0 ? one % others : 0;
	return at < core_self(w->core) || others == 0 ? at : at + 1;
}

/* Does what is seldom done. */
static void act_rarely(struct world *w, uint8_t b) {
	if (b == 255) {
		drain(w);
	} else if (b == 0xef) {
		welcome(w);
	} else if (b == 0xdf) {
		ask_change(w);
	} else if (b & 16) {
		quiet_time(w);
	} else {
		pass(w);
	}
}

static void act(struct world *w) {
	uint8_t b = next(w);
	uint32_t peer = pick_peer(w, b >> 7);
	if (peer == core_self(w->core) && ((b & 15) < 2 || (b & 15) == 13 || (b & 15) == 14)) {
		/* Nobody else is there. */
		return;
	}
	switch (b & 15) {
	case 0: case 1: say(w, peer); break;
	case 2: case 3: case 4: case 5: answer(w); break;
	case 6: case 7: case 8: ask(w); break;
	case 9: case 10: pass(w); break;
	case 11: case 12: persisted(w); break;
	case 13:
		w->boots[node_at(w, peer)] += b >> 4 & 1;
		peer_up(w, peer, b & 64);
		break;
	case 14:
		if (b & 64) {
			step(w, &(struct core_event){ .kind = CORE_CLIENT_GONE,
				.client = 1 + (b >> 4 & 1) });
		} else {
			step(w, &(struct core_event){ .kind = CORE_PEER_DOWN, .peer = peer,
				.closed = (w->requests & 1) != 0 });
		}
		break;
	default: act_rarely(w, b);
	}
}

/* ---- the beginning ---- */

static void configure(struct world *w) {
	struct config *c = &w->config;
	*c = (struct config){ .epoch = 1, .max_lease = SPAN_S, .request_timeout = 100 * SPAN_MS,
		.promise_timeout = 200 * SPAN_MS, .drift_ppm = 10000, .node_count = 3 };
	snprintf(c->cluster, sizeof c->cluster, "fuzz");
	for (uint32_t i = 0; i < 3; i++) {
		snprintf(c->nodes[i].name, sizeof c->nodes[i].name, "n%u", i + 1);
		snprintf(c->nodes[i].address, sizeof c->nodes[i].address, "n%u:7118", i + 1);
		c->nodes[i].master = true;
		c->nodes[i].id = node_id(i);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		w->boots[i] = 1;
	}
	c->cluster_id = (struct id128){ { 7 } };
	w->durable.node_id = c->nodes[0].id;
	w->now = (struct instant){ 100 * SPAN_S, 50 * SPAN_S };
}

/* The node votes from the start because of the side file of a drain, or is recovering, or is not
 * born yet. */
static void begin(struct world *w, uint8_t how) {
	bool restored = how % 4 != 3 && how % 4 != 2;
	if (restored) {
		struct message record = { .kind = MESSAGE_SNAPSHOT_RECORD, .key = slice_str("k"),
			.lock_id = { { 4, 4 } }, .token = 10, .noted = 5, .left_us = 300000,
			.ballot = { 10, 1, 1 }, .prepared = { 10, 1, 1 } };
		struct message messages[2] = { record,
			{ .kind = MESSAGE_SNAPSHOT_END, .clock = 20 } };
		struct frame frame = { .epoch = 1, .config_hash = config_hash(&w->config),
			.sender = w->durable.node_id, .boot = w->durable.boot, .clock = 20,
			.messages = messages + (how & 8 ? 1 : 0), .count = how & 8 ? 1 : 2 };
		step(w, &(struct core_event){ .kind = CORE_RESTORE, .frame = &frame });
	}
	step(w, &(struct core_event){ .kind = CORE_START, .restored = restored });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct world w;
	memset(&w, 0, sizeof w);
	w.in = (struct input){ data, size };
	uint8_t how = next(&w);
	configure(&w);
	struct config birth = w.config;
	birth.epoch = 0;
	birth.cluster_id = (struct id128){ { 0 } };
	for (uint32_t i = 0; i < 3; i++) {
		birth.nodes[i].id = (struct id128){ { 0 } };
	}
	if (how % 4 != 3) {
		w.durable.config = w.config;
		w.durable.voted = true;
		w.durable.boot = 3;
		w.durable.ceiling = CEILING_BLOCK;
		w.durable.max_lease_seen = w.config.max_lease;
		w.durable.request_timeout_seen = w.config.request_timeout;
	}
	struct alloc_counter memory = { 0, 0 };
	struct allocator alloc = alloc_libc(&memory);
	struct core_options options = { .alloc = &alloc, .hash_key = { 1, 2 }, .seed = 3,
		.name = "n1", .birth = &birth, .durable = &w.durable,
		.limits = { .released = 8, .keys = 3, .waiters = 6, .waiters_per_key = 4,
		.rounds = 12, .catching_up = 4, .memory_bytes = how & 16 ? 300000 : 0 } };
	CHECK(core_new(&options, &w.core) == 0);
	w.out = core_out_new(w.core);
	CHECK(w.out != NULL);
	w.good_disk = how & 64;
	begin(&w, how);
	for (uint32_t peer = 1; peer < 3 && !(how & 32); peer++) {
		peer_up(&w, peer, false);
	}
	for (int i = 0; i < STEPS && w.in.size; i++) {
		act(&w);
	}
	core_out_free(w.out);
	core_free(w.core);
	CHECK(memory.used == 0);
	return 0;
}
