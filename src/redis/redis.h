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
};

/* What all connections share. */
struct redis_server {
	struct redis_settings settings;
	struct scripts scripts;
};

/* The dialect, whose server is a struct redis_server. */
extern const struct dialect redis_dialect;

#endif
