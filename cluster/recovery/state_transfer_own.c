/* state_transfer_own.c: a master of the previous epoch is a source of its own (section 6). Its live
 * table is copied in pieces into the staging table, and what it accepts meanwhile goes into
 * both. */
#include "recovery.h"
#include "state_transfer.h"

#define OWN_BUCKETS_A_STEP 128
#define OWN_RECORDS_A_STEP 256
#define OWN_BYTES_A_STEP ((size_t)1 << 20)

static bool copy_record(struct core *core, void *ctx, const struct key *key,
	const struct record *r) {
	const struct source *s = ctx;
	struct message m;
	record_message(core, MESSAGE_SNAPSHOT_RECORD, key, r, &m);
	core->recovery->transfer.merged++;
	return merge_record(core, table_staging(core), s->bit, &m);
}

struct source *state_transfer_own(struct core *core) {
	struct source *s = state_transfer_staging(core)
		? state_transfer_source(&core->recovery->transfer, core->durable.node_id) : NULL;
	return s && s->previous_master ? s : NULL;
}

void state_transfer_own_done(struct core *core, struct source *s) {
	s->done = true;
	s->clock_end = core->clock;
	state_transfer_evaluate(core);
}

bool state_transfer_busy(const struct core *core) {
	return core->recovery->transfer.own_walking;
}

void state_transfer_go_on(struct core *core) {
	struct source *s = state_transfer_own(core);
	CHECK(s && core->recovery->transfer.own_walking);
	/* What changes meanwhile comes by state_transfer_changed. */
	struct walk_piece piece = { .records_max = OWN_RECORDS_A_STEP,
		.buckets_max = OWN_BUCKETS_A_STEP, .bytes_max = OWN_BYTES_A_STEP,
		.visit = copy_record, .ctx = s };
	const bool whole = table_walk(core, &core->recovery->transfer.own_walk, &piece);
	if (piece.failed) {
		core->recovery->transfer.full = true;
		state_transfer_break_off(core, s);
	} else if (whole) {
		state_transfer_end_own_walk(core);
		s->walked = true;
		if (core->recovery->transfer.kind == STATE_TRANSFER_HANDOVER) {
			state_transfer_own_done(core, s);
		}
		copy_ahead_tell(core);
	}
}

void state_transfer_ask_own(struct core *core, struct source *s) {
	struct state_transfer *transfer = &core->recovery->transfer;
	const bool handover = transfer->kind == STATE_TRANSFER_HANDOVER;
	bool voted_before = handover ? core->durable.voted_before : core->durable.voted;
	bool remembers = handover ? core->remembers : core_votes(core);
	if (!state_transfer_take_bit(core, s)) {
		return;
	}
	s->asked = true;
	s->asked_at = s->progress = s->told_at = core->now;
	if (remembers) {
		transfer->own_walk = (struct table_walk){ .bucket = 0 };
		transfer->own_walking = true;
		pending_add(core, PENDING_COPYING);
		map_walk_begin(&table_live(core)->keys);
		return;
	}
	s->walked = s->done = handover;
	s->never = !voted_before;
	s->forgot = voted_before;
	s->told_at = core->adopted_at;
	s->clock_end = core->durable.ceiling > core->clock ? core->durable.ceiling : core->clock;
}

void state_transfer_changed(struct core *core, const struct key *key, const struct record *r) {
	struct source *s = state_transfer_own(core);
	if (s && s->asked && !s->done && key_is_live(core, key)) {
		struct message m;
		record_message(core, MESSAGE_SNAPSHOT_RECORD, key, r, &m);
		if (!merge_record(core, table_staging(core), s->bit, &m)) {
			state_transfer_break_off(core, s);
		}
	}
}

void state_transfer_released(struct core *core, const struct message *m) {
	struct source *s = state_transfer_own(core);
	if (s && s->asked && !s->done) {
		merge_released(core, table_staging(core), m);
	}
}

void state_transfer_lost(struct core *core, const struct message *m) {
	struct source *s = state_transfer_own(core);
	if (s && s->asked && !s->done) {
		merge_lost(core, table_staging(core), s->bit, m);
	}
}
