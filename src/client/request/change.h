/* change.h: a change of the cluster as the library keeps it, with its own copy of everything. */
#ifndef PAWL_CLIENT_CHANGE_H
#define PAWL_CLIENT_CHANGE_H

#include "client.h"
#include "pawl/change.h"

/* What is copied behind the request, in bytes; 0 or PAWL_EINVAL: the library cannot send it. */
int change_size(const struct pawl_change *change, size_t *out_size);

/* Sets method, present and core.change of `wire`. `room` has change_size bytes, aligned as malloc aligns. */
void change_fill(struct client_request *wire, const struct pawl_change *change, void *room);

#endif
