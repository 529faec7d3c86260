/* service.h: what clients ask of the node, and what it remembers of them. Requests become events of the core through the driver;
 * its replies, and the events of keys that are watched, come back through driver_handlers. service_impl.h is the inside.
 */
#ifndef PAWL_NODE_SERVICE_H
#define PAWL_NODE_SERVICE_H

#include "driver.h"
#include "events.h"
#include "full.h"
#include "holdings.h"
#include "session_bindings.h"
#include "requests.h"
#include "sessions.h"

struct service_event { /* as those who watch are told of it */
	uint64_t number; /* of the news; 0: none */
	struct buffer bytes;
};

struct service {
	struct driver *driver;
	struct sessions *sessions; /* NULL: not started yet */
	struct requests requests;
	struct events events;
	struct session_bindings session_bindings;
	struct holdings holdings;
	struct full full;
	struct service_event last_events[2]; /* without lock_id, and with it */
	struct event *unwatched; /* goes off when nobody has watched anything for a while */
	struct event *sweep;     /* goes off when locks may have ended that count for a share */
	struct event *review;    /* goes off in the next turn while watches are to be judged by new access rules */
	uint64_t last_own;       /* id of what the node asks for itself */
	void (*on_drain_request)(void *ctx, uint64_t request_id);
	void *ctx;
};

/* Hangs itself into the driver, which is borrowed; sessions are given later. 0 or PAWL_ENOMEM, then, too, service_done.
 * `client_alloc`: what clients may take, for what they watch. */
int service_init(struct service *s, struct driver *driver, const struct allocator *alloc, const struct allocator *client_alloc);
/* Closes all sessions; before the driver is done. Accepts zeroed memory. */
void service_done(struct service *s);

extern const struct sessions_handlers service_sessions_handlers; /* ctx: the service */

void service_answer_done(struct service *s, uint64_t request_id, int error); /* a `drain` */

/* After a reload: connections that watch what they may not read any more, or as the administrators that they were, end, and so do
 * those that wait for what they may not have any more; over several turns of the loop. Until its watches were judged a connection is told nothing. */
void service_rules_changed(struct service *s);

#endif
