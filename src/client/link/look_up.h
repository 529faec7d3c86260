/* look_up.h: looks a host name up without making the client's loop wait. getaddrinfo runs in a
 * thread of its own, which lives for this one look-up (docs/decisions/0028). */
#ifndef PAWL_CLIENT_LOOK_UP_H
#define PAWL_CLIENT_LOOK_UP_H

#include <event2/event.h>
#include <netdb.h>

struct look_up;

/* Called by the loop, once. `found` is borrowed; NULL: the name has no address, or it could not be
 * looked up. The look-up is gone after this. */
typedef void look_up_done_fn(void *ctx, size_t which, const struct addrinfo *found);

/* Starts a look-up. Returns NULL if there is no memory or no thread for it. `host` and `port` are
 * copied. */
struct look_up *look_up_start(struct event_base *base, const char *host, const char *port,
	look_up_done_fn *done, void *ctx, size_t which);
/* Forgets the look-up, which may go on for a while: `done` is not called. NULL is allowed. */
void look_up_abandon(struct look_up *take_look_up);

#endif
