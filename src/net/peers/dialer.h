/* dialer.h: turns an address into a socket that is connecting. Names are looked up in a thread, so
 * that a name server that hangs delays this connection only.
 */
#ifndef PAWL_NET_DIALER_H
#define PAWL_NET_DIALER_H

struct dialer;
struct event_base;

/* Called once, on the loop, with a non-blocking socket that is connecting, or with -1 if there is
 * nothing to connect to. It is not called after dialer_free. */
typedef void dialer_dialled(void *ctx, int take_fd);

/* Returns 0, PAWL_EINVAL (`address` is not an address) or PAWL_ENOMEM. If a name has several
 * addresses, `attempt` picks one of them. */
int dialer_new(struct event_base *base, const char *address, unsigned attempt,
	dialer_dialled *dialled, void *ctx, struct dialer **out);
/* Accepts NULL. It is also allowed after dialled(), and from within it. */
void dialer_free(struct dialer *d);

#endif
