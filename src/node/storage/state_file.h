/* state_file.h: the small file of section 1 (docs/protocol.md): the identity of this node, its
 * boot, the configuration and the clock reservation.
 *
 * It is one file, STATE_DIR/state, with two slots that are written in turn. A torn write leaves the
 * other slot, which has the previous state. Each slot has a sequence number and a checksum; the
 * valid slot with the higher number counts. The space for both is written when the file is made, so
 * that on ordinary file systems a full disk does not stop later writes.
 */
#ifndef PAWL_NODE_STATE_FILE_H
#define PAWL_NODE_STATE_FILE_H

#include "core.h"
#include "problem.h"

/* The size of a slot: a multiple of every common block size, so that the slots share no block. */
#define STATE_SLOT_BYTES 40960

/* ---- bytes (pure) ---- */

/* What is in one slot. */
struct state_slot {
	/* Counts 1, 2, ... */
	uint64_t sequence;
	/* The cluster and the node to which the file belongs. */
	char cluster[NODE_NAME_MAX + 1], node[NODE_NAME_MAX + 1];
	struct durable durable;
};
/* Returns the number of bytes used. */
size_t state_encode(const struct state_slot *slot, uint8_t out[STATE_SLOT_BYTES]);
/* Returns 0 or PAWL_EPROTOCOL, and writes *out only on success. Bytes after those that the slot's
 * header announces are ignored. */
int state_decode(struct slice bytes, struct state_slot *out);
/* The inner part of state_decode: reads what the checksum covers, which is all but
 * *out->sequence. */
int state_decode_payload(struct slice payload, struct state_slot *out);

/* ---- the file ---- */
struct state_file;

/* Returns 0 if the directory is missing, or is closed to other accounts (folder.h); otherwise
 * PAWL_EINVAL with *problem set. */
int state_file_check(const char *dir, bool only_checked, struct problem *problem);
/* Makes the directory (0700) if it is missing, checks it as above, locks it against a second
 * daemon, and reads the state, which it then makes sure is on disk. If there is no file, it makes
 * one with a new identity. Blocks. Returns 0; or PAWL_EIO, PAWL_EINVAL or PAWL_ENOMEM with *problem
 * set: the directory is open to others or locked by another process, both slots are damaged, or the
 * file belongs to another cluster or node. *out_state is what core_new wants. */
int state_file_open(const char *dir, const char *cluster, const char *node, struct state_file **out,
	struct durable *out_state, struct problem *problem);
/* Writes and syncs the state. It blocks, so it is for a thread of its own, one call at a time.
 * Returns 0; or PAWL_EIO with errno set, and then the previous state is still readable, and the
 * next write may be tried. */
int state_file_write(struct state_file *f, const struct durable *state);
/* Releases the lock. Accepts NULL. */
void state_file_close(struct state_file *f);

/* For tests: the writes of the following calls fail with ENOSPC after this many bytes; a negative
 * number means that they do not fail. */
void state_file_fail_after(struct state_file *f, long bytes);

#endif
