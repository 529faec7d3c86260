/* A node's process: the driver around one core. Its turns are in sim_turn.c. */
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
	for (size_t i = 0; i < sizeof node->disk.node_id.b; i++) {
		node->disk.node_id.b[i] = (uint8_t)(1 + prng_below(&sim->prng, 255));
	}
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

static void map_slots(struct sim_node *node) {
	uint32_t slots = core_peer_count(node->core);
	for (uint32_t slot = 0; slot < slots; slot++) {
		const struct config_node *peer = core_peer(node->core, slot);
		for (uint32_t i = 0; i < node->sim->n; i++) {
			if (strcmp(peer->name, node->sim->nodes[i].name) == 0) {
				node->slot_of[i] = slot;
				node->node_of[slot] = i;
			}
		}
	}
}

void sim_node_step(struct sim_node *node, const struct core_event *event) {
	struct sim *sim = node->sim;
	core_step(node->core, event, sim_clock_read(&node->clock, sim->now), node->out);
	sim->steps++;
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
	node->alloc = alloc_libc(&node->memory);
	uint64_t k0 = prng_next(&sim->prng), k1 = prng_next(&sim->prng), seed = prng_next(&sim->prng);
	struct core_options options = {
		.alloc = &node->alloc,
		.hash_key = { k0, k1 },
		.seed = seed,
		.limits = sim->options.limits,
		.name = node->name,
		.birth = &sim->birth,
		.durable = &node->disk,
	};
	int error = core_new(&options, &node->core);
	CHECK(error == 0);
	node->out = core_out_new(node->core);
	CHECK(node->out != NULL);
	memset(node->counts_seen, 0, sizeof node->counts_seen);
	map_slots(node);
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
	sim_trace_fault(sim, restored ? "start with side file" : "start", index, TRACE_NONE, node->incarnation);
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

bool sim_all_voting(void *ctx) {
	struct sim *sim = ctx;
	for (uint32_t i = 0; i < sim->n; i++) {
		struct core_status status;
		if (!sim->nodes[i].core) {
			return false;
		}
		core_status(sim->nodes[i].core, sim_node_clock(sim, i), &status);
		if (status.state != CORE_VOTING) {
			return false;
		}
	}
	return true;
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

bool sim_node_running(const struct sim *sim, uint32_t node) {
	return sim->nodes[node].core != NULL;
}

/* ---- standing still ---- */

bool sim_node_paused(const struct sim_node *node) {
	return node->paused_until > node->sim->now;
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
