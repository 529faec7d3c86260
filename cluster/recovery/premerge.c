/* premerge.c: getting ready to be a master of the next epoch before it is decided, so that the gap between the epochs stays short
 * (section 6): who coordinates the change asks, and is told how far it is. */
#include "recovery.h"

static void tell(struct core *core, enum status status) {
	const struct gather *g = &core->gather;
	int slot = slots_find_id(core, g->asker);
	struct message m = { .kind = MESSAGE_PREMERGE_ANSWER, .round = g->asker_round, .status = status, .number = g->merged };
	if (slot >= 0) {
		out_send(core, (uint32_t)slot, &m);
	}
}

/* Ready: the walks of enough sources are over, and their changes keep coming. NEED: not yet. FULL: there is no room for two tables. */
void premerge_tell(struct core *core) {
	struct gather *g = &core->gather;
	if (g->kind != GATHER_AHEAD || g->told_ready) {
		return;
	}
	g->told_ready = gather_ready(core);
	core->counts[COUNT_premerge_ready] += g->told_ready;
	tell(core, g->told_ready ? STATUS_OK : g->full ? STATUS_FULL : STATUS_NEED);
}

void premerge_asked(struct core *core, uint32_t from, const struct message *m) {
	struct config c;
	struct message refusal = { .kind = MESSAGE_PREMERGE_ANSWER, .round = m->round, .status = STATUS_EPOCH };
	if (!proof_master(core, from)) {
		COUNT(core, asked_by_no_member);
		return;
	}
	bool fits = config_decode(m->blob, &c) == 0 && decree_follows(core, &c) && core_born(core) && !core->adopting;
	if (fits) {
		const bool first = announced_goes_first(core, &c);
		const int at = config_find_id(&c, core->durable.node_id);
		if (at < 0 || !c.nodes[at].master) {
			return; /* it only has to know whom it may tell what it knows */
		}
		fits = first;
		refusal.status = STATUS_HELD;
	}
	if (fits && !gather_ahead(core, &c)) {
		fits = false;
		refusal.status = STATUS_RECOVERING;
	}
	if (!fits) {
		out_send(core, from, &refusal);
		return;
	}
	core->gather.asker = core->peers[from].link_id;
	core->gather.asker_round = m->round;
	core->gather.keep_until = announced_until(core);
	core->gather.told_ready = false;
	gather_beat(core);
}

/* The change was given up. */
void premerge_ended(struct core *core, uint32_t from, const struct message *m) {
	const struct gather *g = &core->gather;
	if (g->kind == GATHER_AHEAD && g->asker_round == m->round && id128_equal(g->asker, core->peers[from].link_id) && proof_identity(core, from)) {
		gather_stop(core);
	}
}
