/* operation.h: what an operation of a coordinator is: one row, which the operation's own file fills
 * in and node/operations.c lists. */
#ifndef PAWL_CLUSTER_OPERATION_H
#define PAWL_CLUSTER_OPERATION_H

#include "core.h"

struct caller;
struct op;

/* Says how an operation handles each event. A function is NULL where nothing is to be done, unless
 * its comment says otherwise. */
struct operation {
	/* The operation is found by its key and lock_id (op_lock.c). */
	bool by_lock;
	/* The request must name a lock_id. */
	bool needs_lock_id;
	/* The request is one of a holder. Half of the room for operations is kept for these
	 * (section 9). */
	bool of_holder;

	/* Takes what only this kind needs of the request when the operation is made. False: no
	 * memory. */
	bool (*make)(struct core *core, struct op *op, const struct core_request *r);

	/* Begins the operation. NULL stands for restart_begin, which asks the masters. */
	void (*begin)(struct core *core, struct op *op);

	/* Asks the masters, for the first time or anew under another epoch. */
	void (*start)(struct core *core, struct op *op);

	/* A master has answered in the round under way. */
	void (*answer)(struct core *core, struct op *op, uint32_t from, const struct message *m);

	/* The votes have changed. over: request_timeout has passed since they were asked for. */
	void (*evaluate)(struct core *core, struct op *op, bool over);

	/* The operation's timer has fired. NULL stands for op_round_timer. */
	void (*timer)(struct core *core, struct op *op);

	/* A link to a master is lost. False: the operation has changed its votes itself, or is
	 * freed. */
	bool (*link_lost)(struct core *core, struct op *op, uint32_t peer, bool closed);

	/* A master votes now, or no longer votes. */
	void (*link_changed)(struct core *core, struct op *op, uint32_t peer);

	/* Another epoch is in force. False: the operation does not begin again, or is freed. */
	bool (*epoch)(struct core *core, struct op *op);

	/* Clears what masters have told, because the operation begins again (restart_again). */
	void (*clear)(struct core *core, struct op *op);

	/* One of the callers has gone. */
	void (*leave)(struct caller *c);

	/* Nobody asks for the operation any more. True: it was freed. */
	bool (*forget)(struct core *core, struct op *op);

	/* The lock was released here, or broken. May free the operation. */
	void (*lock_released)(struct core *core, struct op *op, bool broken);

	/* The operation has been answered, and a master that missed it can be reached. NULL:
	 * nothing more is sent after the answer. */
	void (*catch_up)(struct core *core, struct op *op, uint32_t peer);

	/* A master has answered after the operation was answered. NULL: its vote is noted. */
	void (*late_answer)(struct core *core, struct op *op, uint32_t from,
		const struct message *m);

	/* The operation ends before all masters have answered. */
	void (*late_end)(struct core *core, struct op *op);

	/* Frees what the operation has taken for its kind, in `make` or later. */
	void (*release)(struct core *core, struct op *op);

	/* Returns where the reply of one of the operation's parts is put. */
	struct core_reply *(*part_reply)(struct core *core, struct op *op, uint32_t part);
};

/* Lists the operations by their enum core_op. */
extern const struct operation *const node_operations[CORE_OPS];

/* Names each operation as in enum core_op, and as in the name of its row. Every value of the enum
 * but CORE_NONE has to be here: node_operations is NULL for one that is missing. */
#define OPERATIONS(X) \
	X(ACQUIRE, acquire) X(EXTEND, extend) X(UPDATE, update) X(RELEASE, release) \
	X(GET, read) X(LIST, list) X(WAIT, wait) X(WAITERS, waiters) X(BREAK, break) \
	X(BINDING, binding) X(CHANGE, change) X(DOWNGRADE, downgrade) X(TRANSFER, transfer) \
	X(ASK, ask) X(EXPLAIN, explain) X(ACQUIRE_ALL, group)
#define X(kind, name) extern const struct operation name##_operation;
OPERATIONS(X)
#undef X

#endif
