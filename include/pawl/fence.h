/* fence.h: a store of the highest tokens seen, by name, for the process that guards a resource: a
 * file, a directory, a device, or a service that has no transactions of its own. A resource with
 * transactions (a database) keeps the number in its own table instead, as pawl_fence_check of
 * pawl.h shows: then the check and the write happen together or not at all.
 *
 * The rule is this: every request to the resource carries the token of the lock under which it is
 * made, and the resource refuses the request if a newer holder has been there. So a holder that was
 * stopped or cut off, and still believes that it holds the lock, does no harm once the next holder
 * has begun.
 *
 * A store is a file that grows by one small record for each new token until it is rewritten.
 * Records carry checksums. A token is on the disk (fsync) before it is allowed, so no crash forgets
 * it, not even a crash of the machine, as long as the disk keeps what it has confirmed. After a
 * crash, the token that was just being written may be stored although nobody was told that it is
 * allowed; an older token is then refused, which is only stricter. A half-written last record is
 * dropped when the file is opened next. A crash cannot make an older token pass. A file that is
 * damaged anywhere else is refused (PAWL_EIO) and never repaired by guessing. If you lose the file,
 * everything is forgotten: do not put it into a temporary directory.
 *
 * Several processes of one machine may use the same file: each check locks it (flock) and reads
 * what the others have added. Do not share it between machines over a network file system. `pawl
 * fence` and the Python package use the same files.
 *
 * A store does not depend on struct pawl: it has no client, no loop and no network. It belongs to
 * one thread at a time. After fork() the child must open the store again.
 */
#ifndef PAWL_FENCE_H
#define PAWL_FENCE_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_fence;

/* The largest size of a name in bytes. */
#define PAWL_FENCE_NAME_MAX 1024

/* Opens the file, and creates it with mode 0600 if it is missing; its directory must exist. If path
 * is NULL, the store is only in memory, for as long as the process lives. Returns 0, PAWL_EIO
 * (errno says why; 0 means that the file is damaged or is not such a store), PAWL_EINVAL or
 * PAWL_ENOMEM. Free the store with pawl_fence_close. */
int pawl_fence_open(const char *path, struct pawl_fence **out_fence);

/* Checks whether the holder of `token` may use what is stored under `name` (usually the key of the
 * lock). If the token is new, this blocks for the disk. The mode decides:
 *   - PAWL_EXCLUSIVE: the token must not be below any token seen, and from now on no token may be
 *     below it.
 *   - PAWL_SHARED, for readers: the token must not be below any exclusive token seen, and from now
 *     on no exclusive token may be below it. Readers do not disturb each other.
 *   - PAWL_PERMITS: the same as PAWL_SHARED. If each permit guards its own thing, put the permit
 *     number into the name and use PAWL_EXCLUSIVE.
 * Returns 0 if the holder may; the token is then recorded. PAWL_ELOST: a newer holder was here;
 * refuse the request. PAWL_EINVAL: the token is 0 or the name is too long. PAWL_EIO, PAWL_ENOMEM or
 * PAWL_EFULL (more than a million names): the answer is not known; refuse the request. If
 * out_highest is not NULL, then after 0 and PAWL_ELOST it is set to the highest token seen under
 * the name, this one included. */
int pawl_fence_store_check(struct pawl_fence *fence, struct pawl_bytes name, uint64_t token,
	enum pawl_mode mode, uint64_t *out_highest);

/* Gives the highest token seen under the name; 0 means none. It records nothing. Returns 0 (found
 * or not), PAWL_EIO or PAWL_ENOMEM. */
int pawl_fence_highest(struct pawl_fence *fence, struct pawl_bytes name, uint64_t *out_highest);

/* Closes the store and frees its memory. The file stays; a store that is only in memory is
 * forgotten. NULL is allowed. */
void pawl_fence_close(struct pawl_fence *take_fence);

#ifdef __cplusplus
}
#endif
#endif
