/* task.h: what a command of a dialect does with its keys, as one request of the client protocol
 * after the other. A task reads a key from a quorum, compares what it has read, and then acts on
 * the lock_id that it has read. If the holder has changed meanwhile, there is another lock_id, and
 * nothing happens. What sets the value, and what releases because of the value, names the write
 * that was read, too; if the value has changed meanwhile, the key is read again. The dialect says
 * by a plan what is to be done, and writes the replies. */
#ifndef PAWL_DIALECT_TASK_H
#define PAWL_DIALECT_TASK_H

#include "client.h"
#include "dialect.h"

/* How often a task with `retakes` tries to take its keys, and how often a task reads a key whose
 * value others set meanwhile. */
#define TASK_TRIES_MAX 8
/* How many keys one task may have. */
#define TASK_KEYS_MAX CORE_LOCKS_MAX
/* The most that a task may show of its keys, in bytes. */
#define TASK_SHOWN_MAX ((size_t)4 << 20)

/* What is done with a key. */
enum task_act {
	TASK_NOTHING,
	/* The lease is set to the length that the command names. */
	TASK_EXTEND,
	/* The length that the command names is added to what is left of the lease. */
	TASK_ADD,
	TASK_RELEASE,
	/* The lock is released if it is of the connection's identity, and broken at once if it is
	 * another's, for which the connection needs the right to break. The value does not count:
	 * whoever is to compare it uses TASK_RELEASE. */
	TASK_DELETE,
	/* As TASK_DELETE, and then the key is taken. */
	TASK_OVERWRITE,
	TASK_TAKE,
	/* The value is set, and then the lease as for TASK_EXTEND. With task.without_end, only the
	 * value is set: the dialect has seen that the lock has no end. */
	TASK_REPLACE,
	/* The command is refused, because the key is held. */
	TASK_REFUSE
};

/* What has to be the same for a key to be `mine`. */
enum task_compare {
	/* The key is held. */
	TASK_ANY,
	/* It has the value of the task. An empty value is the same as no other: it is the value
	 * of all native locks whose holders have set none. */
	TASK_VALUE,
	/* It has the unique of the task (task_unique). If the value is set, too, nobody else has
	 * set it meanwhile. */
	TASK_UNIQUE
};

/* What a task does, key by key. */
struct task_plan {
	/* What is done with a key that is held, and is the same in what is compared. */
	enum task_act mine;
	/* What is done with a key that is held, and is not the same. */
	enum task_act other;
	/* What is done with a key that is free. */
	enum task_act free;
	enum task_compare compares;
	/* Nothing is done before all keys have been read, and only if all of them are `mine`. */
	bool together;
	/* The first step is TASK_TAKE of all keys, without a read. */
	bool takes;
	/* With `takes` and `together`: if a key is held, all are read. If all are `mine`, that is
	 * what is done; if all are free by now, they are taken again, TASK_TRIES_MAX times. What is
	 * taken is never given back, because another node may have counted it as taken meanwhile,
	 * and told the client so. */
	bool retakes;
	/* The dialect shows something of each key that is read. */
	bool shows;
};

/* What a task waits for. */
enum task_wait { TASK_READS, TASK_ACTS, TASK_SETS_VALUE };

/* Why a task is refused by itself, and not by an answer. */
enum task_refusal {
	/* The key is held, and the plan refuses that. */
	TASK_IS_HELD,
	/* The key is held by another identity. */
	TASK_IS_ANOTHERS,
	/* The lock has no end, and cannot be given one. */
	TASK_IS_ENDLESS,
	/* The node keeps as many locks without an end as it may, or has no memory for another one.
	 * What was taken has been released. */
	TASK_IS_UNKEPT,
	/* The answer came so late that the client would count on the lease after its end. What was
	 * taken has been released, but not with `retakes`. */
	TASK_IS_LATE,
	/* The dialect did not show the key: what is shown exceeds TASK_SHOWN_MAX, there is no
	 * memory for it, or the dialect has a reason of its own. */
	TASK_IS_NOT_SHOWN
};

/* What follows from an answer. */
enum task_step {
	/* runner.request is to be made. */
	TASK_ASKS,
	/* All is done: the dialect replies, and frees the task. */
	TASK_DONE,
	/* The request failed for a reason that no plan knows: the dialect writes the error of the
	 * answer, and frees the task. */
	TASK_FAILED,
	/* As above, but task.refusal says why. */
	TASK_REFUSED
};

/* A command that makes requests. It owns a copy of everything that the command named. */
struct task {
	struct task_plan plan;
	struct slice keys[TASK_KEYS_MAX];
	struct id128 lock_ids[TASK_KEYS_MAX];
	/* The locks of a request that takes several keys. */
	struct core_lock locks[TASK_KEYS_MAX];
	uint32_t count;
	/* The key whose turn it is; and with plan.together whether all have been read. */
	uint32_t at;
	bool all_read;
	enum task_wait wait;
	/* The unique of the lock after the last act; 0 before any. */
	uint64_t got;
	/* The client is told what it has taken; it is gone, and what it may have taken is
	 * released. */
	bool told, leaves;
	/* What was taken is given back, because of `refusal`. */
	bool gives_back;
	enum task_refusal refusal;
	/* The act under way, which is not TASK_NOTHING with TASK_ACTS and TASK_SETS_VALUE. */
	enum task_act act;
	/* What is taken has no end: the node keeps it. `length` is not used then. */
	bool without_end;
	/* The key that was read last has no end, and its node lives. */
	bool endless;
	/* The fencing token of the key that was read last, and whether the connection's identity
	 * holds it. */
	uint64_t read_token;
	bool own;
	/* The writes that the values of the keys come from; the orders that their locks have, and
	 * whether a quorum has these; and for how long a quorum had the locks for certain when it
	 * was asked, in nanoseconds. */
	struct ballot writes[TASK_KEYS_MAX];
	uint32_t orders[TASK_KEYS_MAX];
	span_ns certain[TASK_KEYS_MAX];
	bool settled[TASK_KEYS_MAX];
	/* The value that is compared, and the one that is set. */
	struct slice value, fresh;
	/* The unique that is compared. */
	uint64_t unique;
	/* The owner and the label of what is taken; borrowed from the connection. */
	struct slice owner;
	struct client_label label;
	/* The length that the command names, and how long a take may wait, in nanoseconds. */
	span_ns length, patience;
	/* How much longer than `length` a lease lasts for certain, and than it is shown, in
	 * nanoseconds. The drift comes on top of both. */
	span_ns slack;
	/* When a lease was first asked for; zero if none was. For how long what was taken last is
	 * valid, from its sending on; 0 if the last act took nothing. */
	struct instant since;
	span_ns valid;
	/* How many keys were held and the same, held and not the same, and free; and how many acts
	 * had an effect. */
	uint32_t mine, others, gone, done;
	/* How often it has tried to take its keys. */
	uint32_t tries;
	/* What a quorum has said of the key that was read last, in nanoseconds: for how much longer
	 * its holder may count on it at least, as it is shown. It is rounded down where it is
	 * shown. */
	span_ns left;
	/* What is shown so far. */
	struct buffer shown;
	/* The size of this struct with the bytes behind it, to which the slices point. */
	size_t bytes;
};

/* Appends to task->shown what the dialect shows of a key that was read; `entry` is NULL if nobody
 * holds it, or if it is not the same in what is compared. `ctx` is that of the runner. Returns 0,
 * PAWL_ENOMEM or PAWL_ETOOLARGE; or any other error, for which the dialect refuses the task. */
typedef int task_show(void *ctx, struct task *task, const struct client_entry *entry);

/* The tasks of a connection, one at a time. All pointers but `task` are borrowed. */
struct task_runner {
	const struct allocator *alloc;
	const struct dialect_node *node;
	/* The number of the connection. */
	uint64_t number;
	task_show *show;
	void *ctx;
	/* The task under way; NULL if there is none. */
	struct task *task;
	/* The request that the task makes. */
	struct client_request request;
};

/* Returns a number that changes with every change of a key. It is the fencing token until the
 * holder sets another value; then it is greater, but less than the token of any later holder. */
uint64_t task_unique(const struct client_entry *entry);
/* Returns the longest length that a command may name, in nanoseconds: the longest lease, less the
 * drift and the slack. It may be negative. */
span_ns task_longest(const struct dialect_node *node, span_ns slack);
/* Returns whether a task may have these keys, in front of each of which comes `prefix`. */
bool task_keys_are_right(struct slice prefix, const struct slice *keys, size_t count);
/* Makes a task for such keys, in the order of the command. `value` is what is compared, and `fresh`
 * what is set. The caller may set `without_end`, and the members from
 * `unique` to `slack`. Returns NULL if there is no
 * memory. */
struct task *task_new(const struct task_runner *runner, const struct task_plan *plan,
	struct slice prefix, const struct slice *keys, size_t count, struct slice value,
	struct slice fresh);
/* Begins with the task, which belongs to the runner from now on: its request is to be made. */
void task_begin(struct task_runner *runner, struct task *take_task);
/* Makes the runner's request one for a list of at most so many keys, of all keys from the first one
 * on; the caller may set the prefix (core.key) and where the list begins (core.after). The dialect
 * then asks, and handles the answer itself. Returns what the core gets, which is the runner's. */
struct core_request *task_list(struct task_runner *runner, uint32_t limit);
/* Goes on after the answer. */
enum task_step task_answer(struct task_runner *runner, const struct client_response *response);
/* To be called when all is done. Returns whether the client is told that it has taken something;
 * then the task is to be freed only when that has been sent (DIALECT_TOLD). */
bool task_tells(struct task_runner *runner);
/* The client is gone. Returns the next request that gives back what it may have taken without being
 * told, or NULL. */
const struct client_request *task_leave(struct task_runner *runner);
/* Frees the task under way, if there is one. */
void task_free(struct task_runner *runner);

#endif
