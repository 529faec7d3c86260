/* listener.h: a listening socket, TCP or Unix. */
#ifndef PAWL_NET_LISTENER_H
#define PAWL_NET_LISTENER_H

#include <stdbool.h>

#include "net_loop.h"
#include "origin.h"

struct listener;

/* Takes over a connection that was accepted. The socket is non-blocking and has TCP_NODELAY. */
typedef void listener_accepted(void *ctx, int take_fd, const struct origin *from);

/* The size of the message that listener_new writes, in bytes. */
#define LISTENER_WHY_BYTES 512

/* Returns 0; or PAWL_EINVAL, PAWL_ENOMEM or PAWL_EUNREACHABLE with a sentence in `why`. The file of
 * a Unix socket on which nobody listens any more is replaced. A Unix socket may be used by its
 * owner and its group. */
int listener_new(struct net_loop *loop, const char *address, listener_accepted *accepted, void *ctx,
	struct listener **out, char why[LISTENER_WHY_BYTES]);
/* Accepts NULL. */
void listener_free(struct listener *l);
/* Makes the listener accept nothing while HANDSHAKES_WAITING_MAX or more handshakes wait for their
 * turn. Connections then wait in the kernel. */
void listener_pace(struct listener *l, const struct handshakes *borrowed_handshakes);
/* Returns the address to which the socket is bound. */
const char *listener_address(const struct listener *l);

#endif
