/* fence_store.h: the inside of struct pawl_fence (pawl/fence.h). */
#ifndef PAWL_CLIENT_FENCE_STORE_H
#define PAWL_CLIENT_FENCE_STORE_H

#include "alloc.h"
#include "pawl/fence.h"

/* Does what pawl_fence_open does, with the given allocator, which is borrowed. */
int fence_store_open(const struct allocator *alloc, const char *path, struct pawl_fence **out);

#endif
