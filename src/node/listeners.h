/* listeners.h: the listeners of a node and the certificates it shows at them. */
#ifndef PAWL_NODE_LISTENERS_H
#define PAWL_NODE_LISTENERS_H

#include "config_file.h"
#include "node.h"
#include "service.h"
#include "tls_context.h"

struct node_listener {
	struct listeners *listeners;
	struct listener *listener;
	bool tls;
};

struct listeners {
	struct net_loop *loop;
	struct service *service;
	const struct node_config *config; /* whose certificates `tls` has; borrowed */
	struct tls_contexts tls; /* of the present certificates; empty without [tls] */
	struct event *ends;      /* goes off once a day: does something end soon? */
	enum tls_client_auth client_auth;
	struct node_listener peer;
	struct node_listener clients[LISTEN_CLIENT_MAX];
	size_t client_count;
};

/* Loads the certificates and listens. The driver's peers and sessions must exist. Errors as node_start; then, too, listeners_close. */
int listeners_open(struct listeners *l, struct net_loop *loop, struct service *service, const struct node_config *config,
	char why[NODE_WHY_BYTES]);
/* New certificates for connections to come, and new lists of revoked ones: connections that these forbid are closed. On an error
 * everything stays as it was. */
int listeners_reload(struct listeners *l, const struct node_config *config, char why[NODE_WHY_BYTES]);
/* The files that [tls] names. Borrows from config. */
struct tls_files listeners_tls_files(const struct node_config *config);
void listeners_close(struct listeners *l); /* accepts zeroed memory */

#endif
