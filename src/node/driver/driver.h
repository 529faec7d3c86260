/* driver.h: between the core and the world. Everything that happens becomes an event of the core; once a turn of the loop,
 * after all sockets that were readable have been read, what the core has to say leaves: one frame and one write for each
 * peer, one write for each client.
 *
 *   sockets, timer, disk --core_step--> core_out --driver_flush (deferred to the end of the turn)--> sockets, disk, log
 */
#ifndef PAWL_NODE_DRIVER_H
#define PAWL_NODE_DRIVER_H

#include <event2/event.h>

#include "client.h"
#include "core.h"
#include "net_loop.h"
#include "peer.h"
#include "peers.h"
#include "disk.h"
#include "rights.h"

struct log;
struct node_config;

#define DRIVER_LOCAL ((uint64_t)1 << 63)
#define DRIVER_OWN ((uint64_t)1 << 62) /* what the node asks for itself: nobody waits for the answer */

/* What is said to clients in a turn of the loop, in this order. */
struct driver_handlers {
	bool (*serve)(void *ctx); /* requests that have come in; true: there are more, for the next turn */
	void (*on_reply)(void *ctx, const struct core_reply *reply);
	void (*on_events)(void *ctx); /* after the replies: the core's events may be taken; whoever did it has heard that first */
	void (*flushed)(void *ctx);   /* the core has no output left: from here on what is an event of the core again may happen */
};

struct driver {
	struct event_base *base;
	struct core *core;
	struct core_out *out;
	struct log *log;           /* NULL: the process's */
	struct peers *peers;       /* NULL: not started yet */
	struct disk *disk;
	const struct driver_handlers *handlers; /* of clients */
	void *handlers_ctx;
	struct peer_decoder decoder;
	const struct node_config *config;
	struct instant last, started;
	int timer_fd;
	struct event *timer, *flush;
	int64_t armed_at; /* CLOCK_BOOTTIME at which the timer goes off; INT64_MAX: it does not */
	struct client_facts facts;
	struct tls_identity own_certificate; /* of this node; empty without TLS */
	char rights[2 * RIGHTS_DIGEST_BYTES + 1]; /* the digest of the file of rules in hex digits, or "none" */
	bool role_told; /* that the configuration makes this node a master, which its certificate does not let it be */
	const struct config_node *nodes[NODES_MAX]; /* the core's, by index */
	char names[NODES_MAX][NODE_NAME_MAX + 1];   /* of the same, as they were when the table was last looked at */
	/* What happened to links while the core's output was being written: told to it before anything else steps it. */
	uint64_t lost_links, closed_links; /* closed: of those that were lost, by the other side */
	void (*on_note)(void *ctx, const struct core_note *note);
	void *ctx;
	/* Requests of the program that the node is part of: their ids have DRIVER_LOCAL set. May be NULL. */
	void (*on_reply)(void *ctx, const struct core_reply *reply); /* borrowed; must not step */
	void (*on_changed)(void *ctx); /* something was noted, or the table of peers has changed; once a turn; must not step */
	void *local_ctx;
	bool changed;
	bool in_turn, again; /* requests are served and everything leaves; and then once more, when the sockets were looked at again */
};

/* The core, its output and the loop's events; handlers and connections are given later. Takes over nothing but the core. */
int driver_init(struct driver *d, struct event_base *base, struct core *take_core, const struct allocator *alloc);
void driver_done(struct driver *d); /* after peers and disk are gone; accepts zeroed memory */

/* One event. Links move with the core's table of peers, and those that the core gave up are reset, before anything else can be
 * read from them; the rest leaves later in this turn. */
void driver_step(struct driver *d, const struct core_event *event, struct instant now);
void driver_step_now(struct driver *d, const struct core_event *event);

/* Everything that may leave leaves now. */
void driver_flush(struct driver *d);
void driver_flush_later(struct driver *d);

/* At the start, before there is a network: what the core wants on disk, or false: nothing. */
bool driver_take_persist(struct driver *d, struct durable *state, uint64_t *seq);

/* Drops the links that certificates or roles forbid now: after a reload, and when the configuration has changed. The core is told. */
void driver_check_links(struct driver *d);

struct strangers_limits driver_strangers_limits(const struct node_config *config);
/* Makes the links of the nodes that the core knows; peers_start begins to dial. 0 or PAWL_ENOMEM. */
int driver_make_peers(struct driver *d, struct net_loop *loop, const struct peer_hello *hello, uint64_t seed);

/* driver_rights.c: after the start of the links, and after a reload: what the configuration's rules are is told to all nodes. */
void driver_set_rights(struct driver *d);
int driver_take_note(struct driver *d, uint32_t peer, struct slice body); /* not 0: it is none */
/* Appends this node's note if the peer is still to be told. True: there is something to write. */
bool driver_put_note(struct driver *d, uint32_t peer, struct buffer *to);

#endif
