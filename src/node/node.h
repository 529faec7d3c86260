/* node.h: one node on the caller's event_base: the core, the disk behind it, the network in front of it.
 *
 * node_new -> node_start -> (node_reload)* -> node_drain -> node_free. Everything runs on the loop of the base but the
 * writes of the state file and the look-up of names, which have threads of their own.
 */
#ifndef PAWL_NODE_NODE_H
#define PAWL_NODE_NODE_H

#include <stdbool.h>
#include <stddef.h>

#define NODE_WHY_BYTES 512 /* room for a sentence that says what is wrong and what to do */

struct driver;
struct event_base;
struct log;
struct node;
struct node_config; /* config_file.h */
struct sessions;

struct node_options {
	struct event_base *base;          /* borrowed */
	struct log *log;                  /* borrowed; NULL: the process's (log.h) */
	const struct node_config *config; /* borrowed until node_free, or until node_reload hands in another */
	/* Called on the loop whenever the node begins (true) or ceases (false) to vote; may be NULL. For sd_notify. */
	void (*on_voting)(void *ctx, bool voting);
	void *ctx;
};

/* Locks and reads the state directory, restores a drain's side file, makes the core. 0, or a PAWL_E... with a sentence in `why`. */
int node_new(const struct node_options *options, struct node **out_node, char why[NODE_WHY_BYTES]);

/* Loads the certificates, opens the listeners, dials the peers. Errors as node_new; the node is then only good for node_free. */
int node_start(struct node *node, char why[NODE_WHY_BYTES]);

/* Stops voting, writes the side file and syncs it; `done` is called on the loop (never from within this call) with 0 or
 * PAWL_EIO. Clients are still answered (recovering) until node_free. A node that is drained already reports so again. */
int node_drain(struct node *node, void (*done)(void *ctx, int error), void *ctx); /* 0 or PAWL_ENOMEM */

/* New certificates, access rules and limits on clients, for connections that come after; the rest of the configuration
 * needs a restart. On an error everything stays as it was. */
int node_reload(struct node *node, const struct node_config *config, char why[NODE_WHY_BYTES]);

/* Closes everything at once; a write of the state file under way is waited for. Accepts NULL. */
void node_free(struct node *node);

/* For the program that the node is part of. */
struct driver *node_driver(struct node *node);
struct sessions *node_sessions(struct node *node); /* NULL: not started yet */

/* The address of the n-th client listener as it is really bound (port 0 resolved), such as "127.0.0.1:7117" or
 * "unix:/run/pawl.sock"; NULL when there is none. Valid until node_free. */
const char *node_client_address(const struct node *node, size_t n);
const char *node_peer_address(const struct node *node); /* likewise; NULL: no peer listener */

#endif
