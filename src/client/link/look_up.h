/* look_up.h: looks a name up without making the client's loop wait. It runs in a thread of its own,
 * which lives for this one look-up (docs/decisions/0028). */
#ifndef PAWL_CLIENT_LOOK_UP_H
#define PAWL_CLIENT_LOOK_UP_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* The most addresses of one name; others are not used. */
#define LOOK_UP_PLACES_MAX 32

struct look_up_place {
	/* The host that has this address: of SRV records their target. */
	char host[256];
	char port[6];
	struct sockaddr_storage addr;
	socklen_t size;

	/* Places of a lower rank come first. Among those of the same rank chance decides, in
	 * proportion to the weight. */
	unsigned rank, weight;
};

struct look_up_found {
	size_t count;
	struct look_up_place places[LOOK_UP_PLACES_MAX];

	/* Why there are none. */
	char problem[320];
};

/* What is looked up: the addresses of the host; or its SRV records and the addresses of their
 * targets, and then the port is not used. */
struct look_up_wanted {
	char host[256];
	char port[6];
	bool srv;
};

/* Looks the name up, which may take long. Any thread may call this. `out` is zeroed. */
typedef void look_up_fn(const struct look_up_wanted *wanted, struct look_up_found *out);
void look_up_now(const struct look_up_wanted *wanted, struct look_up_found *out);

struct look_up;

/* Called by the loop, once. `found` is borrowed. The look-up is gone after this. */
typedef void look_up_done_fn(void *ctx, const struct look_up *look_up,
	const struct look_up_found *found);

/* Starts a look-up. Returns NULL if there is no memory or no thread for it. `wanted` is copied. */
struct look_up *look_up_start(struct event_base *base, look_up_fn *look,
	const struct look_up_wanted *wanted, look_up_done_fn *done, void *ctx);
/* Forgets the look-up, which may go on for a while: `done` is not called. NULL is allowed. */
void look_up_abandon(struct look_up *take_look_up);

/* ---- parts of look_up_now ---- */

/* Appends the addresses of the host, whose ranks begin with `rank`. */
void look_up_addresses(const char *host, const char *port, unsigned rank, unsigned weight,
	struct look_up_found *out);
/* Looks up SRV records (look_up_srv.c), and the addresses of their targets. */
void look_up_srv(const char *name, struct look_up_found *out);

#endif
