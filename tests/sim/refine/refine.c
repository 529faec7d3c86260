/* refine.c: takes each step of a simulated node apart into what the machine judges: the messages that
 * the node handles, one by one, with what it answers, and what changes in between. The linker puts
 * functions of this file in the place of those by which a core hands a message to its handler, and
 * by which it says something (--wrap). */
#include "refine.h"

#include <stdlib.h>

#include "asker.h"
#include "check.h"
#include "decrees.h"
#include "guard.h"
#include "notes.h"
#include "project.h"
#include "transfers.h"

void __real_step_message(struct core *core, uint32_t from, const struct message *m);
void __wrap_step_message(struct core *core, uint32_t from, const struct message *m);
void __real_out_send(struct core *core, uint32_t peer, const struct message *m);
void __wrap_out_send(struct core *core, uint32_t peer, const struct message *m);
struct message *__real_out_answer(struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *to);
struct message *__wrap_out_answer(struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *to);

/* All keys of a node are looked at after so many of its steps. */
#define STEPS_A_SWEEP 16

struct refine_node {
	struct notes notes;
	/* What it coordinates. */
	struct asker *asker;
	/* The snapshots that it takes, and those that it gives. */
	struct transfers takes, gives;
	uint64_t incarnation, epoch, hash;
	/* The first of its epochs that have the same masters as the present one. */
	uint64_t run;
	bool votes;
	/* When it started, and adopted its epoch; the reservation that it started with; and the
	 * clock with which it voted last. */
	struct instant started, adopted;
	uint64_t reservation, vote_clock;
	/* The ballot under which it has accepted the next configuration, as seen last. */
	struct ballot accepted;
	/* It had voted in its epoch when it started or adopted it; it voted in the one before, then;
	 * and it starts with a side file. */
	bool had_voted, remembers, restored;
	/* The largest max_lease that it ever voted under. */
	span_ns longest;
	/* It has merged, and no key of that has been judged yet. */
	bool merges;
	/* When each other node was first heard in its epoch. */
	struct { uint64_t id, epoch; struct instant at; } heard[2 * SIM_NODES_MAX];
	uint32_t heard_count;
	/* All keys have been seen since this tenure began. */
	bool known;
	uint32_t steps;
};

struct refine {
	struct refine_options options;
	struct refine_node nodes[SIM_NODES_MAX];
	/* The step under way, and the node whose step it is. */
	uint32_t node;
	struct core *core;
	struct instant now;
	/* The message that is being handled: what was before; NULL: none is. */
	const struct message *handling;
	uint32_t from;
	bool keyed, in_epoch, bound;
	struct m_node node_before;
	struct m_key before, after;
	struct m_ended ended;
	/* What was answered to it, and an answer that is yet to be filled in. */
	struct message answer;
	bool answered;
	const struct message *unfilled;
	uint64_t judged;
	struct decrees decrees;
};

/* The one that judges; NULL: nobody does. */
static struct refine *judge;

static void wrong(struct refine *r, struct slice key, const char *rule) {
	static char what[160];
	const struct message *m = r->handling;
	what[0] = 0;
	if (m) {
		snprintf(what, sizeof what, "%s of lock_id number %u%s%s", message_name(m->kind),
			message_fields(m->kind) & F_LOCK_ID ? sim_name_lock_number(m->lock_id) : 0,
			r->answered ? ", answered " : "",
			r->answered ? status_name(r->answer.status) : "");
	}
	r->options.wrong(r->options.ctx, r->node, key, rule, what);
}

/* ---- what changes between messages ---- */

/* The key is seen anew. `m`: by this message alone it has changed, which is judged already. */
static void see(struct refine *r, struct slice name, const struct m_key *now,
	const struct message *m) {
	struct refine_node *n = &r->nodes[r->node];
	struct m_key *shadow = notes_key(&n->notes, m_hash(name));
	if (shadow->record_count + shadow->promise_count + now->record_count +
		now->promise_count == 0) {
		return;
	}
	if (!now->more && !shadow->more) {
		notes_changed(&n->notes, shadow, now, r->now, m);
	}
	if (m == NULL && n->votes && n->known) {
		struct m_node node;
		project_node(r->core, r->now, &node);
		/* What has ended by now is gone. */
		const char *rule = machine_idle(&node, shadow, now);
		if (rule) {
			wrong(r, name, rule);
		}
	}
	if (n->merges && (shadow->unfinished || !n->known) && !now->unfinished) {
		for (uint32_t i = 0; i < now->record_count && !now->more; i++) {
			const char *rule = transfers_judge(&n->takes, &now->records[i],
				r->now);
			if (rule) {
				wrong(r, name, rule);
			}
		}
	}
	notes_copy(shadow, now);
}

static void see_each(void *ctx, struct slice name, const struct m_key *key) {
	see(ctx, name, key, NULL);
}

/* ---- one message ---- */

/* What these say is not about a key that the receiver votes on. */
static const message_set not_judged = MESSAGE_BIT(MESSAGE_WAITERS) |
	MESSAGE_BIT(MESSAGE_WAITERS_ANSWER) | MESSAGE_BIT(MESSAGE_SNAPSHOT_RECORD) |
	MESSAGE_BIT(MESSAGE_SNAPSHOT_RELEASED) | MESSAGE_BIT(MESSAGE_SNAPSHOT_LOST) |
	MESSAGE_BIT(MESSAGE_FEED_RECORD) | MESSAGE_BIT(MESSAGE_FEED_GONE) |
	MESSAGE_BIT(MESSAGE_FEED_WATCH_EVENT);

static struct asker *asker_of(struct refine *r) {
	struct refine_node *n = &r->nodes[r->node];
	if (n->asker == NULL) {
		n->asker = calloc(1, sizeof *n->asker);
		CHECK(n->asker != NULL);
	}
	return n->asker;
}

static void begin_message(struct refine *r, struct core *core, uint32_t from,
	const struct message *m) {
	r->handling = m;
	r->from = from;
	r->answered = false;
	r->unfilled = NULL;
	r->keyed = (message_fields(m->kind) & F_KEY) &&
		(message_fields(m->kind) & F_LOCK_ID) && !(not_judged & MESSAGE_BIT(m->kind));
	r->in_epoch = project_in_epoch(core, from);
	project_node(core, r->now, &r->node_before);
	if (!(message_fields(m->kind) & F_KEY) && (message_fields(m->kind) & F_ROUND)) {
		asker_hears(asker_of(r), &r->node_before, from, m);
	}
	if (m->kind == MESSAGE_SNAPSHOT) {
		transfers_begin(&r->nodes[r->node].gives, m->round, project_peer(core, from));
	}
	struct t_source *source = message_fields(m->kind) & F_ROUND
		? transfers_find(&r->nodes[r->node].takes, m->round, project_peer(core, from))
		: NULL;
	if (source) {
		transfers_message(source, m, r->now);
	}
	if (m->kind == MESSAGE_DISPLACED) {
		asker_displaced(asker_of(r), from, m);
	}
	if (r->keyed) {
		const struct message *handling = r->handling;
		project_key(core, m->key, r->now, &r->before);
		r->handling = NULL;
		see(r, m->key, &r->before, NULL);
		r->handling = handling;
		r->ended = project_ended(core, m->lock_id);
		r->bound = project_bound(core, m->lock_id);
	}
}

static void fill(struct refine *r) {
	if (r->unfilled) {
		message_copy(&r->answer, r->unfilled);
		r->unfilled = NULL;
	}
}

static void judge_message(struct refine *r, struct core *core) {
	const struct message *m = r->handling;
	struct refine_node *n = &r->nodes[r->node];
	struct note *note = notes_lock(&n->notes, m->lock_id);
	struct m_node node;
	project_node(core, r->now, &node);
	project_key(core, m->key, r->now, &r->after);
	const struct m_step step = { .node = &r->node_before, .clock_after = node.clock,
		.before = &r->before, .after = &r->after, .ended = r->ended,
		.ended_after = project_ended(core, m->lock_id), .lost = note->lost,
		.base = note->extension == m->name ? note->base : 0, .bound = r->bound,
		.lacked_since = instant_later(note->had, r->node_before.vote_began), .m = m,
		.from = project_peer(core, r->from),
		.from_master = project_is_master(core, r->from), .in_epoch = r->in_epoch,
		.answer = r->answered ? &r->answer : NULL };
	const char *rule = node.epoch == r->node_before.epoch ? machine_handled(&step) : NULL;
	r->judged++;
	if (rule) {
		wrong(r, m->key, rule);
	}
	if (r->answered && r->answer.status == STATUS_OK && m_of_extension(m->name) &&
		(message_fields(m->kind) & F_ATTEMPT) && m->kind != MESSAGE_RELEASE) {
		const struct m_record *own = m_record_of(&r->before, m->lock_id);
		const bool same = own && own->name == m->name;
		note->base = same ? note->base : own == NULL ? m->name : own->name;
		note->extension = m->name;
	}
	note->refused = note->refused ||
		(m->kind == MESSAGE_COMMIT && r->answered && r->answer.status != STATUS_OK);
	see(r, m->key, &r->after, m);
}

static void end_message(struct refine *r, struct core *core) {
	if (r->handling == NULL) {
		return;
	}
	fill(r);
	if (r->keyed) {
		judge_message(r, core);
	}
	r->handling = NULL;
}

static void local_message(void *ctx, struct core *core, const struct message *m) {
	struct refine *r = ctx;
	if (r->core == core) {
		end_message(r, core);
		if (m) {
			begin_message(r, core, core_self(core), m);
		}
	}
}

void __wrap_step_message(struct core *core, uint32_t from, const struct message *m) {
	struct refine *r = judge;
	if (r == NULL || r->core != core) {
		__real_step_message(core, from, m);
		return;
	}
	begin_message(r, core, from, m);
	__real_step_message(core, from, m);
	end_message(r, core);
}

/* The kind that answers each question to a master. */
static enum message_kind answer_of(enum message_kind kind) {
	return kind == MESSAGE_EXTEND_PERMITS ? MESSAGE_EXTEND_ANSWER
		: kind == MESSAGE_HAND_OVER ? MESSAGE_RELEASE_ANSWER
		: (enum message_kind)(kind + 1);
}

static bool answers(const struct refine *r, uint32_t peer, enum message_kind kind,
	uint64_t round) {
	return r->handling && !r->answered && r->keyed && peer == r->from &&
		round == r->handling->round && kind == answer_of(r->handling->kind);
}

static void says(struct refine *r, struct core *core, uint32_t peer, const struct message *m) {
	struct m_node node;
	project_node(core, r->now, &node);
	node.clock = r->node_before.clock;
	const char *rule = asker_says(asker_of(r), &node, peer, m);
	if (rule) {
		r->handling = m;
		r->answered = false;
		wrong(r, m->key, rule);
	}
}

/* ---- snapshots ---- */

static const message_set snapshots = MESSAGE_BIT(MESSAGE_SNAPSHOT_RECORD) |
	MESSAGE_BIT(MESSAGE_SNAPSHOT_LOST) | MESSAGE_BIT(MESSAGE_SNAPSHOT_RELEASED) |
	MESSAGE_BIT(MESSAGE_SNAPSHOT_END);

static void asks_for_snapshot(struct refine *r, struct core *core, uint32_t peer,
	const struct message *m) {
	struct t_source *s = transfers_begin(&r->nodes[r->node].takes, m->round,
		project_peer(core, peer));
	s->epoch = m->epoch;
	s->handover = (m->flags & FLAG_HANDOVER) != 0;
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
		if (l == NULL || !l->copy.has || l->copy.token != record->token ||
			(l->copy.noted != record->noted && !m_is_numbers(&record->terms)) ||
			ballot_compare(l->copy.wrote, record->wrote) != 0 ||
			l->copy.end.boot < record->end.boot - SPAN_US) {
			wrong(g->r, name, "a snapshot holds all that is accepted up to its end");
		}
	}
}

static void gives(struct refine *r, struct core *core, uint32_t peer, const struct message *m) {
	struct transfers *t = &r->nodes[r->node].gives;
	const uint64_t other = project_peer(core, peer);
	struct t_source *s = transfers_find(t, m->round, other);
	s = s ? s : transfers_begin(t, m->round, other);
	transfers_message(s, m, r->now);
	if (m->kind == MESSAGE_SNAPSHOT_END && m->status == STATUS_OK && !(m->flags & (FLAG_FORGOT | FLAG_NEVER))) {
		const struct given given = { r, s };
		project_each(core, r->now, given_each, (void *)(uintptr_t)&given);
	}
}

void __wrap_out_send(struct core *core, uint32_t peer, const struct message *m) {
	struct refine *r = judge;
	if (r && r->core == core) {
		fill(r);
		if (answers(r, peer, m->kind, m->round)) {
			r->answered = true;
			message_copy(&r->answer, m);
		} else if (message_fields(m->kind) & F_KEY) {
			says(r, core, peer, m);
		}
		if (snapshots & MESSAGE_BIT(m->kind)) {
			gives(r, core, peer, m);
		} else if (m->kind == MESSAGE_SNAPSHOT) {
			asks_for_snapshot(r, core, peer, m);
		}
	}
	__real_out_send(core, peer, m);
}

struct message *__wrap_out_answer(struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *to) {
	struct refine *r = judge;
	if (r && r->core == core) {
		fill(r);
	}
	struct message *answer = __real_out_answer(core, peer, kind, to);
	if (r && r->core == core && answers(r, peer, kind, to->round)) {
		r->answered = true;
		r->unfilled = answer;
	}
	return answer;
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

static void hear_epoch(struct refine *r, struct refine_node *n, const struct frame *f) {
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
		wrong(r, slice_of(NULL, 0), rule);
	}
	n->merges = !why.restored;
	const uint32_t own = n->remembers || !project_durable(r->core)->voted_before;
	const uint32_t rejoin = why.masters - why.quorum + 1,
		handover = why.previous_masters - why.previous_quorum + 1;
	transfers_vote(&n->takes, n->run, why.handover && handover - own < rejoin
		? handover - own : rejoin);
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
static void look_at_tenure(struct refine *r) {
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
			wrong(r, slice_of(NULL, 0), rule);
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
		}
		n->votes = node.votes;
		n->epoch = node.epoch;
		n->hash = node.hash;
		n->steps = STEPS_A_SWEEP;
	}
}

/* ---- one step ---- */

static void begin_life(struct refine *r, struct refine_node *n) {
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

static void begins(void *ctx, uint32_t node, const struct core_event *event) {
	struct refine *r = ctx;
	struct refine_node *n = &r->nodes[node];
	if (node == r->options.liar) {
		r->core = NULL;
		return;
	}
	r->node = node;
	r->core = sim_node_core(r->options.sim, node);
	r->now = sim_node_clock(r->options.sim, node);
	r->handling = NULL;
	if (n->incarnation != sim_node_incarnation(r->options.sim, node)) {
		n->incarnation = sim_node_incarnation(r->options.sim, node);
		n->votes = n->known = false;
		notes_tenure(&n->notes);
		free(n->asker);
		n->asker = NULL;
		begin_life(r, n);
	}
	project_node(r->core, r->now, &r->node_before);
	if (event->kind == CORE_FRAME) {
		hear_epoch(r, n, event->frame);
	} else if (event->kind == CORE_START) {
		n->restored = event->restored;
	}
	if (event->kind == CORE_REQUEST) {
		asker_asked(asker_of(r), event->request, r->now);
	}
}

static void ended(void *ctx, uint32_t node) {
	struct refine *r = ctx;
	if (r->core == NULL) {
		return;
	}
	struct refine_node *n = &r->nodes[node];
	r->handling = NULL;
	look_at_tenure(r);
	if (n->votes && ++n->steps >= STEPS_A_SWEEP) {
		n->steps = 0;
		project_each(r->core, r->now, see_each, r);
		n->known = true;
	}
	r->core = NULL;
}

static void sent(void *ctx, uint32_t node, uint32_t to, const struct frame *frame) {
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

static void replied(void *ctx, uint32_t node, const struct core_reply *reply) {
	struct refine *r = ctx;
	if (node == r->options.liar || r->nodes[node].asker == NULL) {
		return;
	}
	struct m_node seen;
	project_node(sim_node_core(r->options.sim, node), sim_node_clock(r->options.sim, node),
		&seen);
	const char *rule = asker_answers(r->nodes[node].asker, &seen, reply);
	if (rule) {
		r->node = node;
		r->options.wrong(r->options.ctx, node, reply->entry.key, rule, "");
	}
}

struct refine *refine_new(const struct refine_options *options) {
	CHECK(judge == NULL);
	struct refine *r = calloc(1, sizeof *r);
	CHECK(r != NULL);
	r->options = *options;
	judge = r;
	guard_listen(local_message, r);
	sim_follow(options->sim, (struct sim_follower){ begins, ended, sent, replied, r });
	return r;
}

void refine_free(struct refine *r) {
	if (r == NULL) {
		return;
	}
	judge = NULL;
	guard_listen(NULL, NULL);
	for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
		notes_done(&r->nodes[i].notes);
		free(r->nodes[i].asker);
		transfers_done(&r->nodes[i].takes);
		transfers_done(&r->nodes[i].gives);
	}
	free(r);
}

uint64_t refine_judged(const struct refine *r) {
	return r->judged;
}
