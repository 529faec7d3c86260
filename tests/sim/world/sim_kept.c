/* sim_kept.c: compares the queues of masters, and what is parked there, with the requests of all
 * coordinators. It looks into the state of the cores. */
#include "acquire.h"
#include "master.h"
#include "operation.h"
#include "sim_impl.h"
#include "sim_kept.h"

struct looking {
	struct sim *sim;
	void (*found)(void *ctx, const struct sim_kept *kept);
	void *ctx;
};

static bool runs(const struct sim *sim, const struct sim_node *node) {
	return node->core && node->core->state != CORE_DRAINED && node->paused_until <= sim->now &&
		!node->flush_held;
}

/* Whether the two are linked, as both of them see it, and the master votes in the epoch of the
 * other. */
static bool linked(const struct sim *sim, const struct sim_node *master,
	const struct sim_node *other) {
	const struct core *m = master->core, *c = other->core;
	if (!runs(sim, master) || !runs(sim, other) || !core_votes(m) ||
		m->config.epoch != c->config.epoch || m->config_hash != c->config_hash) {
		return false;
	}
	const uint32_t there = master->peer_of[other->index], back = other->peer_of[master->index];
	return master == other || (there != TRACE_NONE && back != TRACE_NONE &&
		m->peers[there].linked && m->peers[there].in_epoch &&
		c->peers[back].linked && c->peers[back].in_epoch);
}

static uint32_t index_of(const struct sim_node *at, const struct sim_node *other) {
	return at == other ? at->core->self : at->peer_of[other->index];
}

/* Whether the coordinator has the request, or has been granted it and does not know yet what the
 * master has answered to its commit. */
static bool known(const struct sim_node *coordinator, const struct sim_node *master,
	const struct queued *q) {
	const struct core *c = coordinator->core;
	const struct list *const all[] = { &c->coordinator.ops, &c->coordinator.catching_up };
	for (int late = 0; late < 2; late++) {
		for (const struct list *n = list_first(all[late]); n;
			n = list_after(all[late], n)) {
			const struct op *op = CONTAINER_OF(n, struct op, link);
			if (op->kind == CORE_ACQUIRE && id128_equal(op->lock_id, q->lock_id) &&
				slice_equal(op->key, key_name(q->key)) &&
				op->as.acquire.ticket.seq == q->ticket.seq &&
				(!late || op->votes[index_of(coordinator, master)].state ==
					VOTE_ASKED)) {
				return true;
			}
		}
	}
	return false;
}

static struct sim_kept kept_of(enum sim_kept_kind kind, const struct sim_node *master,
	const struct sim_node *coordinator) {
	return (struct sim_kept){ .kind = kind, .master = master->index,
		.coordinator = coordinator->index, .master_incarnation = master->incarnation,
		.coordinator_incarnation = coordinator->incarnation,
		.lost = master->core->peers[index_of(master, coordinator)].lost };
}

static void look_at_queued(const struct looking *l, struct sim_node *master,
	const struct queued *q, enum sim_kept_kind kind) {
	const struct core *core = master->core;
	const uint32_t node = q->peer == core->self ? master->index : master->node_of[q->peer];
	if (q->lost != core->peers[q->peer].lost || node == TRACE_NONE) {
		return;
	}
	const struct sim_node *coordinator = &l->sim->nodes[node];
	if (linked(l->sim, master, coordinator) && !known(coordinator, master, q)) {
		struct sim_kept kept = kept_of(kind, master, coordinator);
		kept.key = sim_name_key_number(key_name(q->key));
		kept.lock_id = q->lock_id;
		kept.seq = q->ticket.seq;
		l->found(l->ctx, &kept);
	}
}

static void look_at_master(const struct looking *l, struct sim_node *master) {
	const struct queues *queues = &master->core->master.queues;
	for (size_t b = 0; b < queues->waiters.bucket_count; b++) {
		for (const struct map_node *n = map_bucket(&queues->waiters, b); n;
			n = map_next_in_bucket(n)) {
			const struct queued *q = CONTAINER_OF(n, const struct queued, by_lock);
			look_at_queued(l, master, q,
				CONTAINER_OF(q, const struct waiter, q)->turn
				? SIM_KEPT_TURN : SIM_KEPT_ENTRY);
		}
	}
	for (size_t b = 0; b < queues->parked.bucket_count; b++) {
		for (const struct map_node *n = map_bucket(&queues->parked, b); n;
			n = map_next_in_bucket(n)) {
			look_at_queued(l, master, CONTAINER_OF(n, const struct queued, by_lock),
				SIM_KEPT_PARKED);
		}
	}
}

static void look_at_request(const struct looking *l, struct sim_node *coordinator,
	const struct op *op) {
	const int home = op->as.acquire.home;
	if (op->kind != CORE_ACQUIRE || op->state != OP_QUEUED || home < 0) {
		return;
	}
	const uint32_t node = (uint32_t)home == coordinator->core->self
		? coordinator->index : coordinator->node_of[home];
	if (node == TRACE_NONE || !linked(l->sim, &l->sim->nodes[node], coordinator)) {
		return;
	}
	const struct sim_node *master = &l->sim->nodes[node];
	const struct key *key = table_peek(master->core, op->key);
	const struct waiter *w = key ? queue_find(master->core, key,
		index_of(master, coordinator), op->lock_id) : NULL;
	if (w == NULL || w->q.ticket.seq != op->as.acquire.ticket.seq) {
		struct sim_kept kept = kept_of(SIM_KEPT_MISSING, master, coordinator);
		kept.key = sim_name_key_number(op->key);
		kept.lock_id = op->lock_id;
		kept.seq = op->as.acquire.ticket.seq;
		l->found(l->ctx, &kept);
	}
}

void sim_kept_look(struct sim *sim, void (*found)(void *ctx, const struct sim_kept *kept),
	void *ctx) {
	const struct looking l = { sim, found, ctx };
	for (uint32_t i = 0; i < sim->n; i++) {
		struct sim_node *node = &sim->nodes[i];
		if (!runs(sim, node)) {
			continue;
		}
		look_at_master(&l, node);
		const struct list *ops = &node->core->coordinator.ops;
		for (const struct list *n = list_first(ops); n; n = list_after(ops, n)) {
			look_at_request(&l, node, CONTAINER_OF(n, const struct op, link));
		}
	}
}
