/* synced.h: whole writes to files, and directories whose changes last. All functions block; errors
 * are PAWL_EIO with errno set.
 */
#ifndef PAWL_NODE_SYNCED_H
#define PAWL_NODE_SYNCED_H

#include <stddef.h>
#include <stdint.h>

/* Room for a directory of CONFIG_PATH_MAX bytes and one of our file names. */
#define SYNCED_PATH_MAX 1200

/* Writes "dir/name", and CHECKs that it fits. */
void synced_path(char out[SYNCED_PATH_MAX], const char *dir, const char *name);
/* Writes all bytes at the offset. The caller syncs the file. */
int write_all_at(int fd, const void *data, size_t size, uint64_t offset);
/* Makes renames and new names in the directory last. */
int synced_dir(const char *dir);

#endif
