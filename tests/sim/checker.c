#include "checker_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "check.h"
#include "pawl/error.h"

static struct checker *reporting; /* for CHECKs that fail in the core */

void checker_violation(struct checker *c, const char *check, uint32_t key, const char *format, ...) {
	va_list args;
	fflush(stdout);
	fprintf(stderr, "\nVIOLATION of %s at %.6f s, seed %" PRIu64, check, (double)sim_now(c->sim) / 1e9, c->options.seed);
	if (key != TRACE_NONE) {
		fprintf(stderr, ", key k%04" PRIu32, key);
	}
	fprintf(stderr, "\n  ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n  setup: %s\n  replay: %s\n  last events:\n", c->options.setup, c->options.replay);
	sim_trace_print(sim_trace(c->sim), stderr, key, 160);
	fprintf(stderr, "VIOLATION of %s, seed %" PRIu64 "\n", check, c->options.seed);
	if (c->options.history) {
		fflush(c->options.history);
	}
	exit(1);
}

static void check_hook(const char *file, int line, const char *expr) {
	check_hook_set(NULL);
	checker_violation(reporting, "an invariant of the core", TRACE_NONE, "%s:%d: CHECK(%s)", file, line, expr);
}

/* ---- tables ---- */

struct key_state *checker_key(struct checker *c, uint32_t key) {
	if (key >= c->key_count) {
		size_t count = (size_t)key + 64;
		c->keys = realloc(c->keys, count * sizeof *c->keys);
		CHECK(c->keys != NULL);
		for (size_t i = c->key_count; i < count; i++) {
			c->keys[i] = (struct key_state){ .answered = { 0, 0, TRACE_NONE, TRACE_NONE }, .believed = { 0, 0, TRACE_NONE, TRACE_NONE } };
		}
		c->key_count = count;
	}
	return &c->keys[key];
}

struct op_state *checker_op_of(struct checker *c, uint64_t id) {
	if (id >= c->op_capacity) {
		size_t capacity = c->op_capacity ? 2 * c->op_capacity : 1024;
		c->ops = realloc(c->ops, capacity * sizeof *c->ops);
		CHECK(c->ops != NULL && id < capacity);
		memset(c->ops + c->op_capacity, 0, (capacity - c->op_capacity) * sizeof *c->ops);
		c->op_capacity = capacity;
	}
	return &c->ops[id];
}

uint32_t checker_lock_new(struct checker *c, uint32_t key, uint32_t value) {
	if (c->lock_count == c->lock_capacity) {
		c->lock_capacity = c->lock_capacity ? 2 * c->lock_capacity : 256;
		c->locks = realloc(c->locks, c->lock_capacity * sizeof *c->locks);
		CHECK(c->locks != NULL);
	}
	uint32_t lock = (uint32_t)c->lock_count++;
	c->locks[lock] = (struct lock_state){ .id = sim_name_lock(lock, prng_next(sim_prng(c->sim))), .key = key, .value = value };
	checker_key(c, key);
	return lock;
}

struct id128 checker_lock_id(const struct checker *c, uint32_t lock) {
	return c->locks[lock].id;
}

uint32_t checker_lock_key(const struct checker *c, uint32_t lock) {
	return c->locks[lock].key;
}

bool checker_lock_ended(const struct checker *c, uint32_t lock) {
	return c->locks[lock].ended;
}

uint64_t checker_lock_token(const struct checker *c, uint32_t lock) {
	return c->locks[lock].answered;
}

/* FE: no two lock_ids of a key are answered with the same token (section 8.2). Returns the lock that has it already. */
static uint32_t token_claim(struct checker *c, uint32_t key, uint32_t lock, uint64_t token) {
	if (2 * (c->token_count + 1) > c->token_capacity) {
		struct token_entry *old = c->tokens;
		size_t count = c->token_capacity;
		c->token_capacity = count ? 2 * count : 1024;
		c->tokens = calloc(c->token_capacity, sizeof *c->tokens);
		CHECK(c->tokens != NULL);
		c->token_count = 0;
		for (size_t i = 0; i < count; i++) {
			if (old[i].token) {
				token_claim(c, old[i].key, old[i].lock, old[i].token);
			}
		}
		free(old);
	}
	size_t mask = c->token_capacity - 1, i = (token * UINT64_C(0x9e3779b97f4a7c15) >> 20 ^ key * 2654435761u) & mask;
	for (; c->tokens[i].token; i = (i + 1) & mask) {
		if (c->tokens[i].token == token && c->tokens[i].key == key) {
			return c->tokens[i].lock;
		}
	}
	c->tokens[i] = (struct token_entry){ token, key, lock };
	c->token_count++;
	return lock;
}

/* ---- what leaves the nodes ---- */

static void saw_record(struct checker *c, uint32_t node, struct slice key, struct id128 id) {
	uint32_t number = sim_name_lock_number(id);
	uint64_t token, noted;
	if (number >= c->lock_count || !core_peek(sim_node_core(c->sim, node), key, id, &token, &noted)) {
		return;
	}
	struct lock_state *lock = &c->locks[number];
	lock->accepted[node] = token > lock->accepted[node] ? token : lock->accepted[node];
	if (lock->released[node] == sim_node_incarnation(c->sim, node) && !c->options.forgets_releases) {
		checker_violation(c, "released lock_ids stay released", lock->key, "n%" PRIu32 " has L%" PRIu32 " again, although it was told of its release",
			node + 1, number);
	}
}

static void saw_release(struct checker *c, uint32_t node, struct id128 id) {
	uint32_t number = sim_name_lock_number(id);
	if (number < c->lock_count && c->releases[node] != c->releases_before[node]) { /* the frame may have been dropped unread */
		c->locks[number].released[node] = sim_node_incarnation(c->sim, node);
	}
}

static void stepped(void *ctx, uint32_t node) {
	struct checker *c = ctx;
	c->releases_before[node] = c->releases[node];
	c->releases[node] = core_counts(sim_node_core(c->sim, node))[COUNT_release_ok];
}

static bool may_accept(enum message_kind kind) {
	return kind == MESSAGE_COMMIT || kind == MESSAGE_LEARN || kind == MESSAGE_EXTEND;
}

static void handled(void *ctx, uint32_t node, uint32_t from, const struct frame *frame) {
	(void)from;
	for (size_t i = 0; i < frame->count; i++) {
		if (frame->messages[i].kind == MESSAGE_RELEASE) {
			saw_release(ctx, node, frame->messages[i].lock_id);
		}
		if (may_accept(frame->messages[i].kind)) {
			saw_record(ctx, node, frame->messages[i].key, frame->messages[i].lock_id);
		}
	}
}

/* A coordinator that is a master accepts without a message to itself. */
static void sent(void *ctx, uint32_t node, uint32_t to, const struct frame *frame) {
	(void)to;
	for (size_t i = 0; i < frame->count; i++) {
		if (frame->messages[i].kind == MESSAGE_COMMIT) {
			saw_record(ctx, node, frame->messages[i].key, frame->messages[i].lock_id);
		}
	}
}

/* Section 8.3: held means that q masters accepted. */
static void check_honest(struct checker *c, uint32_t node, const struct op_state *op, const struct core_reply *reply) {
	struct lock_state *lock = &c->locks[op->op.lock];
	char buffer[16];
	saw_record(c, node, sim_name_key(buffer, lock->key), lock->id);
	uint32_t accepted = 0, quorum = c->options.masters / 2 + 1;
	for (uint32_t i = 0; i < c->options.masters; i++) {
		accepted += lock->accepted[i] >= reply->token;
	}
	if (quorum == 1 || lock->ended) {
		return; /* one alone accepts without a message; a release may follow in the frame of the commit: nothing to be seen */
	}
	if (accepted < quorum || reply->quorum != quorum || reply->acks < quorum) {
		checker_violation(c, "honest answers", op->op.key, "L%" PRIu32 " is answered as held with token %" PRIu64
			", but %" PRIu32 " masters of %" PRIu32 " accepted it (the answer says %" PRIu32 " of %" PRIu32 ")",
			op->op.lock, reply->token, accepted, c->options.masters, reply->acks, reply->quorum);
	}
}

/* Section 5: who had entered the queue before some grant, which every clock has heard of since, has the earlier ticket. A
 * try-lock has none: it may find the key free at q masters while the release is still on its way to the home. */
static void check_order(struct checker *c, const struct op_state *granted) {
	span_ns slack = c->options.order_slack;
	int64_t now = sim_now(c->sim);
	for (uint64_t id = 0; slack && id < c->op_capacity; id++) {
		struct op_state *w = &c->ops[id];
		if (!w->known || w->answered || w->op.op != CORE_ACQUIRE || w->op.key != granted->op.key || w->op.wait == 0 || w->invoked < 3 * SPAN_S) {
			continue;
		}
		if (granted->op.wait > 0 && w->overtakable && w->overtakable + slack < granted->invoked) {
			checker_violation(c, "order of waiting", w->op.key, "L%" PRIu32 " (asked for at %.6f) is granted before L%" PRIu32
				", which has waited since %.6f and saw another granted at %.6f", granted->op.lock, (double)granted->invoked / 1e9, w->op.lock,
				(double)w->invoked / 1e9, (double)w->overtakable / 1e9);
		}
		if (w->overtakable == 0 && w->invoked + slack < now) {
			w->overtakable = now;
		}
	}
}

static void acquire_answered(struct checker *c, uint32_t node, const struct op_state *op, const struct core_reply *reply) {
	struct lock_state *lock = &c->locks[op->op.lock];
	check_honest(c, node, op, reply);
	check_order(c, op);
	if (reply->token <= op->others_before) { /* of one lock_id's own several tokens the holder uses the highest */
		checker_violation(c, "fencing (order of answers)", op->op.key, "L%" PRIu32 " is answered with token %" PRIu64
			", but when it was asked for (%.6f) another had been answered with %" PRIu64,
			op->op.lock, reply->token, (double)op->invoked / 1e9, op->others_before);
	}
	lock->answered = reply->token > lock->answered ? reply->token : lock->answered;
	best_add(&checker_key(c, op->op.key)->answered, op->op.lock, reply->token);
}

static void replied(void *ctx, uint32_t node, const struct core_reply *reply) {
	struct checker *c = ctx;
	struct op_state *op = checker_op_of(c, reply->id);
	op->answered = true;
	if (reply->error || !op->known) {
		return;
	}
	if (op->op.op == CORE_RELEASE) {
		c->locks[op->op.lock].release_node = node;
		c->locks[op->op.lock].release_incarnation = sim_node_incarnation(c->sim, node);
	}
	if (op->op.op == CORE_ACQUIRE) {
		acquire_answered(c, node, op, reply);
	}
	if (op->op.op == CORE_ACQUIRE || op->op.op == CORE_EXTEND) {
		uint32_t owner = token_claim(c, op->op.key, op->op.lock, reply->token);
		if (owner != op->op.lock) {
			checker_violation(c, "fencing (unique tokens)", op->op.key, "L%" PRIu32 " and L%" PRIu32
				" are both answered with token %" PRIu64, owner, op->op.lock, reply->token);
		}
	}
}

/* Section 2, Release: the coordinator goes on until all have it. */
static void check_released(struct checker *c, uint32_t number) {
	const struct lock_state *lock = &c->locks[number];
	uint64_t token, noted;
	char key[16];
	if (!lock->release_incarnation || lock->release_incarnation != sim_node_incarnation(c->sim, lock->release_node)) {
		return;
	}
	for (uint32_t i = 0; i < c->options.masters; i++) {
		if (core_peek(sim_node_core(c->sim, i), sim_name_key(key, lock->key), lock->id, &token, &noted)) {
			checker_violation(c, "releases reach everybody", lock->key, "n%" PRIu32 " still has L%" PRIu32
				", although n%" PRIu32 " answered its release and has been linked with it again", i + 1, number, lock->release_node + 1);
		}
	}
}

void checker_settled(struct checker *c) {
	for (uint32_t i = 0; i < c->lock_count && !c->options.forgets_releases; i++) {
		check_released(c, i);
	}
	for (uint32_t i = 0; i < c->options.masters; i++) {
		struct core_status status;
		core_status(sim_node_core(c->sim, i), sim_node_clock(c->sim, i), &status);
		if (status.clock >= CLOCK_JUMP_MAX) {
			checker_violation(c, "bounds of clocks", TRACE_NONE, "the clock of n%" PRIu32 " has jumped to %" PRIu64, i + 1, status.clock);
		}
	}
}

/* ---- life ---- */

struct checker *checker_new(const struct checker_options *options) {
	struct checker *c = calloc(1, sizeof *c);
	CHECK(c != NULL);
	c->options = *options;
	c->sim = options->sim;
	sim_observe(c->sim, (struct sim_observer){ .handled = handled, .stepped = stepped, .sent = sent, .replied = replied, .ctx = c });
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
		for (struct belief *b = c->keys[i].beliefs; b;) {
			struct belief *next = b->next;
			free(b);
			b = next;
		}
	}
	check_hook_set(NULL);
	reporting = NULL;
	free(c->keys);
	free(c->locks);
	free(c->ops);
	free(c->tokens);
	free(c);
}

uint64_t checker_operations(const struct checker *c) {
	return c->operations;
}
