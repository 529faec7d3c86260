/* operation.h: what an operation of a coordinator is: one row, filled in by its own file and listed in node/operations.c. */
#ifndef PAWL_CLUSTER_OPERATION_H
#define PAWL_CLUSTER_OPERATION_H

#include "core.h"

struct caller;
struct op;

/* NULL where nothing is to be done, unless said otherwise. */
struct operation {
	/* It is found by its key and lock_id (op_lock.c). */
	bool by_lock;
	/* Takes what it needs of the request when it is made; false: no memory. */
	bool (*make)(struct core *core, struct op *op, const struct core_request *r);
	/* Asks the masters, for the first time or anew under another epoch. */
	void (*start)(struct core *core, struct op *op);
	/* A master has answered in the round under way. */
	void (*answer)(struct core *core, struct op *op, uint32_t from, const struct message *m);
	/* The votes have changed. over: request_timeout has passed since they were asked for. */
	void (*evaluate)(struct core *core, struct op *op, bool over);
	/* Its timer has fired. NULL: op_round_timer. */
	void (*timer)(struct core *core, struct op *op);
	/* A link to a master is lost. False: the operation looks after its votes itself, or is gone. */
	bool (*link_lost)(struct core *core, struct op *op, uint32_t peer, bool closed);
	/* A master votes now, or does not any more. */
	void (*link_changed)(struct core *core, struct op *op, uint32_t peer);
	/* Another epoch is in force. False: it does not begin again, or is gone. */
	bool (*epoch)(struct core *core, struct op *op);
	/* One of those who asked has gone. */
	void (*leave)(struct caller *c);
	/* Nobody asks for it any more. True: it was freed. */
	bool (*forget)(struct core *core, struct op *op);
	/* The lock was released here, or broken. May free the operation. */
	void (*lock_released)(struct core *core, struct op *op, bool broken);
	/* Answered, and a master can be reached that missed it. NULL: nothing is sent any more once it was answered. */
	void (*catch_up)(struct core *core, struct op *op, uint32_t peer);
	/* A master has answered after the operation was answered. NULL: its vote is noted. */
	void (*late_answer)(struct core *core, struct op *op, uint32_t from, const struct message *m);
	/* It is over before all masters have answered. */
	void (*late_end)(struct core *core, struct op *op);
	/* What `make` and the other functions have taken is given back. */
	void (*release)(struct core *core, struct op *op);
	/* The reply of one of its parts is put here. */
	struct core_reply *(*part_reply)(struct core *core, struct op *op, uint32_t part);
};

#define CORE_OPS (CORE_ACQUIRE_ALL + 1)
extern const struct operation *const node_operations[CORE_OPS];

#define OPERATIONS(X) \
	X(ACQUIRE, acquire) X(EXTEND, extend) X(UPDATE, update) X(RELEASE, release) X(GET, read) X(LIST, list) X(WAIT, wait) X(WAITERS, waiters) \
	X(BREAK, break) X(BINDING, binding) X(CHANGE, change) X(DOWNGRADE, downgrade) X(TRANSFER, transfer) X(ASK, ask) X(EXPLAIN, explain) \
	X(ACQUIRE_ALL, group)
#define X(kind, name) extern const struct operation name##_operation;
OPERATIONS(X)
#undef X

#endif
