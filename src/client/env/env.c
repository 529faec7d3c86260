/* env.c: the environment of a client outside of tests: memory of the C library, and the two clocks
 * of the system. */
#include "env.h"

#include <time.h>

#include "check.h"

static int64_t clock_read(clockid_t id) {
	struct timespec ts;
	CHECK(clock_gettime(id, &ts) == 0);
	return (int64_t)ts.tv_sec * SPAN_S + ts.tv_nsec;
}

static struct instant system_now(void *ctx) {
	(void)ctx;
	return (struct instant){ .boot = clock_read(CLOCK_BOOTTIME),
		.raw = clock_read(CLOCK_MONOTONIC_RAW) };
}

static void *system_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	(void)ctx;
	struct allocator libc = alloc_libc(NULL);
	return libc.resize(libc.ctx, p, old_size, new_size);
}

const struct env *env_system(void) {
	static const struct allocator alloc = { .resize = system_resize };
	static const struct env env = { .alloc = &alloc, .now = system_now };
	return &env;
}
