/* top.h: the top of the client: how it is made, and who hears of its events. */
#ifndef PAWL_CLIENT_TOP_H
#define PAWL_CLIENT_TOP_H

#include "client_core.h"

/* Makes a client as pawl_new does, with the given environment. `env` is copied; its allocator is
 * borrowed. Free the client with pawl_free. */
int client_core_new(const struct pawl_options *options, const struct env *env, struct pawl **out,
	const char **out_problem);
/* Makes a guest; see struct client_core_handlers. */
struct pawl *client_core_guest(struct pawl *host, const char *endpoints);
void client_core_destroy(struct pawl *client);

/* Defined in events.c. */
extern const struct client_core_handlers client_handlers;

#endif
