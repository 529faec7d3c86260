/* listener.h: a listening socket, TCP or Unix. */
#ifndef PAWL_NET_LISTENER_H
#define PAWL_NET_LISTENER_H

#include <stdbool.h>

#include "net_loop.h"
#include "origin.h"

struct listener;

/* A connection: non-blocking, without delay. */
typedef void listener_accepted(void *ctx, int take_fd, const struct origin *from);

#define LISTENER_WHY_BYTES 512
/* 0; PAWL_EINVAL, PAWL_ENOMEM or PAWL_EUNREACHABLE with a sentence in `why`. A Unix socket that nobody listens on any more is
 * replaced; it may be used by its owner and group. */
int listener_new(struct net_loop *loop, const char *address, listener_accepted *accepted, void *ctx, struct listener **out,
	char why[LISTENER_WHY_BYTES]);
void listener_free(struct listener *l); /* accepts NULL */
/* Accepts nothing while more handshakes wait for their turn than HANDSHAKES_WAITING_MAX: connections then wait in the kernel. */
void listener_pace(struct listener *l, const struct handshakes *borrowed_handshakes);
const char *listener_address(const struct listener *l); /* as it is bound */

#endif
