/* operations.c: the table of the coordinator's operations. A new operation is its own file and a
 * row in OPERATIONS. */
#include "operation.h"
#include "node.h"

/* membership/change.c carries a change out, so it is never an operation of the coordinator. */
const struct operation change_operation = { .by_lock = false };

const struct operation *const node_operations[CORE_OPS] = {
#define X(kind, name) [CORE_##kind] = &name##_operation,
	OPERATIONS(X)
#undef X
};
