/* disk.h: writes that are on disk when they return. All block; errors are PAWL_EIO with errno set. */
#ifndef PAWL_NODE_DISK_H
#define PAWL_NODE_DISK_H

#include <stddef.h>
#include <stdint.h>

#define DISK_PATH_MAX 1200 /* a directory of CONFIG_PATH_MAX and a name of ours */

/* "dir/name"; CHECKs that it fits. */
void disk_path(char out[DISK_PATH_MAX], const char *dir, const char *name);
int disk_write(int fd, const void *data, size_t size, uint64_t offset); /* all of it, at the offset */
int disk_sync_dir(const char *dir);                                     /* makes renames and new names in it last */

#endif
