/* synced.h: writes that are on disk when they return. All block; errors are PAWL_EIO with errno set. */
#ifndef PAWL_NODE_SYNCED_H
#define PAWL_NODE_SYNCED_H

#include <stddef.h>
#include <stdint.h>

#define SYNCED_PATH_MAX 1200 /* a directory of CONFIG_PATH_MAX and a name of ours */

/* "dir/name"; CHECKs that it fits. */
void synced_path(char out[SYNCED_PATH_MAX], const char *dir, const char *name);
int synced_write(int fd, const void *data, size_t size, uint64_t offset); /* all of it, at the offset */
int synced_dir(const char *dir);                                     /* makes renames and new names in it last */

#endif
