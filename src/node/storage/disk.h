/* disk.h: writes the state file in a thread. One write is under way at a time, and of those that
 * wait only the newest is kept.
 */
#ifndef PAWL_NODE_DISK_H
#define PAWL_NODE_DISK_H

#include "buckets.h"
#include "core.h"

struct event_base;
struct disk;
struct state_file;

/* Called on the loop, never from within disk_write, and in the order of the numbers: the state with
 * this number, and so every earlier one, is on disk and `problem` is 0; or it could not be written,
 * and `problem` is why, as an errno value. */
typedef void disk_done(void *ctx, uint64_t seq, int problem);

/* Returns 0 or PAWL_ENOMEM. `file` is borrowed. */
int disk_new(struct event_base *base, struct state_file *file, disk_done *done, void *ctx,
	struct disk **out);
/* Waits for the write that is under way. Accepts NULL. */
void disk_free(struct disk *p);

/* What was written since the start. */
struct disk_counts {
	uint64_t writes, failures;
	/* How long each write and its sync took. */
	struct buckets took;
};
const struct disk_counts *disk_counts(const struct disk *p);

/* Copies the state. */
void disk_write(struct disk *p, const struct durable *state, uint64_t seq);

#endif
