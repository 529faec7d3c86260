/* world_hash.c: what a world looks like, as a number. It covers everything that decides what
 * happens next, and nothing of where it lies in memory. */
#include "explore.h"
#include "node.h"
#include "sync.h"

static void mix(uint64_t *h, uint64_t v) {
	*h = (*h ^ v) * 0x9e3779b97f4a7c15u;
	*h ^= *h >> 29;
}

static void mix_id(uint64_t *h, struct id128 id) {
	uint64_t words[2];
	memcpy(words, id.b, sizeof words);
	mix(h, words[0]);
	mix(h, words[1]);
}

static void mix_bytes(uint64_t *h, const uint8_t *bytes, size_t size) {
	mix(h, size);
	for (size_t i = 0; i < size; i++) {
		mix(h, bytes[i]);
	}
}

static void mix_time(uint64_t *h, struct instant t) {
	mix(h, (uint64_t)t.boot);
	mix(h, (uint64_t)t.raw);
}

static void mix_ballot(uint64_t *h, struct ballot b) {
	mix(h, b.clock);
	mix(h, b.node);
	mix(h, b.boot);
}

static void mix_terms(uint64_t *h, const struct terms *t) {
	mix(h, (uint64_t)t->of << 48 | (uint64_t)t->count << 32 | (uint32_t)t->priority);
	mix(h, (uint64_t)t->delay);
	mix(h, t->set.w[0] << 32 | t->binding);
}

static void hash_record(const struct core *core, uint64_t *h, const struct record *r) {
	mix_id(h, r->lock_id);
	mix(h, r->token);
	mix(h, r->noted);
	mix_ballot(h, record_wrote(core, r));
	mix_ballot(h, record_prepared(core, r));
	mix_time(h, r->end);
	mix(h, r->sources | (uint64_t)r->barred << 32);
	mix(h, r->rests_on);
	mix(h, r->accepted);
	mix(h, (uint64_t)r->value_left_out << 1 | r->uneven);
	const struct terms terms = record_terms(r);
	mix_terms(h, &terms);
	const struct lapsing lapsing = record_lapsing(r);
	if (!permits_none(lapsing.set)) {
		mix(h, lapsing.set.w[0]);
		mix(h, lapsing.rests_on);
		mix_time(h, lapsing.end);
	}
	const struct older older = record_older(r);
	if (!permits_none(older.set)) {
		mix(h, older.set.w[0]);
		mix(h, older.noted);
	}
	mix_bytes(h, r->bytes + record_terms_size(r),
		(size_t)r->owner_size + r->identity_size + r->label_size + r->value_size);
}

static void hash_queued(uint64_t *h, const struct queued *q, uint64_t marks) {
	mix_id(h, q->lock_id);
	mix(h, q->attempt);
	mix(h, q->round);
	mix(h, q->ticket.clock);
	mix_ballot(h, q->first);
	mix(h, q->ticket.seq << 8 | q->peer << 2 | marks);
	mix_terms(h, &q->terms);
}

static void hash_more(uint64_t *h, const struct core *core, const struct key *key) {
	for (const struct waiter *w = queue_next(core, key_more(key), NULL, PARTS_ALL); w;
		w = queue_next(core, key_more(key), &w->q, PARTS_ALL)) {
		hash_queued(h, &w->q, (uint64_t)w->turn << 1 | w->waits);
	}
	mix(h, 1);
	for (const struct parked *k = queue_parked_next(core, key, NULL); k;
		k = queue_parked_next(core, key, k)) {
		hash_queued(h, &k->q, 0);
	}
}

static void hash_key(uint64_t *h, const struct core *core, const struct key *key) {
	mix_bytes(h, key->name, key->size);
	mix(h, wheel_armed(&key->timer.wheel) ? key->timer.wheel.tick : 0);
	for (const struct record *r = key->held; r; r = r->next) {
		hash_record(core, h, r);
	}
	mix(h, 2);
	for (const struct promise *p = key_promises(key); p; p = p->next) {
		mix_id(h, p->lock_id);
		mix(h, p->attempt);
		mix(h, p->noted);
		mix_ballot(h, p->first);
		mix_time(h, p->end);
		mix(h, p->ticket.clock);
		mix(h, p->ticket.seq << 8 | p->peer << 1 |
			p->turn);
		mix_terms(h, &p->terms);
		mix(h, p->again.w[0] << 8 | p->touched.w[0] << 4 | (uint64_t)p->reserves << 1 |
			p->tell);
		mix(h, p->noted_again);
	}
	if (key_more(key)) {
		hash_more(h, core, key);
	}
}

static void hash_votes(uint64_t *h, const struct core *core, const struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct vote *v = &op->votes[i];
		mix(h, (uint64_t)v->state | (uint64_t)v->status << 8 | (uint64_t)v->fresh << 16 |
			(uint64_t)v->lapsed << 17 | (uint64_t)v->alone << 18);
		mix(h, v->token);
		mix(h, v->noted);
		mix(h, v->set.w[0] << 32 | v->had.w[0]);
	}
}

static void hash_acquire(uint64_t *h, const struct core *core, const struct acquire_state *a) {
	mix(h, (uint64_t)a->try_lock | (uint64_t)a->contested_seen << 1 |
		(uint64_t)a->rival_waiting << 2 | (uint64_t)(a->holder != NULL) << 3 |
		(uint64_t)a->home_waited << 4 | (uint64_t)a->told << 5);
	const uint64_t numbers[] = { a->token, a->ticket.clock, a->ticket.seq, a->queue_round,
		a->attempt, a->roll_back_name, (uint64_t)a->home,
		a->home >= 0 && core->peers[a->home].stopped != a->home_stopped, a->pauses };
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		mix(h, numbers[i]);
	}
	mix_time(h, a->since);
	mix_ballot(h, a->ballot);
	if (a->holder) {
		hash_record(core, h, a->holder);
	}
}

static void hash_extend(uint64_t *h, const struct core *core,
	const struct extend_state *e) {
	mix(h, (uint64_t)e->deadline_kept | (uint64_t)e->backed << 1 | (uint64_t)e->blind << 2 |
		(uint64_t)(e->record != NULL) << 3);
	mix(h, e->token);
	mix(h, e->best_token);
	mix(h, e->roll_back_name);
	mix(h, (uint64_t)(uint32_t)e->fetch_from << 32 | e->fetch_tried);
	mix_time(h, e->later);
	if (e->record) {
		hash_record(core, h, e->record);
	}
}

static void hash_update(uint64_t *h, const struct core *core,
	const struct update_state *u) {
	mix(h, (uint64_t)(u->record != NULL) | (uint64_t)u->pauses << 1);
	mix(h, (uint64_t)u->error);
	mix_ballot(h, u->ballot);
	mix_ballot(h, u->seen);
	if (u->record) {
		hash_record(core, h, u->record);
	}
}

static void hash_transfer(uint64_t *h, const struct transfer_state *t) {
	mix(h, t->release.had_any);
	mix(h, (uint64_t)t->home);
	mix_id(h, t->successor.lock_id);
	mix(h, t->successor.attempt);
	mix_ballot(h, t->successor.first);
}

static void hash_kind(uint64_t *h, const struct core *core, const struct op *op) {
	switch (op->kind) {
	case CORE_ACQUIRE: hash_acquire(h, core, op_acquire(op)); break;
	case CORE_EXTEND: hash_extend(h, core, op_extend(op)); break;
	case CORE_UPDATE: hash_update(h, core, op_update(op)); break;
	case CORE_RELEASE: mix(h, op_release(op)->had_any); break;
	case CORE_TRANSFER: hash_transfer(h, op_transfer(op)); break;
	case CORE_DOWNGRADE:
		mix(h, op_downgrade(op)->had_any);
		mix(h, op_downgrade(op)->best_token);
		break;
	case CORE_BREAK:
		mix(h, op_break(op)->had_any);
		mix(h, op_break(op)->token);
		mix(h, op_break(op)->best_token);
		break;
	case CORE_GET: case CORE_EXPLAIN:
		mix(h, op_read(op)->contested_seen);
		break;
	case CORE_NONE: case CORE_LIST: case CORE_WAIT: case CORE_WAITERS: case CORE_BINDING:
	case CORE_CHANGE: case CORE_ASK: case CORE_ACQUIRE_ALL:
		break;
	}
}

static void hash_op(uint64_t *h, const struct core *core, const struct op *op) {
	mix(h, (uint64_t)op->kind | (uint64_t)op->state << 8);
	mix(h, op->id);
	mix(h, op->round);
	mix(h, wheel_armed(&op->timer.wheel) ? op->timer.wheel.tick : 0);
	mix_id(h, op->lock_id);
	mix_terms(h, &op->terms);
	mix_time(h, op->sent);
	mix_time(h, op->arrived);
	mix_time(h, op->until);
	hash_votes(h, core, op);
	hash_kind(h, core, op);
	for (const struct list *n = list_first(&op->callers); n; n = list_after(&op->callers, n)) {
		mix(h, CONTAINER_OF(n, struct caller, link)->id);
	}
}

static void hash_word(uint64_t *h, const struct word *w) {
	mix(h, w->claimed);
	mix(h, w->claimed_epoch << 1 | w->contradicts);
	mix(h, w->accepted);
	mix_ballot(h, w->ballot);
	mix(h, w->passed_on);
	mix_time(h, w->ahead_since);
	mix_time(h, w->passed_on_at);
}

static void hash_peer(uint64_t *h, const struct peer *p) {
	hash_word(h, &p->word);
	mix(h, (uint64_t)p->up | (uint64_t)p->linked << 1 | (uint64_t)p->voting << 2 |
		(uint64_t)p->ping_out << 3 | (uint64_t)p->far_ahead << 4 |
		(uint64_t)p->send.active << 5 | (uint64_t)p->send.walked << 6 |
		(uint64_t)p->in_epoch << 7 | (uint64_t)p->frame_came << 8 |
		(uint64_t)p->complete << 9 | (uint64_t)p->decree.kind << 16);
	mix(h, p->boot);
	mix_time(h, p->ping_sent);
	mix(h, p->ping_round);
	mix(h, (uint64_t)p->round_trip);
	mix(h, p->send.round);
	mix(h, p->send.epoch);
	mix(h, p->epoch);
	mix(h, p->decree.round);
	mix(h, p->decree.seq);
	mix_ballot(h, p->decree.ballot);
	mix(h, (uint64_t)p->standing | (uint64_t)p->wanted << 8 | (uint64_t)p->wrong_noted << 9 |
		p->config_told << 16);
	mix(h, p->clock);
	mix_id(h, p->link_id);
	mix_time(h, p->told_at);
	mix_time(h, p->up_since);
}

static void hash_state_transfer(uint64_t *h, const struct state_transfer *g) {
	mix(h, (uint64_t)g->kind | (uint64_t)g->owns_staging << 9 | (uint64_t)g->own_walking << 10);
	mix(h, g->epoch);
	for (uint32_t i = 0; i < g->count; i++) {
		const struct source *s = &g->sources[i];
		mix(h, (uint64_t)s->asked | (uint64_t)s->walked << 1 | (uint64_t)s->done << 2 |
			(uint64_t)s->forgot << 3 | (uint64_t)s->never << 4 | (uint64_t)s->votes <<
			5 | (uint64_t)s->adopted << 6 | (uint64_t)s->asked_voter << 7 |
			(uint64_t)s->bit << 8);
		mix(h, s->round);
		mix(h, s->clock_end);
		mix(h, (uint64_t)s->lease);
		mix_time(h, s->progress);
		mix_time(h, s->told_at);
	}
	mix(h, g->hash);
	mix(h, g->asker_round << 2 | (uint64_t)g->ready_reported << 1 | g->bits_used_up);
	mix(h, (uint64_t)g->longest);
	mix_time(h, g->keep_until);
}

static void hash_change(uint64_t *h, const struct change *c) {
	mix(h, (uint64_t)c->state | (uint64_t)c->answered << 8 | (uint64_t)c->agreed << 24 |
		(uint64_t)c->finishing << 40);
	mix(h, c->round);
	mix(h, c->state == CHANGE_IDLE ? 0 : config_hash(&c->value));
	mix_ballot(h, c->ballot);
	mix_ballot(h, c->highest);
	mix_ballot(h, c->best);
}

static void hash_finish(uint64_t *h, const struct core *core) {
	const struct finishing *f = &core->store.finish;
	mix(h, (uint64_t)f->active << 32 | f->done);
	for (uint32_t i = 0; f->active && i < 32; i++) {
		mix(h, f->done >> i & 1 ? f->clock_end[i] : 0);
	}
}

static void hash_epoch(uint64_t *h, const struct core *core) {
	const struct durable *d = &core->durable;
	mix(h, core->config.epoch);
	mix(h, core->config_hash);
	mix(h, d->config.epoch);
	mix(h, d->decree_config.epoch ? config_hash(&d->decree_config) : 0);
	mix_ballot(h, d->decree_promised);
	mix_ballot(h, d->decree_accepted);
	mix(h, (uint64_t)d->voted | (uint64_t)d->voted_before << 1 | (uint64_t)d->complete << 2 |
		(uint64_t)core->adopting << 3 | (uint64_t)core->remembers <<
		4 | (uint64_t)core->complete << 5 | (uint64_t)core->store.finish.active << 6 |
		(uint64_t)core->conflict << 7);
	mix(h, core->membership->ballot_drawn << 2 | (uint64_t)core->peering.isolated << 1 |
		core->membership->forced);
	mix_time(h, core->adopted_at);
	mix_time(h, core->peering.near_at);
	mix_time(h, core->membership->voters_at);
	mix_time(h, core->membership->finish_at);
	for (uint32_t i = 0; i < core->recovery->announced.count; i++) {
		mix_id(h, core->recovery->announced.masters[i]);
	}
	hash_finish(h, core);
	hash_state_transfer(h, &core->recovery->transfer);
	hash_change(h, &core->membership->change);
}

static void hash_keys(uint64_t *h, const struct core *core, const struct table *t) {
	mix(h, t->tries);
	for (size_t b = 0; b < t->keys.bucket_count; b++) {
		for (struct map_node *n = map_bucket(&t->keys, b); n; n = map_next_in_bucket(n)) {
			hash_key(h, core, CONTAINER_OF(n, struct key, node));
		}
	}
}

/* One that has ended only uses memory. */
static uint64_t hash_granted(const struct core *core, const struct granted *b) {
	const struct instant deadline = granted_deadline(b);
	uint64_t h = 0;
	if (!instant_distrusted(core->now, deadline)) {
		mix(&h, b->entry.hash);
		mix(&h, b->check);
		mix_time(&h, deadline);
		mix(&h, granted_answered(b));
		mix(&h, granted_numbers(core, b).w[0]);
	}
	return h;
}

/* What has ended before any round that is under way makes no difference. */
static void hash_lacks(uint64_t *h, const struct core *core, const struct lacking_place *p) {
	for (uint32_t i = 0; i < core->limits.lacked * (LACKS_A_PLACE + 1); i++) {
		const uint32_t at = i / core->limits.lacked, place = i % core->limits.lacked;
		const struct lacking *l = at ? &p[place].lacks[at - 1] : &p[place].rest;
		const span_ns ago = instant_elapsed_short(core->now, l->at);
		mix(h, ago < 2 * core->config.request_timeout ? (uint64_t)ago : UINT64_MAX);
		mix(h, l->tag);
		mix_ballot(h, l->noted);
	}
}

static void hash_tables(uint64_t *h, const struct core *core) {
	hash_keys(h, core, core->store.live);
	mix(h, (uint64_t)core->store.staging_use);
	hash_keys(h, core, core->store.staging);
	/* The order of the entries says nothing. */
	uint64_t granted = 0;
	for (uint32_t i = 0; i < core->coordinator.granted_leases.count; i++) {
		granted += hash_granted(core, CONTAINER_OF(
			flat_at(&core->coordinator.granted_leases, i), struct granted, entry));
	}
	mix(h, granted);
	for (uint32_t i = 0; i < PREPARING_MAX; i++) {
		const struct preparing *p = &core->store.preparing[i];
		if (p->op && !instant_distrusted(core->now, p->until)) {
			mix_id(h, p->lock_id);
			mix(h, p->op);
			mix_time(h, p->until);
		}
	}
	hash_lacks(h, core, core->store.lacked);
	hash_lacks(h, core, core->store.lapsed);
	for (uint32_t i = 0; i < EXTENDED_MAX; i++) {
		mix(h, core->store.extended[i].name);
		mix(h, core->store.extended[i].by);
	}
	for (uint32_t i = 0; i < core->store.tombstones_size; i++) {
		mix_id(h, core->store.tombstones[i].lock_id);
		mix(h, core->store.tombstones[i].rolled_back);
		mix(h, core->store.tombstones[i].name);
		mix(h, (uint64_t)core->store.tombstones[i].binding << 2 |
			(uint64_t)core->store.tombstones[i].released << 1 |
			core->store.tombstones[i].barred);
	}
}

static void hash_sync(uint64_t *h, const struct core *core) {
	const struct sync *s = core->repair.sync;
	mix(h, core->repair.sync_round);
	mix(h, (uint64_t)core->repair.sync_tick << 16 | core->tick);
	mix_time(h, core->repair.tick_at);
	mix(h, (uint64_t)core->repair.sync_beats << 2 | (uint64_t)core->repair.sync_evaluated << 1 |
		core->changes.sync_hurry);
	if (s && s->judging.active) {
		mix(h, (uint64_t)s->judging.from << 32 | s->judging.leaf);
		mix(h, (uint64_t)s->judging.keys << 32 | s->judging.reports);
	}
	for (uint32_t i = 0; s && i < DIGEST_LEAVES / 64; i++) {
		mix(h, s->suspects[i]);
		mix(h, s->differs[i]);
	}
	for (uint32_t i = 0; s && i < core->masters; i++) {
		mix(h, s->pulls[i].count | (uint64_t)s->pulls[i].asked << 16 |
			(uint64_t)s->pulls[i].listed << 32 | (uint64_t)s->pulls[i].fetches << 48);
	}
	for (uint32_t i = 0; s && i < s->seen_count; i++) {
		mix_id(h, s->seen[i].lock_id);
		mix(h, s->seen[i].token << 8 | s->seen[i].from);
	}
}

static void hash_core(uint64_t *h, const struct core *core) {
	const uint64_t numbers[] = { (uint64_t)core->state, core->clock, core->store.first_drawn >
		core->clock ? core->store.first_drawn : 0, core->store.clock_began,
		core->durable.boot, core->durable.ceiling, core->engine.ceiling_on_disk,
		core->coordinator.op_next, core->coordinator.ticket_next, core->prng.s[0],
		core->prng.s[1], core->coordinator.home_missing, core->node.beat.wheel.tick };
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		mix(h, numbers[i]);
	}
	mix_time(h, core->node.last_step);
	mix_time(h, core->store.vote_began);
	mix_time(h, core->recovery->rejoin_at);
	for (uint32_t i = 0; i < core->peer_count; i++) {
		hash_peer(h, &core->peers[i]);
	}
	hash_epoch(h, core);
	hash_tables(h, core);
	hash_sync(h, core);
	for (const struct list *n = list_first(&core->coordinator.ops); n;
		n = list_after(&core->coordinator.ops, n)) {
		hash_op(h, core, CONTAINER_OF(n, struct op, link));
	}
	mix(h, 3);
	for (const struct list *n = list_first(&core->coordinator.catching_up); n;
		n = list_after(&core->coordinator.catching_up, n)) {
		hash_op(h, core, CONTAINER_OF(n, struct op, link));
	}
}

static void hash_contender(uint64_t *h, const struct contender *c) {
	mix(h, (uint64_t)c->state | (uint64_t)c->node << 8 | (uint64_t)c->lock << 16 |
		(uint64_t)c->left.acquires << 24 | (uint64_t)c->left.extends <<
		32 | (uint64_t)c->left.releases << 40 | (uint64_t)c->left.repeats << 48 |
		(uint64_t)c->left.updates << 56);
	mix(h, c->asked);
	mix(h, c->updating);
	mix(h, c->extending);
	mix(h, (uint64_t)c->asked_at);
	mix(h, (uint64_t)c->extend_at);
	mix(h, (uint64_t)c->believed_until);
	mix(h, c->token);
	mix(h, (uint64_t)c->left.downgrades << 8 | c->left.transfers);
	mix(h, (uint64_t)c->left.closes << 8 | c->closed);
	mix_terms(h, &c->terms);
}

/* The order of events counts only where it decides which of two acquisitions came first. */
static void hash_judge(uint64_t *h, const struct world *w) {
	for (uint32_t i = 0; i < w->acquired_count; i++) {
		const struct acquired *a = &w->acquired[i];
		mix(h, a->token);
		mix(h, a->lock);
		mix_terms(h, &a->terms);
		mix(h, (uint64_t)a->began);
		mix(h, (uint64_t)a->ended);
		for (uint32_t c = 0; c < CLIENTS; c++) {
			mix(h, w->clients[c].state == CLIENT_ASKED &&
				a->answered_event < w->clients[c].asked_event);
		}
	}
}

uint64_t world_hash(const struct world *w) {
	uint64_t h = 0x243f6a8885a308d3u;
	const struct stage *s = w->stage;
	mix(&h, (uint64_t)s->now);
	mix(&h, (uint64_t)w->updated << 24 | (uint64_t)w->left.passes << 16 |
		(uint64_t)w->left.restarts << 8 | w->left.breaks | (uint64_t)w->left.lies << 32);
	mix(&h, (uint64_t)w->left.aims[0] << 8 | (uint64_t)w->left.aims[1]);
	for (uint32_t i = 0; i < s->count; i++) {
		hash_core(&h, s->nodes[i].core);
		for (uint32_t j = 0; j < s->count; j++) {
			mix(&h, s->links[i][j].count);
			for (const struct stage_frame *f = s->links[i][j].head; f; f = f->next) {
				mix_bytes(&h, f->bytes, f->size);
			}
		}
	}
	for (uint32_t i = 0; i < CLIENTS; i++) {
		hash_contender(&h, &w->clients[i]);
	}
	hash_judge(&h, w);
	return h;
}
