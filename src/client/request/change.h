/* change.h: a change of the cluster as the library keeps it, with its own copy of everything. */
#ifndef PAWL_CLIENT_CHANGE_H
#define PAWL_CLIENT_CHANGE_H

#include "client.h"
#include "pawl/change.h"

/* Computes how many bytes are copied behind the request. Returns 0, or PAWL_EINVAL if the library
 * cannot send the change. */
int change_size(const struct pawl_change *change, size_t *out_size);

/* Sets method, present and core.change of `wire`. `room` has as many bytes as change_size says,
 * aligned as malloc aligns. */
void change_fill(struct client_request *wire, const struct pawl_change *change, void *room);

#endif
