/* copy_ahead.c: a future master copies what the present masters know before the decree, so that the
 * gap between the epochs stays short (section 6). The master that coordinates the change asks for
 * it and is told how far it is. It only saves time: a change does without it where it must. */
#include "recovery.h"

/* Answers the master that asked last. */
static void tell(struct core *core, enum status status) {
	const struct state_transfer *transfer = &core->recovery->transfer;
	int index = peer_table_find_id(core, transfer->asker);
	struct message m = { .kind = MESSAGE_COPY_AHEAD_ANSWER, .round = transfer->asker_round,
		.status = status, .number = transfer->merged };
	if (index >= 0) {
		out_send(core, (uint32_t)index, &m);
	}
}

/* STATUS_OK: ready, because enough sources have sent all that they had, and their changes keep
 * coming. STATUS_NEED: not yet. STATUS_FULL: there is no room for two tables. */
void copy_ahead_tell(struct core *core) {
	struct state_transfer *transfer = &core->recovery->transfer;
	if (transfer->kind != STATE_TRANSFER_AHEAD || transfer->ready_reported) {
		return;
	}
	transfer->ready_reported = state_transfer_ready(core);
	core->counts[COUNT_copy_ahead_ready] += transfer->ready_reported;
	tell(core, transfer->ready_reported ? STATUS_OK
		: transfer->full ? STATUS_FULL
		: STATUS_NEED);
}

void copy_ahead_asked(struct core *core, uint32_t from, const struct message *m) {
	struct config c;
	struct message refusal = { .kind = MESSAGE_COPY_AHEAD_ANSWER, .round = m->round,
		.status = STATUS_EPOCH };
	if (!proof_master(core, from)) {
		COUNT(core, asked_by_no_member);
		return;
	}
	bool fits = config_decode(m->blob, &c) == 0 && announced_may_follow(core, &c) &&
		core_born(core) && !core->adopting;
	if (fits) {
		const bool first = announced_goes_first(core, &c);
		const int at = config_find_id(&c, core->durable.node_id);
		if (at < 0 || !c.nodes[at].master) {
			/* This node is no future master. It only has to know to whom it may tell
			 * what it knows. */
			return;
		}
		fits = first;
		refusal.status = STATUS_HELD;
	}
	if (fits && !state_transfer_ahead(core, &c)) {
		fits = false;
		refusal.status = STATUS_RECOVERING;
	}
	if (!fits) {
		out_send(core, from, &refusal);
		return;
	}
	core->recovery->transfer.asker = core->peers[from].link_id;
	core->recovery->transfer.asker_round = m->round;
	core->recovery->transfer.keep_until = announced_until(core);
	core->recovery->transfer.ready_reported = false;
	state_transfer_beat(core);
}

void copy_ahead_ended(struct core *core, uint32_t from, const struct message *m) {
	const struct state_transfer *transfer = &core->recovery->transfer;
	if (transfer->kind == STATE_TRANSFER_AHEAD && transfer->asker_round == m->round &&
		id128_equal(transfer->asker, core->peers[from].link_id) &&
		proof_identity(core, from)) {
		state_transfer_stop(core);
	}
}
