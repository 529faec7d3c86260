/* operations.c: the operations of a coordinator: to add one is to add its file and a row to OPERATIONS. */
#include "operation.h"
#include "node.h"

/* It is carried out by membership/change.c, and is never an operation of the coordinator. */
const struct operation change_operation = { .by_lock = false };

const struct operation *const node_operations[CORE_OPS] = {
#define X(kind, name) [CORE_##kind] = &name##_operation,
	OPERATIONS(X)
#undef X
};
