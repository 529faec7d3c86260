/* sim_node.c: a node's process: the driver around one core. Its turns are in sim_turn.c. */
#include <stdlib.h>

#include "check.h"
#include "sim_impl.h"

void sim_node_init(struct sim *sim, uint32_t index) {
	struct sim_node *node = &sim->nodes[index];
	node->sim = sim;
	node->index = index;
	snprintf(node->name, sizeof node->name, "n%u", index + 1);
	sim_clock_draw(sim, &node->clock, false);
	node->disk_min = sim->options.disk_min;
	node->disk_max = sim->options.disk_max;
	sim_disk_fresh(node);
}

void sim_node_done(struct sim_node *node) {
	if (node->core) {
		sim_look_counts(node);
		core_out_free(node->out);
		core_free(node->core);
		CHECK(node->memory.used == 0);
	}
	sim_fifo_clear(&node->inbox);
	sim_disk_side_clear(node);
}

/* Every key has one watcher at every node, so that a test sees which nodes an ask reaches. */
static uint32_t one_watches(void *ctx, struct slice key) {
	(void)ctx;
	(void)key;
	return 1;
}

/* A link belongs to a name and goes with it to its new peer index. Links of names that are gone are
 * dropped, and this core is not told. */
static void map_peers(struct sim_node *node) {
	struct sim *sim = node->sim;
	uint32_t peers = core_peer_count(node->core);
	CHECK(peers <= NODES_MAX);
	memset(node->peer_of, 0xff, sizeof node->peer_of);
	memset(node->node_of, 0xff, sizeof node->node_of);
	for (uint32_t peer = 0; peer < peers; peer++) {
		if (core_peer(node->core, peer)->name[0] == 0) {
			/* The place of a node that is missing: nobody is reached there. */
			continue;
		}
		uint32_t i = sim_node_named(sim, core_peer(node->core, peer)->name);
		CHECK(i != TRACE_NONE && node->peer_of[i] == TRACE_NONE);
		node->peer_of[i] = peer;
		node->node_of[peer] = i;
	}
	CHECK(node->node_of[core_self(node->core)] == node->index);
	for (uint32_t i = 0; i < sim->n; i++) {
		struct sim_link *link = node->links[i];
		if (link && node->peer_of[i] == TRACE_NONE) {
			sim_trace_fault(sim, "not in the table any more: drops link to",
				node->index, i, 0);
			sim_link_drop(&link->ends[link->ends[0].node == node->index ? 0 : 1],
				false);
		} else if (!link && i != node->index) {
			sim_link_dial(sim, node->index, i);
		}
	}
}

void sim_node_table(struct sim_node *node) {
	if (core_out_peers_changed(node->out)) {
		map_peers(node);
	}
}

void sim_node_step(struct sim_node *node, const struct core_event *event) {
	struct sim *sim = node->sim;
	if (sim->follower.begins) {
		sim->follower.begins(sim->follower.ctx, node->index, event);
	}
	core_step(node->core, event, sim_clock_read(&node->clock, sim->now), node->out);
	sim->steps++;
	if (sim->follower.begins) {
		sim->follower.ended(sim->follower.ctx, node->index);
	}
	sim_node_table(node);
	if (sim->options.check_every && ++node->unchecked >= sim->options.check_every) {
		node->unchecked = 0;
		core_check(node->core);
	}
	if (sim->observer.stepped) {
		sim->observer.stepped(sim->observer.ctx, node->index);
	}
}

static void create_core(struct sim_node *node) {
	struct sim *sim = node->sim;
	node->memory = (struct alloc_counter){ 0 };
	node->alloc = sim_shortage_allocator(node);
	uint64_t k0 = prng_next(&sim->prng), k1 = prng_next(&sim->prng),
		seed = prng_next(&sim->prng);
	struct core_options options = {
		.alloc = &node->alloc,
		.hash_key = { k0, k1 },
		.seed = seed,
		.limits = sim->options.limits,
		.name = node->name,
		.birth = &sim->birth,
		.durable = &node->disk,
		.replication_interval = sim->options.replication_interval,
		.auto_replace = sim->options.auto_replace,
		.check_grants = sim->options.check_grants,
	};
	int error = core_new(&options, &node->core);
	CHECK(error == 0);
	node->out = core_out_new(node->core);
	CHECK(node->out != NULL);
	core_want_watch_events(node->core, !node->unwatched);
	core_count_watchers(node->core, one_watches, node);
	memset(node->counts_seen, 0, sizeof node->counts_seen);
	map_peers(node);
}

void sim_node_start(struct sim *sim, uint32_t index) {
	struct sim_node *node = &sim->nodes[index];
	CHECK(!node->core);
	node->incarnation++;
	node->paused_until = 0;
	node->flush_held = node->stall = false;
	node->tick_at = INT64_MAX;
	create_core(node);
	bool restored;
	sim_disk_restore(node, &restored);
	sim_trace_fault(sim, restored ? "start with side file" : "start", index, TRACE_NONE,
		node->incarnation);
	sim_node_step(node, &(struct core_event){ .kind = CORE_START, .restored = restored });
	sim_turn_flush(node);
	for (uint32_t i = 0; i < sim->n; i++) {
		sim_link_dial(sim, index, i);
	}
}

void sim_start_all(struct sim *sim) {
	for (uint32_t i = 0; i < sim->n; i++) {
		sim_node_start(sim, i);
	}
}

void sim_node_end(struct sim_node *node, bool quiet) {
	sim_look_counts(node);
	core_out_free(node->out);
	core_free(node->core);
	CHECK(node->memory.used == 0);
	node->core = NULL;
	node->out = NULL;
	node->tick_number++;
	sim_fifo_clear(&node->inbox);
	sim_disk_crash(node);
	sim_link_node_ends(node, quiet);
	sim_session_node_ends(node, quiet);
	if (node->clock.suspended) {
		sim_clock_suspend(&node->clock, node->sim->now, false);
	}
}

void sim_node_kill(struct sim *sim, uint32_t index, bool machine) {
	struct sim_node *node = &sim->nodes[index];
	if (!node->core) {
		return;
	}
	sim_trace_fault(sim, machine ? "machine dies" : "kill", index, TRACE_NONE, 0);
	sim_node_end(node, machine);
	if (machine) {
		sim_clock_draw(sim, &node->clock, true);
	}
}

void sim_node_watch(struct sim *sim, uint32_t index, bool watched) {
	struct sim_node *node = &sim->nodes[index];
	sim_trace_fault(sim, watched ? "watched" : "unwatched", index, TRACE_NONE, 0);
	node->unwatched = !watched;
	if (node->core) {
		core_want_watch_events(node->core, watched);
	}
}

bool sim_node_watched(const struct sim *sim, uint32_t node) {
	return !sim->nodes[node].unwatched;
}

bool sim_node_running(const struct sim *sim, uint32_t node) {
	return sim->nodes[node].core != NULL;
}

/* ---- standing still ---- */

bool sim_node_paused(const struct sim_node *node) {
	return node->paused_until > node->sim->now;
}

bool sim_node_stands_still(const struct sim *sim, uint32_t node) {
	return sim->nodes[node].core && sim_node_paused(&sim->nodes[node]);
}

static void pause_ends(void *ctx, uint64_t arg) {
	struct sim_node *node = ctx;
	if (node->pauses != arg || !node->core) {
		return;
	}
	node->paused_until = 0;
	if (node->clock.suspended) {
		sim_clock_suspend(&node->clock, node->sim->now, false);
	}
	sim_trace_fault(node->sim, "goes on", node->index, TRACE_NONE, 0);
	sim_node_wake(node);
}

void sim_node_pause(struct sim *sim, uint32_t index, span_ns span) {
	struct sim_node *node = &sim->nodes[index];
	if (!node->core || sim_node_paused(node)) {
		return;
	}
	sim_trace_fault(sim, "pause, us", index, TRACE_NONE, (uint64_t)span / 1000);
	node->paused_until = clock_saturating_add(sim->now, span);
	node->pauses++;
	if (node->paused_until != INT64_MAX) {
		sim_at(sim, node->paused_until, pause_ends, node, node->pauses);
	}
}

void sim_node_continue(struct sim *sim, uint32_t index) {
	struct sim_node *node = &sim->nodes[index];
	if (node->core && sim_node_paused(node)) {
		pause_ends(node, node->pauses);
		node->pauses++;
	}
}

void sim_node_suspend(struct sim *sim, uint32_t index, span_ns span) {
	struct sim_node *node = &sim->nodes[index];
	if (!node->core || sim_node_paused(node)) {
		return;
	}
	sim_trace_fault(sim, "suspend", index, TRACE_NONE, 0);
	sim_clock_suspend(&node->clock, sim->now, true);
	sim_node_pause(sim, index, span);
}

uint64_t sim_node_incarnation(const struct sim *sim, uint32_t node) {
	return sim->nodes[node].incarnation;
}

void sim_node_rates(struct sim *sim, uint32_t node, int64_t boot_ppb, int64_t raw_ppb) {
	sim_clock_set_rates(&sim->nodes[node].clock, sim->now, boot_ppb, raw_ppb);
	if (sim->nodes[node].core && !sim_node_paused(&sim->nodes[node])) {
		sim_node_wake(&sim->nodes[node]);
	}
}

void sim_node_disk(struct sim *sim, uint32_t node, span_ns min, span_ns max, bool fails) {
	sim->nodes[node].disk_min = min;
	sim->nodes[node].disk_max = max;
	sim->nodes[node].disk_fails = fails;
}

struct core *sim_node_core(struct sim *sim, uint32_t node) {
	return sim->nodes[node].core;
}

struct instant sim_node_clock(const struct sim *sim, uint32_t node) {
	return sim_clock_read(&sim->nodes[node].clock, sim->now);
}

const struct durable *sim_node_durable(const struct sim *sim, uint32_t node) {
	return &sim->nodes[node].disk;
}

void sim_node_durable_set(struct sim *sim, uint32_t node, const struct durable *durable) {
	CHECK(!sim->nodes[node].core);
	sim->nodes[node].disk = *durable;
}
