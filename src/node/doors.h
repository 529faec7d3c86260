/* doors.h: the listeners of a node and the certificates it shows at them. */
#ifndef PAWL_NODE_DOORS_H
#define PAWL_NODE_DOORS_H

#include "config_file.h"
#include "driver.h"
#include "node.h"
#include "tls_context.h"

struct door {
	struct doors *doors;
	struct listener *listener;
	bool tls;
};

struct doors {
	struct net_loop *loop;
	struct driver *driver;
	const struct node_config *config; /* whose certificates `tls` has; borrowed */
	struct tls_contexts tls; /* of the present certificates; empty without [tls] */
	struct event *ends;      /* goes off once a day: does something end soon? */
	enum tls_client_auth client_auth;
	struct door peer;
	struct door clients[LISTEN_CLIENT_MAX];
	size_t client_count;
};

/* Loads the certificates and listens. The driver's peers and sessions must exist. Errors as node_start; then, too, doors_close. */
int doors_open(struct doors *d, struct net_loop *loop, struct driver *driver, const struct node_config *config,
	char why[NODE_WHY_BYTES]);
/* New certificates for connections to come, and new lists of revoked ones: connections that these forbid are closed. On an error
 * everything stays as it was. */
int doors_reload(struct doors *d, const struct node_config *config, char why[NODE_WHY_BYTES]);
/* The files that [tls] names. Borrows from config. */
struct tls_files doors_tls_files(const struct node_config *config);
void doors_close(struct doors *d); /* accepts zeroed memory */

#endif
