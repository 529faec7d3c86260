/* invariant.c: core_check, which checks what must hold between any two steps. Tests run it after
 * every step. */
#include "node.h"

struct sums {
	uint64_t held, promises, waiters, contested, modes[FIGURE_MODES];
	uint32_t longest;
	uint64_t digests[DIGEST_GROUPS];
};

static void check_record(const struct core *core, const struct record *r) {
	const struct terms terms = record_terms(r);
	CHECK(r->token <= TOKEN_MAX && r->noted <= TOKEN_MAX && terms_valid(&terms));
	CHECK(record_terms_size(r) >= terms_rest(&terms) &&
		permits_within(record_older(r).set, terms.set));
	/* Without a number the record would close the key for nobody. */
	CHECK(!terms_semaphore(&terms) || !permits_none(terms.set));
	/* The clock is never below what this node accepted. */
	CHECK(!core_votes(core) || (r->token <= core->clock && r->noted <= core->clock));
	/* Noting a ballot raises the clock to it. */
	CHECK(!core_votes(core) || record_prepared(core, r).clock <= core->clock);
	/* Whoever takes a value has noted its ballot. */
	CHECK(ballot_compare(record_wrote(core, r), record_prepared(core, r)) <= 0);
	CHECK(!core_votes(core) || core->store.finish.active || r->sources == 0);
}

/* No wait of a key is forgotten: what it waits for is not so, or it is due. */
static void check_waits(const struct core *core, const struct key *key) {
	const struct key_more *more = key_more(key);
	uint64_t last[WAITS_KINDS] = { 0 };
	for (uint32_t kind = 0; kind < WAITS_KINDS; kind++) {
		for (const struct list *n = list_first(&more->waits[kind]); n;
			n = list_after(&more->waits[kind], n)) {
			const struct op *op = CONTAINER_OF(n, struct op, waiting);
			CHECK(op_wait(op)->on == key && op->state == OP_LOCAL &&
				op_wait(op)->for_free == (kind == WAITS_FREE) &&
				last[kind] <= op->id);
			CHECK(kind == WAITS_HELD || op->id >= more->freed ||
				list_linked(&more->due));
			last[kind] = op->id + 1;
		}
	}
	const bool held = last[WAITS_HELD] && entry_held(key, core->now),
		freed = last[WAITS_FREE] && key->held == NULL;
	CHECK((!held || more->taken) && (!freed || last[WAITS_FREE] <= more->freed));
	CHECK(!(held || freed) || list_linked(&more->due));
	CHECK(!list_linked(&more->due) || last[WAITS_HELD] || last[WAITS_FREE]);
}

static void check_more(const struct core *core, const struct key *key, struct sums *s) {
	const struct key_more *more = key_more(key);
	uint32_t waiters = 0, turns = 0, parked = 0;
	for (uint32_t part = 0; part < QUEUE_PARTS; part++) {
		const struct queued *last = NULL;
		for (struct queued *q = queued_first(more->queue[part]); q;
			last = q, q = queued_after(core, more->queue[part], q)) {
			const struct waiter *w = CONTAINER_OF(q, struct waiter, q);
			CHECK(q->key == key && list_linked(&q->by_peer) &&
				part == ((w->turn ? PART_TURN : 0) | (w->waits ? PART_WAITS : 0)));
			/* Entries are stamped, and stand in their order. */
			CHECK(q->ticket.clock != 0 &&
				(last == NULL || queued_sooner(core, last, q)));
			CHECK(queued_find(core, &core->master.queues.waiters, key, q->peer,
				q->lock_id) == q);
			CHECK(queued_owner_next(core, more, slice_of(w->bytes, w->owner_size),
				NULL) != NULL);
			waiters++;
			turns += w->turn;
		}
	}
	check_waits(core, key);
	const struct parked *last = NULL;
	for (const struct parked *k = queue_parked_next(core, key, NULL); k;
		last = k, k = queue_parked_next(core, key, k)) {
		CHECK(k->q.key == key && (last == NULL || queued_sooner(core, &last->q, &k->q)));
		CHECK(queued_find(core, &core->master.queues.parked, key, k->q.peer,
			k->q.lock_id) == &k->q);
		parked++;
	}
	CHECK(waiters == more->waiters && turns == more->turns && parked == more->parked_count);
	/* Somebody has the turn, whether the key is free or not. */
	CHECK(waiters == 0 || turns > 0 || !core_votes(core) || queue_lost_left(core) ||
		list_linked(&more->moved) || list_linked(&more->refusing));
	CHECK(waiters > 0 || !(list_linked(&more->moved) || list_linked(&more->refusing)));
	CHECK(more->next_try == NULL || list_linked(&more->refusing));
	const struct queued *first = queued_first(more->parked);
	/* A parked request stands behind a record or a promise, and is not promised what it may
	 * have. */
	if (first && core_votes(core) && !queued_lost(core, first)) {
		const struct place place = queued_place(first);
		const struct record *own = key_record(key, first->lock_id);
		const struct message ask = { .kind = MESSAGE_PROMISE, .lock_id = first->lock_id,
			.attempt = first->attempt, .flags = FLAG_TURN, .terms = first->terms,
			.ticket = first->ticket,
			.identity = own ? record_identity(own) : slice_of(NULL, 0) };
		CHECK(rule_promise(core, key, first->peer, &ask) != STATUS_OK);
		CHECK((key->held && (key_contested(key) ||
			key_other(key, first->lock_id, &first->terms))) ||
			(key_promised_other(key, first->lock_id) &&
			queue_may_wait(core, key, &place, STATUS_PROMISED)));
	}
	s->waiters += waiters;
	s->longest = waiters > s->longest ? waiters : s->longest;
}

/* What the index says of a lock_id is what a look at each record says. */
static void check_sums(const struct key *key, const struct record *r, struct id128 lock_id) {
	struct key plain = *key;
	plain.rare = 0;
	bool room, plain_room;
	const struct terms all[] = { record_terms(r), { .of = MODE_EXCLUSIVE },
		{ .of = MODE_SHARED } };
	const struct permits taken = key_taken(key, lock_id, r->of, &room),
		plain_taken = key_taken(&plain, lock_id, r->of, &plain_room);
	CHECK(memcmp(&taken, &plain_taken, sizeof taken) == 0 && room == plain_room);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		CHECK(key_other(key, lock_id, &all[i]) == key_other(&plain, lock_id, &all[i]));
	}
	CHECK(key_other_exclusive(key, lock_id) == key_other_exclusive(&plain, lock_id));
	CHECK(key_record(key, lock_id) == key_record(&plain, lock_id));
	CHECK(key_highest_token(key, r) == key_highest_token(&plain, r));
	CHECK(key_numbered(key, r->of) == key_numbered(&plain, r->of));
	CHECK(key_contested(key) == key_contested(&plain));
}

static void check_index(const struct key *key) {
	index_check(key);
	for (const struct record *r = key->held; r; r = r->next) {
		struct id128 other = r->lock_id;
		other.b[15] ^= 1;
		check_sums(key, r, r->lock_id);
		if (r == key->held) {
			check_sums(key, r, other);
		}
	}
}

static void check_promise(const struct core *core, const struct key *key, const struct promise *p) {
	CHECK(p->key == key && list_linked(&p->by_peer));
	CHECK(p->noted <= core->clock);
	/* A node that does not vote promises nothing. */
	CHECK(core_votes(core) || core->state == CORE_DRAINED);
	/* A lock_id that is held has no promise. */
	CHECK(!key_record(key, p->lock_id));
	/* A held record displaces every promise that it excludes. */
	CHECK(!key->held || !key_other(key, p->lock_id, &p->terms));
	for (const struct promise *other = p->next; other; other = other->next) {
		CHECK(!id128_equal(p->lock_id, other->lock_id));
		CHECK(!terms_exclude(&p->terms, &other->terms));
	}
}

static void check_key(const struct core *core, const struct key *key, struct sums *s) {
	CHECK(key->held || key_promises(key) || key_more(key));
	CHECK(!(key->held || key_promises(key)) || wheel_armed(&key->timer.wheel));
	digest_check_key(core, core->store.live, key, s->digests);
	bool exclude = false;
	for (const struct record *r = key->held; r; r = r->next) {
		check_record(core, r);
		const struct terms own = record_terms(r);
		s->held++;
		s->modes[figure_mode_of(own.of)]++;
		for (const struct record *other = r->next; other; other = other->next) {
			CHECK(!id128_equal(r->lock_id, other->lock_id));
			const struct terms terms = record_terms(other);
			exclude = exclude || record_excludes(r, &terms);
		}
	}
	if (key_index(key)) {
		check_index(key);
	}
	/* key_contested, which makes one pass, agrees with the definition. */
	CHECK(exclude == key_contested(key));
	s->contested += exclude;
	for (const struct promise *p = key_promises(key); p; p = p->next) {
		check_promise(core, key, p);
		s->promises++;
	}
	if (key_more(key)) {
		check_more(core, key, s);
	}
}

static void check_op(const struct core *core, const struct op *op) {
	bool acquiring = op->kind == CORE_ACQUIRE && op->state != OP_COMMITTING &&
		op->state != OP_CATCHING_UP;
	CHECK(acquiring == (op->kind == CORE_ACQUIRE && list_linked(&op->waiting)));
	CHECK(op->key_hash == table_hash(core, op->key));
	CHECK(op->state != OP_CATCHING_UP || list_empty(&op->callers));
	CHECK(!acquiring || !list_empty(&op->callers));
	CHECK(op->kind == CORE_LIST || wheel_armed(&op->timer.wheel) || op->state == OP_LOCAL ||
		op->state == OP_IN_LINE || op->state == OP_WEIGHING ||
		op->state == OP_SHOWING);
	CHECK(op->state != OP_COMMITTING || op_acquire(op)->token <= core->clock);
	/* Nothing zeroes the votes of masters that never were. */
	for (uint32_t i = core->masters_most; i < MASTERS_MAX; i++) {
		CHECK(op->votes[i].state == VOTE_NONE && op->votes[i].token == 0);
	}
}

/* The staging table holds records and nothing else. */
static void check_staging(const struct core *core) {
	const struct table *t = core->store.staging;
	struct sums s = { .held = 0 };
	/* The leaves of a table that is emptied say nothing of its keys any more. */
	const bool emptying = core->store.staging_use == STAGING_EMPTYING;
	for (size_t b = 0, seen = 0; seen < t->keys.count; b++) {
		for (struct map_node *n = map_bucket(&t->keys, b); n;
			n = map_next_in_bucket(n), seen++) {
			const struct key *key = CONTAINER_OF(n, struct key, node);
			CHECK(&core->store.tables[key_table_index(key)] == t && key->held &&
				key_promises(key) == NULL &&
				(key_more(key) == NULL || key_index(key)));
			if (!emptying) {
				digest_check_key(core, t, key, s.digests);
			}
			for (const struct record *r = key->held; r; r = r->next) {
				s.held++;
			}
		}
	}
	CHECK(s.held == t->held_count);
	CHECK(emptying || memcmp(s.digests, t->group_digests, sizeof s.digests) == 0);
	CHECK(core->store.staging_use != STAGING_FREE || t->keys.count == 0);
}

static void check_replication(const struct core *core) {
	const struct log *log = &core->changes.log;
	const struct follow *f = &core->follow;
	uint32_t feeds = 0, event_feeds = 0;
	CHECK(log->oldest <= log->next && log->count <= log->slots);
	for (uint32_t i = 0; i < core->peer_count; i++) {
		const struct feed *feed = &core->peers[i].feed;
		CHECK(!feed->walking || feed->active);
		CHECK(!feed->active || (core_votes(core) && core->peers[i].up &&
			feed->place.number <= log->next));
		CHECK(feed->in_flight <= FEED_WINDOW && feed->echo_count <= FEED_ECHOES &&
			feed->acked <= feed->place.number);
		CHECK(!feed->wants_events || feed->active);
		feeds += feed->active;
		event_feeds += feed->wants_events;
	}
	CHECK(feeds == core->changes.feeds && event_feeds == core->changes.event_feeds);
	CHECK(f->state == FOLLOW_NONE || core->state == CORE_FOLLOWING);
	CHECK(!f->building || core->store.staging_use == STAGING_BUILDING);
	/* A replica's state never votes. */
	CHECK(core->state != CORE_FOLLOWING ||
		(core->store.promise_count == 0 && core->master.waiter_count == 0));
}

/* No work that is left lacks its bit. */
static void check_pending(const struct core *core) {
	const struct coordinator_state *c = &core->coordinator;
	const struct {
		bool left;
		enum pending kind;
	} work[] = {
		{ !list_empty(&c->groups), PENDING_GROUPS },
		{ report_due(core), PENDING_LINE },
		{ queue_lost_left(core), PENDING_LOST },
		{ queue_tries_left(core), PENDING_TRIES },
		{ !list_empty(&core->master.holders_due), PENDING_BOUND },
		{ !list_empty(&c->leaving), PENDING_LEAVING },
		{ attempt_rehome_left(core), PENDING_HOMES },
		{ attempt_unserved_left(core), PENDING_UNSERVED },
		{ local_unserved_left(core), PENDING_UNSERVED_WAITS },
		{ !list_empty(&c->showing), PENDING_SHOWING },
		{ !list_empty(&c->due_waits), PENDING_WAITS },
		{ !list_empty(&c->lists), PENDING_LISTS },
		{ !list_empty(&c->asking), PENDING_ASKING },
		{ !list_empty(&c->weighing), PENDING_WEIGHING },
		{ sync_left(core), PENDING_JUDGING },
		{ snapshot_due(core), PENDING_SNAPSHOTS },
		{ feed_due(core), PENDING_FEEDS },
		{ core->store.staging_use == STAGING_EMPTYING, PENDING_EMPTYING },
		{ finish_active(core), PENDING_FINISHING },
		{ state_transfer_paused(core), PENDING_PAUSED },
		{ state_transfer_busy(core), PENDING_COPYING },
		{ feed_step_due(core), PENDING_BATCH },
		{ follow_step_due(core), PENDING_WATCHED },
	};
	for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
		CHECK(!work[i].left || (core->engine.pending & work[i].kind));
	}
}

void core_check(const struct core *core) {
	struct sums s = { .held = 0 };
	check_pending(core);
	check_replication(core);
	check_staging(core);
	for (size_t b = 0, seen = 0; seen < core->store.live->keys.count; b++) {
		for (struct map_node *n = map_bucket(&core->store.live->keys, b); n;
			n = map_next_in_bucket(n), seen++) {
			check_key(core, CONTAINER_OF(n, struct key, node), &s);
		}
	}
	CHECK(s.held == core->store.live->held_count && s.promises == core->store.promise_count &&
		s.waiters == core->master.waiter_count);
	CHECK(s.contested == core->store.live->contested_count &&
		s.longest == core->master.longest);
	CHECK(memcmp(s.modes, core->store.live->held_modes, sizeof s.modes) == 0);
	/* Whoever changed a record has said so. */
	CHECK(memcmp(s.digests, core->store.live->group_digests, sizeof s.digests) == 0);
	uint32_t ops = 0, catching_up = 0;
	for (const struct list *n = list_first(&core->coordinator.ops); n;
		n = list_after(&core->coordinator.ops, n), ops++) {
		check_op(core, CONTAINER_OF(n, struct op, link));
	}
	for (const struct list *n = list_first(&core->coordinator.catching_up); n;
		n = list_after(&core->coordinator.catching_up, n), catching_up++) {
		check_op(core, CONTAINER_OF(n, struct op, link));
		CHECK(CONTAINER_OF(n, struct op, link)->state == OP_CATCHING_UP);
	}
	CHECK(ops == core->coordinator.op_count &&
		catching_up == core->coordinator.catch_up_count &&
		catching_up <= core->limits.catching_up);
	CHECK(core->copied == (core->snapshots > 0 ||
		core->recovery->transfer.kind != STATE_TRANSFER_NONE));
	CHECK(core->store.live->keys.count <= core->limits.keys);
	CHECK(core->engine.ceiling_on_disk <= core->durable.ceiling);
	CHECK(core->state != CORE_VOTING || core->engine.voted_on_disk ||
		core->engine.boot_on_disk != core->durable.boot);
}
