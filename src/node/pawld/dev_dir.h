/* dev_dir.h: the temporary state directory of `pawld --dev`. */
#ifndef PAWL_NODE_DEV_DIR_H
#define PAWL_NODE_DEV_DIR_H

#include "config_file.h"

/* Makes the directory under TMPDIR or /tmp. Returns 0, or PAWL_EIO with *problem set. */
int dev_dir_make(char out[CONFIG_PATH_MAX], struct problem *problem);
/* Removes the files that a node makes there, and the directory. It removes nothing else, in
 * particular not what somebody else put into it. */
void dev_dir_remove(const char *dir);

#endif
