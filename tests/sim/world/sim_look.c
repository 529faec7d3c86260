/* sim_look.c: what is seen of the nodes: records of the trace, the keys of rounds, and counts. */
#include "sim_impl.h"

static struct sim_trace_record record_of(const struct sim *sim, enum sim_trace_kind kind,
	uint32_t node, uint32_t other) {
	return (struct sim_trace_record){ .at = sim->now, .kind = kind, .node = node,
		.other = other, .key = TRACE_NONE, .lock = TRACE_NONE };
}

static struct sim_round *subject_of(struct sim *sim, uint64_t round) {
	return &sim->rounds[round * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (SIM_ROUNDS - 1)];
}

void sim_look_subject(struct sim *sim, uint64_t round, uint32_t key, uint32_t lock) {
	*subject_of(sim, round) = (struct sim_round){ round, key, lock };
}

/* An answer names no key. Its key is the one of the round that it echoes. */
void sim_look_recall(struct sim *sim, uint64_t round, struct sim_trace_record *r) {
	const struct sim_round *subject = subject_of(sim, round);
	r->key = subject->round == round ? subject->key : SIM_NO_KEY;
	r->lock = subject->round == round ? subject->lock : r->lock;
}

uint32_t sim_round_key(struct sim *sim, uint64_t round) {
	const struct sim_round *subject = subject_of(sim, round);
	return subject->round == round && subject->key != SIM_NO_KEY ? subject->key : TRACE_NONE;
}

static void name_subject(struct sim *sim, const struct message *m, struct sim_trace_record *r) {
	uint32_t fields = message_fields(m->kind);
	if (fields & F_KEY) {
		r->key = sim_name_key_number(m->key);
		r->lock = fields & F_LOCK_ID ? sim_name_lock_number(m->lock_id) : TRACE_NONE;
		if (fields & F_ROUND) {
			sim_look_subject(sim, m->round, r->key, r->lock);
		}
	} else {
		sim_look_recall(sim, m->round, r);
	}
}

/* The epoch of a configuration is the first field behind the version. To decode all of the
 * configuration for each record of the trace would take longer than the rest of a node's step. */
static uint64_t epoch_of(struct slice blob) {
	uint64_t epoch = 0;
	for (size_t i = 8; blob.size > 8 && blob.data[0] == 1 && i > 0; i--) {
		epoch = epoch << 8 | blob.data[i];
	}
	return epoch;
}

void sim_look_frame(struct sim_node *node, uint32_t other, enum sim_trace_kind kind,
	const struct frame *frame) {
	for (size_t i = 0; i < frame->count; i++) {
		const struct message *m = &frame->messages[i];
		if (m->kind == MESSAGE_PING || m->kind == MESSAGE_PONG) {
			continue;
		}
		struct sim_trace_record r = record_of(node->sim, kind, node->index, other);
		uint32_t fields = message_fields(m->kind);
		r.message = m->kind;
		r.status = m->status;
		r.flags = m->flags;
		r.token = m->token;
		r.noted = fields & F_NOTED ? m->noted : m->ballot.clock;
		r.a = m->round;
		r.b = fields & F_LEASE ? m->lease_us : fields & F_EPOCH ? m->epoch : fields & F_BLOB
			? epoch_of(m->blob) : m->left_us;
		r.epoch = frame->epoch;
		if (fields & F_TERMS) {
			r.terms = m->terms;
		}
		name_subject(node->sim, m, &r);
		sim_trace_add(&node->sim->trace, &r);
	}
}

void sim_trace_fault(struct sim *sim, const char *what, uint32_t node, uint32_t other, uint64_t a) {
	struct sim_trace_record r = record_of(sim, TRACE_FAULT, node, other);
	r.text = what;
	r.a = a;
	sim_trace_add(&sim->trace, &r);
}

void sim_look_watch_event(struct sim_node *node, const struct core_watch_event *watch_event) {
	static const char *const names[] = { "tells: acquired", "tells: updated",
		"tells: downgraded", "tells: released", "tells: expired", "tells: lost",
		"tells: asked", "tells: missed events" };
	struct sim_trace_record r = record_of(node->sim, TRACE_NOTE, node->index, TRACE_NONE);
	r.text = names[watch_event->kind];
	if (watch_event->kind != WATCH_EVENT_MISSED) {
		r.key = sim_name_key_number(watch_event->key);
		r.lock = sim_name_lock_number(watch_event->lock_id);
		r.token = watch_event->token;
	}
	sim_trace_add(&node->sim->trace, &r);
}

void sim_look_note(struct sim_node *node, const struct core_note *note) {
	static const char *const names[] = { "born", "birth differs", "birth stranger", "voting",
		"recovering", "draining", "quorum lost", "quorum back", "clock refused",
		"lease refused", "clock behind", "unsteady", "link reset", "stood still",
		"contested", "contested ended",
		"broken", "outside", "following", "adopted", "conflict", "unproven", "complete",
		"role refused", "change", "forced", "double grant" };
	_Static_assert(sizeof names / sizeof *names == NOTE_DOUBLE_GRANT + 1,
		"each note has a name");
	struct sim_trace_record r = record_of(node->sim, TRACE_NOTE, node->index, TRACE_NONE);
	r.text = (note->kind == NOTE_VOTING || note->kind == NOTE_CHANGE ||
		note->kind == NOTE_ADOPTED) && note->text ? note->text : names[note->kind];
	r.a = note->value;
	if (note->key.size) {
		r.key = sim_name_key_number(note->key);
	}
	sim_trace_add(&node->sim->trace, &r);
}

/* The core counts from its birth: what is new since the last call is added to the sum of the
 * run. */
void sim_look_counts(struct sim_node *node) {
	const uint64_t *counts = core_counts(node->core);
	for (size_t i = 0; i < COUNT_TOTAL; i++) {
		node->sim->counts[i] += counts[i] - node->counts_seen[i];
		node->counts_seen[i] = counts[i];
	}
}

const uint64_t *sim_counts(struct sim *sim) {
	for (uint32_t i = 0; i < sim->n; i++) {
		if (sim->nodes[i].core) {
			sim_look_counts(&sim->nodes[i]);
		}
	}
	return sim->counts;
}
