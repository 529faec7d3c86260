/* memcached.h: clients of memcached take, renew and release locks of Pawl with the commands that
 * they have for that (docs/memcached.md). It is a dialect (dialect.h): commands come in as bytes,
 * and requests of the client protocol go out. */
#ifndef PAWL_MEMCACHED_H
#define PAWL_MEMCACHED_H

#include "dialect.h"

/* The settings of [memcached]. */
struct memcached_settings {
	/* A client counts its time from the answer, and a lease counts from the request; so a lease
	 * is this much longer than the client asks for, and than it is shown. In nanoseconds. */
	span_ns slack;
	/* How long an add may wait for its turn, in nanoseconds; 0 is one try. */
	span_ns patience;
	/* Locks without an end are kept by the node, instead of refused. */
	bool keeps;
	/* A set of a key that is held breaks the lock, and a replace gives it another value,
	 * instead of being refused. */
	bool overwrites;
	/* flush_all is served (pawld --dev). */
	bool dev;
};

/* What all connections share. */
struct memcached_server {
	struct memcached_settings settings;
};

/* The dialect, whose server is a struct memcached_server. */
extern const struct dialect memcached_dialect;

#endif
