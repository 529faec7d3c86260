/* core.c: the one entry of the core, core_step, and the life of a node. Each step first runs what
 * has expired by its time (section Time), so that all that the step then meets is alive. Then it
 * handles the event, and then what the node says to itself. */
#include "operation.h"
#include "node.h"

static uint64_t or_default(uint64_t value, uint64_t standard) {
	return value ? value : standard;
}

static void set_limits(struct core_limits *to, const struct core_limits *from) {
	*to = *from;
	to->keys = or_default(from->keys, 4000000);
	to->memory_bytes = or_default(from->memory_bytes, (uint64_t)4 << 30);
	to->value_bytes = (uint32_t)or_default(from->value_bytes, VALUE_MAX_DEFAULT);
	to->waiters = (uint32_t)or_default(from->waiters, 100000);
	to->waiters_per_key = (uint32_t)or_default(from->waiters_per_key, 10000);
	to->holders_per_key = (uint32_t)or_default(from->holders_per_key, 1000);
	to->indexed = (uint32_t)or_default(from->indexed, 32);
	to->report_first = (uint32_t)or_default(from->report_first, 8);
	to->report_piece = (uint32_t)or_default(from->report_piece, 32);
	to->report_value = (uint32_t)or_default(from->report_value, 256);
	to->reports = (uint32_t)or_default(from->reports, 4);
	to->shown_a_turn = (uint32_t)or_default(from->shown_a_turn, 256 << 10);
	to->waits_a_turn = (uint32_t)or_default(from->waits_a_turn, 512);
	to->judged_a_turn = (uint32_t)or_default(from->judged_a_turn, 512);
	to->weighed_at_once = (uint32_t)or_default(from->weighed_at_once, 32);
	to->list_piece = (uint32_t)or_default(from->list_piece, 64);
	to->waiters_per_client = (uint32_t)or_default(from->waiters_per_client, 10000);
	to->released = (uint32_t)or_default(from->released, TOMBSTONES_DEFAULT);
	to->lacked = from->lacked ? from->lacked : lacked_places(to->memory_bytes);
	to->rounds = (uint32_t)or_default(from->rounds, ROUNDS_DEFAULT);
	to->catching_up = (uint32_t)or_default(from->catching_up, CATCHING_UP_DEFAULT);
	to->log_bytes = or_default(from->log_bytes, (uint64_t)16 << 20);
	to->lease_min = from->lease_min ? from->lease_min : LEASE_MIN_DEFAULT;
}

/* Not inline, because freeing would pay for it. */
static __attribute__((noinline)) void *count_more(struct core *core, void *p, size_t old_size,
	size_t new_size) {
	if (new_size > old_size &&
		core->memory_used + (new_size - old_size) > core->limits.memory_bytes) {
		return NULL;
	}
	void *moved = core->outer.resize(core->outer.ctx, p, old_size, new_size);
	if (moved) {
		core->memory_used += new_size - old_size;
	}
	return moved;
}

/* Allocates through what the core was given, up to the limit on memory. */
static void *count_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct core *core = ctx;
	if (new_size > 0) {
		return count_more(core, p, old_size, new_size);
	}
	core->memory_used -= old_size;
	return core->outer.resize(core->outer.ctx, p, old_size, 0);
}

static int init_maps(struct core *core) {
	struct map *maps[] = { &core->store.tables[0].keys, &core->store.tables[1].keys,
		&core->coordinator.ops_by_id, &core->coordinator.ops_by_lock,
		&core->coordinator.clients, &core->master.bound_locks,
		&core->master.queues.waiters, &core->master.queues.parked };
	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
		if (map_init(maps[i], &core->alloc) != 0) {
			return PAWL_ENOMEM;
		}
	}
	return tombstone_init(core) == 0 && lacked_init(core) == 0 ? missed_init(core)
		: PAWL_ENOMEM;
}

/* Returns what this node is by its own disk: it is in the configuration, by name and identity, or
 * it is not. */
static enum core_state first_state(const struct core *core) {
	bool born = core->config_hash != 0;
	int at = config_find_name(&core->config, core->name);
	if (!born) {
		return at >= 0 && core->config.nodes[at].master ? CORE_UNBORN : CORE_OUTSIDE;
	}
	if (at < 0 || !id128_equal(core->config.nodes[at].id, core->durable.node_id)) {
		return CORE_OUTSIDE;
	}
	if (!core->config.nodes[at].master) {
		return CORE_FOLLOWING;
	}
	return core->durable.voted ? CORE_RECOVERING : CORE_HANDOVER;
}

static int init_identity(struct core *core, const struct core_options *o) {
	const struct config *config = o->durable->config.epoch ? &o->durable->config : o->birth;
	if (config == NULL || config_problem(config) != NULL || o->name[0] == 0 ||
		strlen(o->name) > NODE_NAME_MAX || id128_zero(o->durable->node_id)) {
		return PAWL_EINVAL;
	}
	memcpy(core->name, o->name, strlen(o->name) + 1);
	if (o->address && strlen(o->address) <= ADDRESS_MAX) {
		memcpy(core->address, o->address, strlen(o->address) + 1);
	}
	for (uint32_t i = 0; o->birth && i < config_masters(o->birth) && i < MASTERS_MAX; i++) {
		memcpy(core->named[i], o->birth->nodes[i].name, sizeof core->named[i]);
	}
	core->config = *config;
	core->lease_allowed = config->max_lease;
	core->durable = *o->durable;
	core->membership->auto_replace = o->auto_replace;
	bool born = core->durable.config.epoch != 0 && !core->durable.pledged;
	core->masters = core->masters_most = config_masters(config);
	core->quorum = config_quorum(config);
	core->config_hash = born ? config_hash(config) : 0;
	core->complete = born && core->durable.complete;
	core->state = first_state(core);
	return peer_table_init(core);
}

/* A core with the states of the rooms that struct core only points to. */
struct whole {
	struct core core;
	struct recovery_state recovery;
	struct membership_state membership;
};

int core_new(const struct core_options *o, struct core **out) {
	struct whole *whole = alloc_new(o->alloc, sizeof *whole);
	if (whole == NULL) {
		return PAWL_ENOMEM;
	}
	struct core *core = &whole->core;
	core->recovery = &whole->recovery;
	core->membership = &whole->membership;
	core->observers = &node_observers;
	core->operations = node_operations;
	core->outer = *o->alloc;
	core->alloc = (struct allocator){ count_resize, core };
	core->hash_key = o->hash_key;
	core->store.live = &core->store.tables[0];
	core->store.staging = &core->store.tables[1];
	set_limits(&core->limits, &o->limits);
	if (o->groups) {
		core->store.groups = *o->groups;
	}
	core->replication.replication_interval = o->replication_interval ? o->replication_interval
		: REPLICATION_INTERVAL_DEFAULT;
	prng_init(&core->prng, o->seed);
	list_init(&core->coordinator.ops);
	list_init(&core->coordinator.catching_up);
	list_init(&core->coordinator.waiting);
	for (uint32_t place = 0; place < QUEUED_PLACES; place++) {
		list_init(&core->coordinator.queued_at[place]);
	}
	list_init(&core->coordinator.lists);
	list_init(&core->coordinator.op_pool);
	list_init(&core->master.holders);
	list_init(&core->master.holders_due);
	list_init(&core->coordinator.suspended);
	list_init(&core->coordinator.groups);
	list_init(&core->coordinator.in_line);
	list_init(&core->coordinator.showing);
	list_init(&core->coordinator.weighing);
	list_init(&core->coordinator.due_waits);
	list_init(&core->coordinator.local_waits);
	list_init(&core->coordinator.asking);
	list_init(&core->coordinator.leaving);
	list_init(&core->master.queues.lost_promises);
	list_init(&core->master.queues.lost_parked);
	list_init(&core->master.queues.lost);
	list_init(&core->master.queues.refusing);
	list_init(&core->master.queues.moved);
	core->engine.turn_over = true;
	background_init(core);
	int e = init_identity(core, o);
	e = e == 0 ? init_maps(core) : e;
	granted_init(core);
	e = e == 0 ? queue_init(core) : e;
	e = e == 0 && o->check_grants ? observe_init(core) : e;
	if (e != 0) {
		core_free(core);
		return e;
	}
	*out = core;
	return 0;
}

void core_free(struct core *core) {
	if (core == NULL) {
		return;
	}
	op_free_all(core);
	table_clear(core, &core->store.tables[0]);
	table_clear(core, &core->store.tables[1]);
	(void)digest_done(core, &core->store.tables[0], DIGEST_GROUPS);
	(void)digest_done(core, &core->store.tables[1], DIGEST_GROUPS);
	drain_done(core);
	hot_done(core);
	observe_done(core);
	change_free(core);
	peer_table_done(core);
	log_done(core);
	granted_done(core);
	binding_master_done(core);
	tombstone_done(core);
	lacked_done(core);
	missed_done(core);
	sync_free(core);
	queue_done(core);
	/* All records are gone. */
	record_origins_done(core);
	struct map *maps[] = { &core->store.tables[0].keys, &core->store.tables[1].keys,
		&core->coordinator.ops_by_id, &core->coordinator.ops_by_lock,
		&core->coordinator.clients, &core->master.bound_locks,
		&core->master.queues.waiters, &core->master.queues.parked };
	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
		map_done(maps[i]);
	}
	struct allocator outer = core->outer;
	alloc_free(&outer, CONTAINER_OF(core, struct whole, core), sizeof(struct whole));
}

/* ---- one step ---- */

/* Who waits for a time, or sees to it that nothing stands still for long, hears of each beat. Those
 * who mostly do neither are asked only when they do. */
static void beat(struct core *core) {
	peers_beat(core);
	peer_table_beat(core);
	if (core->engine.persist_again) {
		persist_beat(core);
	}
	if (core->state == CORE_UNBORN) {
		birth_go_on(core);
	}
	recovery_beat(core);
	if (core->recovery->transfer.kind != STATE_TRANSFER_NONE) {
		state_transfer_beat(core);
	}
	change_beat(core);
	proof_beat(core);
	if (core->coordinator.home_missing || core->membership->quorum_lost ||
		core->coordinator.no_quorum) {
		attempt_beat(core, core->membership->quorum_lost);
	}
	if (core->state == CORE_FOLLOWING) {
		follow_beat(core);
	}
	sync_beat(core);
	granted_sweep(core, GRANTED_SWEPT_A_BEAT);
	if (core->node.oldest.wanted) {
		figures_beat(core);
	}
	if (core->changes.refused.count > 0 || core->changes.missed_under_way) {
		missed_beat(core);
	}
	counted_beat(core);
	timer_at(core, &core->node.beat, TIMER_NODE,
		instant_add(core->now, core->config.request_timeout / 4));
}

static void timer_fired(struct core *core, struct timer *t) {
	switch ((enum timer_kind)t->wheel.kind) {
	case TIMER_KEY: {
		struct key *key = CONTAINER_OF(t, struct key, timer);
		if (table_expire(core, key)) {
			table_settle(core, key);
		}
		break;
	}
	case TIMER_OP:
		op_timer(core, CONTAINER_OF(t, struct op, timer));
		break;
	case TIMER_NODE:
		beat(core);
		break;
	case TIMER_FEED:
		feed_timer(core);
		break;
	case TIMER_HOLDER:
		binding_master_timer(core, t);
		break;
	case TIMER_FOLLOW:
		follow_timer(core);
		break;
	case TIMER_OBSERVE:
		observe_timer(core);
		break;
	case TIMER_MOVED:
		queue_moved_timer(core);
		break;
	case TIMER_SILENCE:
		peers_silence_rings(core);
		break;
	}
}

void step_message(struct core *core, uint32_t from, const struct message *m) {
	static void (*const handlers[])(struct core *core, uint32_t from,
		const struct message *m) = {
#define HANDLER(name, number, room, handler, epochs, fields) [MESSAGE_##name] = handler,
		MESSAGE_TABLE(HANDLER)
#undef HANDLER
	};
	handlers[m->kind](core, from, m);
}

/* Handles what the node says to itself. Then it loses the links that have failed meanwhile, one
 * after the other, while nothing else is under way, and handles what that made the node say. Each
 * link fails once at most, so this ends. */
static __attribute__((noinline)) void settle_all(struct core *core) {
	const struct message *m;
	for (;;) {
		while ((m = out_take_local(core)) != NULL) {
			step_message(core, core->self, m);
		}
		if (((core->engine.pending & PENDING_GROUPS) && group_run(core)) ||
			((core->engine.pending & PENDING_LINE) && report_run(core))) {
			continue;
		}
		if (!core->engine.failed) {
			return;
		}
		peers_lose_failed(core);
	}
}

/* Mostly there is nothing to do. */
static inline void settle(struct core *core) {
	if ((core->engine.pending & PENDING_IN_STEP) || core->engine.failed) {
		settle_all(core);
	}
}

static void start_state(struct core *core, bool restored) {
	switch (core->state) {
	case CORE_UNBORN: birth_go_on(core); break;
	case CORE_OUTSIDE:
		out_note(core, NOTE_OUTSIDE, core->self, core->durable.config.epoch, NULL,
			slice_of(NULL, 0));
		break;
	case CORE_FOLLOWING: follow_start(core); break;
	case CORE_HANDOVER: state_transfer_handover(core); break;
	case CORE_RECOVERING: recovery_start(core, restored); break;
	/* No node begins in these states. */
	case CORE_VOTING: case CORE_DRAINED: CHECK(false);
	}
}

static void start(struct core *core, bool restored) {
	core->adopted_at = core->peering.near_at = core->membership->voters_at = core->now;
	persist_start(core);
	/* The number of the boot keeps rounds of another boot from being taken for this one's. */
	core->coordinator.op_next = (core->durable.boot & 0xff) << 40;
	/* A decree that was accepted before the start is finished after a while, too. */
	change_accepted(core);
	timer_at(core, &core->node.beat, TIMER_NODE,
		instant_add(core->now, core->config.request_timeout / 4));
	watch_events_another_table(core);
	start_state(core, restored);
}

static void handle(struct core *core, const struct core_event *e) {
	switch (e->kind) {
	case CORE_START: start(core, e->restored); break;
	case CORE_RESTORE: drain_restore(core, e->frame); break;
	case CORE_TICK: break;
	case CORE_FRAME: peer_frame(core, e->peer, e->frame); break;
	case CORE_PEER_UP: peer_up(core, e->peer, e); break;
	case CORE_PEER_DOWN:
		if (e->since.boot != 0 && e->since.boot < core->links_at.boot) {
			core->links_at = e->since;
		}
		binding_master_peer_lost(core, e->peer, e->closed);
		peer_down(core, e->peer, e->closed);
		break;
	case CORE_REQUEST: request_handle(core, e->request); break;
	case CORE_CLIENT_GONE:
		change_client_gone(core, e->client);
		op_client_gone(core, e->client);
		break;
	case CORE_END_WAIT: op_end_wait(core, e->client, e->request_id); break;
	case CORE_PERSISTED: persist_done(core, e->persist_seq, e->persist_ok); break;
	case CORE_DRAIN: drain_start(core); break;
	}
}

/* The node has been without a step for longer than a link may be silent. */
static void stood_still(struct core *core, span_ns still) {
	COUNT(core, stood_still);
	core->node.stood_still += (uint64_t)still;
	out_note(core, NOTE_STOOD_STILL, core->self, (uint64_t)still, NULL, slice_of(NULL, 0));
	peers_reset_all(core);
}

/* A million leases that end together must not stop the node, so only some timers fire in a turn of
 * the loop, and fewer if many are answered. A step never meets a record that has ended: looking a
 * key up first drops what has ended there, and granted leases and operations read the clocks
 * themselves. */
void core_step(struct core *core, const struct core_event *event, struct instant now,
	struct core_out *out) {
	CHECK(!core->node.stepped || (now.boot >= core->now.boot && now.raw >= core->now.raw));
	if (!core->node.stepped) {
		wheel_init(&core->engine.wheel, now.boot);
		core->node.last_step = now;
		core->node.stepped = true;
	}
	core->now = now;
	core->out = out;
	core->engine.unheard = false;
	core->coordinator.reports_begun = 0;
	if (core->engine.turn_over) {
		core->engine.turn_over = false;
		core->engine.left = core->engine.most;
	}
	span_ns still = instant_elapsed_long(now, core->node.last_step);
	bool stale = still > core->config.request_timeout;
	core->node.last_step = now;
	if (stale) {
		stood_still(core, still);
	} else if (event->kind != CORE_PEER_UP && event->kind != CORE_PEER_DOWN) {
		core->links_at = now;
	}
	uint32_t *left = &turn_pieces(core)->timers;
	struct wheel_timer *t;
	while ((t = wheel_expire_some(&core->engine.wheel, now.boot, left)) != NULL) {
		timer_fired(core, CONTAINER_OF(t, struct timer, wheel));
	}
	settle(core);
	if (!(stale && event->kind == CORE_FRAME)) {
		handle(core, event);
	}
	settle(core);
	if (core->engine.pending) {
		background(core);
		settle(core);
	}
	if (core->engine.pending & PENDING_AT_END) {
		background_at_end(core);
		settle(core);
	}
	core->out = NULL;
}

int64_t core_deadline(const struct core *core) {
	const int64_t timers = wheel_deadline(&core->engine.wheel),
		due = core->engine.pending ? background_deadline(core) : INT64_MAX;
	return due < timers ? due : timers;
}

/* ---- looking in ---- */

const struct config *core_config(const struct core *core) {
	return &core->config;
}
