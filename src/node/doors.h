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
	struct tls_contexts tls; /* of the present certificates; empty without [tls] */
	enum tls_client_auth client_auth;
	struct door peer;
	struct door clients[LISTEN_CLIENT_MAX];
	size_t client_count;
};

/* Loads the certificates and listens. The driver's peers and sessions must exist. Errors as node_start; then, too, doors_close. */
int doors_open(struct doors *d, struct net_loop *loop, struct driver *driver, const struct node_config *config,
	char why[NODE_WHY_BYTES]);
/* New certificates for connections to come; on an error the old ones stay. */
int doors_reload(struct doors *d, const struct node_config *config, char why[NODE_WHY_BYTES]);
void doors_close(struct doors *d); /* accepts zeroed memory */

#endif
