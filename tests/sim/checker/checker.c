/* checker.c: observes the simulation, judges what leaves the nodes, and reports violations. */
#include "checker_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"

/* For CHECKs that fail in the core. */
static struct checker *reporting;

#define CHECK_OF_CORE "an invariant of the core"

bool checker_bears(struct checker *c) {
	c->twice += c->options.ruined != NULL;
	return c->options.ruined != NULL;
}

bool checker_twice(const struct checker *c) {
	return c->twice > 0;
}

void checker_violation(struct checker *c, const char *check, uint32_t key, const char *format,
	...) {
	va_list args;
	fflush(stdout);
	if (c->options.ruined && strcmp(check, c->options.alone) != 0) {
		c->options.ruined(strcmp(check, CHECK_OF_CORE) == 0);
	}
	fprintf(stderr, "\nVIOLATION of %s at %.6f s, seed %" PRIu64, check,
		(double)sim_now(c->sim) / 1e9, c->options.seed);
	if (key != TRACE_NONE) {
		fprintf(stderr, ", key k%04" PRIu32, key);
	}
	fprintf(stderr, "\n  ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n  setup: %s\n  replay: %s\n  last events:\n", c->options.setup,
		c->options.replay);
	sim_trace_print(sim_trace(c->sim), stderr, key, 160);
	fprintf(stderr, "VIOLATION of %s, seed %" PRIu64 "\n", check, c->options.seed);
	if (c->options.history) {
		fflush(c->options.history);
	}
	exit(1);
}

static void check_hook(const char *file, int line, const char *expr) {
	check_hook_set(NULL);
	checker_violation(reporting, CHECK_OF_CORE, TRACE_NONE, "%s:%d: CHECK(%s)",
		file, line, expr);
}

/* ---- what leaves the nodes ---- */

/* `lease` is what the node was asked for under this token, less what any drift may take from it; 0:
 * it is unknown. */
static void saw_record(struct checker *c, uint32_t node, struct slice key, struct id128 id,
	uint64_t asked_token, span_ns lease) {
	uint32_t number = sim_name_lock_number(id);
	uint64_t token, noted;
	if (number >= c->lock_count ||
		!core_peek(sim_node_core(c->sim, node), key, id, &token, &noted)) {
		return;
	}
	struct lock_state *lock = &c->locks[number];
	/* Otherwise that commit was refused. */
	lease = token == asked_token && lock->order == 0 ? lease : 0;
	const struct node_view *view = &c->views[node];
	if (!view->master) {
		/* A replica's table says nothing about what was accepted. */
		return;
	}
	const bool higher = token > lock->accepted[node];
	if (higher || lock->accepted_tenure[node] != view->tenure) {
		lock->accepted[node] = higher ? token : lock->accepted[node];
		lock->accepted_tenure[node] = view->tenure;
		lock->accepted_at[node] = sim_now(c->sim);
		lock->found_since[node] = higher || !lock->found_since[node] ? sim_now(c->sim)
			: lock->found_since[node];
		lock->accepted_until[node] = 0;
	}
	if (sim_now(c->sim) + lease > lock->accepted_until[node]) {
		lock->accepted_until[node] = sim_now(c->sim) + lease;
		lock->lengthened_at[node] = sim_now(c->sim);
	}
	if (lock->released[node] == view->tenure && !c->options.forgets_releases) {
		checker_violation(c, "released lock_ids stay released", lock->key,
			"n%" PRIu32 " has L%" PRIu32 " again, although it was told of its release",
			node + 1, number);
	}
}

/* Whether `from` is outside as this node sees it: neither a member nor a master of the previous
 * epoch, which may still be a source. */
static bool is_non_member(const struct checker *c, uint32_t node, uint32_t from) {
	const struct config *config = core_config(sim_node_core(c->sim, node));
	bool non_member = config_find_name(config, sim_node_name(c->sim, from)) < 0;
	for (uint32_t i = 0; i < config->previous_master_count; i++) {
		non_member = non_member &&
			strcmp(config->previous_masters[i].name, sim_node_name(c->sim, from)) != 0;
	}
	return non_member;
}

/* Whether the node remembers the releases in the frame. The frame may have been dropped unread,
 * also in a step that releases something else, because the node had stood still for too long, or
 * has given the link up. And what a node outside rolls back under its name counts as a release that
 * was taken, too, while the others in the same frame are not heard (section 6). */
static bool releases_heard(const struct checker *c, uint32_t node, uint32_t from) {
	return c->releases[node] != c->releases_before[node] &&
		c->unread[node] == c->unread_before[node] &&
		!is_non_member(c, node, from);
}

static void saw_release(struct checker *c, uint32_t node, struct id128 id) {
	uint32_t number = sim_name_lock_number(id);
	if (number < c->lock_count) {
		c->locks[number].released[node] = c->views[node].tenure;
		c->locks[number].tombstone_at[node] = sim_now(c->sim);
	}
}

/* A failed request rolls the lock back at the node (section 11), which does not learn it again as
 * it was. Or the lock ended with a connection. */
static void saw_drop(struct checker *c, uint32_t node, const struct message *m) {
	uint32_t number = sim_name_lock_number(m->lock_id);
	if (m->kind == MESSAGE_RELEASE && (m->name || m->number) && number < c->lock_count) {
		struct lock_state *lock = &c->locks[number];
		lock->gone_at[node] = sim_now(c->sim);
		uint64_t token, noted;
		if (!core_peek(sim_node_core(c->sim, node), m->key, m->lock_id, &token, &noted)) {
			/* Since when it has the next record is another matter. */
			lock->accepted_tenure[node] = 0;
			lock->found_since[node] = 0;
		}
		lock->rolled_back[node] = m->name ? lock->accepted[node]
			: lock->rolled_back[node];
	}
}

/* No replica says that a key was granted twice, unless a master lies, or the links are worse than
 * TCP: a replica's copy is wrong if the end of a record overtakes the snapshot that has it. */
static void check_grants(struct checker *c, uint32_t node) {
	if (c->options.check_grants && c->options.liar == TRACE_NONE && !c->options.unkind &&
		core_counts(sim_node_core(c->sim, node))[COUNT_audit_violations] > 0) {
		checker_violation(c, CHECKER_REPLICAS_FIND, TRACE_NONE, "n%" PRIu32 " says so",
			node + 1);
	}
}

static void stepped(void *ctx, uint32_t node) {
	struct checker *c = ctx;
	check_grants(c, node);
	if (c->liar.lies) {
		checker_lies_step(c, node);
	}
	checker_configs_look(c, node);
	checker_shows(c, node);
	if (c->options.liar == TRACE_NONE) {
		checker_watched_step(c, node);
	}
	c->releases_before[node] = c->releases[node];
	c->releases[node] = core_counts(sim_node_core(c->sim, node))[COUNT_release_ok];
	const uint64_t *counts = core_counts(sim_node_core(c->sim, node));
	c->unread_before[node] = c->unread[node];
	c->unread[node] = counts[COUNT_stood_still] + counts[COUNT_link_reset];
}

static void stepped_alone(void *ctx, uint32_t node) {
	check_grants(ctx, node);
}

void checker_replicas_alone(struct checker *c) {
	sim_observe(c->sim, (struct sim_observer){ .stepped = stepped_alone, .ctx = c });
}

static bool may_accept(enum message_kind kind) {
	return kind == MESSAGE_COMMIT || kind == MESSAGE_LEARN || kind == MESSAGE_EXTEND ||
		kind == MESSAGE_EXTEND_PERMITS;
}

static void handled(void *ctx, uint32_t node, uint32_t from, const struct frame *frame) {
	const struct checker *c = ctx;
	if (c->liar.lies) {
		return;
	}
	const bool heard = releases_heard(ctx, node, from);
	for (size_t i = 0; i < frame->count; i++) {
		const struct message *m = &frame->messages[i];
		bool remembered = m->kind == MESSAGE_HAND_OVER ||
			(m->kind == MESSAGE_RELEASE && !m->name && !m->number);
		if (remembered && heard) {
			saw_release(ctx, node, m->lock_id);
		}
		saw_drop(ctx, node, m);
		if (may_accept(m->kind)) {
			/* A refused extension or repeat finds the record there nevertheless. */
			const struct config *newest = checker_newest(ctx);
			bool sure = m->kind == MESSAGE_COMMIT && newest &&
				m->lease_us <= (uint64_t)(newest->max_lease / SPAN_US);
			span_ns lease = sure ? (span_ns)m->lease_us * SPAN_US - m->terms.delay : 0;
			saw_record(ctx, node, m->key, m->lock_id, m->token, lease / 2);
		}
	}
}

/* Whether some master has its record. A client that repeats it is no newcomer. */
static bool some_has(const struct checker *c, uint32_t lock) {
	char buffer[16];
	struct slice key = sim_name_key(buffer, c->locks[lock].key);
	uint64_t token, noted;
	for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
		if (sim_node_running(c->sim, i) && c->views[i].master &&
			core_peek(sim_node_core(c->sim, i), key, c->locks[lock].id, &token,
			&noted)) {
			return true;
		}
	}
	return false;
}

static void asked(void *ctx, uint32_t node, const struct core_request *request) {
	struct checker *c = ctx;
	struct op_state *op = checker_op_of(c, request->id);
	op->asked_at = sim_now(c->sim);
	op->asked_epoch = c->views[node].epoch;
	op->again = op->known && op->op.op == CORE_ACQUIRE && some_has(c, op->op.lock);
	if (op->known && op->op.op == CORE_ACQUIRE) {
		c->locks[op->op.lock].turn_at = 0;
		c->locks[op->op.lock].queue_round = 0;
	}
}

/* A lease that was over at some masters was extended, and displaces the promise of the next lock
 * there. */
static void saw_displaced(struct checker *c, const struct message *m) {
	const uint32_t waiting = sim_name_lock_number(m->lock_id),
		back = sim_name_lock_number(m->by);
	if (waiting < c->lock_count && back < c->lock_count && c->locks[back].granted) {
		c->locks[waiting].displaced_at = sim_now(c->sim);
	}
}

/* A coordinator that is a master accepts without sending itself a message. */
static void sent(void *ctx, uint32_t node, uint32_t to, const struct frame *frame) {
	const struct checker *c = ctx;
	for (size_t i = 0; !c->liar.lies && i < frame->count; i++) {
		const struct message *m = &frame->messages[i];
		if (m->kind == MESSAGE_COMMIT) {
			saw_record(ctx, node, m->key, m->lock_id, 0, 0);
			checker_watched_commit(ctx, sim_name_lock_number(m->lock_id));
		} else if (m->kind == MESSAGE_WRITE_ANSWER && m->status == STATUS_BALLOT) {
			checker_watched_crossed(ctx, m->round);
		} else if (m->kind == MESSAGE_DISPLACED) {
			saw_displaced(ctx, m);
		}
		checker_turn_seen(ctx, node, to, m);
		saw_drop(ctx, node, m);
	}
}

/* Section 8.3: held means that q masters accepted. */
static void check_honest(struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply) {
	struct lock_state *lock = &c->locks[op->op.lock];
	char buffer[16];
	saw_record(c, node, sim_name_key(buffer, lock->key), lock->id, 0, 0);
	checker_watched_granted(c, op->op.lock, reply);
	if (lock->ended || lock->leaving) {
		/* A release may follow in the frame of the commit, and then nothing can be seen. */
		return;
	}
	if (!checker_quorum_accepted(c, node, op, reply)) {
		uint32_t accepted = 0;
		for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
			accepted += lock->accepted[i] >= reply->token;
		}
		checker_violation(c, "honest answers", op->op.key,
			"L%" PRIu32 " is answered as held with token %" PRIu64
			", but that is no quorum of an epoch: %" PRIu32
			" nodes accepted it (the answer says %" PRIu32 ", with a quorum of %" PRIu32
			")", op->op.lock, reply->token, accepted, reply->acks, reply->quorum);
	}
}

/* All or none: each lock is judged as if it had been asked for alone. */
static void check_all(struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply) {
	CHECK(reply->count == op->op.member_count);
	for (uint32_t i = 0; i < op->op.member_count; i++) {
		uint32_t lock = op->op.members[i];
		struct op_state one = *op;
		struct core_reply said = *reply;
		one.op.op = CORE_ACQUIRE;
		one.op.lock = lock;
		one.op.key = c->locks[lock].key;
		said.token = reply->got[i].token;
		if (!id128_equal(reply->got[i].lock_id, c->locks[lock].id)) {
			checker_violation(c, "honest answers", one.op.key, "asked for L%" PRIu32
				", and was answered about another lock_id", lock);
		}
		check_honest(c, node, &one, &said);
		checker_held(c, op, lock, reply->valid, reply->got[i].terms.set);
		checker_answered(c, &one, said.token, &reply->got[i].terms);
	}
}

static void replied(void *ctx, uint32_t node, const struct core_reply *reply) {
	struct checker *c = ctx;
	struct op_state *op = checker_op_of(c, reply->id);
	op->answered = true;
	if (op->known && checker_unjudged(c, op)) {
		return;
	}
	const bool extends = op->op.op == CORE_EXTEND, loses = op->op.op == CORE_UPDATE ||
		op->op.op == CORE_DOWNGRADE;
	if (op->known && reply->error && (extends || (loses && reply->error == PAWL_ELOST))) {
		checker_renewed(c, node, op, reply->error);
	}
	if (op->known && (op->op.op == CORE_ACQUIRE || op->op.op == CORE_ACQUIRE_ALL) &&
		reply->error == PAWL_ENOQUORUM) {
		checker_refused(c, node, op, reply);
	}
	checker_passed(c, op, reply);
	if (op->known && op->op.op == CORE_ACQUIRE && op->op.wait > 0 && reply->error) {
		checker_key(c, op->op.key)->turn_passed_at = sim_now(c->sim);
	}
	if (reply->error || !op->known) {
		return;
	}
	if (op->op.op == CORE_RELEASE || op->op.op == CORE_TRANSFER) {
		checker_end_answered(c, node, op, reply);
	}
	if (op->op.op == CORE_TRANSFER ||
		(op->op.op == CORE_RELEASE && (reply->released || !op->op.compares))) {
		c->locks[op->op.lock].release_node = node;
		c->locks[op->op.lock].release_incarnation = sim_node_incarnation(c->sim, node);
		c->locks[op->op.lock].release_epoch = c->views[node].epoch;
	}
	if (op->op.op == CORE_RELEASE && op->op.closes > 0 && reply->released) {
		checker_closing(c, op);
	}
	if (op->op.op == CORE_GET && !op->op.quorum) {
		checker_aged_read(c, node, op, reply);
	}
	if (op->op.op == CORE_ACQUIRE) {
		check_honest(c, node, op, reply);
		checker_order(c, op, reply);
	}
	if (op->op.op == CORE_ACQUIRE_ALL) {
		check_all(c, node, op, reply);
		return;
	}
	checker_answered(c, op, reply->token, &reply->terms);
	if (op->op.op == CORE_ACQUIRE || op->op.op == CORE_EXTEND) {
		checker_held(c, op, op->op.lock, reply->valid, reply->terms.set);
	}
	if (op->op.op == CORE_EXTEND && !op->op.deadline_kept) {
		checker_extended(c, op, reply);
	}
}

static void told(void *ctx, uint32_t node, const struct core_watch_event *watch_event) {
	const struct checker *c = ctx;
	if (c->options.liar != TRACE_NONE) {
		/* Events have to be judged from the beginning on, or not at all. */
		return;
	}
	checker_watch_event(ctx, node, watch_event);
	checker_watched(ctx, node, watch_event);
}

/* ---- life ---- */

struct checker *checker_new(const struct checker_options *options) {
	struct checker *c = calloc(1, sizeof *c);
	CHECK(c != NULL);
	c->options = *options;
	c->sim = options->sim;
	c->liar.lies = options->liar != TRACE_NONE;
	sim_observe(c->sim,
		(struct sim_observer){ .handled = handled, .asked = asked, .stepped = stepped,
		.sent = sent, .replied = replied, .watch_event = told, .ctx = c });
	checker_history_begin(c);
	reporting = c;
	check_hook_set(check_hook);
	return c;
}

void checker_free(struct checker *c) {
	for (uint64_t id = 0; id < c->op_capacity; id++) {
		if (c->ops[id].known && !c->ops[id].returned) {
			checker_history(c, id, &c->ops[id], NULL, CHECKER_NO_VALUE);
		}
	}
	for (size_t i = 0; i < c->key_count; i++) {
		free(c->keys[i].grants);
		free(c->keys[i].begun);
		checker_closings_forget(&c->keys[i]);
		while (c->keys[i].ghosts) {
			struct ghost *g = c->keys[i].ghosts;
			c->keys[i].ghosts = g->next;
			free(g);
		}
		while (c->keys[i].believed) {
			struct best_class *b = c->keys[i].believed;
			c->keys[i].believed = b->next;
			free(b);
		}
		for (struct granted *b = c->keys[i].granted_leases; b;) {
			struct granted *next = b->next;
			free(b);
			b = next;
		}
	}
	checker_history_end(c);
	check_hook_set(NULL);
	reporting = NULL;
	checker_told_free(c);
	checker_watched_free(c);
	free(c->liar.accepted);
	free(c->configs);
	free(c->keys);
	free(c->locks);
	free(c->ops);
	free(c->tokens);
	free(c);
}

uint64_t checker_operations(const struct checker *c) {
	return c->operations;
}
