/* env.h: what a client takes from its environment besides sockets: memory and the two clocks. Tests
 * pass their own. */
#ifndef PAWL_CLIENT_ENV_H
#define PAWL_CLIENT_ENV_H

#include <stdbool.h>

#include "alloc.h"
#include "clock.h"

struct look_up_wanted;
struct look_up_found;

struct env {
	const struct allocator *alloc;

	/* Looks a name up, in a thread of its own (look_up.h); NULL: the system does. */
	void (*look_up)(const struct look_up_wanted *wanted, struct look_up_found *out);

	/* Returns both clocks, read together. */
	struct instant (*now)(void *ctx);
	void *ctx;

	/* There is no timer of the system. Whoever moves the clock calls client_core_tick. */
	bool manual;
};

const struct env *env_system(void);

static inline struct instant env_now(const struct env *env) {
	return env->now(env->ctx);
}

#endif
