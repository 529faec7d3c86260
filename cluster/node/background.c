/* background.c: long work in pieces, so that no step is long. Each turn of the loop does a few
 * pieces, however many steps it has, and between two turns everybody who has asked for something is
 * served. The bits of enum pending say which work is left. */
#include "node.h"

/* How many pieces of each kind one turn may do. That takes about a quarter of a millisecond. */
#define LOST_A_TURN 256
#define TRIES_A_TURN 256
#define LEAVING_A_TURN 128
#define HOMES_A_TURN 256
#define BOUND_A_TURN 256
/* Many leases, or waits, may end together. */
#define TIMERS_A_TURN 256

/* A piece of the work on whole tables is done each millisecond, so that other processes have their
 * share of the machine. But no piece waits while the masters of an epoch wait for this one. */
#define BACKGROUND_PACE SPAN_MS

/* Returns when the next piece of the work on whole tables may be done. */
static struct instant tables_due(const struct core *core) {
	return core->recovery->transfer.kind == STATE_TRANSFER_HANDOVER ? core->now
		: core->node.background_at;
}

/* Work, and how it goes on. Each function does as much as the turn has left. */
struct work {
	enum pending kind;
	void (*go_on)(struct core *core);
};

/* What goes on in each turn of the loop, in this order. */
static const struct work each_turn[] = {
	{ PENDING_LOST, queue_lost_go_on },
	{ PENDING_TRIES, queue_tries_go_on },
	{ PENDING_LEAVING, op_leaving_go_on },
	{ PENDING_HOMES, attempt_rehome_go_on },
	{ PENDING_UNSERVED, attempt_unserved_go_on },
	{ PENDING_UNSERVED_WAITS, local_unserved_go_on },
	{ PENDING_SHOWING, read_show_go_on },
	{ PENDING_WAITS, local_waits_go_on },
	{ PENDING_BOUND, binding_master_go_on },
	{ PENDING_LISTS, local_list_go_on },
	{ PENDING_ASKING, waiters_go_on },
	{ PENDING_JUDGING, sync_go_on },
	{ PENDING_WEIGHING, report_weigh_go_on },
	{ PENDING_SNAPSHOTS, snapshot_send_due },
	{ PENDING_FEEDS, feed_send_due },
};

static const struct work on_tables[] = {
	{ PENDING_EMPTYING, table_empty_go_on },
	{ PENDING_FINISHING, finish_sweep },
	{ PENDING_PAUSED, state_transfer_pause_over },
	{ PENDING_COPYING, state_transfer_go_on },
};

static const struct work at_end[] = {
	{ PENDING_BATCH, feed_step },
	{ PENDING_WATCHED, follow_step },
};

#define GO_ON(core, rows) go_on(core, rows, sizeof(rows) / sizeof *(rows))
static void go_on(struct core *core, const struct work *rows, size_t count) {
	for (size_t i = 0; i < count; i++) {
		if (core->engine.pending & rows[i].kind) {
			rows[i].go_on(core);
		}
	}
}

int64_t background_deadline(const struct core *core) {
	const uint32_t pending = core->engine.pending;
	const int64_t tables = pending & PENDING_TABLES ? tables_due(core).boot : INT64_MAX,
		weighing = pending & PENDING_WEIGHING ? report_weigh_deadline(core) : INT64_MAX;
	return pending & ~(uint32_t)(PENDING_TABLES | PENDING_WEIGHING) ? core->now.boot
		: tables < weighing ? tables : weighing;
}

void background_init(struct core *core) {
	core->engine.most = (struct pieces){ .lost = LOST_A_TURN,
		.tries = TRIES_A_TURN, .leaving = LEAVING_A_TURN, .homes = HOMES_A_TURN,
		.shown = core->limits.shown_a_turn, .waits = core->limits.waits_a_turn,
		.bound = BOUND_A_TURN, .judged = core->limits.judged_a_turn,
		.timers = TIMERS_A_TURN,
		.snapshots = UINT64_MAX, .feeds = UINT64_MAX, .list = true,
		.asked = true };
}

void background(struct core *core) {
	GO_ON(core, each_turn);
	if ((core->engine.pending & PENDING_TABLES) &&
		instant_expired(core->now, tables_due(core))) {
		core->node.background_at = instant_add(core->now, BACKGROUND_PACE);
		GO_ON(core, on_tables);
	}
}

void background_at_end(struct core *core) {
	GO_ON(core, at_end);
}
