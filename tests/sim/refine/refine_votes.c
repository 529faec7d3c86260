/* refine_votes.c: when a simulated node votes, in which epoch, and what it gives to others and
 * takes from them (sections 4 and 6); and what leaves it. */
#include "refine_impl.h"

/* ---- snapshots ---- */

/* Epochs with the same masters are one epoch as far as voting and memory go. */
static bool same_masters(const struct config *config) {
	uint32_t same = 0;
	for (uint32_t i = 0; i < config_masters(config); i++) {
		for (uint32_t k = 0; k < config->previous_master_count; k++) {
			same += id128_equal(config->nodes[i].id, config->previous_masters[k].id);
		}
	}
	return same == config_masters(config) && same == config->previous_master_count;
}

/* Whether a node that has adopted its epoch voted in the one before then, and has kept its memory.
 * A run of epochs with the same masters is one epoch. */
static bool remembers(const struct refine *r, const struct refine_node *n,
	const struct m_node *node) {
	if (node->epoch == n->epoch && node->hash == n->hash) {
		return n->remembers;
	}
	return node->epoch == n->epoch + 1 &&
		(n->votes || (n->remembers && same_masters(core_config(r->core))));
}

void refine_asks_for_snapshot(struct refine *r, struct core *core, uint32_t peer,
	const struct message *m) {
	struct refine_node *n = &r->nodes[r->node];
	struct t_source *s = transfers_begin(&n->takes, m->round, project_peer(core, peer));
	if ((m->flags & FLAG_HANDOVER) && n->epoch && m->epoch > n->epoch &&
		n->announced_count == 0) {
		refine_wrong(r, slice_of(NULL, 0),
			"a node copies ahead when a master of its epoch asks for it");
	}
	s->epoch = m->epoch;
	s->handover = (m->flags & FLAG_HANDOVER) != 0;
	s->lies = refine_lies(r, s->other);
	s->asked = r->now;
	s->voted = project_votes(core, peer);
}

/* A snapshot holds everything that was accepted up to its end, and nothing that has ended. */
struct given {
	struct refine *r;
	struct t_source *s;
	/* Some key has more records than are shown. */
	bool more;
};

static void given_each(void *ctx, struct slice name, const struct m_key *key) {
	struct given *g = ctx;
	g->more = g->more || key->more;
	for (uint32_t i = 0; i < key->record_count; i++) {
		const struct m_record *record = &key->records[i];
		struct t_lock *l = transfers_lock(g->s, record->lock_id);
		if (l) {
			l->there = true;
		}
		if (record->token == 0 || id128_zero(record->lock_id)) {
			/* Only a node that lies has made such a record. */
			continue;
		}
		if (l && !l->copy.has && m_delayed(record, g->r->now)) {
			continue;
		}
		if (l == NULL || !l->copy.has || l->copy.token != record->token ||
			(l->copy.noted != record->noted && !m_is_numbers(&record->terms)) ||
			ballot_compare(l->copy.wrote, record->wrote) != 0 ||
			l->copy.end.boot < record->end.boot - SPAN_US) {
			refine_wrong(g->r, name,
				"a snapshot holds all that is accepted up to its end");
		}
	}
}

/* Section 6, Who is told what: a snapshot goes to masters of the epoch, or to those of one that was
 * announced or accepted here for the next epoch. */
static bool may_have(const struct refine *r, struct core *core, uint32_t peer) {
	const struct refine_node *n = &r->nodes[r->node];
	const struct durable *d = project_durable(core);
	const uint64_t other = project_peer(core, peer);
	bool may = project_is_master(core, peer);
	for (uint32_t i = 0; i < n->announced_count && i < ANNOUNCED_MAX; i++) {
		may = may || n->announced[i] == other;
	}
	for (uint32_t i = 0; d->decree_config.epoch && i < config_masters(&d->decree_config); i++) {
		may = may || id128_word(d->decree_config.nodes[i].id) == other;
	}
	return may;
}

static const char *record_right(struct refine *r, struct core *core, uint32_t peer,
	struct t_source *s, const struct message *m) {
	s->allowed = s->allowed || may_have(r, core, peer);
	if (!s->allowed) {
		return "a snapshot goes to masters of this epoch or of the next one alone";
	}
	if (m->kind != MESSAGE_SNAPSHOT_RECORD) {
		return NULL;
	}
	static struct m_key key;
	project_key(core, m->key, r->now, &key);
	return m_promise_of(&key, m->lock_id) ? "a snapshot has no promises" : NULL;
}

static const char *end_right(struct refine *r, struct core *core, struct t_source *s,
	const struct message *m) {
	const struct refine_node *n = &r->nodes[r->node];
	struct m_node node;
	project_node(core, r->now, &node);
	const struct t_end end = { .handover = s->handover, .asked_epoch = s->epoch,
		.remembers = remembers(r, n, &node), .reservation = n->reservation,
		.longest = n->longest };
	const char *rule = transfers_end_right(&end, &node, m);
	if (rule || (m->flags & (FLAG_FORGOT | FLAG_NEVER))) {
		return rule;
	}
	struct given given = { r, s, false };
	project_each(core, r->now, given_each, &given);
	rule = transfers_all_released(s);
	return rule || given.more ? rule : transfers_all_lost(s, r->now);
}

void refine_gives(struct refine *r, struct core *core, uint32_t peer, const struct message *m) {
	struct transfers *t = &r->nodes[r->node].gives;
	const uint64_t other = project_peer(core, peer);
	if (refine_lies(r, other)) {
		/* It may have asked anything. */
		return;
	}
	struct t_source *s = transfers_find(t, m->round, other);
	s = s ? s : transfers_begin_anew(t, m->round, other);
	transfers_message(s, m, r->now);
	const char *rule = m->kind != MESSAGE_SNAPSHOT_END ? record_right(r, core, peer, s, m)
		: m->status == STATUS_OK ? end_right(r, core, s, m) : NULL;
	if (rule) {
		refine_wrong(r, message_fields(m->kind) & F_KEY ? m->key : slice_of(NULL, 0), rule);
	}
}

/* ---- votes and epochs ---- */

static struct instant heard_at(const struct refine_node *n, uint64_t id, uint64_t epoch) {
	for (uint32_t i = 0; i < n->heard_count; i++) {
		if (n->heard[i].id == id && n->heard[i].epoch >= epoch) {
			return n->heard[i].at;
		}
	}
	return INSTANT_FOREVER;
}

void refine_hears_epoch(struct refine *r, struct refine_node *n, const struct frame *f) {
	const uint64_t id = id128_word(f->sender);
	uint32_t i = 0;
	while (i < n->heard_count && n->heard[i].id != id) {
		i++;
	}
	if (i == n->heard_count && i < sizeof n->heard / sizeof *n->heard) {
		n->heard_count++;
		n->heard[i].id = id;
		n->heard[i].epoch = 0;
	}
	if (i < n->heard_count && f->epoch > n->heard[i].epoch) {
		n->heard[i].epoch = f->epoch;
		n->heard[i].at = r->now;
	}
}

/* How many masters of the previous epoch have handed over: they remember, never voted, or have
 * forgotten for long enough. */
static uint32_t handed_over(const struct refine *r, struct refine_node *n,
	const struct config *config) {
	const struct durable *d = project_durable(r->core);
	uint32_t count = 0;
	for (uint32_t i = 0; i < config->previous_master_count; i++) {
		const uint64_t id = id128_word(config->previous_masters[i].id);
		bool counts = false;
		if (id == id128_word(d->node_id)) {
			counts = n->remembers || !d->voted_before || instant_expired(r->now,
				instant_add(n->adopted, span_grow(n->longest,
				2 * config->drift_ppm)));
		}
		for (uint32_t k = 0; k < T_SOURCES; k++) {
			const struct t_source *s = &n->takes.sources[k];
			if (s->round && s->done && s->other == id && s->epoch >= n->run) {
				counts = counts || !(s->flags & FLAG_FORGOT) ||
					instant_expired(r->now, instant_add(
					heard_at(n, id, n->run),
					span_grow(s->lease, 2 * config->drift_ppm)));
			}
		}
		count += counts;
	}
	return count;
}

static void votes_begin(struct refine *r, struct refine_node *n, const struct m_node *node) {
	const struct config *config = core_config(r->core);
	const struct durable *disk = sim_node_durable(r->options.sim, r->node);
	const struct instant from = instant_add(n->started,
		span_grow(node->request_timeout, node->drift_ppm));
	const struct m_return why = { .voted_on_disk = disk->voted &&
			disk->config.epoch == node->epoch,
		.clock = node->clock, .reservation = n->restored ? 0 : n->reservation,
		.forced_clock = n->forced_clock,
		.restored = n->restored, .had_voted = n->had_voted,
		.handover = !n->had_voted, .longest = n->longest,
		.since_start = instant_elapsed_short(r->now, n->forced_clock ? n->adopted
			: n->started),
		.drift_ppm = node->drift_ppm, .masters = node->masters, .quorum = node->quorum,
		.previous_masters = config->previous_master_count,
		.previous_quorum = config->previous_master_count / 2 + 1,
		.rejoined = transfers_rejoined(&n->takes, config, n->run, from),
		.handed_over = handed_over(r, n, config) };
	const char *rule = machine_may_vote(&why);
	if (rule) {
		refine_wrong(r, slice_of(NULL, 0), rule);
	}
	n->merges = !why.restored;
	const uint32_t own = n->remembers || !project_durable(r->core)->voted_before;
	const uint32_t rejoin = why.masters - why.quorum + 1,
		handover = why.previous_masters - why.previous_quorum + 1;
	transfers_vote(&n->takes, n->run, why.handover && handover - own < rejoin
		? handover - own : rejoin, why.clock);
}

static void epoch_begins(struct refine *r, struct refine_node *n, const struct m_node *node) {
	const struct durable *d = sim_node_durable(r->options.sim, r->node);
	n->forced_clock = epochs_forced(n->epoch, node->epoch)
		? epochs_forced_clock(node->epoch, r->node_before.clock) : 0;
	n->announced_count = 0;
	refine_bound_adopts(r, n, node);
	n->adopted = r->now;
	n->had_voted = d->voted && d->config.epoch == node->epoch;
	n->remembers = remembers(r, n, node);
	if (!same_masters(core_config(r->core)) || node->epoch != n->epoch + 1) {
		n->run = node->epoch;
	}
}

static struct e_disk epoch_disk_of(const struct durable *d) {
	return (struct e_disk){ id128_word(d->node_id), d->config.epoch,
		d->config.epoch ? config_hash(&d->config) : 0, d->voted, d->pledged };
}

/* What is on the disk of this node counts, whether it says so or not. */
void refine_looks_at_disk(struct refine *r, struct refine_node *n) {
	const struct durable *d = sim_node_durable(r->options.sim, r->node);
	const struct p_disk decree = { d->config.epoch, d->decree_promised, d->decree_accepted,
		d->decree_config.epoch ? config_hash(&d->decree_config) : 0 };
	const struct e_disk epoch = epoch_disk_of(d);
	if (decree.accepted_hash) {
		decrees_accepted(&r->decrees, decree.accepted_hash, epoch.id);
	}
	if (epoch.epoch == 1) {
		decrees_accepted(&r->decrees, epoch.hash, epoch.id);
	}
	const char *rule = n->epoch_disk.id != epoch.id ? NULL
		: proposals_synced(&n->decree_disk, &decree);
	if (rule == NULL && epochs_changed(&n->epoch_disk, &epoch)) {
		rule = epochs_synced(&n->epoch_disk, &epoch, same_masters(&d->config),
			decrees_all_pledged(&r->decrees, &d->config, epoch.hash));
	}
	n->decree_disk = decree;
	n->epoch_disk = epoch;
	if (rule) {
		refine_wrong(r, slice_of(NULL, 0), rule);
	}
}

void refine_nothing_missing(struct refine *r) {
	struct refine_node *n = &r->nodes[r->node];
	/* Where tombstones are pushed out, nobody knows any more what was released. */
	const bool judge = n->merges && !project_tombstones_full(r->core);
	for (uint32_t i = 0; judge && i < T_SOURCES; i++) {
		const struct t_source *s = &n->takes.sources[i];
		for (size_t k = 0; s->counts && k < s->count; k++) {
			const struct t_lock *l = &s->locks[k];
			const struct m_key *key = l->key ? notes_key(&n->notes, l->key) : NULL;
			const struct m_ended ended = project_ended(r->core, l->lock_id);
			if (key == NULL || key->more || ended.released || ended.binding ||
				ended.name) {
				continue;
			}
			const char *rule = transfers_kept(&n->takes, l,
				m_record_of(key, l->lock_id) != NULL, r->now);
			if (rule) {
				refine_wrong(r, slice_of(NULL, 0), rule);
			}
		}
	}
}

void refine_sees_pledge(struct refine *r, uint32_t node) {
	const struct e_disk epoch = epoch_disk_of(sim_node_durable(r->options.sim, node));
	if (epoch.epoch == 1) {
		decrees_accepted(&r->decrees, epoch.hash, epoch.id);
	}
}

void refine_announces(struct refine_node *n, const struct message *m) {
	static struct config config;
	if (config_decode(m->blob, &config) != 0) {
		return;
	}
	for (uint32_t i = 0; i < config_masters(&config); i++) {
		n->announced[n->announced_count++ % ANNOUNCED_MAX] =
			id128_word(config.nodes[i].id);
	}
}

static void promises_each(void *ctx, struct slice name, const struct m_key *key) {
	struct refine *r = ctx;
	const struct m_key *shadow = notes_key(&r->nodes[r->node].notes, m_hash(name));
	for (uint32_t i = 0; i < key->promise_count; i++) {
		const struct m_promise *p = &key->promises[i];
		const struct m_promise *was = m_promise_of(shadow, p->lock_id);
		if (was && was->attempt == p->attempt && was->from == p->from) {
			refine_wrong(r, name, "promises are dropped when an epoch is adopted");
		}
	}
}

/* Another table, or another epoch: nothing that was seen before is compared with what comes. */
void refine_looks_at_votes(struct refine *r) {
	struct refine_node *n = &r->nodes[r->node];
	struct m_node node;
	project_node(r->core, r->now, &node);
	refine_looks_at_disk(r, n);
	const bool another = node.epoch != n->epoch || node.hash != n->hash;
	const bool born = n->hash == 0;
	const bool carried = another && n->votes && same_masters(core_config(r->core)) &&
		node.epoch == n->epoch + 1;
	if (another) {
		project_each(r->core, r->now, promises_each, r);
		epoch_begins(r, n, &node);
		const char *rule = r->options.liar != TRACE_NONE || node.hash == 0 ? NULL
			: decrees_adopted(&r->decrees, core_config(r->core), node.hash,
				node.epoch >> 32 != 0);
		if (rule) {
			refine_wrong(r, slice_of(NULL, 0), rule);
		}
	}
	if (node.votes && (!n->votes || another) && !born && !carried) {
		votes_begin(r, n, &node);
	}
	if (node.votes) {
		n->vote_clock = node.clock;
		n->longest = node.max_lease > n->longest ? node.max_lease : n->longest;
	}
	n->kept = n->kept || (n->votes && !node.votes);
	if (node.votes != n->votes || node.epoch != n->epoch || node.hash != n->hash) {
		if (!(node.votes && n->votes)) {
			notes_tenure(&n->notes);
			n->known = false;
			n->merges = n->merges && node.votes;
		}
		n->votes = node.votes;
		n->epoch = node.epoch;
		n->hash = node.hash;
		n->steps = STEPS_A_SWEEP;
	}
}

void refine_life_begins(struct refine *r, struct refine_node *n) {
	const struct durable *disk = sim_node_durable(r->options.sim, r->node);
	transfers_done(&n->takes);
	transfers_done(&n->gives);
	n->started = n->adopted = r->now;
	/* Another disk is another node, which has not voted yet. */
	n->longest = n->epoch_disk.id == id128_word(disk->node_id) ? n->longest : 0;
	n->reservation = disk->ceiling;
	n->had_voted = disk->voted;
	n->vote_clock = 0;
	n->bound.count = n->bound_here.count = 0;
	n->bound_here.more = false;
	n->remembers = n->kept = n->merges = n->restored = false;
	n->run = disk->config.epoch;
	n->epoch = disk->pledged ? 0 : disk->config.epoch;
	n->hash = disk->config.epoch && !disk->pledged ? config_hash(&disk->config) : 0;
	n->heard_count = 0;
	n->forced_clock = 0;
	n->announced_count = 0;
	n->proposals = (struct proposals){ .next = 0 };
	refine_looks_at_disk(r, n);
}

void refine_sent(void *ctx, uint32_t node, uint32_t to, const struct frame *frame) {
	struct refine *r = ctx;
	(void)to;
	if (node == r->options.liar) {
		return;
	}
	const struct durable *d = sim_node_durable(r->options.sim, node);
	const struct m_disk disk = { .ceiling = d->ceiling, .boot = d->boot,
		.epoch = d->config.epoch, .voted = d->voted, .pledged = d->pledged,
		.promised = d->decree_promised, .accepted = d->decree_accepted,
		.accepted_hash = d->decree_config.epoch ? config_hash(&d->decree_config) : 0 };
	const char *rule = machine_sent(&disk, r->nodes[node].vote_clock, frame);
	if (rule) {
		r->node = node;
		r->options.wrong(r->options.ctx, node, slice_of(NULL, 0), rule, "");
	}
}
