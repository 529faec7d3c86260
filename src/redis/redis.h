/* redis.h: clients of Redis take, renew and release locks of Pawl with the commands and scripts
 * that they have for that (docs/redis.md). It is a dialect (dialect.h): commands come in as bytes,
 * and requests of the client protocol go out. */
#ifndef PAWL_REDIS_H
#define PAWL_REDIS_H

#include "dialect.h"
#include "script.h"

/* The settings of [redis]. */
struct redis_settings {
	/* A client counts its time from the answer, and a lease counts from the request; so a lease
	 * is this much longer than the client asks for, and than it is shown. In nanoseconds. */
	span_ns slack;
	/* How long a SET with NX may wait for its turn, in nanoseconds; 0 is one try. */
	span_ns patience;
	/* Locks without an end are kept by the node, instead of refused. */
	bool keeps;
	/* A plain SET of a key that is held breaks the lock, and a SET with XX gives it another
	 * value, instead of being refused. */
	bool overwrites;
	/* A lock that was taken with the same value, through whichever node, counts as taken by
	 * whoever tries to take it with that value. */
	bool redlock;
	/* Commands that look at all keys are served (pawld --dev). */
	bool dev;
	/* The host:port at which clients reach this node; empty: where they have connected. */
	char advertise[ADDRESS_MAX + 1];
	/* The name by which clients ask Sentinels for their master. */
	char master_name[NODE_NAME_MAX + 1];
};

/* What all connections share. */
struct redis_server {
	struct redis_settings settings;
	struct scripts scripts;
};

/* The dialect, whose server is a struct redis_server. */
extern const struct dialect redis_dialect;

#endif
