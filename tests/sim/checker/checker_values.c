/* checker_values.c: looks for an order of the operations on one lock_id's value that explains all
 * answers (Wing and Gong, 1993; with Lowe's memory of states). The value is a register. An acquire
 * writes its first value (a repeated one may write it again, but not while the lock is held);
 * updates are compare-and-set; a mismatch and a read show the value. A release that expects a value
 * is a compare-and-set, too, to a value that nobody expects: of operations that expect the same
 * write at most one succeeds. What was never answered, or answered as unsure, may take effect at
 * any time from its beginning on, or never. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "checker_impl.h"
#include "pawl/error.h"

/* Beyond this number the search gives up: it has found no violation. */
#define STATES_MAX 65536

struct state {
	uint32_t done, value;
};
struct search {
	const struct lock_state *lock;
	/* A hash table with open addressing. done == 0 is the beginning, which is never looked
	 * up. */
	struct state *seen;
	uint32_t count, max;
	bool gave_up;
};

static bool remember(struct search *s, uint32_t done, uint32_t value) {
	uint64_t hash = ((uint64_t)done << 32 | value) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i = (uint32_t)(hash >> 40) & (2 * s->max - 1);
	for (; s->seen[i].done; i = (i + 1) & (2 * s->max - 1)) {
		if (s->seen[i].done == done && s->seen[i].value == value) {
			return false;
		}
	}
	if (s->count == s->max) {
		s->gave_up = true;
		return false;
	}
	s->count++;
	s->seen[i] = (struct state){ done, value };
	return true;
}

/* Whether op i may be the next after those in `done`: nothing that has to come stands before it,
 * and it stands before nothing done. */
static bool in_time(const struct lock_state *lock, uint32_t done, uint32_t i) {
	for (uint32_t j = 0; j < lock->op_count; j++) {
		const struct value_op *other = &lock->ops[j];
		if (done >> j & 1) {
			if (other->invoked > lock->ops[i].returned) {
				return false;
			}
		} else if (other->required && other->returned < lock->ops[i].invoked) {
			return false;
		}
	}
	return true;
}

static bool apply(const struct value_op *op, uint32_t *value) {
	if (op->reads) {
		return op->value == *value && op->expect != *value;
	}
	if (op->expect != CHECKER_NO_VALUE && op->expect != *value) {
		return false;
	}
	*value = op->value;
	return true;
}

static bool explains(struct search *s, uint32_t done, uint32_t value) {
	const struct lock_state *lock = s->lock;
	bool complete = true;
	for (uint32_t i = 0; i < lock->op_count; i++) {
		complete = complete && ((done >> i & 1) || !lock->ops[i].required);
	}
	if (complete || s->gave_up) {
		return true;
	}
	for (uint32_t i = 0; i < lock->op_count; i++) {
		uint32_t next = value;
		if ((done >> i & 1) || lock->ops[i].idle || !in_time(lock, done, i) ||
			!apply(&lock->ops[i], &next)) {
			continue;
		}
		if (remember(s, done | 1u << i, next) && explains(s, done | 1u << i, next)) {
			return true;
		}
		if (s->gave_up) {
			return true;
		}
	}
	return false;
}

static void print_ops(const struct lock_state *lock, char *out, size_t size) {
	size_t used = 0;
	for (uint32_t i = 0; i < lock->op_count && used < size; i++) {
		const struct value_op *op = &lock->ops[i];
		int n = snprintf(out + used, size - used, "\n    [%.6f, %.6f] %s%s value v%" PRIu32,
			(double)op->invoked / 1e9,
			op->returned == INT64_MAX ? -1.0 : (double)op->returned / 1e9,
			op->required ? "" : "perhaps ", op->reads ? "shows" : "writes", op->value);
		used += n > 0 ? (size_t)n : 0;
		if (op->expect != CHECKER_NO_VALUE && used < size) {
			n = snprintf(out + used, size - used,
				op->reads ? " (not v%" PRIu32 ")" : " over v%" PRIu32, op->expect);
			used += n > 0 ? (size_t)n : 0;
		}
	}
}

/* Nobody holds the lock any more: an acquire that still waits may take it anew, and writes its
 * first value then. */
static void reopen_repeats(struct checker *c, uint32_t number) {
	struct lock_state *lock = &c->locks[number];
	for (uint32_t i = 0; i < lock->op_count && !checker_lock_believed(c, number); i++) {
		struct value_op *op = &lock->ops[i];
		if (op->repeat && (op->idle || op->open)) {
			op->idle = false;
			op->open = true;
			op->returned = INT64_MAX;
		}
	}
}

static void evaluate(struct checker *c, uint32_t number) {
	static struct state seen[2 * STATES_MAX];
	struct lock_state *lock = &c->locks[number];
	if ((lock->ended && !lock->ended_by_value) || lock->unjudged) {
		return;
	}
	reopen_repeats(c, number);
	/* An easy search comes first, because it saves wiping the big table. */
	struct search s = { .lock = lock, .seen = seen, .max = 256 };
	memset(seen, 0, 2 * s.max * sizeof *seen);
	if (explains(&s, 0, lock->value) && !s.gave_up) {
		return;
	}
	s = (struct search){ .lock = lock, .seen = seen, .max = STATES_MAX };
	memset(seen, 0, sizeof seen);
	if (!explains(&s, 0, lock->value)) {
		char text[4096];
		print_ops(lock, text, sizeof text);
		checker_violation(c, "linearizable values", lock->key,
			"no order of the operations on L%" PRIu32 " (first value v%" PRIu32
			") explains the answers:%s", number, lock->value, text);
	}
}

bool checker_on_value(const struct checker_op *op) {
	return op->op == CORE_ACQUIRE || op->op == CORE_UPDATE || op->compares;
}

bool checker_updates_left(const struct checker *c, uint32_t lock) {
	return c->locks[lock].op_count + 8 < VALUE_OPS_MAX;
}

/* No write is under way or in doubt, so a read that begins now shows the value. */
bool checker_value_quiet(const struct lock_state *lock) {
	for (uint32_t i = 0; i < lock->op_count; i++) {
		if (!lock->ops[i].required && !lock->ops[i].idle) {
			return false;
		}
	}
	return true;
}

static struct value_op *add_op(struct lock_state *lock, uint64_t id, int64_t invoked) {
	if (lock->op_count == VALUE_OPS_MAX) {
		/* There are more operations than the search can take: nothing more is judged. */
		lock->unjudged = true;
		return NULL;
	}
	struct value_op *op = &lock->ops[lock->op_count++];
	*op = (struct value_op){ .id = id, .invoked = invoked, .returned = INT64_MAX,
		.expect = CHECKER_NO_VALUE };
	return op;
}

/* While a lock is held, no acquire changes its value. An acquire that was asked for before may have
 * done so until now. */
void checker_value_held(struct checker *c, uint32_t number) {
	struct lock_state *lock = &c->locks[number];
	for (uint32_t i = 0; i < lock->op_count; i++) {
		struct value_op *op = &lock->ops[i];
		if (op->repeat && (op->idle || op->open)) {
			op->idle = false;
			op->open = true;
			op->returned = sim_now(c->sim);
		}
	}
}

/* An acquire can change the value only when an update came first; until then it writes what is
 * there. */
void checker_value_invoked(struct checker *c, uint64_t id, struct op_state *op) {
	struct lock_state *lock = &c->locks[op->op.lock];
	struct value_op *v = add_op(lock, id, op->invoked);
	if (v) {
		v->value = op->op.value;
		v->repeat = v->open = op->op.op == CORE_ACQUIRE;
		v->idle = v->repeat && checker_lock_believed(c, op->op.lock);
		v->expect = op->op.op == CORE_ACQUIRE ? CHECKER_NO_VALUE : op->op.expect;
	}
}

static struct value_op *find_op(struct lock_state *lock, uint64_t id) {
	for (uint32_t i = 0; i < lock->op_count; i++) {
		if (lock->ops[i].id == id) {
			return &lock->ops[i];
		}
	}
	return NULL;
}

static void drop_op(struct lock_state *lock, struct value_op *op) {
	*op = lock->ops[--lock->op_count];
}

void checker_value_returned(struct checker *c, uint64_t id, const struct op_state *op, int error,
	uint32_t value) {
	uint32_t number = op->op.lock;
	if (op->op.op == CORE_GET) {
		number = op->believed_lock;
		struct value_op *v = add_op(&c->locks[number], id, op->invoked);
		if (!v) {
			return;
		}
		*v = (struct value_op){ .id = id, .invoked = op->invoked,
			.returned = sim_now(c->sim), .required = true, .reads = true,
			.expect = CHECKER_NO_VALUE, .value = value };
		evaluate(c, number);
		return;
	}
	struct lock_state *lock = &c->locks[number];
	struct value_op *v = find_op(lock, id);
	if (!v) {
		return;
	}
	reopen_repeats(c, number);
	if (op->op.op == CORE_ACQUIRE) {
		if (error == 0 && v->idle) {
			drop_op(lock, v);
		} else if (error == 0) {
			/* Whether it wrote or found its token, it does nothing after the answer. */
			v->open = false;
			v->returned = v->returned < sim_now(c->sim) ? v->returned : sim_now(c->sim);
		} else if (error == PAWL_EBUSY || error == PAWL_EBADREQUEST ||
			error == PAWL_EDENIED) {
			drop_op(lock, v);
		}
		return;
	}
	if (error == 0) {
		v->required = true;
		v->returned = sim_now(c->sim);
		evaluate(c, number);
	} else if (error == PAWL_EMISMATCH) {
		/* A frame may be doubled, as none is over TCP. Then its write is taken, is refused
		 * as overtaken, and is tried again, which shows what it wrote. */
		struct value_op *shown = c->options.unkind ? add_op(lock, id, op->invoked) : v;
		if (shown) {
			*shown = (struct value_op){ .id = id, .invoked = op->invoked,
				.returned = sim_now(c->sim), .required = true, .reads = true,
				.expect = op->op.by_seq ? CHECKER_NO_VALUE : op->op.expect,
				.value = value };
			evaluate(c, number);
		}
	} else if (error == PAWL_EBUSY || error == PAWL_EBADREQUEST || error == PAWL_ERECOVERING) {
		drop_op(lock, v);
	}
}
