/* listeners.h: the listeners of a node and the certificates that it shows there. */
#ifndef PAWL_NODE_LISTENERS_H
#define PAWL_NODE_LISTENERS_H

#include "config_file.h"
#include "dialects.h"
#include "monitor.h"
#include "node.h"
#include "service.h"
#include "tls_context.h"

/* One listener. */
struct node_listener {
	struct listeners *listeners;
	struct listener *listener;
	bool tls;
	/* The number of a listener for clients. */
	uint8_t number;
	/* Clients of Redis connect here; or those of memcached. */
	bool redis, memcached;
};

struct listeners {
	struct net_loop *loop;
	struct service *service;
	/* The configuration whose certificates are in `tls`; borrowed. */
	const struct node_config *config;
	/* The present certificates; empty without [tls]. */
	struct tls_contexts tls;
	/* Goes off once a day to check whether a certificate or a CRL ends soon. */
	struct event *ends;
	enum tls_client_auth client_auth;
	/* Borrowed. */
	const struct dialects *dialects;
	struct node_listener peer;
	struct node_listener clients[LISTEN_CLIENT_MAX];
	size_t client_count;
	/* The admin port. */
	struct node_listener admin;
	struct monitor *monitor;
};

/* Loads the certificates and listens. The driver's peers and the sessions must exist. `loop` is for
 * clients. The dialects must live as long as the sessions. Returns the errors of node_start;
 * listeners_close is needed after an error, too. */
int listeners_open(struct listeners *l, struct net_loop *loop, struct service *service,
	const struct dialects *dialects, const struct node_config *config,
	char why[NODE_WHY_BYTES]);
/* Opens the admin port, if there is one. Connections have their memory from `loop`, and not from
 * that of clients. Returns the same errors. */
int listeners_open_admin(struct listeners *l, struct net_loop *loop, struct monitor *monitor,
	const struct node_config *config, char why[NODE_WHY_BYTES]);
/* Loads new certificates for connections to come, and new lists of revoked ones; connections that
 * these forbid are closed. After an error everything is as it was. */
int listeners_reload(struct listeners *l, const struct node_config *config,
	char why[NODE_WHY_BYTES]);
/* Returns the files that [tls] names. They are borrowed from `config`. */
struct tls_files listeners_tls_files(const struct node_config *config);
/* Accepts zeroed memory. */
void listeners_close(struct listeners *l);

#endif
