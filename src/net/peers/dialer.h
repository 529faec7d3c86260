/* dialer.h: from an address to a socket that is connecting. Names are looked up in a thread, so that a name server that
 * hangs delays only this connection. */
#ifndef PAWL_NET_DIALER_H
#define PAWL_NET_DIALER_H

struct dialer;
struct event_base;

/* Called once, on the loop: a non-blocking socket that is connecting, or -1 (nothing to connect to). Not called after dialer_free. */
typedef void dialer_dialled(void *ctx, int take_fd);

/* 0, PAWL_EINVAL (not an address) or PAWL_ENOMEM. `attempt` picks one of several addresses that a name has. */
int dialer_new(struct event_base *base, const char *address, unsigned attempt, dialer_dialled *dialled, void *ctx,
	struct dialer **out);
void dialer_free(struct dialer *d); /* accepts NULL; also after dialled() and from within */

#endif
