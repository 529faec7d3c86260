/* op_lock.c: what this node does for one lock, found by its key and lock_id: attempts, repairs
 * after the answer, session bindings, groups. */
#include "operation.h"
#include "coordinator.h"

/* Of several attempts it prefers one whose commit has not been sent, because a repeat may join that
 * one. */
struct op *op_find_lock(const struct core *core, enum core_op kind, struct slice key,
	struct id128 lock_id) {
	struct op *found = NULL;
	for (struct map_node *n =
			map_first(&core->coordinator.ops_by_lock, op_hash_lock(core, key, lock_id));
		n; n = map_next(n)) {
		struct op *op = CONTAINER_OF(n, struct op, by_lock);
		if (op->kind == kind && op->state != OP_CATCHING_UP &&
			id128_equal(op->lock_id, lock_id) && slice_equal(op->key, key)) {
			found = op;
			if (op->state != OP_COMMITTING) {
				break;
			}
		}
	}
	return found;
}

/* A request rolls back what it has under this name (section 11). Repairs under that name end; what
 * others do for the lock_id goes on. */
void op_lock_rolled_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name) {
	for (struct map_node *n = map_first(&core->coordinator.ops_by_lock,
			op_hash_lock(core, key, lock_id)), *next;
		n; n = next) {
		next = map_next(n);
		struct op *op = CONTAINER_OF(n, struct op, by_lock);
		if (op->state == OP_CATCHING_UP && op->part_of == name &&
			id128_equal(op->lock_id, lock_id) && slice_equal(op->key, key)) {
			catch_up_end(core, op);
		}
	}
}

/* A release, or a break by force, ends what this node does for the lock_id: repairs, attempts that
 * have not sent their commit, and its binding to this node. */
void op_lock_released(struct core *core, struct slice key, struct id128 lock_id, bool broken) {
	for (struct map_node *n = map_first(&core->coordinator.ops_by_lock,
			op_hash_lock(core, key, lock_id)), *next;
		n; n = next) {
		next = map_next(n);
		struct op *op = CONTAINER_OF(n, struct op, by_lock);
		if (!id128_equal(op->lock_id, lock_id) || !slice_equal(op->key, key)) {
			continue;
		}
		if (op->state == OP_CATCHING_UP) {
			catch_up_end(core, op);
		} else if (core->operations[op->kind]->lock_released) {
			core->operations[op->kind]->lock_released(core, op, broken);
		}
	}
}

/* Repairs after the answer to an acquire send the lock as it is from now on: shared. */
void op_lock_downgraded(struct core *core, struct slice key, struct id128 lock_id) {
	for (struct map_node *n =
			map_first(&core->coordinator.ops_by_lock, op_hash_lock(core, key, lock_id));
		n; n = map_next(n)) {
		struct op *op = CONTAINER_OF(n, struct op, by_lock);
		if (op->kind == CORE_ACQUIRE && op->state == OP_CATCHING_UP &&
			op->terms.of == MODE_EXCLUSIVE && id128_equal(op->lock_id, lock_id) &&
			slice_equal(op->key, key)) {
			op->terms.of = MODE_SHARED;
		}
	}
}
