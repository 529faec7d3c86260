/* fence.h: a store of the highest tokens seen, by name, for the process that guards a resource: a file, a directory, a device,
 * a service without transactions of its own. A resource with transactions (a database) keeps the number in its own table
 * instead, as pawl_fence_check of pawl.h does: then the check and the write happen together or not at all.
 *
 * The rule: every request to the resource carries the token of the lock that it is made under, and is refused when somebody
 * newer was here. So whoever was stopped, or is cut off, and still believes to hold the lock, does no harm once the next one
 * has begun.
 *
 * A store is a file that only grows, by one small record for each token that is new, until it is written anew; records carry
 * checksums. A token is on disk before it is allowed (fsync), so that no crash, also not of the machine, forgets it, as far as
 * the disk keeps what it has confirmed. What a crash can do: the token that was being written may be kept although nobody was
 * told that it is allowed (then an older one is refused, which is only stricter), and a half-written last record is dropped
 * when the file is opened next. What it cannot do: make an older token pass. A file that is damaged anywhere else is refused
 * (PAWL_EIO), never repaired by guessing. Losing the file forgets everything: do not put it into a temporary directory.
 *
 * Several processes of one machine may use the same file: each check locks it (flock) and reads what the others have added. Do
 * not share it between machines over a network file system. `pawl fence` and the Python package keep the same file.
 *
 * Independent of struct pawl: no client, no loop, no network. A store belongs to one thread at a time. After fork() the child
 * must open the store again.
 */
#ifndef PAWL_FENCE_H
#define PAWL_FENCE_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_fence;

#define PAWL_FENCE_NAME_MAX 1024 /* bytes of a name */

/* Opens the file, and makes it (mode 0600) if it is missing; its directory must be there. path NULL: in memory only, for as
 * long as the process lives. 0; PAWL_EIO (errno tells; 0: the file is damaged, or no such store), PAWL_EINVAL, PAWL_ENOMEM. */
int pawl_fence_open(const char *path, struct pawl_fence **out_fence);

/* May the holder of `token` use what is stored under `name` (usually the lock's key)? Blocks for the disk where the token is
 * new.
 *   PAWL_EXCLUSIVE: not below any token seen, and raises the mark for everybody.
 *   PAWL_SHARED (readers): not below any exclusive token seen; exclusive ones must from now on not be below it. Readers do not
 *   disturb each other.
 *   PAWL_PERMITS: as PAWL_SHARED. Where each permit guards a thing of its own put its number into the name, and use
 *   PAWL_EXCLUSIVE. 0: yes, and it is recorded. PAWL_ELOST: somebody newer was here: refuse it. PAWL_EINVAL: token 0, a name
 *   that is too long. PAWL_EIO, PAWL_ENOMEM, PAWL_EFULL (more than a million names): not known: refuse it. out_highest, if not
 *   NULL, is set to the highest token seen under the name, this one included, on 0 and PAWL_ELOST. */
int pawl_fence_store_check(struct pawl_fence *fence, struct pawl_bytes name, uint64_t token, enum pawl_mode mode,
	uint64_t *out_highest);

/* The highest token seen under the name, 0: none. 0 (found or not), PAWL_EIO, PAWL_ENOMEM. Records nothing. */
int pawl_fence_highest(struct pawl_fence *fence, struct pawl_bytes name, uint64_t *out_highest);

/* NULL is allowed. Forgets only what was in memory. */
void pawl_fence_close(struct pawl_fence *take_fence);

#ifdef __cplusplus
}
#endif
#endif
