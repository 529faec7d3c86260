/* recovery.c: a master that starts without its memory (section 4): it accepts nothing until it has rejoined or waited. */
#include "state.h"

static span_ns larger(span_ns a, span_ns b) {
	return a > b ? a : b;
}

static void begin(struct core *core) {
	/* both waits use the largest values it ever voted under */
	span_ns lease = larger(core->durable.max_lease_seen, core->config.max_lease);
	span_ns request = larger(core->durable.request_timeout_seen, core->config.request_timeout);
	core->started = core->now;
	core->vote_at = instant_add(core->now, span_grow(lease, 2 * core->config.drift_ppm));
	core->rejoin_at = instant_add(core->now, span_grow(request, core->config.drift_ppm));
	for (uint32_t i = 0; i < core->masters; i++) {
		core->peers[i].take = (struct snapshot_in){ .asked = false };
		merge_forget_source(core, i);
	}
	out_note(core, NOTE_RECOVERING, core->self, 0, NULL, slice_of(NULL, 0));
}

void recovery_start(struct core *core, bool restored) {
	if (restored && core->drain_whole && core->durable.voted) {
		COUNT(core, drain_consumed); /* no restart at all, only a pause */
		core->clock = core->drain_clock;
		recovery_vote(core, "drain");
		return;
	}
	table_clear(core, core->live);
	begin(core);
}

/* This node is far behind the others' clocks (section 9): it stops voting and rejoins, and keeps what it has. */
void recovery_again(struct core *core) {
	core->state = CORE_RECOVERING;
	queue_forget_all(core);
	feed_stop_all(core);
	begin(core);
	peers_tell(core);
	attempt_rehome_all(core);
}

void recovery_vote(struct core *core, const char *how) {
	core->state = CORE_VOTING;
	core->vote_began = core->now;
	log_new_id(core); /* what was merged is in no log */
	ceiling_raise(core);
	out_note(core, NOTE_VOTING, core->self, 0, how, slice_of(NULL, 0));
	peers_tell(core);
	op_peer_changed(core, core->self);
}

/* Any quorum it was part of contains one of n - q + 1 others. */
static uint32_t sources_needed(const struct core *core) {
	return core->masters - core->quorum + 1;
}

static void take_stop(struct core *core, uint32_t peer) {
	struct snapshot_in *s = &core->peers[peer].take;
	if (s->asked && !s->done) {
		*s = (struct snapshot_in){ .round = s->round };
		merge_forget_source(core, peer);
	}
}

static void ask_sources(struct core *core) {
	uint32_t have = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		struct snapshot_in *s = &core->peers[i].take;
		if (s->asked && !s->done && instant_elapsed_short(core->now, s->progress) > core->config.request_timeout) {
			take_stop(core, i);
		}
		have += s->asked;
	}
	for (uint32_t i = 0; i < core->masters && have < sources_needed(core); i++) {
		struct snapshot_in *s = &core->peers[i].take;
		if (i == core->self || s->asked || !peer_votes(core, i)) {
			continue;
		}
		*s = (struct snapshot_in){ .asked = true, .round = s->round + 1, .progress = core->now };
		struct message m = { .kind = MESSAGE_SNAPSHOT, .round = s->round };
		out_send(core, i, &m);
		have++;
	}
}

void recovery_beat(struct core *core) {
	if (core->state == CORE_UNBORN) {
		birth_go_on(core);
		return;
	}
	if (core->state != CORE_RECOVERING) {
		return;
	}
	if (core->durable.voted && instant_expired(core->now, core->vote_at)) {
		COUNT(core, waited); /* all it ever accepted is over */
		merge_note_clock(core);
		recovery_vote(core, "waiting");
	} else if (core->masters > 1 && instant_expired(core->now, core->rejoin_at)) {
		ask_sources(core); /* every round it had a part in before is over */
	}
}

static void ended(struct core *core, uint32_t from, const struct message *m) {
	struct snapshot_in *s = &core->peers[from].take;
	if (m->status != STATUS_OK) {
		take_stop(core, from);
		return;
	}
	s->done = true;
	s->clock_end = m->clock;
	uint32_t done = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		done += core->peers[i].take.done;
	}
	if (done >= sources_needed(core)) {
		COUNT(core, rejoin);
		merge_finish(core);
		recovery_vote(core, "rejoining");
	}
}

void recovery_message(struct core *core, uint32_t from, const struct message *m) {
	struct snapshot_in *s = &core->peers[from].take;
	if (core->state != CORE_RECOVERING || from >= core->masters || !s->asked || s->done || s->round != m->round) {
		return;
	}
	s->progress = core->now;
	if (m->kind == MESSAGE_SNAPSHOT_RECORD) {
		if (!merge_record(core, from, m)) {
			take_stop(core, from); /* not whole: it will be asked again */
		}
	} else if (m->kind == MESSAGE_SNAPSHOT_RELEASED) {
		merge_released(core, m);
	} else if (m->kind == MESSAGE_SNAPSHOT_CHUNK) {
		struct message go_on = { .kind = MESSAGE_SNAPSHOT_GO_ON, .round = m->round, .part = m->part, .parts = m->parts };
		out_send(core, from, &go_on);
	} else {
		ended(core, from, m);
	}
}

void recovery_peer_lost(struct core *core, uint32_t peer) {
	if (core->state == CORE_RECOVERING) {
		take_stop(core, peer);
	}
}
