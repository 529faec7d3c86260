/* stage.c: the nodes, each of which is a core with its disk; and what leaves a core after a
 * step. */
#include "stage.h"

#include <stdio.h>

#include "check.h"

struct stage_options stage_options_plain(void) {
	static struct allocator a;
	a = alloc_libc(NULL);
	return (struct stage_options){ .masters = 3, .max_lease = 10 * SPAN_S,
		.request_timeout = 100 * SPAN_MS, .promise_timeout = 200 * SPAN_MS,
		.drift_ppm = 10000, .limits = { .released = 64, .lacked = 256 }, .own = &a,
		.core = &a, .seed = 1 };
}

static void name_birth(struct stage *s) {
	struct config *c = &s->birth;
	snprintf(c->cluster, sizeof c->cluster, "stage");
	c->max_lease = s->options.max_lease;
	c->request_timeout = s->options.request_timeout;
	c->promise_timeout = s->options.promise_timeout;
	c->drift_ppm = s->options.drift_ppm;
	c->node_count = s->options.masters + s->options.replicas;
	for (uint32_t i = 0; i < c->node_count; i++) {
		snprintf(c->nodes[i].name, sizeof c->nodes[i].name, "n%u", i + 1);
		snprintf(c->nodes[i].address, sizeof c->nodes[i].address, "n%u:7118", i + 1);
		c->nodes[i].master = i < s->options.masters;
	}
}

/* Writes the disks as if the replicas had been added, and all nodes had stopped since. */
static void write_epoch(struct stage *s) {
	struct config config = s->birth;
	config.epoch = 1;
	memset(config.cluster_id.b, 0x77, sizeof config.cluster_id.b);
	for (uint32_t i = 0; i < config.node_count; i++) {
		config.nodes[i].id = s->nodes[i].disk.node_id;
	}
	for (uint32_t i = 0; i < config.node_count; i++) {
		struct durable *d = &s->nodes[i].disk;
		d->boot = 1;
		d->complete = true;
		d->config = config;
		d->max_lease_seen = config.max_lease;
		d->request_timeout_seen = config.request_timeout;
		d->voted = config.nodes[i].master;
		d->ceiling = d->voted ? CEILING_BLOCK : 0;
	}
}

struct stage *stage_new(const struct stage_options *options) {
	CHECK(options->masters >= 1 &&
		options->masters + options->replicas + options->outside <= STAGE_NODES);
	struct stage *s = alloc_new(options->own, sizeof *s);
	CHECK(s != NULL);
	s->options = *options;
	s->count = options->masters + options->replicas + options->outside;
	s->options.replies = options->replies ? options->replies : 256;
	s->replies = alloc_new(options->own, s->options.replies * sizeof *s->replies);
	CHECK(s->replies != NULL);
	/* The clocks have a past. */
	s->now = 1000 * SPAN_S;
	buffer_init(&s->scratch, options->own, PEER_PREFIX_BYTES + PEER_BODY_BYTES_MAX);
	peer_decoder_init(&s->decoder, options->own);
	name_birth(s);
	for (uint32_t i = 0; i < s->count; i++) {
		memset(s->nodes[i].disk.node_id.b, (int)i + 1, sizeof s->nodes[i].disk.node_id.b);
		snprintf(s->nodes[i].address, sizeof s->nodes[i].address, "n%u:7118", i + 1);
	}
	if (options->replicas) {
		write_epoch(s);
	}
	return s;
}

static void end_core(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	core_out_free(n->out);
	core_free(n->core);
	n->core = NULL;
	n->out = NULL;
	n->paused = false;
}

static void side_clear(struct stage *s, struct stage_node *n) {
	while (n->side) {
		struct stage_frame *f = n->side;
		n->side = f->next;
		alloc_free(s->options.own, f, sizeof *f + f->size);
	}
	n->side_whole = false;
}

void stage_free(struct stage *s) {
	if (s == NULL) {
		return;
	}
	for (uint32_t i = 0; i < s->count; i++) {
		end_core(s, i);
		side_clear(s, &s->nodes[i]);
		for (uint32_t j = 0; j < s->count; j++) {
			stage_fifo_clear(s, &s->links[i][j]);
		}
	}
	buffer_done(&s->scratch);
	peer_decoder_done(&s->decoder);
	alloc_free(s->options.own, s->replies, s->options.replies * sizeof *s->replies);
	alloc_free(s->options.own, s->events,
		s->events ? STAGE_EVENTS * sizeof *s->events : 0);
	const struct allocator *own = s->options.own;
	alloc_free(own, s, sizeof *s);
}

/* ---- one step ---- */

uint32_t stage_peer(const struct stage *s, uint32_t node, uint32_t other) {
	return s->nodes[node].peer_of[other];
}

static uint32_t node_named(const struct stage *s, const char *name) {
	char own[16];
	for (uint32_t i = 0; i < s->count; i++) {
		snprintf(own, sizeof own, "n%u", i + 1);
		if (strcmp(own, name) == 0) {
			return i;
		}
	}
	return STAGE_NOBODY;
}

static void know_peers(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	for (uint32_t i = 0; i < STAGE_NODES; i++) {
		n->peer_of[i] = STAGE_NOBODY;
	}
	for (uint32_t index = 0; index < NODES_MAX; index++) {
		n->node_of[index] = index < core_peer_count(n->core)
			? node_named(s, core_peer(n->core, index)->name) : STAGE_NOBODY;
		if (n->node_of[index] != STAGE_NOBODY) {
			n->peer_of[n->node_of[index]] = index;
		}
	}
}

/* A link belongs to a name and goes with it to its new peer index. Links of names that are gone are
 * dropped, and the other end hears of it. */
void stage_step_done(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	if (!core_out_peers_changed(n->out)) {
		return;
	}
	know_peers(s, node);
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->up[node][i] && n->peer_of[i] == STAGE_NOBODY) {
			s->up[node][i] = false;
			stage_link_down(s, i, node, true);
		}
	}
}

/* Returns whether the core has made a step, because something is on disk. */
static bool flush(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	bool stepped = false;
	uint64_t seq, resets = core_out_resets(n->out);
	for (uint32_t peer = 0; peer < s->count; peer++) {
		uint32_t index = n->peer_of[peer];
		if (index != STAGE_NOBODY && resets >> index & 1 && s->up[node][peer]) {
			/* This end knows already. */
			s->up[node][peer] = false;
			stage_link_down(s, peer, node, true);
		}
	}
	struct durable wanted;
	while (!n->disk_held && core_out_persist(n->out, &wanted, &seq)) {
		n->disk = n->disk_fails ? n->disk : wanted;
		core_step(n->core, &(struct core_event){ .kind = CORE_PERSISTED, .persist_seq = seq,
			.persist_ok = !n->disk_fails }, stage_clock(s, node), n->out);
		stage_step_done(s, node);
		stepped = true;
	}
	struct frame frame;
	for (uint32_t peer = 0; peer < s->count; peer++) {
		while (peer != node && n->peer_of[peer] != STAGE_NOBODY &&
			core_out_frame(n->out, n->peer_of[peer], &frame)) {
			stage_link_send(s, node, peer, &frame);
			core_out_sent(n->out, n->peer_of[peer]);
		}
	}
	const struct core_reply *reply;
	while ((reply = core_out_reply(n->out)) != NULL) {
		stage_take_reply(s, reply);
	}
	const struct core_note *note;
	while ((note = core_out_note(n->out)) != NULL) {
		s->notes[s->note_count % STAGE_NOTES].node = node;
		s->notes[s->note_count++ % STAGE_NOTES].note = *note;
	}
	const struct core_watch_event *watch_event;
	while ((watch_event = core_out_watch_event(n->out)) != NULL) {
		stage_take_event(s, node, watch_event);
	}
	core_out_clear(n->out);
	return stepped;
}

void stage_flush(struct stage *s, uint32_t node) {
	(void)flush(s, node);
}

void stage_step(struct stage *s, uint32_t node, const struct core_event *event) {
	struct stage_node *n = &s->nodes[node];
	CHECK(n->core && !n->paused);
	core_step(n->core, event, stage_clock(s, node), n->out);
	stage_step_done(s, node);
	if (!s->options.unchecked) {
		core_check(n->core);
	}
	if (flush(s, node) && !s->options.unchecked) {
		core_check(n->core);
	}
}

/* ---- lives ---- */

static bool restore(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	bool whole = n->side_whole;
	struct stage_frame *in_order = NULL;
	/* The side file is used up, whether the node reads it or not. */
	while (n->side) {
		struct stage_frame *f = n->side;
		n->side = f->next;
		f->next = in_order;
		in_order = f;
	}
	n->side_whole = false;
	while (in_order) {
		struct stage_frame *f = in_order;
		struct frame frame;
		struct slice body;
		in_order = f->next;
		CHECK(peer_scan(slice_of(f->bytes, f->size), PEER_BODY_BYTES_MAX, &body, NULL) ==
			PEER_SCAN_COMPLETE);
		CHECK(peer_frame_decode(&s->decoder, body, &frame) == 0);
		stage_step(s, node, &(struct core_event){ .kind = CORE_RESTORE, .frame = &frame });
		alloc_free(s->options.own, f, sizeof *f + f->size);
	}
	return whole;
}

bool stage_start(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	CHECK(n->core == NULL);
	char name[16];
	snprintf(name, sizeof name, "n%u", node + 1);
	struct core_options options = { .alloc = s->options.core, .hash_key = { 7, node },
		.seed = s->options.seed * 64 + node, .limits = s->options.limits,
		.name = name, .address = n->address, .birth = &s->birth, .durable = &n->disk,
		.auto_replace = s->options.auto_replace };
	if (core_new(&options, &n->core) != 0) {
		n->core = NULL;
		return false;
	}
	n->out = core_out_new(n->core);
	if (n->out == NULL) {
		core_free(n->core);
		n->core = NULL;
		return false;
	}
	know_peers(s, node);
	bool restored = restore(s, node);
	stage_step(s, node, &(struct core_event){ .kind = CORE_START, .restored = restored });
	return true;
}

struct stage *stage_born(const struct stage_options *options) {
	struct stage *s = stage_new(options);
	for (uint32_t i = 0; i < s->count; i++) {
		CHECK(stage_start(s, i));
	}
	for (uint32_t i = 0; i < options->masters; i++) {
		CHECK(stage_until_voting(s, i,
			options->replicas ? 2 * options->max_lease : SPAN_S));
	}
	/* Then the first pings are over, so that round trips are known. */
	stage_wait(s, options->request_timeout);
	return s;
}

void stage_kill(struct stage *s, uint32_t node) {
	end_core(s, node);
	for (uint32_t i = 0; i < s->count; i++) {
		s->nodes[node].down_pending[i] = false;
		if (s->up[node][i]) {
			s->up[node][i] = false;
			stage_link_down(s, i, node, true);
		}
	}
}

void stage_wipe(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	struct id128 fresh = n->disk.node_id;
	stage_kill(s, node);
	side_clear(s, n);
	fresh.b[15]++;
	n->disk = (struct durable){ .node_id = fresh };
}

void stage_drain(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	struct frame frame;
	stage_step(s, node, &(struct core_event){ .kind = CORE_DRAIN });
	side_clear(s, n);
	while (core_drain_frame(n->core, stage_clock(s, node), &frame)) {
		buffer_clear(&s->scratch);
		CHECK(peer_frame_encode(&frame, &s->scratch) == 0);
		struct stage_frame *f = alloc_new(s->options.own, sizeof *f + s->scratch.size);
		CHECK(f != NULL);
		f->size = s->scratch.size;
		memcpy(f->bytes, s->scratch.data, f->size);
		f->next = n->side;
		n->side = f;
		n->side_whole = true;
	}
	stage_kill(s, node);
}

void stage_pause(struct stage *s, uint32_t node) {
	s->nodes[node].paused = true;
}

void stage_continue(struct stage *s, uint32_t node) {
	struct stage_node *n = &s->nodes[node];
	n->paused = false;
	stage_step(s, node, &(struct core_event){ .kind = CORE_TICK });
	for (uint32_t i = 0; i < s->count; i++) {
		if (n->down_pending[i]) {
			n->down_pending[i] = false;
			if (n->peer_of[i] != STAGE_NOBODY) {
				stage_step(s, node, &(struct core_event){ .kind = CORE_PEER_DOWN,
					.peer = n->peer_of[i] });
			}
		}
	}
}

bool stage_awake(const struct stage *s, uint32_t node) {
	return s->nodes[node].core && !s->nodes[node].paused;
}

/* ---- status ---- */

struct core_status stage_status(const struct stage *s, uint32_t node) {
	struct core_status status;
	core_status(s->nodes[node].core, stage_clock(s, node), &status);
	return status;
}

bool stage_noted(const struct stage *s, uint32_t node, enum core_note_kind kind) {
	uint64_t first = s->note_count > STAGE_NOTES ? s->note_count - STAGE_NOTES : 0;
	for (uint64_t i = first; i < s->note_count; i++) {
		if (s->notes[i % STAGE_NOTES].node == node &&
			s->notes[i % STAGE_NOTES].note.kind == kind) {
			return true;
		}
	}
	return false;
}

uint64_t stage_count(const struct stage *s, enum core_count count) {
	uint64_t sum = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		sum += s->nodes[i].core ? core_counts(s->nodes[i].core)[count] : 0;
	}
	return sum;
}
