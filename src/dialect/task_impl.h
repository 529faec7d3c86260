/* task_impl.h: for the files of task.h. */
#ifndef DIALECT_TASK_IMPL_H
#define DIALECT_TASK_IMPL_H

#include "task.h"

/* ---- task_read.c ---- */

/* Returns the unique of a lock with this token whose value was written under that ballot.
 * A value that was set later than with the lock was written by a node that knew of the lock, and so
 * was ahead of its token; and whoever takes the key next hears of the write from a quorum
 * (protocol, Update). */
uint64_t task_unique_of(uint64_t token, struct ballot value);

/* Returns who holds the key, or NULL. In the last moment of its lease, which its client does not
 * know of, it counts as free. */
const struct client_entry *task_holder(const struct task *task,
	const struct client_response *response);

/* Tells whether the lock is the one that the command compares with. */
bool task_is_same(const struct task *task, const struct client_entry *entry);

/* Notes what a read has said of a key. */
void task_note(const struct task_runner *runner, const struct client_entry *entry);

#endif
