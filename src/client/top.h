/* top.h: the top of the client: what it is made with, and of which it consists. */
#ifndef PAWL_CLIENT_TOP_H
#define PAWL_CLIENT_TOP_H

#include "client_core.h"

/* What a program calls, with the world given: pawl_new's inside. `env` is copied, its allocator borrowed. */
int client_core_new(const struct pawl_options *options, const struct env *env, struct pawl **out, const char **out_problem);
void client_core_destroy(struct pawl *client);

extern const struct client_core_handlers client_handlers; /* events.c */

#endif
