/* state_transfer.c: collecting what other masters know, until this node may vote with it (sections
 * 4 and 6). There are three occasions for that:
 *
 *   before the decree  (AHEAD)     a future master builds the next table in the staging table, and
 *                                  goes on hearing every change
 *   after it           (HANDOVER)  the ends of its sources, which follow once these have adopted
 *                                  the epoch, make it whole; or the master rejoins
 *   after a restart    (REJOIN)    from masters that vote in this epoch
 *
 * A source is a master of the previous epoch (handover) or another master of this epoch
 * (rejoining). */
#include "recovery.h"
#include "state_transfer.h"

bool state_transfer_staging(const struct core *core) {
	return core->recovery->transfer.kind == STATE_TRANSFER_AHEAD ||
		core->recovery->transfer.kind == STATE_TRANSFER_HANDOVER;
}

struct table *state_transfer_into(struct core *core) {
	return state_transfer_staging(core) ? table_staging(core) : table_live(core);
}

/* ---- the sources ---- */

struct source *state_transfer_source(struct state_transfer *transfer, struct id128 id) {
	for (uint32_t i = 0; i < transfer->count; i++) {
		if (id128_equal(transfer->sources[i].id, id)) {
			return &transfer->sources[i];
		}
	}
	return NULL;
}

/* Finds or makes the source with this identity. */
static struct source *make(struct state_transfer *transfer, struct id128 id) {
	struct source *s = state_transfer_source(transfer, id);
	if (s == NULL && transfer->count < SOURCES_MAX) {
		s = &transfer->sources[transfer->count++];
		*s = (struct source){ .id = id };
	}
	CHECK(s != NULL);
	return s;
}

void state_transfer_begin(struct core *core, enum state_transfer_kind kind,
	const struct config *c) {
	struct state_transfer *transfer = &core->recovery->transfer;
	uint64_t rounds = transfer->rounds;
	*transfer = (struct state_transfer){ .kind = kind, .epoch = c->epoch,
		.hash = config_hash(c), .rounds = rounds, .began = core->now };
	recovery_copies_changed(core);
	transfer->master_count = config_masters(c);
	if (kind != STATE_TRANSFER_REJOIN) {
		transfer->previous_master_count = c->previous_master_count;
		for (uint32_t i = 0; i < c->previous_master_count; i++) {
			make(transfer, c->previous_masters[i].id)->previous_master = true;
		}
	}
	for (uint32_t i = 0; i < transfer->master_count; i++) {
		if (!id128_equal(c->nodes[i].id, core->durable.node_id)) {
			make(transfer, c->nodes[i].id)->master = true;
		}
	}
}

void state_transfer_end_own_walk(struct core *core) {
	if (core->recovery->transfer.own_walking) {
		core->recovery->transfer.own_walking = false;
		pending_left(core, PENDING_COPYING, false);
		map_walk_end(&table_live(core)->keys);
	}
}

void state_transfer_tell_stop(struct core *core, const struct source *s) {
	int index = peer_table_find_id(core, s->id);
	if (s->asked && !s->done && index >= 0 && index != (int)core->self) {
		/* A message without parts says that enough has arrived. */
		struct message m = { .kind = MESSAGE_SNAPSHOT_GO_ON, .round = s->round };
		out_send(core, (uint32_t)index, &m);
	}
}

void state_transfer_stop(struct core *core) {
	struct state_transfer *transfer = &core->recovery->transfer;
	if (transfer->kind == STATE_TRANSFER_NONE) {
		return;
	}
	for (uint32_t i = 0; i < transfer->count; i++) {
		state_transfer_tell_stop(core, &transfer->sources[i]);
	}
	state_transfer_end_own_walk(core);
	if (transfer->owns_staging) {
		table_staging_drop(core);
	}
	*transfer = (struct state_transfer){ .kind = STATE_TRANSFER_NONE,
		.rounds = transfer->rounds };
	recovery_copies_changed(core);
}

/* The records already merged from this source stay, but the source no longer counts as one that had
 * them: its bit no longer stands for any source. */
void state_transfer_break_off(struct core *core, struct source *s) {
	if (id128_equal(s->id, core->durable.node_id)) {
		state_transfer_end_own_walk(core);
	}
	s->paused = s->asked = s->walked = s->done = s->forgot = s->never = s->votes = false;
	core->recovery->transfer.ready_reported = false;
}

/* Each try has a bit of its own in the table that is merged into. When the bits are used up, which
 * takes 31 links that broke, the state transfer begins anew. */
bool state_transfer_take_bit(struct core *core, struct source *s) {
	struct table *t = state_transfer_into(core);
	if (t->tries == MERGE_TRIES) {
		core->recovery->transfer.bits_used_up = true;
		return false;
	}
	s->bit = t->tries++;
	return true;
}

void state_transfer_ask(struct core *core, struct source *s, uint32_t index) {
	struct state_transfer *transfer = &core->recovery->transfer;
	if (!state_transfer_take_bit(core, s)) {
		return;
	}
	s->asked = true;
	s->refused = 0;
	s->asked_voter = core->peers[index].voting;
	s->round = ++transfer->rounds;
	s->asked_at = s->progress = s->chunk_at = core->now;
	struct message m = { .kind = MESSAGE_SNAPSHOT, .round = s->round, .epoch = transfer->epoch,
		.flags = transfer->kind == STATE_TRANSFER_REJOIN ? 0 : FLAG_HANDOVER };
	out_send(core, index, &m);
}

/* ---- what is enough ---- */

/* Returns when a source that has forgotten counts: once the longest lease has passed since it told
 * that it has adopted the epoch. */
static struct instant forgotten_at(const struct core *core, const struct source *s) {
	span_ns allowed = span_longer(core->durable.max_lease_seen, core->config.max_lease);
	span_ns lease = span_longer(allowed, s->lease);
	return instant_add(s->told_at, span_grow(lease, 2 * core->config.drift_ppm));
}

bool state_transfer_forgotten_long_enough(const struct core *core, const struct source *s) {
	return instant_expired(core->now, forgotten_at(core, s));
}

bool state_transfer_counts_before(const struct core *core, const struct source *s) {
	return s->previous_master && s->done &&
		(!s->forgot || state_transfer_forgotten_long_enough(core, s));
}

/* Sources that have forgotten count one after the other. This is the time until enough of them
 * count, if no other source comes; 0: that alone is not enough. */
span_ns state_transfer_left(const struct core *core, struct instant now) {
	const struct state_transfer *transfer = &core->recovery->transfer;
	span_ns left[SOURCES_MAX];
	uint32_t waiting = 0, needed = config_sources(transfer->previous_master_count);
	const bool handover = transfer->kind == STATE_TRANSFER_HANDOVER;
	for (uint32_t i = 0; handover && i < transfer->count; i++) {
		const struct source *s = &transfer->sources[i];
		if (s->previous_master && s->done && s->forgot &&
			!state_transfer_forgotten_long_enough(core, s)) {
			span_ns own = instant_left_long(now, forgotten_at(core, s));
			uint32_t at = waiting++;
			for (; at > 0 && left[at - 1] > own; at--) {
				left[at] = left[at - 1];
			}
			left[at] = own;
		} else {
			needed -= state_transfer_counts_before(core, s) && needed > 0;
		}
	}
	return needed > 0 && needed <= waiting ? left[needed - 1] : 0;
}

/* Returns how many sources count by now: for rejoining, or for a handover. */
static uint32_t count_sources(const struct core *core, bool rejoin) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->recovery->transfer.count; i++) {
		const struct source *s = &core->recovery->transfer.sources[i];
		n += rejoin ? s->master && s->done && s->votes
			: state_transfer_counts_before(core, s);
	}
	return n;
}

/* n - q + 1 sources intersect every quorum. In a handover they are masters of the previous epoch
 * (this node may be one); in a rejoin they are other masters of this epoch. */
static bool enough_before(const struct core *core) {
	return core->recovery->transfer.kind == STATE_TRANSFER_HANDOVER &&
		core->recovery->transfer.previous_master_count > 0 &&
		count_sources(core, false) >=
		config_sources(core->recovery->transfer.previous_master_count);
}

static bool enough_after(const struct core *core) {
	return core->recovery->transfer.kind != STATE_TRANSFER_AHEAD &&
		core->recovery->transfer.master_count > 1 &&
		count_sources(core, true) >= config_sources(core->recovery->transfer.master_count);
}

bool state_transfer_enough(const struct core *core) {
	return enough_before(core) || enough_after(core);
}

bool state_transfer_ready(const struct core *core) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->recovery->transfer.count; i++) {
		n += core->recovery->transfer.sources[i].previous_master &&
			core->recovery->transfer.sources[i].walked;
	}
	return n >= config_sources(core->recovery->transfer.previous_master_count);
}

/* ---- beginning to vote ---- */

/* Votes with what was merged. */
static void vote(struct core *core) {
	struct state_transfer *transfer = &core->recovery->transfer;
	bool handover = enough_before(core);
	for (uint32_t i = 0; i < transfer->count; i++) {
		const struct source *s = &transfer->sources[i];
		if (handover && state_transfer_counts_before(core, s)) {
			core->counts[s->forgot ? COUNT_source_forgot
				: s->never ? COUNT_source_never_voted : COUNT_source_remembers]++;
		}
	}
	state_transfer_end_own_walk(core);
	if (transfer->owns_staging) {
		table_swap(core);
	}
	merge_finish_begin(core);
	*transfer = (struct state_transfer){ .kind = STATE_TRANSFER_NONE,
		.rounds = transfer->rounds };
	recovery_copies_changed(core);
	core->counts[handover ? COUNT_handover : COUNT_rejoin]++;
	core->counts[COUNT_handover_rejoined] += !handover && core->state == CORE_HANDOVER;
	recovery_vote(core, handover ? "handover" : "rejoining");
}

/* If enough is known, this node votes. A node that has never voted in this epoch marks that on disk
 * first. */
void state_transfer_evaluate(struct core *core) {
	struct state_transfer *transfer = &core->recovery->transfer;
	if (core->conflict || core->adopting || !state_transfer_enough(core)) {
		/* While the next epoch is being adopted, the mark would be that of the next
		 * epoch. */
		return;
	}
	if (!core->durable.voted) {
		for (uint32_t i = 0; i < transfer->count; i++) {
			if (transfer->sources[i].done) {
				clock_raise(core, transfer->sources[i].clock_end);
			}
		}
		core->durable.voted = true;
		epoch_seen(core);
		/* A record may come from an earlier epoch with longer leases. This node answers for
		 * that lease from now on. */
		core->durable.max_lease_seen =
			span_longer(core->durable.max_lease_seen, transfer->longest);
		core->durable.ceiling = core->clock + CEILING_BLOCK > core->durable.ceiling
			? core->clock + CEILING_BLOCK : core->durable.ceiling;
		persist_changed(core);
	}
	/* The mark may have been made by a state transfer before this one. */
	if (core->durable.voted && persist_has_voted(core)) {
		vote(core);
	}
}

void state_transfer_persisted(struct core *core) {
	const enum state_transfer_kind kind = core->recovery->transfer.kind;
	if ((kind == STATE_TRANSFER_HANDOVER || kind == STATE_TRANSFER_REJOIN) &&
		core->durable.voted && persist_has_voted(core)) {
		state_transfer_evaluate(core);
	}
}

/* ---- beginnings ---- */

/* Sets the time before which no snapshot counts for rejoining. */
static void wait_to_rejoin(struct core *core) {
	/* This is the largest request_timeout that the node ever voted under. */
	span_ns request =
		span_longer(core->durable.request_timeout_seen, core->config.request_timeout);
	core->recovery->rejoin_at = instant_add(core->now,
		span_grow(request, core->config.drift_ppm));
}

void state_transfer_rejoin(struct core *core) {
	state_transfer_stop(core);
	state_transfer_begin(core, STATE_TRANSFER_REJOIN, &core->config);
	wait_to_rejoin(core);
}

/* When the same question comes again, what is already there is used. False: another state transfer
 * uses the table. */
bool state_transfer_ahead(struct core *core, const struct config *c) {
	struct state_transfer *transfer = &core->recovery->transfer;
	if (transfer->kind == STATE_TRANSFER_AHEAD && transfer->epoch == c->epoch &&
		transfer->hash == config_hash(c)) {
		return true;
	}
	if (transfer->kind == STATE_TRANSFER_HANDOVER || transfer->kind == STATE_TRANSFER_REJOIN) {
		return false;
	}
	state_transfer_stop(core);
	state_transfer_begin(core, STATE_TRANSFER_AHEAD, c);
	COUNT(core, copy_ahead_started);
	return true;
}

/* If this is the epoch that was prepared for, what was merged into the staging table is kept, and
 * its sources send their ends as soon as they have adopted the epoch. */
void state_transfer_handover(struct core *core) {
	struct state_transfer *transfer = &core->recovery->transfer;
	if (transfer->kind == STATE_TRANSFER_AHEAD && transfer->epoch == core->config.epoch &&
		transfer->hash == core->config_hash && transfer->owns_staging) {
		struct source *s = state_transfer_own(core);
		COUNT(core, copy_ahead_used);
		transfer->kind = STATE_TRANSFER_HANDOVER;
		if (s && s->asked && !core->remembers) {
			state_transfer_break_off(core, s);
		} else if (s && s->walked) {
			state_transfer_own_done(core, s);
		}
	} else {
		state_transfer_stop(core);
		state_transfer_begin(core, STATE_TRANSFER_HANDOVER, &core->config);
	}
	wait_to_rejoin(core);
	state_transfer_beat(core);
}

void state_transfer_again(struct core *core) {
	const enum state_transfer_kind kind = core->recovery->transfer.kind;
	const struct instant began = core->recovery->transfer.began;
	state_transfer_stop(core);
	if (kind == STATE_TRANSFER_REJOIN) {
		finish_forget_sources(core);
	}
	if (kind == STATE_TRANSFER_HANDOVER || kind == STATE_TRANSFER_REJOIN) {
		state_transfer_begin(core, kind, &core->config);
		/* `began` stays as it was. The clock that is taken from a source may be the higher,
		 * the longer ago that is, and each try that is refused for its clock uses up a bit:
		 * beginning anew must not keep that bound from rising. */
		core->recovery->transfer.began = began;
	}
}

void state_transfer_peer_lost(struct core *core, uint32_t peer) {
	struct source *s = core->recovery->transfer.kind == STATE_TRANSFER_NONE ? NULL
		: state_transfer_source(&core->recovery->transfer, core->peers[peer].link_id);
	if (s && s->asked && !s->done) {
		COUNT(core, copy_ahead_broken);
		state_transfer_break_off(core, s);
	}
}
