/* refine.c: takes each step of a simulated node apart into what the machine judges: the messages
 * that the node handles, one by one, with what it answers, and what changes in between. The linker
 * puts functions of this file in the place of those by which a core hands a message to its handler,
 * and by which it says something (--wrap). */
#include "refine_impl.h"

#include <stdlib.h>

#include "check.h"
#include "guard.h"

void __real_step_message(struct core *core, uint32_t from, const struct message *m);
void __wrap_step_message(struct core *core, uint32_t from, const struct message *m);
void __real_out_send(struct core *core, uint32_t peer, const struct message *m);
static const message_set decrees = MESSAGE_BIT(MESSAGE_DECREE_PREPARE) |
	MESSAGE_BIT(MESSAGE_DECREE_PROMISE) | MESSAGE_BIT(MESSAGE_DECREE_ACCEPT) |
	MESSAGE_BIT(MESSAGE_DECREE_ACCEPTED);

static void proposes(struct refine *r, struct core *core, uint32_t peer, const struct message *m) {
	struct m_node node;
	project_node(core, r->now, &node);
	const char *rule = proposals_says(&r->nodes[r->node].proposals, &node,
		project_is_master(core, core_self(core)), project_is_master(core, peer), m);
	if (rule) {
		refine_wrong(r, slice_of(NULL, 0), rule);
	}
}

void __wrap_out_send(struct core *core, uint32_t peer, const struct message *m);
struct message *__real_out_answer(struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *to);
struct message *__wrap_out_answer(struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *to);

/* The one that judges; NULL: nobody does. */
static struct refine *judge;

void refine_wrong(struct refine *r, struct slice key, const char *rule) {
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

bool refine_lies(const struct refine *r, uint64_t id) {
	return r->options.liar != TRACE_NONE &&
		id == id128_word(sim_node_durable(r->options.sim, r->options.liar)->node_id);
}

/* ---- what changes between messages ---- */

/* A record of the lock was made in this step. */
static bool made(const struct refine *r, struct id128 lock_id) {
	for (uint32_t i = 0; i < r->made_count; i++) {
		if (id128_equal(r->made[i], lock_id)) {
			return true;
		}
	}
	return r->made_count == MADE_MAX;
}

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
		refine_bound_counts(n, shadow, now);
		/* What has ended by now is gone. */
		const char *rule = machine_idle(&node, shadow, now);
		if (rule) {
			refine_wrong(r, name, rule);
		}
	}
	if (n->merges && (shadow->unfinished || !n->known) && !now->unfinished) {
		for (uint32_t i = 0; i < now->record_count && !now->more; i++) {
			const struct m_record *was = m_record_of(shadow, now->records[i].lock_id);
			const struct t_merged merged = { .record = &now->records[i],
				.key = m_hash(name),
				.fresh = m == NULL && !n->remembers && !n->kept &&
					!made(r, now->records[i].lock_id) &&
					(was == NULL || was->unfinished),
				.kept = n->kept,
				.forgotten = project_tombstones_full(r->core) &&
					!project_ended(r->core, now->records[i].lock_id).released };
			const char *rule = transfers_judge(&n->takes, &merged, r->now);
			if (rule) {
				refine_wrong(r, name, rule);
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
	r->clock_between = r->node_before.clock;
	r->promised_between = false;
	refine_bound_hears(r, from, m);
	if (!(message_fields(m->kind) & F_KEY) && (message_fields(m->kind) & F_ROUND)) {
		if (project_is_master(core, from) && refine_lies(r, project_peer(core, from))) {
			asker_lied(asker_of(r), m);
		} else {
			asker_hears(asker_of(r), &r->node_before, from, m);
		}
	}
	if (m->kind == MESSAGE_SNAPSHOT) {
		struct t_source *given = transfers_begin_anew(&r->nodes[r->node].gives, m->round,
			project_peer(core, from));
		given->epoch = m->epoch;
		given->handover = (m->flags & FLAG_HANDOVER) != 0;
	} else if (m->kind == MESSAGE_DECREE_PROMISE && r->in_epoch &&
		project_is_master(core, from)) {
		proposals_hears(&r->nodes[r->node].proposals, project_peer(core, from), m);
	} else if (m->kind == MESSAGE_COPY_AHEAD && project_is_master(core, from)) {
		refine_announces(&r->nodes[r->node], m);
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
		r->bound = project_bound(core, m->lock_id) &&
			bound_is(&r->nodes[r->node].bound_here, m->lock_id,
				m->kind == MESSAGE_BINDING ? project_peer(core, from) : 0,
				project_boot(core, from));
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
		.clock_between = r->clock_between, .promised_between = r->promised_between,
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
		refine_wrong(r, m->key, rule);
	}
	refine_bound_handled(r, core, m);
	const struct m_record *own = m_record_of(&r->before, m->lock_id);
	if (own && !r->node_before.votes && m_record_of(&r->after, m->lock_id) == NULL) {
		transfers_dropped(&n->takes, m->lock_id);
	}
	const bool copied = m->kind == MESSAGE_SYNC_RECORD && own == NULL;
	if (m_of_extension(m->name) && (copied || (r->answered &&
		r->answer.status == STATUS_OK && (message_fields(m->kind) & F_ATTEMPT) &&
		m->kind != MESSAGE_RELEASE))) {
		const bool same = own && own->name == m->name;
		note->base = same ? note->base : own == NULL ? m->name : own->name;
		note->extension = m->name;
	}
	if (r->made_count < MADE_MAX && m_record_of(&r->after, m->lock_id)) {
		r->made[r->made_count++] = m->lock_id;
	}
	if (step.ended_after.released && !r->ended.released) {
		transfers_released(&n->gives, m->lock_id);
	}
	see(r, m->key, &r->after, m);
	note = notes_lock(&n->notes, m->lock_id);
	const struct m_promise *promise = m_promise_of(&r->after, m->lock_id);
	note->refused = note->refused || (m->kind == MESSAGE_COMMIT && r->answered &&
		r->answer.status != STATUS_OK && promise &&
		promise->from == project_peer(core, r->from));
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

static const message_set snapshots = MESSAGE_BIT(MESSAGE_SNAPSHOT_RECORD) |
	MESSAGE_BIT(MESSAGE_SNAPSHOT_LOST) | MESSAGE_BIT(MESSAGE_SNAPSHOT_RELEASED) |
	MESSAGE_BIT(MESSAGE_SNAPSHOT_END);

static void says(struct refine *r, struct core *core, uint32_t peer, const struct message *m) {
	struct m_node node;
	project_node(core, r->now, &node);
	node.clock = r->node_before.clock;
	const char *rule = asker_says(asker_of(r), &node, peer, m);
	if (rule) {
		r->handling = m;
		r->answered = false;
		refine_wrong(r, m->key, rule);
	}
}

/* A promise to another request, or its turn. */
static bool promises_another(const struct refine *r, uint32_t peer, const struct message *m) {
	return r->handling && r->keyed && (m->kind == MESSAGE_PROMISE_ANSWER ||
		m->kind == MESSAGE_TURN) &&
		!(peer == r->from && m->round == r->handling->round);
}

void __wrap_out_send(struct core *core, uint32_t peer, const struct message *m) {
	struct refine *r = judge;
	if (r && r->core == core) {
		fill(r);
		if (promises_another(r, peer, m)) {
			struct m_node node;
			project_node(core, r->now, &node);
			r->clock_between = node.clock;
			r->promised_between = r->promised_between ||
				m->status == STATUS_OK;
		}
		if (answers(r, peer, m->kind, m->round)) {
			r->answered = true;
			message_copy(&r->answer, m);
		} else if (message_fields(m->kind) & F_KEY) {
			says(r, core, peer, m);
			refine_bound_sends(r, peer, m);
		}
		if (decrees & MESSAGE_BIT(m->kind)) {
			proposes(r, core, peer, m);
		}
		if (snapshots & MESSAGE_BIT(m->kind)) {
			refine_gives(r, core, peer, m);
		} else if (m->kind == MESSAGE_SNAPSHOT) {
			refine_asks_for_snapshot(r, core, peer, m);
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

/* ---- one step ---- */

static void begins(void *ctx, uint32_t node, const struct core_event *event) {
	struct refine *r = ctx;
	struct refine_node *n = &r->nodes[node];
	if (node == r->options.liar) {
		refine_sees_pledge(r, node);
		r->core = NULL;
		return;
	}
	r->node = node;
	r->core = sim_node_core(r->options.sim, node);
	r->now = sim_node_clock(r->options.sim, node);
	r->handling = NULL;
	r->made_count = 0;
	if (n->incarnation != sim_node_incarnation(r->options.sim, node)) {
		n->incarnation = sim_node_incarnation(r->options.sim, node);
		n->votes = n->known = false;
		notes_tenure(&n->notes);
		free(n->asker);
		n->asker = NULL;
		refine_life_begins(r, n);
	}
	project_node(r->core, r->now, &r->node_before);
	if (event->kind == CORE_FRAME) {
		refine_hears_epoch(r, n, event->frame);
	} else if (event->kind == CORE_START) {
		n->restored = event->restored;
	}
	refine_bound_begins(r, n, event);
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
	refine_looks_at_votes(r);
	if (n->votes && ++n->steps >= STEPS_A_SWEEP) {
		n->steps = 0;
		project_each(r->core, r->now, see_each, r);
		if (!n->known) {
			refine_nothing_missing(r);
		}
		n->known = true;
	}
	refine_bound_ends(r, n);
	r->core = NULL;
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
	rule = rule ? rule : refine_bound_replied(&r->nodes[node], &seen, reply);
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
	sim_follow(options->sim, (struct sim_follower){ begins, ended, refine_sent,
		replied, r });
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
