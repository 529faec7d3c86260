/* dial.h: a client (pawl.h) that gets its connections from a function of the program, for a
 * transport of the program's own. pawl_node_client (node.h) is built on this.
 */
#ifndef PAWL_DIAL_H
#define PAWL_DIAL_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The loop calls this whenever the client needs a connection. It returns a connected, non-blocking
 * stream socket, or a negative PAWL_E... value; then the client tries again after a while. The
 * client takes over the socket and closes it. The function must not call the client. */
typedef int pawl_dial_fn(void *arg);

/* Makes a client as pawl_new does. options->endpoints must be NULL (otherwise PAWL_EINVAL), and the
 * options for TLS are not used. `dial` may be called until the client has been freed. pawl_endpoint
 * returns "inside" while the client is connected. */
int pawl_new_dialled(const struct pawl_options *options, pawl_dial_fn *dial, void *arg,
	struct pawl **out_client, const char **out_message);

#ifdef __cplusplus
}
#endif
#endif
