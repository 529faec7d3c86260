/* driver.h: stands between the core and the world. Everything that happens becomes an event of the
 * core. Once a turn of the loop, after all readable sockets have been read, the core's output
 * leaves, with one frame and one write for each peer, and one write for each client.
 *
 *   sockets, timer, disk --core_step--> core_out
 *          --driver_flush (deferred to the end of the turn)--> sockets, disk, log
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

/* Set in the ids of requests of the program that the node is part of. */
#define DRIVER_LOCAL ((uint64_t)1 << 63)
/* Set in the ids of requests that the node makes for itself; nobody waits for the answer. */
#define DRIVER_OWN ((uint64_t)1 << 62)
/* Set in the ids of the reads by which the node finds out whether a quorum answers. */
#define DRIVER_PROBE ((uint64_t)1 << 61)

/* How clients are served and answered in a turn of the loop. The handlers are called in this
 * order. */
struct driver_handlers {
	/* Serves the requests that have come in. Returns true if more are left for the next
	 * turn. */
	bool (*serve)(void *ctx);
	void (*on_reply)(void *ctx, const struct core_reply *reply);
	/* Called after the replies. The core's events may be taken now, because whoever caused an
	 * event has its reply before it. */
	void (*on_events)(void *ctx);
	/* The core has no output left. From here on, new events of the core may happen. */
	void (*flushed)(void *ctx);
	/* A member asks or tells something about clients that wait (peer_waits.h). This may come at
	 * any time. Returns 0, or an error if the link is to be closed. */
	int (*on_waits)(void *ctx, uint32_t peer, struct slice body);
};

/* The driver of one node. */
struct driver {
	struct event_base *base;
	struct core *core;
	struct core_out *out;

	/* NULL means the log of the process. */
	struct log *log;
	/* NULL until the node is started. */
	struct peers *peers;
	struct disk *disk;
	/* The handlers for clients. */
	const struct driver_handlers *handlers;
	void *handlers_ctx;
	struct peer_decoder decoder;
	const struct node_config *config;

	/* The latest time that the core was given, and the time of the node's start. What was read
	 * from a socket earlier may be handled later; the core's time does not go back for it. */
	struct instant last, started;

	/* A timer of CLOCK_BOOTTIME. `timer` goes off with it, for the core's timers; `flush` goes
	 * off when the core's output is to be written. */
	int timer_fd;
	struct event *timer, *flush;
	/* The instant of CLOCK_BOOTTIME at which the timer goes off; INT64_MAX means that it does
	 * not. */
	int64_t armed_at;

	struct client_context context;

	/* What is remembered of this node's own certificate; empty without TLS. */
	struct tls_identity own_certificate;
	/* The digest of the file of rules in hex digits, or "none". */
	char rights[2 * RIGHTS_DIGEST_BYTES + 1];
	/* The log has been told that the configuration makes this node a master, and that its
	 * certificate does not let it be one. */
	bool role_told;

	/* What the frames of this turn have in common. */
	struct peer_copies copies;

	/* The nodes of the core's table, by index. */
	const struct config_node *nodes[NODES_MAX];
	/* The names of these nodes when the table was last read. */
	char names[NODES_MAX][NODE_NAME_MAX + 1];

	/* Links that were lost while the core's output was being written. The core is told before
	 * anything else steps it. */
	/* Two sets of peer indexes: all links that were lost, and those of them that the other side
	 * closed. */
	uint64_t lost_links, closed_links;
	/* How many links of each peer were lost or reset since the start, by peer index. */
	uint64_t link_losses[NODES_MAX];
	/* The peers that may lack this node's note: a set of indexes. */
	uint64_t notes;
	/* The peers for which packets of driver_packet are in the buffers: a set of indexes. */
	uint64_t packets;
	/* How often the table of nodes was read: peer indexes mean the same while it stays. */
	uint64_t tables;
	/* Since then one of those links was not read (struct peers_handlers); zero if all were. */
	struct instant lost_since;

	void (*on_note)(void *ctx, const struct core_note *note);
	void *ctx;

	/* Gets the replies to the program that the node is part of; their ids have DRIVER_LOCAL
	 * set. May be NULL. The reply is borrowed, and the function must not step the core. */
	void (*on_reply)(void *ctx, const struct core_reply *reply);
	/* Something was noted, or the table of peers has changed. Called at most once a turn; it
	 * must not step the core. */
	void (*on_changed)(void *ctx);
	void *local_ctx;
	/* Gets the replies whose ids have DRIVER_PROBE set. NULL as long as there are none. The
	 * same holds as for on_reply. */
	void (*on_probe)(void *ctx, const struct core_reply *reply);
	void *probe_ctx;

	/* on_changed is due. */
	bool changed;
	/* `in_turn`: requests are being served, and output leaves. `again`: this is to happen once
	 * more, after the sockets have been polled again. */
	bool in_turn, again;
};

/* Sets up the core, its output and the events of the loop; handlers and connections are set later.
 * It takes over nothing but the core. Returns 0 or PAWL_ENOMEM. */
int driver_init(struct driver *d, struct event_base *base, struct core *take_core,
	const struct allocator *alloc);
/* To be called after peers and disk are gone. Accepts zeroed memory. */
void driver_done(struct driver *d);

/* Steps the core with one event. Links move with the core's table of peers, and the links that the
 * core gave up are reset, before anything else can be read from them. The rest of the output leaves
 * later in this turn. */
void driver_step(struct driver *d, const struct core_event *event, struct instant now);
/* Reads the clocks. Every time that the core is given, other than that of driver_step, comes from
 * here or is `last`, so that the core's time never goes back. */
struct instant driver_now(struct driver *d);
/* Does the same as driver_step, with the time now. */
void driver_step_now(struct driver *d, const struct core_event *event);

/* Everything that may leave leaves now. */
void driver_flush(struct driver *d);
/* Does that at the end of this turn of the loop. */
void driver_flush_later(struct driver *d);

/* Drops the links that certificates or roles forbid now, after a reload or when the configuration
 * has changed. The core is told. */
void driver_check_links(struct driver *d);

/* Returns the limits of the configuration for connections that have not said who they are. */
struct strangers_limits driver_strangers_limits(const struct node_config *config);
/* Makes the links to the nodes that the core knows; peers_start begins to dial. Returns 0 or
 * PAWL_ENOMEM. */
int driver_make_peers(struct driver *d, struct net_loop *loop, const struct peer_hello *hello,
	uint64_t seed);

/* To be called after the start of the links, and after a reload: all nodes are told the digest of
 * this node's rules (driver_rights.c). */
void driver_set_rights(struct driver *d);
/* Reads a peer's note. Returns 0, or an error if `body` is no note. */
int driver_take_note(struct driver *d, uint32_t peer, struct slice body);
/* Returns the buffer for a packet about clients that wait (peer_waits.h), which leaves at the end
 * of this turn; NULL if the peer is no member, or knows no such packets. */
struct buffer *driver_packet(struct driver *d, uint32_t peer);
/* Appends this node's note to what leaves for a peer that lacks it, if it accepts notes. Returns
 * true if there is something to write. */
bool driver_put_note(struct driver *d, uint32_t peer);

#endif
