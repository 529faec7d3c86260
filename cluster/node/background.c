/* background.c: long work in pieces, so that no step is long. Each turn of the loop does a few
 * pieces, however many steps it has, and between two turns everybody who has asked for something is
 * served. */
#include "node.h"

/* How many pieces of each kind one turn may do. That takes about a quarter of a millisecond. */
#define LOST_A_TURN 256
#define LEAVING_A_TURN 128
#define HOMES_A_TURN 256
#define BOUND_A_TURN 256
/* Many leases, or waits, may end together. */
#define TIMERS_A_TURN 256

/* A piece of the work on whole tables is done each millisecond, so that other processes have their
 * share of the machine. But no piece waits while the masters of an epoch wait for this one. */
#define BACKGROUND_PACE SPAN_MS

/* Tells whether there is work on a whole table. */
static bool on_tables(const struct core *core) {
	return core->store.staging_use == STAGING_EMPTYING || core->store.finish.active ||
		state_transfer_busy(core) || state_transfer_paused(core);
}

/* Returns when the next piece of the work on whole tables may be done. */
static struct instant tables_due(const struct core *core) {
	return core->recovery.transfer.kind == STATE_TRANSFER_HANDOVER ? core->now
		: core->node.background_at;
}

/* Tells whether something is left over for the next turn. */
static bool left_over(const struct core *core) {
	return !list_empty(&core->coordinator.lists) || !list_empty(&core->coordinator.leaving) ||
		!list_empty(&core->coordinator.asking) || queue_lost_left(core) ||
		!list_empty(&core->coordinator.showing) ||
		!list_empty(&core->coordinator.due_waits) ||
		!list_empty(&core->master.holders_due) || snapshot_due(core) || feed_due(core) ||
		attempt_rehome_left(core) || report_due(core) || follow_step_due(core);
}

int64_t background_deadline(const struct core *core) {
	const int64_t tables = on_tables(core) ? tables_due(core).boot : INT64_MAX,
		weighing = report_weigh_deadline(core);
	return left_over(core) ? core->now.boot
		: tables < weighing ? tables : weighing;
}

void background_turn(struct core *core) {
	if (core->engine.turn_over) {
		core->engine.turn_over = false;
		core->engine.left = (struct pieces){ .lost = LOST_A_TURN,
			.leaving = LEAVING_A_TURN, .homes = HOMES_A_TURN,
			.shown = core->limits.shown_a_turn, .waits = core->limits.waits_a_turn,
			.bound = BOUND_A_TURN, .timers = TIMERS_A_TURN,
			.snapshots = UINT64_MAX, .feeds = UINT64_MAX, .list = true,
			.asked = true };
	}
}

static void go_on_with_tables(struct core *core) {
	if (!on_tables(core) || !instant_expired(core->now, tables_due(core))) {
		return;
	}
	core->node.background_at = instant_add(core->now, BACKGROUND_PACE);
	if (core->store.staging_use == STAGING_EMPTYING) {
		table_empty_go_on(core);
	}
	if (core->store.finish.active) {
		finish_sweep(core);
	}
	state_transfer_pause_over(core);
	if (state_transfer_busy(core)) {
		state_transfer_go_on(core);
	}
}

void background(struct core *core) {
	if (queue_lost_left(core)) {
		queue_lost_go_on(core);
	}
	if (!list_empty(&core->coordinator.leaving)) {
		op_leaving_go_on(core);
	}
	if (attempt_rehome_left(core)) {
		attempt_rehome_go_on(core);
	}
	if (!list_empty(&core->coordinator.showing)) {
		read_show_go_on(core);
	}
	if (!list_empty(&core->coordinator.due_waits)) {
		local_waits_go_on(core);
	}
	if (!list_empty(&core->master.holders_due)) {
		binding_master_go_on(core);
	}
	if (core->engine.left.list && !list_empty(&core->coordinator.lists)) {
		core->engine.left.list = false;
		local_list_go_on(core);
	}
	if (core->engine.left.asked && !list_empty(&core->coordinator.asking)) {
		core->engine.left.asked = false;
		waiters_go_on(core);
	}
	report_weigh_go_on(core);
	snapshot_send_due(core);
	feed_send_due(core);
	go_on_with_tables(core);
}
