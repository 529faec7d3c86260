/* refine_votes.c: when a simulated node votes, in which epoch, and what it gives to others and
 * takes from them (sections 4 and 6); and what leaves it. */
#include "refine_impl.h"

/* ---- snapshots ---- */

void refine_asks_for_snapshot(struct refine *r, struct core *core, uint32_t peer,
	const struct message *m) {
	struct t_source *s = transfers_begin(&r->nodes[r->node].takes, m->round,
		project_peer(core, peer));
	s->epoch = m->epoch;
	s->handover = (m->flags & FLAG_HANDOVER) != 0;
	s->lies = refine_lies(r, s->other);
	s->asked = r->now;
	s->voted = project_votes(core, peer);
}

/* A snapshot holds everything that was accepted up to its end. */
struct given {
	struct refine *r;
	const struct t_source *s;
};

static void given_each(void *ctx, struct slice name, const struct m_key *key) {
	const struct given *g = ctx;
	for (uint32_t i = 0; i < key->record_count; i++) {
		const struct m_record *record = &key->records[i];
		const struct t_lock *l = transfers_lock(g->s, record->lock_id);
		if (record->token == 0) {
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
	if (m->kind == MESSAGE_SNAPSHOT_END && m->status == STATUS_OK &&
		!(m->flags & (FLAG_FORGOT | FLAG_NEVER))) {
		const struct given given = { r, s };
		project_each(core, r->now, given_each, (void *)(uintptr_t)&given);
	}
}

/* ---- votes and epochs ---- */

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
		.restored = n->restored, .had_voted = n->had_voted,
		.handover = !n->had_voted, .longest = n->longest,
		.since_start = instant_elapsed_short(r->now, n->started),
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
	n->adopted = r->now;
	n->had_voted = d->voted && d->config.epoch == node->epoch;
	n->remembers = n->votes && node->epoch == n->epoch + 1;
	if (!same_masters(core_config(r->core)) || node->epoch != n->epoch + 1) {
		n->run = node->epoch;
	}
}

/* What is on the disk of this node counts, whether it says so or not. */
static void look_at_decree(struct refine *r, struct refine_node *n) {
	const struct durable *d = sim_node_durable(r->options.sim, r->node);
	if (ballot_compare(d->decree_accepted, n->accepted) != 0) {
		n->accepted = d->decree_accepted;
		if (d->decree_config.epoch) {
			decrees_accepted(&r->decrees, config_hash(&d->decree_config),
				id128_word(d->node_id));
		}
	}
}

/* Another table, or another epoch: nothing that was seen before is compared with what comes. */
void refine_looks_at_votes(struct refine *r) {
	struct refine_node *n = &r->nodes[r->node];
	struct m_node node;
	project_node(r->core, r->now, &node);
	look_at_decree(r, n);
	const bool another = node.epoch != n->epoch || node.hash != n->hash;
	const bool born = n->hash == 0;
	const bool carried = another && n->votes && same_masters(core_config(r->core)) &&
		node.epoch == n->epoch + 1;
	if (another) {
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
	n->reservation = disk->ceiling;
	n->had_voted = disk->voted;
	n->vote_clock = 0;
	n->remembers = n->merges = n->restored = false;
	n->run = disk->config.epoch;
	n->epoch = disk->pledged ? 0 : disk->config.epoch;
	n->hash = disk->config.epoch && !disk->pledged ? config_hash(&disk->config) : 0;
	n->heard_count = 0;
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
