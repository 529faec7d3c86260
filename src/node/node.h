/* node.h: one node on the caller's event_base: the core, with the disk behind it and the network in
 * front of it.
 *
 * The order of calls is node_new, node_start, any number of node_reload, node_drain, node_free.
 * Everything runs on the loop of the base, except writes of the state file and look-ups of names,
 * which have threads of their own.
 */
#ifndef PAWL_NODE_NODE_H
#define PAWL_NODE_NODE_H

#include <stdbool.h>
#include <stddef.h>

/* Room for a sentence that says what is wrong and what to do, in bytes. */
#define NODE_WHY_BYTES 512

struct driver;
struct event_base;
struct log;
struct node;
/* See config_file.h. */
struct node_config;
struct sessions;

struct node_options {
	/* Borrowed. */
	struct event_base *base;
	/* Borrowed. NULL means the log of the process (log.h). */
	struct log *log;
	/* Borrowed until node_free, or until node_reload gets another one. */
	const struct node_config *config;
	/* Called on the loop whenever the node begins (true) or ceases (false) to vote. May be
	 * NULL. It is for sd_notify. */
	void (*on_voting)(void *ctx, bool voting);
	void *ctx;
};

/* Locks and reads the state directory, and makes the core. Returns 0, or a PAWL_E... with a
 * sentence in `why`. */
int node_new(const struct node_options *options, struct node **out_node, char why[NODE_WHY_BYTES]);

/* Restores the side file of a drain, loads the certificates, opens the listeners, and dials the
 * peers. Returns the errors of node_new; after an error the node is good for node_free only. */
int node_start(struct node *node, char why[NODE_WHY_BYTES]);

/* Stops voting, writes the side file and syncs it. `done` is called on the loop, never from within
 * this call, with 0 or PAWL_EIO. Clients are still answered (recovering) until node_free. A node
 * that is already drained reports that again. Returns 0 or PAWL_ENOMEM. */
int node_drain(struct node *node, void (*done)(void *ctx, int error), void *ctx);

/* Takes new certificates, access rules and limits on clients, for connections to come; the rest of
 * the configuration needs a restart. After an error everything is as it was. */
int node_reload(struct node *node, const struct node_config *config, char why[NODE_WHY_BYTES]);

/* Opens the audit file anew, if there is one, because somebody may have moved it. To be called
 * after node_reload, also if that failed. */
void node_reopen(struct node *node);

/* Closes everything at once, but waits for a write of the state file that is under way. Accepts
 * NULL. */
void node_free(struct node *node);

/* For the program that the node is part of. */
struct driver *node_driver(struct node *node);
/* Returns NULL before the node is started. */
struct sessions *node_sessions(struct node *node);

/* Returns the address to which the n-th listener for clients is bound (with the actual port instead
 * of port 0), for example "127.0.0.1:7117" or "unix:/run/pawl.sock"; NULL if there is no such
 * listener. It is valid until node_free. */
const char *node_client_address(const struct node *node, size_t n);
/* Return the same for the listener for peers, and for the admin port; NULL if there is none. */
const char *node_peer_address(const struct node *node);
const char *node_admin_address(const struct node *node);

#endif
