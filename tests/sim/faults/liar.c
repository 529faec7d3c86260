/* liar.c: a node that lies (docs/protocol.md, section 6, Proof). It never becomes a master, and is
 * outside, a replica, or a replica that was removed, as operators choose. In addition to what its
 * own core says, it sends well-formed messages about the set, decrees and snapshots at any time.
 * The others must adopt nothing of it, go on voting, and send it no snapshot. */
#include <inttypes.h>

#include "check.h"
#include "faults.h"

static uint32_t the_liar(const struct run *run) {
	return sim_nodes(run->sim) - 1;
}

/* The configuration of the node that is lied to, or a later one, with the liar among its masters or
 * as the only one. */
static void forge_config(struct run *run, const struct config *present, struct config *c) {
	struct prng *r = &run->late;
	const bool alone = prng_chance(r, 1, 2) || present->node_count == CONFIG_NODES_MAX;
	const uint32_t masters = config_masters(present);
	*c = *present;
	c->previous_master_count = masters;
	memcpy(c->previous_masters, present->nodes, masters * sizeof *c->previous_masters);
	c->epoch += prng_chance(r, 1, 2) ? 1 : prng_below(r, 4);
	c->node_count = alone || config_find_name(c, sim_node_name(run->sim, the_liar(run))) >= 0
		? 1 : masters < MASTERS_MAX ? masters + 1 : masters;
	struct config_node *n = &c->nodes[c->node_count - 1];
	*n = (struct config_node){ .id = sim_node_durable(run->sim, the_liar(run))->node_id,
		.master = true };
	snprintf(n->name, sizeof n->name, "%s", sim_node_name(run->sim, the_liar(run)));
	snprintf(n->address, sizeof n->address, "%s", CHECKER_LIE);
}

static enum message_kind draw_kind(struct prng *r) {
	static const enum message_kind kinds[] = { MESSAGE_CONFIG, MESSAGE_CONFIG, MESSAGE_CONFIG,
		MESSAGE_DECREE_PREPARE, MESSAGE_DECREE_PROMISE, MESSAGE_DECREE_ACCEPT,
		MESSAGE_DECREE_ACCEPT, MESSAGE_DECREE_ACCEPTED, MESSAGE_COPY_AHEAD,
		MESSAGE_COPY_AHEAD_ANSWER, MESSAGE_COPY_AHEAD_END, MESSAGE_PLEDGE, MESSAGE_SNAPSHOT,
		MESSAGE_SNAPSHOT, MESSAGE_SNAPSHOT, MESSAGE_SNAPSHOT_GO_ON, MESSAGE_SNAPSHOT_RECORD,
		MESSAGE_SNAPSHOT_RELEASED, MESSAGE_SNAPSHOT_LOST, MESSAGE_SNAPSHOT_CHUNK,
		MESSAGE_SNAPSHOT_READY, MESSAGE_SNAPSHOT_END, MESSAGE_FOLLOW, MESSAGE_FEED_BATCH,
		MESSAGE_FEED_END, MESSAGE_READ, MESSAGE_COMMIT_ANSWER, MESSAGE_EXTEND_ANSWER,
		MESSAGE_PROMISE_ANSWER };
	return kinds[prng_below(r, sizeof kinds / sizeof *kinds)];
}

static void lie(struct run *run, uint32_t to) {
	static uint8_t bytes[CONFIG_BYTES_MAX];
	struct prng *r = &run->late;
	const struct core *core = sim_node_core(run->sim, to);
	const struct config *present = core ? core_config(core) : NULL;
	struct config c;
	if (!present || present->epoch == 0) {
		return;
	}
	forge_config(run, present, &c);
	const uint64_t ballot = UINT64_C(1) << prng_below(r, 40);
	struct message m = { .kind = draw_kind(r), .round = prng_below(r, 8),
		.epoch = present->epoch + prng_below(r, 2), .ballot = { ballot, 1, 1 },
		.prepared = { ballot, 1, 1 }, .number = config_hash(&c), .key = slice_str("lie"),
		.part = (uint32_t)prng_below(r, 3), .parts = 3 };
	const uint32_t flags[] = { 0, FLAG_HANDOVER, FLAG_HANDOVER, FLAG_PASSED_ON, FLAG_BORN,
		FLAG_NEVER, FLAG_REMEMBERS, FLAG_ACCEPT_ISOLATED | FLAG_STAGING };
	m.flags = flags[prng_below(r, sizeof flags / sizeof *flags)];
	m.lock_id.b[0] = 1;
	m.blob = slice_of(bytes, config_encode(&c, bytes));
	run->counts[RUN_LIED] += sim_forge(run->sim, the_liar(run), to, &m);
}

static void evaluate(struct run *run) {
	if (sim_counts(run->sim)[COUNT_config_conflict]) {
		checker_violation(run->checker, "a liar ends no vote", TRACE_NONE,
			"a node stopped voting for a conflict");
	}
	if (sim_snapshots_to(run->sim, the_liar(run))) {
		checker_violation(run->checker, "snapshots go to masters", TRACE_NONE,
			"n%" PRIu32 " was sent a snapshot", the_liar(run) + 1);
	}
}

static void think(void *ctx, uint64_t arg) {
	(void)arg;
	struct run *run = ctx;
	if (run->healing) {
		return;
	}
	evaluate(run);
	lie(run, (uint32_t)prng_below(&run->late, the_liar(run)));
	sim_at(run->sim, sim_now(run->sim) + prng_between(&run->late, SPAN_MS, 10 * SPAN_MS), think,
		run, 0);
}

void liar_start(struct run *run) {
	if (run->profile.liars) {
		sim_at(run->sim, sim_now(run->sim) + SPAN_MS, think, run, 0);
	}
}
