/* gather.c: collecting what others know, until this node may vote with it (sections 4 and 6). Three occasions share it:
 *
 *   before the decree  (AHEAD)     a future master builds the next table beside its own, and goes on hearing every change
 *   after it           (HANDOVER)  what its sources end with, once they have adopted the epoch, makes it whole; or it rejoins
 *   after a restart    (REJOIN)    from masters that vote in this epoch
 *
 * A source is a master of the epoch before (handover), or another one of this epoch (rejoining).
 */
#include "state.h"

#define OWN_BUCKETS_A_STEP 512

static bool beside(const struct core *core) {
	return core->gather.kind == GATHER_AHEAD || core->gather.kind == GATHER_HANDOVER;
}

static struct table *into(struct core *core) {
	return beside(core) ? core->beside : core->live;
}

/* ---- whom to ask ---- */

static struct source *find_id(struct gather *g, struct id128 id) {
	for (uint32_t i = 0; i < g->count; i++) {
		if (id128_equal(g->sources[i].id, id)) {
			return &g->sources[i];
		}
	}
	return NULL;
}

static struct source *make(struct gather *g, struct id128 id) {
	struct source *s = find_id(g, id);
	if (s == NULL && g->count < SOURCES_MAX) {
		s = &g->sources[g->count++];
		*s = (struct source){ .id = id };
	}
	CHECK(s != NULL);
	return s;
}

static void begin(struct core *core, enum gather_kind kind, const struct config *c) {
	struct gather *g = &core->gather;
	uint64_t rounds = g->rounds;
	*g = (struct gather){ .kind = kind, .epoch = c->epoch, .hash = config_hash(c), .rounds = rounds };
	g->after = config_masters(c);
	if (kind != GATHER_REJOIN) {
		g->before = c->before_count;
		for (uint32_t i = 0; i < c->before_count; i++) {
			make(g, c->before[i].id)->before = true;
		}
	}
	for (uint32_t i = 0; i < g->after; i++) {
		if (!id128_equal(c->nodes[i].id, core->durable.node_id)) {
			make(g, c->nodes[i].id)->after = true;
		}
	}
}

static void end_own_walk(struct core *core) {
	if (core->gather.own_walking) {
		core->gather.own_walking = false;
		map_walk_end(&core->live->keys);
	}
}

static void tell_stop(struct core *core, const struct source *s) {
	int slot = slots_find_id(core, s->id);
	if (s->asked && !s->done && slot >= 0 && slot != (int)core->self) {
		struct message m = { .kind = MESSAGE_SNAPSHOT_GO_ON, .round = s->round }; /* no parts: enough */
		out_send(core, (uint32_t)slot, &m);
	}
}

void gather_stop(struct core *core) {
	struct gather *g = &core->gather;
	if (g->kind == GATHER_NONE) {
		return;
	}
	for (uint32_t i = 0; i < g->count; i++) {
		tell_stop(core, &g->sources[i]);
	}
	end_own_walk(core);
	if (g->taken) {
		table_beside_drop(core);
	}
	if (g->kind == GATHER_REJOIN) {
		merge_forget_sources(core, core->live);
	}
	*g = (struct gather){ .kind = GATHER_NONE, .rounds = g->rounds };
}

/* What came of it stays, but the source does not count as one that had it: its bit stands for nobody from now on. */
static void break_off(struct core *core, struct source *s) {
	if (id128_equal(s->id, core->durable.node_id)) {
		end_own_walk(core);
	}
	s->asked = s->walked = s->done = s->forgot = s->never = s->votes = false;
	core->gather.told_ready = false;
}

/* A bit of its own for each try. When they are used up all begins anew, which takes 32 links that broke. */
static bool take_bit(struct gather *g, struct source *s) {
	if (g->bits == 32) {
		g->worn = true;
		return false;
	}
	s->bit = g->bits++;
	return true;
}

static void ask(struct core *core, struct source *s, uint32_t slot) {
	struct gather *g = &core->gather;
	if (!take_bit(g, s)) {
		return;
	}
	s->asked = true;
	s->round = ++g->rounds;
	s->epoch = core->config.epoch;
	s->asked_at = s->progress = core->now;
	struct message m = { .kind = MESSAGE_SNAPSHOT, .round = s->round, .epoch = g->epoch, .flags = g->kind == GATHER_REJOIN ? 0 : FLAG_HANDOVER };
	out_send(core, slot, &m);
}

/* ---- what is enough ---- */

/* One that has forgotten counts once the longest lease has passed since it told that it has adopted the epoch. */
static bool forgotten_long_enough(const struct core *core, const struct source *s) {
	span_ns lease = core->durable.max_lease_seen > core->config.max_lease ? core->durable.max_lease_seen : core->config.max_lease;
	return instant_expired(core->now, instant_add(s->told_at, span_grow(lease, 2 * core->config.drift_ppm)));
}

static bool counts_before(const struct core *core, const struct source *s) {
	return s->before && s->done && (!s->forgot || forgotten_long_enough(core, s));
}

static uint32_t count_sources(const struct core *core, bool rejoin) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->gather.count; i++) {
		const struct source *s = &core->gather.sources[i];
		n += rejoin ? s->after && s->done && s->votes : counts_before(core, s);
	}
	return n;
}

/* Any quorum contains one of so many: of the masters of before (itself may be one), or of the others of this epoch. */
static bool enough_before(const struct core *core) {
	return core->gather.kind == GATHER_HANDOVER && core->gather.before > 0 && count_sources(core, false) >= config_sources(core->gather.before);
}

static bool enough_after(const struct core *core) {
	return core->gather.kind != GATHER_AHEAD && core->gather.after > 1 && count_sources(core, true) >= config_sources(core->gather.after);
}

bool gather_ready(const struct core *core) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->gather.count; i++) {
		n += core->gather.sources[i].before && core->gather.sources[i].walked;
	}
	return n >= config_sources(core->gather.before);
}

/* ---- beginning to vote ---- */

static void vote(struct core *core) {
	struct gather *g = &core->gather;
	bool handover = enough_before(core);
	for (uint32_t i = 0; i < g->count; i++) {
		const struct source *s = &g->sources[i];
		if (handover && counts_before(core, s)) {
			core->counts[s->forgot ? COUNT_source_forgot : s->never ? COUNT_source_never_voted : COUNT_source_remembers]++;
		}
	}
	end_own_walk(core);
	if (g->taken) {
		table_swap(core);
	}
	merge_finish_begin(core);
	*g = (struct gather){ .kind = GATHER_NONE, .rounds = g->rounds };
	core->counts[handover ? COUNT_handover : COUNT_rejoin]++;
	core->counts[COUNT_handover_rejoined] += !handover && core->state == CORE_HANDOVER;
	recovery_vote(core, handover ? "handover" : "rejoining");
}

/* Enough is known. Who has never voted in this epoch marks that on disk first. */
static void judge(struct core *core) {
	struct gather *g = &core->gather;
	if (core->conflict || !(enough_before(core) || enough_after(core))) {
		return;
	}
	if (!core->durable.voted && !g->marking) {
		g->marking = true;
		for (uint32_t i = 0; i < g->count; i++) {
			if (g->sources[i].done) {
				master_raise_clock(core, g->sources[i].clock_end);
			}
		}
		core->durable.voted = true;
		epoch_seen(core);
		core->durable.ceiling = core->clock + CEILING_BLOCK > core->durable.ceiling ? core->clock + CEILING_BLOCK : core->durable.ceiling;
		persist_changed(core);
		g->marked_seq = core->persist_seq;
	}
	if (core->durable.voted && (!g->marking || core->persist_done >= g->marked_seq)) {
		vote(core);
	}
}

void gather_persisted(struct core *core) {
	if (core->gather.marking && core->persist_done >= core->gather.marked_seq) {
		judge(core);
	}
}

/* ---- this node as a source of its own ---- */

/* Its own table, in pieces; what changes meanwhile comes by gather_changed. */
static bool copy_own(struct core *core, struct source *s) {
	struct gather *g = &core->gather;
	for (int i = 0; i < OWN_BUCKETS_A_STEP && g->self_bucket < core->live->keys.bucket_count; i++, g->self_bucket++) {
		for (struct map_node *n = map_bucket(&core->live->keys, g->self_bucket); n; n = map_next_in_bucket(n)) {
			const struct key *key = CONTAINER_OF(n, struct key, node);
			for (const struct record *r = key->held; r; r = r->next) {
				struct message m;
				snapshot_record_message(core, key, r, &m);
				if (!merge_record(core, core->beside, s->bit, &m)) {
					return false;
				}
				g->merged++;
			}
		}
	}
	return true;
}

static struct source *own(struct core *core) {
	struct source *s = beside(core) ? find_id(&core->gather, core->durable.node_id) : NULL;
	return s && s->before ? s : NULL;
}

static void own_done(struct core *core, struct source *s) {
	s->done = true;
	s->clock_end = core->clock;
	judge(core);
}

bool gather_busy(const struct core *core) {
	return core->gather.own_walking;
}

/* A piece of the walk over its own table, once a step. */
void gather_go_on(struct core *core) {
	struct source *s = own(core);
	CHECK(s && core->gather.own_walking);
	if (!copy_own(core, s)) {
		break_off(core, s);
	} else if (core->gather.self_bucket >= core->live->keys.bucket_count) {
		end_own_walk(core);
		s->walked = true;
		if (core->gather.kind == GATHER_HANDOVER) {
			own_done(core, s);
		}
		premerge_tell(core);
	}
}

static void ask_own(struct core *core, struct source *s) {
	struct gather *g = &core->gather;
	bool voted_before = g->kind == GATHER_HANDOVER ? core->durable.voted_before : core->durable.voted;
	bool remembers = g->kind == GATHER_HANDOVER ? core->remembers : core_votes(core);
	if (!take_bit(g, s)) {
		return;
	}
	s->asked = true;
	s->asked_at = s->progress = s->told_at = core->now;
	if (remembers) {
		g->self_bucket = 0;
		g->own_walking = true;
		map_walk_begin(&core->live->keys);
		return;
	}
	s->walked = s->done = g->kind == GATHER_HANDOVER;
	s->never = !voted_before;
	s->forgot = voted_before;
	s->told_at = core->adopted_at;
	s->clock_end = core->durable.ceiling > core->clock ? core->durable.ceiling : core->clock;
}

/* What this node accepts while it is its own source. */
void gather_changed(struct core *core, const struct key *key, const struct record *r) {
	struct source *s = own(core);
	if (s && s->asked && !s->done && key_table(core, key) == core->live) {
		struct message m;
		snapshot_record_message(core, key, r, &m);
		if (!merge_record(core, core->beside, s->bit, &m)) {
			break_off(core, s);
		}
	}
}

void gather_released(struct core *core, struct slice key, struct id128 lock_id, bool barred_only) {
	struct source *s = own(core);
	if (s && s->asked && !s->done) {
		struct message m = { .kind = MESSAGE_SNAPSHOT_RELEASED, .key = key, .lock_id = lock_id, .flags = barred_only ? 0 : FLAG_RELEASED };
		merge_released(core, core->beside, &m);
	}
}

/* ---- asking, again and again ---- */

static bool wanted_now(const struct core *core, const struct source *s) {
	const struct gather *g = &core->gather;
	int slot = slots_find_id(core, s->id);
	if (slot < 0 || slot == (int)core->self) {
		return false;
	}
	const struct peer *p = &core->peers[slot];
	switch (g->kind) {
	case GATHER_AHEAD: return s->before && p->voting;
	case GATHER_HANDOVER: return p->same && (s->before || (p->voting && instant_expired(core->now, core->rejoin_at)));
	case GATHER_REJOIN: return p->voting && instant_expired(core->now, core->rejoin_at);
	case GATHER_NONE: break;
	}
	return false;
}

/* Asked under an epoch that is not the one it was for, or in vain: it may be asked again. */
static void renew(struct core *core) {
	struct gather *g = &core->gather;
	for (uint32_t i = 0; i < g->count; i++) {
		struct source *s = &g->sources[i];
		int slot = slots_find_id(core, s->id);
		bool self = slot == (int)core->self;
		bool waits = s->walked && g->kind == GATHER_AHEAD; /* nothing may change for long */
		bool silent = instant_elapsed_short(core->now, s->progress) > core->config.request_timeout;
		bool adopted = slot >= 0 && !self && core->peers[slot].same && g->kind == GATHER_HANDOVER;
		if (s->asked && !s->done && !self && !waits && silent && (!s->walked || adopted)) {
			COUNT(core, premerge_broken);
			tell_stop(core, s);
			break_off(core, s);
		}
		/* voting by now, and asked too early to count for rejoining: once more */
		if (s->done && s->after && !s->votes && !counts_before(core, s) && wanted_now(core, s) && core->peers[slot].voting) {
			break_off(core, s);
		}
	}
}

static uint32_t needed(const struct core *core) {
	const struct gather *g = &core->gather;
	return g->kind == GATHER_REJOIN ? config_sources(g->after) : config_sources(g->before);
}

static uint32_t asked(const struct core *core) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->gather.count; i++) {
		const struct source *s = &core->gather.sources[i];
		bool hopeful = s->asked && !(s->done && s->forgot && !forgotten_long_enough(core, s) && !s->votes);
		n += hopeful && (core->gather.kind == GATHER_REJOIN || s->before);
	}
	return n;
}

static void ask_more(struct core *core) {
	struct gather *g = &core->gather;
	struct source *self = own(core);
	if (self && !self->asked && (g->kind == GATHER_HANDOVER || core_votes(core))) {
		ask_own(core, self);
	}
	bool all = g->kind == GATHER_HANDOVER && instant_elapsed_short(core->now, core->adopted_at) > core->config.request_timeout;
	for (uint32_t i = 0; i < g->count && (all || asked(core) < needed(core)); i++) {
		struct source *s = &g->sources[i];
		if (!s->asked && wanted_now(core, s)) {
			ask(core, s, (uint32_t)slots_find_id(core, s->id));
		}
	}
}

void gather_beat(struct core *core) {
	struct gather *g = &core->gather;
	if (g->kind == GATHER_NONE) {
		return;
	}
	if (g->kind == GATHER_AHEAD && instant_expired(core->now, g->keep_until)) {
		gather_stop(core);
		return;
	}
	if (g->worn) {
		gather_again(core);
	}
	if (beside(core) && !g->taken) {
		follow_yield(core);
		g->taken = !core->finish.active && table_beside_take(core);
		if (!g->taken) {
			return; /* what was there before is still being emptied, or finished */
		}
	}
	renew(core);
	ask_more(core);
	judge(core);
	premerge_tell(core);
}

/* ---- beginnings ---- */

static void wait_to_rejoin(struct core *core) {
	/* both waits use the largest values it ever voted under */
	span_ns request = core->durable.request_timeout_seen > core->config.request_timeout ? core->durable.request_timeout_seen : core->config.request_timeout;
	core->rejoin_at = instant_add(core->now, span_grow(request, core->config.drift_ppm));
}

void gather_rejoin(struct core *core) {
	gather_stop(core);
	begin(core, GATHER_REJOIN, &core->config);
	wait_to_rejoin(core);
}

/* Before the decree: the same question again goes on with what is there. False: the table beside is in use for another one. */
bool gather_ahead(struct core *core, const struct config *c) {
	struct gather *g = &core->gather;
	if (g->kind == GATHER_AHEAD && g->epoch == c->epoch && g->hash == config_hash(c)) {
		return true;
	}
	if (g->kind == GATHER_HANDOVER || g->kind == GATHER_REJOIN) {
		return false;
	}
	gather_stop(core);
	begin(core, GATHER_AHEAD, c);
	COUNT(core, premerge_started);
	return true;
}

/* The epoch that was prepared for is here: what was merged beside is kept, and its sources end as soon as they have adopted it. */
void gather_handover(struct core *core) {
	struct gather *g = &core->gather;
	if (g->kind == GATHER_AHEAD && g->epoch == core->config.epoch && g->hash == core->config_hash && g->taken) {
		struct source *s = own(core);
		COUNT(core, premerge_used);
		g->kind = GATHER_HANDOVER;
		if (s && s->asked && !core->remembers) {
			break_off(core, s);
		} else if (s && s->walked) {
			own_done(core, s);
		}
	} else {
		gather_stop(core);
		begin(core, GATHER_HANDOVER, &core->config);
	}
	wait_to_rejoin(core);
	gather_beat(core);
}

void gather_again(struct core *core) {
	enum gather_kind kind = core->gather.kind;
	gather_stop(core);
	if (kind == GATHER_HANDOVER || kind == GATHER_REJOIN) {
		begin(core, kind, &core->config);
	}
}

void gather_peer_lost(struct core *core, uint32_t peer) {
	struct source *s = core->gather.kind == GATHER_NONE ? NULL : find_id(&core->gather, core->peers[peer].link_id);
	if (s && s->asked && !s->done) {
		COUNT(core, premerge_broken);
		break_off(core, s);
	}
}

/* ---- what arrives ---- */

static struct source *of(struct core *core, uint32_t from, const struct message *m) {
	struct source *s = core->gather.kind == GATHER_NONE ? NULL : find_id(&core->gather, core->peers[from].link_id);
	return s && s->asked && !s->done && s->round == m->round ? s : NULL;
}

static void ended(struct core *core, uint32_t from, struct source *s, const struct message *m) {
	if (m->status != STATUS_OK) {
		break_off(core, s);
		return;
	}
	s->walked = s->done = true;
	s->clock_end = m->clock;
	s->forgot = (m->flags & FLAG_FORGOT) != 0;
	s->never = (m->flags & FLAG_NEVER) != 0;
	s->told_at = core->now;
	s->votes = core->peers[from].voting && core->gather.kind != GATHER_AHEAD && instant_expired(s->asked_at, core->rejoin_at);
	if (s->before && !s->forgot && !s->never && !(m->flags & FLAG_REMEMBERS) && core->gather.kind == GATHER_HANDOVER) {
		s->before = false; /* it cannot stand for the epoch before */
	}
	judge(core);
}

void gather_message(struct core *core, uint32_t from, const struct message *m) {
	struct source *s = of(core, from, m);
	if (s == NULL) {
		return;
	}
	s->progress = core->now;
	if (m->kind == MESSAGE_SNAPSHOT_RECORD) {
		core->gather.merged++;
		if (!merge_record(core, into(core), s->bit, m)) {
			tell_stop(core, s);
			break_off(core, s); /* not whole: it will be asked again */
		}
	} else if (m->kind == MESSAGE_SNAPSHOT_RELEASED) {
		merge_released(core, into(core), m);
	} else if (m->kind == MESSAGE_SNAPSHOT_CHUNK) {
		struct message go_on = { .kind = MESSAGE_SNAPSHOT_GO_ON, .round = m->round, .part = m->part, .parts = m->parts };
		out_send(core, from, &go_on);
	} else if (m->kind == MESSAGE_SNAPSHOT_READY) {
		s->walked = true;
		premerge_tell(core);
	} else {
		ended(core, from, s, m);
	}
}
