/* state_transfer_own.c: a master of the previous epoch is a source of its own (section 6). Its live
 * table is copied in pieces into the staging table, and what it accepts meanwhile goes into
 * both. */
#include "recovery.h"
#include "state_transfer.h"

#define OWN_BUCKETS_A_STEP 128

/* Copies a piece of the live table. What changes meanwhile comes by state_transfer_changed. False:
 * there is no memory. */
static bool copy_own(struct core *core, struct source *s) {
	struct state_transfer *transfer = &core->recovery.transfer;
	const struct map *keys = &table_live(core)->keys;
	for (int i = 0; i < OWN_BUCKETS_A_STEP && transfer->self_bucket < keys->bucket_count;
		i++, transfer->self_bucket++) {
		for (struct map_node *n = map_bucket(keys, transfer->self_bucket); n;
			n = map_next_in_bucket(n)) {
			const struct key *key = CONTAINER_OF(n, struct key, node);
			for (const struct record *r = key->held; r; r = r->next) {
				struct message m;
				record_message(core, key, r, &m);
				if (!merge_record(core, table_staging(core), s->bit, &m)) {
					return false;
				}
				transfer->merged++;
			}
		}
	}
	return true;
}

struct source *state_transfer_own(struct core *core) {
	struct source *s = state_transfer_staging(core)
		? state_transfer_source(&core->recovery.transfer, core->durable.node_id) : NULL;
	return s && s->previous_master ? s : NULL;
}

void state_transfer_own_done(struct core *core, struct source *s) {
	s->done = true;
	s->clock_end = core->clock;
	state_transfer_evaluate(core);
}

bool state_transfer_busy(const struct core *core) {
	return core->recovery.transfer.own_walking;
}

void state_transfer_go_on(struct core *core) {
	struct source *s = state_transfer_own(core);
	CHECK(s && core->recovery.transfer.own_walking);
	if (!copy_own(core, s)) {
		core->recovery.transfer.full = true;
		state_transfer_break_off(core, s);
	} else if (core->recovery.transfer.self_bucket >= table_live(core)->keys.bucket_count) {
		state_transfer_end_own_walk(core);
		s->walked = true;
		if (core->recovery.transfer.kind == STATE_TRANSFER_HANDOVER) {
			state_transfer_own_done(core, s);
		}
		copy_ahead_tell(core);
	}
}

void state_transfer_ask_own(struct core *core, struct source *s) {
	struct state_transfer *transfer = &core->recovery.transfer;
	const bool handover = transfer->kind == STATE_TRANSFER_HANDOVER;
	bool voted_before = handover ? core->durable.voted_before : core->durable.voted;
	bool remembers = handover ? core->remembers : core_votes(core);
	if (!state_transfer_take_bit(core, s)) {
		return;
	}
	s->asked = true;
	s->asked_at = s->progress = s->told_at = core->now;
	if (remembers) {
		transfer->self_bucket = 0;
		transfer->own_walking = true;
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
		record_message(core, key, r, &m);
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
