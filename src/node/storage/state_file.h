/* state_file.h: the small file of section 1 (docs/protocol.md): who this node is, boot, configuration, ceiling.
 *
 * One file, STATE_DIR/state, with two slots that are written in turn: a torn write leaves the other slot, which is the
 * state of before. Each slot carries a sequence number and a checksum; the valid one with the higher number counts. The
 * room of both is written when the file is made, so that a full disk does not stop later writes on ordinary file systems.
 */
#ifndef PAWL_NODE_STATE_FILE_H
#define PAWL_NODE_STATE_FILE_H

#include "core.h"
#include "problem.h"

#define STATE_SLOT_BYTES 40960 /* a multiple of every common block size: slots share no block */

/* ---- bytes (pure) ---- */
struct state_slot {
	uint64_t sequence; /* 1, 2, ... */
	char cluster[NODE_NAME_MAX + 1], node[NODE_NAME_MAX + 1]; /* whose file it is */
	struct durable durable;
};
/* Returns the bytes used. */
size_t state_encode(const struct state_slot *slot, uint8_t out[STATE_SLOT_BYTES]);
/* 0 or PAWL_EPROTOCOL; *out only on success. Bytes behind what the slot's header announces are ignored. */
int state_decode(struct slice bytes, struct state_slot *out);
/* The inner part of state_decode: what the checksum covers, all but *out->sequence. */
int state_decode_payload(struct slice payload, struct state_slot *out);

/* ---- the file ---- */
struct state_file;

/* Makes the directory (0700) if it is missing, locks it against a second daemon, and reads the state, which it makes sure is on
 * disk; without a file it makes one with a new identity. Blocks. 0, or PAWL_EIO / PAWL_EINVAL / PAWL_ENOMEM with *problem set: locked by another, both slots
 * damaged, of another cluster or node. *out_state is what core_new wants. */
int state_file_open(const char *dir, const char *cluster, const char *node, struct state_file **out,
	struct durable *out_state, struct problem *problem);
/* Writes and syncs; blocks: for a thread of its own, one call at a time. 0 or PAWL_EIO: then the state of before is still
 * readable, and the next write may be tried. */
int state_file_write(struct state_file *f, const struct durable *state);
/* Releases the lock. Accepts NULL. */
void state_file_close(struct state_file *f);

/* For tests: the write of the next calls fails with ENOSPC after so many bytes; negative: no failure. */
void state_file_fail_after(struct state_file *f, long bytes);

#endif
