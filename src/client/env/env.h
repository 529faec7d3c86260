/* env.h: what a client takes from the world besides sockets: memory and the two clocks. Tests hand in their own. */
#ifndef PAWL_CLIENT_ENV_H
#define PAWL_CLIENT_ENV_H

#include <stdbool.h>

#include "alloc.h"
#include "clock.h"

struct env {
	const struct allocator *alloc;
	struct instant (*now)(void *ctx); /* both clocks, read together */
	void *ctx;
	bool manual; /* no timer of the system: whoever moves the clock calls client_core_tick */
};

const struct env *env_system(void);

static inline struct instant env_now(const struct env *env) {
	return env->now(env->ctx);
}

#endif
