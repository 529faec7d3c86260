/* dialects.h: the other protocols that clients of a node may speak. */
#ifndef PAWL_NODE_DIALECTS_H
#define PAWL_NODE_DIALECTS_H

#include "memcached.h"
#include "redis.h"
#include "service.h"

/* It must stay where it is after dialects_init. */
struct dialects {
	struct dialect_node node;
	struct redis_server redis;
	struct memcached_server memcached;
	/* For listeners of clients of Redis, and of memcached. */
	struct dialect_use use_redis, use_memcached;
};

/* The service and the configuration are borrowed. */
void dialects_init(struct dialects *d, struct service *service, const struct node_config *config);
/* Takes over new settings. */
void dialects_reload(struct dialects *d, const struct node_config *config);

#endif
