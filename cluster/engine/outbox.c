/* outbox.c: what a step wants done. Messages wait here, by peer, until the turn of the loop ends,
 * and as long as what they depend on is not on disk: no vote and no answer leaves while the clock
 * is above the clock reservation on disk (section 1). */
#include "engine.h"

#include "event_box.h"

/* The link of a peer that takes nothing is reset when more bytes than this wait for it. */
#define OUT_PEER_BYTES_MAX ((size_t)64 << 20)
/* The link is reset as well when more messages than this wait for it, which may carry no bytes. */
#define OUT_PEER_MESSAGES_MAX ((size_t)1 << 17)
/* The largest number of bytes in replies and notes that the driver has not taken. */
#define OUT_REPLY_BYTES_MAX ((size_t)256 << 20)

/* The messages that wait for one peer. */
struct queue {
	/* There are `count` messages, of which the first `sent` have left. The next `in_frame` are
	 * in the frame that the driver has. */
	struct message *messages;
	size_t count, capacity, sent, in_frame;
	/* How many bytes the messages have. */
	size_t bytes;
};

struct core_out {
	struct core *core;
	/* By peer index. The messages of the node to itself are handled within the step. */
	struct queue peers[NODES_MAX];
	/* The messages of the node to itself that are being handled. They stay where they are
	 * meanwhile, because what it says now is queued in its place among the peers. */
	struct queue own;
	/* The bytes of all these messages, and how many messages are in the queues. A message to
	 * several peers has its bytes here once, so they are given back when no queue has any
	 * message. */
	struct arena message_bytes;
	size_t queued;
	/* Where an answer is written that cannot be queued (out_answer). */
	struct message unsent;
	/* There are `replies_count` replies, of which the driver has read the first `replies_read`.
	 * The notes are kept in the same way. */
	struct core_reply *replies;
	size_t replies_count, replies_capacity, replies_read;
	struct core_note *notes;
	size_t notes_count, notes_capacity, notes_read;
	/* The bytes of replies and notes. */
	struct arena bytes;
	struct event_box watch_event;
	/* A bit set of peers whose links are to be reset. */
	uint64_t resets;
	/* The durable state is to be written. */
	bool persist;
};

struct core_out *core_out_new(struct core *core) {
	struct core_out *out = alloc_new(&core->alloc, sizeof *out);
	if (out == NULL) {
		return NULL;
	}
	out->core = core;
	arena_init(&out->message_bytes, &core->alloc, (NODES_MAX + 1) * OUT_PEER_BYTES_MAX);
	arena_init(&out->bytes, &core->alloc, OUT_REPLY_BYTES_MAX);
	event_box_init(&out->watch_event, &core->alloc);
	return out;
}

static void queue_free(const struct allocator *a, struct queue *q) {
	alloc_free(a, q->messages, q->capacity * sizeof *q->messages);
}

void core_out_free(struct core_out *out) {
	if (out == NULL) {
		return;
	}
	const struct allocator *a = &out->core->alloc;
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		queue_free(a, &out->peers[i]);
	}
	queue_free(a, &out->own);
	arena_done(&out->message_bytes);
	alloc_free(a, out->replies, out->replies_capacity * sizeof *out->replies);
	alloc_free(a, out->notes, out->notes_capacity * sizeof *out->notes);
	arena_done(&out->bytes);
	event_box_done(&out->watch_event, a);
	alloc_free(a, out, sizeof *out);
}

/* Doubles an array that is full. False: no memory. */
static bool grow(const struct allocator *a, void **array, size_t *capacity, size_t size) {
	size_t wanted = *capacity ? 2 * *capacity : 16;
	void *p = alloc_resize(a, *array, *capacity * size, wanted * size);
	if (p == NULL) {
		return false;
	}
	*array = p;
	*capacity = wanted;
	return true;
}

static void queue_clear(struct core_out *out, struct queue *q) {
	out->queued -= q->count;
	q->count = q->sent = q->in_frame = q->bytes = 0;
}

/* Returns how many bytes of byte strings the message has, of those that its kind carries. */
static size_t carried_bytes(uint32_t fields, const struct message *m) {
	return (fields & F_KEY ? m->key.size : 0) + (fields & F_OWNER ? m->owner.size : 0) +
		(fields & F_IDENTITY ? m->identity.size : 0) +
		(fields & F_VALUE ? m->value.size : 0) + (fields & F_BLOB ? m->blob.size : 0) +
		(fields & F_LABEL ? m->label.size : 0);
}

/* Copies so many bytes of a message with these fields. Returns as keep_bytes does. */
static __attribute__((noinline)) size_t copy_bytes(struct core *core, struct message *m,
	uint32_t fields, size_t bytes) {
	uint8_t *at = arena_take(&core->out->message_bytes, bytes, 1);
	if (at == NULL) {
		return SIZE_MAX;
	}
	const struct { uint32_t field; struct slice *string; } strings[] = { { F_KEY, &m->key },
		{ F_OWNER, &m->owner }, { F_IDENTITY, &m->identity }, { F_VALUE, &m->value },
		{ F_BLOB, &m->blob }, { F_LABEL, &m->label } };
	for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
		struct slice *s = strings[i].string;
		if ((fields & strings[i].field) && s->size > 0) {
			memcpy(at, s->data, s->size);
			s->data = at;
			at += s->size;
		}
	}
	return bytes;
}

/* Copies the bytes of the message, and makes it point to the copy. Returns how many they are;
 * SIZE_MAX: no memory. Most answers have none. */
static inline size_t keep_bytes(struct core *core, struct message *m) {
	const uint32_t fields = message_fields(m->kind);
	const size_t bytes = fields & MESSAGE_BYTES ? carried_bytes(fields, m) : 0;
	return bytes ? copy_bytes(core, m, fields, bytes) : 0;
}

void out_keep(struct core *core, struct message *m) {
	const size_t bytes = keep_bytes(core, m);
	m->kept = bytes == SIZE_MAX ? 0 : bytes;
	m->same = ++core->engine.same;
}

/* A message that cannot be queued is a message that the network lost, and that happens only
 * together with the link. So nothing more is sent over the link, and its loss is handled at the end
 * of the step (section 1, Frames). */
static void lose(struct core *core, uint32_t peer) {
	COUNT(core, no_memory);
	core->engine.failed |= (uint64_t)1 << peer;
}

/* Returns the place of the next message to the peer, which does not count yet. NULL: the link takes
 * no message. */
static inline struct message *next_place(struct core *core, uint32_t peer) {
	const bool own = peer == core->self;
	if ((own ? core->engine.self_lost : !core->peers[peer].up) ||
		(core->engine.failed >> peer & 1)) {
		return NULL;
	}
	struct queue *q = &core->out->peers[peer];
	if ((!own && q->count - q->sent >= OUT_PEER_MESSAGES_MAX) || (q->count == q->capacity &&
		!grow(&core->alloc, (void **)&q->messages, &q->capacity, sizeof *q->messages))) {
		lose(core, peer);
		return NULL;
	}
	if (own) {
		pending_add(core, PENDING_SAID);
	}
	return &q->messages[q->count];
}

void out_send(struct core *core, uint32_t peer, const struct message *m) {
	struct queue *q = &core->out->peers[peer];
	struct message *copy = next_place(core, peer);
	if (copy == NULL) {
		return;
	}
	message_copy(copy, m);
	const size_t bytes = m->kept ? m->kept : keep_bytes(core, copy);
	if (bytes > OUT_PEER_BYTES_MAX - q->bytes) {
		lose(core, peer);
		return;
	}
	/* A handler may copy what this node says to itself into another message. */
	copy->kept = 0;
	const bool own = peer == core->self;
	copy->same = own ? 0 : m->same;
	copy->key_hash = own ? m->key_hash : 0;
	q->bytes += bytes;
	q->count++;
	core->out->queued++;
}

struct message *out_answer(struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *to) {
	struct message *answer = next_place(core, peer);
	if (answer) {
		core->out->peers[peer].count++;
		core->out->queued++;
	} else {
		answer = &core->out->unsent;
	}
	message_clear(answer);
	answer->kind = kind;
	answer->round = to->round;
	return answer;
}

enum out_backlog out_backlog(const struct core *core, uint32_t peer) {
	const struct queue *q = &core->out->peers[peer];
	const size_t messages = q->count - q->sent, bytes = q->bytes;
	if (messages > OUT_PEER_MESSAGES_MAX / 2 || bytes > OUT_PEER_BYTES_MAX / 2) {
		return BACKLOG_LARGE;
	}
	return messages > OUT_PEER_MESSAGES_MAX / 32 || bytes > OUT_PEER_BYTES_MAX / 32
		? BACKLOG_SOME : BACKLOG_SMALL;
}

const struct message *out_take_local(struct core *core) {
	struct queue *own = &core->out->own, *said = &core->out->peers[core->self];
	if (own->sent == own->count) {
		queue_clear(core->out, own);
		if (said->count == 0) {
			pending_left(core, PENDING_SAID, false);
			return NULL;
		}
		const struct queue emptied = *own;
		*own = *said;
		*said = emptied;
	}
	return &own->messages[own->sent++];
}

void out_drop_peer(struct core *core, uint32_t peer) {
	queue_clear(core->out, &core->out->peers[peer]);
	core->engine.failed &= ~((uint64_t)1 << peer);
}

void out_reset(struct core *core, uint32_t peer) {
	/* Where a non-member is gone, the driver drops its link with its place in the table. */
	if (peer < core->peer_count) {
		core->out->resets |= (uint64_t)1 << peer;
	}
}

void out_peer_gone(struct core *core, uint32_t peer) {
	queue_clear(core->out, &core->out->peers[peer]);
	core->out->resets &= ~((uint64_t)1 << peer);
	core->engine.failed &= ~((uint64_t)1 << peer);
}

bool out_reserve_reply(struct core *core) {
	struct core_out *out = core->out;
	/* There is one reply for each open caller, so that an answer never fails for want of
	 * memory. */
	while (out->replies_capacity < out->replies_count + core->engine.caller_count + 1) {
		if (!grow(&core->alloc, (void **)&out->replies, &out->replies_capacity,
			sizeof *out->replies)) {
			return false;
		}
	}
	return true;
}

bool core_out_unheard(const struct core_out *out) {
	return out->core->engine.unheard;
}

struct core_reply *out_reply(struct core *core) {
	struct core_out *out = core->out;
	CHECK(out->replies_count < out->replies_capacity);
	struct core_reply *r = &out->replies[out->replies_count++];
	memset(r, 0, sizeof *r);
	return r;
}

bool out_copy(struct core *core, struct slice from, struct slice *to) {
	*to = slice_of(NULL, 0);
	return from.size == 0 || arena_copy(&core->out->bytes, from, to) == 0;
}

void *out_room(struct core *core, size_t size) {
	return arena_take(&core->out->bytes, size, _Alignof(max_align_t));
}

struct event_box *out_event_box(struct core *core) {
	return core->out ? &core->out->watch_event : NULL;
}

/* Copies the note. */
static void note(struct core *core, const struct core_note *from) {
	struct core_out *out = core->out;
	if (out->notes_count >= 256 || (out->notes_count == out->notes_capacity &&
		!grow(&core->alloc, (void **)&out->notes, &out->notes_capacity,
			sizeof *out->notes))) {
		/* The log has one line less then. */
		return;
	}
	struct core_note *n = &out->notes[out->notes_count];
	*n = *from;
	out->notes_count += out_copy(core, from->key, &n->key) &&
		out_copy(core, from->holders[0].owner, &n->holders[0].owner) &&
		out_copy(core, from->holders[1].owner, &n->holders[1].owner);
}

void out_note(struct core *core, enum core_note_kind kind, uint32_t peer, uint64_t value,
	const char *text, struct slice key) {
	note(core, &(struct core_note){ .kind = kind, .peer = peer, .value = value, .text = text,
		.key = key });
}

void out_note_double_grant(struct core *core, uint32_t peer, const char *text, struct slice key,
	const struct core_note_holder holders[2]) {
	note(core, &(struct core_note){ .kind = NOTE_DOUBLE_GRANT, .peer = peer, .text = text,
		.key = key, .holders = { holders[0], holders[1] } });
}

void out_persist(struct core *core) {
	core->out->persist = true;
}

struct core *out_core(const struct core_out *out) {
	return out->core;
}

static uint64_t permute_set(uint64_t set, const int from[NODES_MAX]) {
	uint64_t moved = 0;
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		moved |= from[i] < 0 ? 0 : (set >> from[i] & 1) << i;
	}
	return moved;
}

/* Moves what has been said about peers and will be read by their indexes later. */
static void permute_told(struct core_out *out, const int from[NODES_MAX]) {
	for (size_t i = out->replies_read; i < out->replies_count; i++) {
		out->replies[i].silent = permute_set(out->replies[i].silent, from);
		out->replies[i].not_voting = permute_set(out->replies[i].not_voting, from);
		out->replies[i].missing = permute_set(out->replies[i].missing, from);
		if (out->replies[i].times) {
			out->replies[i].times->late =
				permute_set(out->replies[i].times->late, from);
		}
	}
	for (size_t i = out->notes_read; i < out->notes_count; i++) {
		uint32_t to = 0;
		while (to < NODES_MAX && from[to] != (int)out->notes[i].peer) {
			to++;
		}
		/* The index NODES_MAX stands for nobody. */
		out->notes[i].peer = to;
	}
}

/* What waits for a peer goes with it to its new index. What waits for peers that are gone is
 * dropped. */
void out_permute(struct core *core, const int from[NODES_MAX]) {
	struct core_out *out = core->out;
	struct queue old[NODES_MAX];
	bool used[NODES_MAX] = { false };
	const uint64_t resets = permute_set(out->resets, from),
		failed = permute_set(core->engine.failed, from);
	memcpy(old, out->peers, sizeof old);
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		if (from[i] >= 0) {
			out->peers[i] = old[from[i]];
			used[from[i]] = true;
		}
	}
	for (uint32_t i = 0, spare = 0; i < NODES_MAX; i++) {
		if (from[i] < 0) {
			while (used[spare]) {
				spare++;
			}
			out->peers[i] = old[spare++];
			queue_clear(out, &out->peers[i]);
		}
	}
	out->resets = resets;
	core->engine.failed = failed;
	permute_told(out, from);
}

static void queue_drop_epoch(struct core_out *out, struct queue *q) {
	size_t kept = q->sent;
	for (size_t n = q->sent; n < q->count; n++) {
		if (message_of_any_epoch(q->messages[n].kind)) {
			q->messages[kept++] = q->messages[n];
		}
	}
	out->queued -= q->count - kept;
	q->count = kept;
}

void out_drop_epoch(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		queue_drop_epoch(core->out, &core->out->peers[i]);
	}
	queue_drop_epoch(core->out, &core->out->own);
}

/* ---- the driver's side ---- */

bool core_out_frame(struct core_out *out, uint32_t peer, struct frame *frame) {
	struct core *core = out->core;
	struct queue *q = &out->peers[peer];
	if (peer == core->self || q->sent == q->count) {
		return false;
	}
	if (!persist_may_leave(core)) {
		COUNT(core, vote_held_back);
		return false;
	}
	size_t bytes = q->bytes + 256 * (q->count - q->sent), n = q->count;
	if (bytes >= FRAME_BYTES_MAX / 2) {
		for (bytes = 0, n = q->sent; n < q->count && bytes < FRAME_BYTES_MAX / 2; n++) {
			bytes += 256 + carried_bytes(MESSAGE_BYTES, &q->messages[n]);
		}
	}
	q->in_frame = n - q->sent;
	*frame = (struct frame){ .epoch = core_born(core) ? core->config.epoch : 0,
		.config_hash = core->config_hash,
		.sender = core->durable.node_id, .boot = core->durable.boot, .clock = core->clock,
		.flags = (core_votes(core) ? FRAME_VOTING : 0) |
			(core->complete ? FRAME_COMPLETE : 0),
		.messages = q->messages + q->sent, .count = q->in_frame };
	return true;
}

void core_out_sent(struct core_out *out, uint32_t peer) {
	struct queue *q = &out->peers[peer];
	q->sent += q->in_frame;
	q->in_frame = 0;
	if (q->sent == q->count) {
		queue_clear(out, q);
	}
}

const struct core_reply *core_out_reply(struct core_out *out) {
	if (out->replies_read == out->replies_count || !persist_may_leave(out->core)) {
		return NULL;
	}
	return &out->replies[out->replies_read++];
}

const struct core_watch_event *core_out_watch_event(struct core_out *out) {
	struct event_box *box = &out->watch_event;
	if (!persist_may_leave(out->core)) {
		return NULL;
	}
	if (box->read < box->count) {
		return &box->watch_event[box->read++];
	}
	if (box->lost) {
		out->core->counts[COUNT_watch_event_lost] += box->lost;
		box->lost = 0;
		return &box->missed;
	}
	return NULL;
}

const struct core_note *core_out_note(struct core_out *out) {
	return out->notes_read < out->notes_count ? &out->notes[out->notes_read++] : NULL;
}

uint64_t core_out_resets(struct core_out *out) {
	uint64_t r = out->resets;
	out->resets = 0;
	return r;
}

bool core_out_persist(struct core_out *out, struct durable *state, uint64_t *seq) {
	if (!out->persist) {
		return false;
	}
	out->persist = false;
	persist_take(out->core, state, seq);
	return true;
}

void core_out_clear(struct core_out *out) {
	struct event_box *events = &out->watch_event;
	out->core->engine.turn_over = true;
	if (events->read == events->count) {
		events->read = events->count = 0;
		arena_reset(&events->bytes);
	}
	if (out->queued == 0) {
		arena_reset(&out->message_bytes);
	}
	if (out->replies_read == out->replies_count && out->notes_read == out->notes_count) {
		out->replies_read = out->replies_count = out->notes_read = out->notes_count = 0;
		arena_reset(&out->bytes);
	}
}
