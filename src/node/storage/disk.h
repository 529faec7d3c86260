/* disk.h: writes of the state file in a thread: one under way, and of those that wait only the newest. */
#ifndef PAWL_NODE_DISK_H
#define PAWL_NODE_DISK_H

#include "core.h"

struct event_base;
struct disk;
struct state_file;

/* On the loop: the state with this number, and so every earlier one, is on disk, or could not be written. */
typedef void disk_done(void *ctx, uint64_t seq, bool ok);

int disk_new(struct event_base *base, struct state_file *file, disk_done *done, void *ctx, struct disk **out);
void disk_free(struct disk *p); /* waits for the write under way; accepts NULL */

/* Copies the state. */
void disk_write(struct disk *p, const struct durable *state, uint64_t seq);

#endif
