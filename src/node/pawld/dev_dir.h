/* dev_dir.h: the temporary state directory of `pawld --dev`. */
#ifndef PAWL_NODE_DEV_DIR_H
#define PAWL_NODE_DEV_DIR_H

#include "config_file.h"

/* Makes it under TMPDIR or /tmp. 0 or PAWL_EIO with *problem set. */
int dev_dir_make(char out[CONFIG_PATH_MAX], struct problem *problem);
/* Removes the files that a node makes there, and the directory. Nothing else: no walk over what somebody else put in. */
void dev_dir_remove(const char *dir);

#endif
