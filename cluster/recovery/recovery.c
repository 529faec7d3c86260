/* recovery.c: a master that starts without its memory (section 4). It accepts nothing until it has
 * rejoined or waited. */
#include "recovery.h"

static void begin(struct core *core) {
	/* This is the largest max_lease that the node ever voted under. */
	span_ns lease = span_longer(core->durable.max_lease_seen, core->config.max_lease);
	core->recovery->vote_at = instant_add(core->now,
		span_grow(lease, 2 * core->config.drift_ppm));
	state_transfer_rejoin(core);
	out_note(core, NOTE_RECOVERING, core->self, 0, NULL, slice_of(NULL, 0));
}

void recovery_start(struct core *core, bool restored) {
	if (restored && core->recovery->drain_whole && core->durable.voted) {
		/* The side file makes this a pause, and no restart at all. */
		COUNT(core, drain_consumed);
		core->clock = core->recovery->drain_clock;
		recovery_vote(core, "drain");
		return;
	}
	table_clear(core, table_live(core));
	begin(core);
}

/* This node is far behind the others' clocks (section 9). It stops voting and rejoins, and keeps
 * what it has. */
void recovery_again(struct core *core) {
	persist_votes_end(core);
	core->state = CORE_RECOVERING;
	queue_forget_all(core);
	feed_stop_all(core);
	begin(core);
	peers_tell(core);
	attempt_rehome_all(core);
}

void recovery_again_in_epoch(struct core *core) {
	const struct instant vote_at = core->recovery->vote_at;
	const bool recovering = core->state == CORE_RECOVERING;
	recovery_again(core);
	core->recovery->vote_at = recovering ? vote_at : core->recovery->vote_at;
}

void recovery_vote(struct core *core, const char *how) {
	core->state = CORE_VOTING;
	lacked_vote_begins(core);
	/* What was merged is in no log. */
	watch_events_another_table(core);
	ceiling_raise(core);
	out_note(core, NOTE_VOTING, core->self, 0, how, slice_of(NULL, 0));
	peers_tell(core);
	core->observers->votes_changed(core);
}

void recovery_beat(struct core *core) {
	if (core->state == CORE_RECOVERING && core->durable.voted && !core->conflict &&
		instant_expired(core->now, core->recovery->vote_at)) {
		/* All that this node ever accepted is over. Only a master that has voted in this
		 * epoch may come in by waiting. */
		COUNT(core, waited);
		state_transfer_stop(core);
		/* Without this the node would be behind again as soon as it votes. */
		clock_raise(core, peers_quorum_says(core));
		finish_note_clock(core);
		recovery_vote(core, "waiting");
	}
}
