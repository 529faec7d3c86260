/* dial.h: a client (pawl.h) that connects by a function of the program's: for a transport of its own. pawl_node_client (node.h) is
 * made of this.
 */
#ifndef PAWL_DIAL_H
#define PAWL_DIAL_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called from the loop whenever a connection is needed: gives a connected, non-blocking stream socket, which the client takes and
 * closes, or a negative PAWL_E... (the client tries again after a while). It must call nothing of the client. */
typedef int pawl_dial_fn(void *arg);

/* As pawl_new; options->endpoints must be NULL (else PAWL_EINVAL), and those of TLS are not used. `dial` may be called until the
 * client has been freed. pawl_endpoint calls the connection "inside". */
int pawl_new_dialled(const struct pawl_options *options, pawl_dial_fn *dial, void *arg, struct pawl **out_client, const char **out_message);

#ifdef __cplusplus
}
#endif
#endif
