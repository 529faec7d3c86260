/* dialects.c: what a dialect asks a node for. */
#include "dialects.h"

#include <openssl/rand.h>
#include <time.h>

#include "check.h"
#include "config_file.h"
#include "time_source.h"

static int64_t dialects_unix_ms(void *ctx) {
	struct timespec now;
	(void)ctx;
	CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / SPAN_MS;
}

static struct id128 dialects_draw(void *ctx) {
	struct id128 drawn;
	(void)ctx;
	CHECK(RAND_bytes(drawn.b, sizeof drawn.b) == 1);
	return drawn;
}

static span_ns dialects_max_lease(void *ctx) {
	const struct driver *driver = ctx;
	return core_config(driver->core)->max_lease;
}

static uint32_t dialects_masters(void *ctx) {
	const struct driver *driver = ctx;
	const struct config *config = core_config(driver->core);
	uint32_t masters = 0;
	for (uint32_t i = 0; i < config->node_count; i++) {
		masters += config->nodes[i].master;
	}
	return masters;
}

static struct instant dialects_now(void *ctx) {
	(void)ctx;
	return time_source_now();
}

static uint32_t dialects_drift(void *ctx) {
	const struct driver *driver = ctx;
	return core_config(driver->core)->drift_ppm;
}

void dialects_init(struct dialects *d, struct driver *driver, const struct node_config *config) {
	*d = (struct dialects){ .node = { dialects_unix_ms, dialects_draw, dialects_max_lease,
		dialects_masters, dialects_now, dialects_drift, driver },
		.memcached = { .settings = { config->memcached_slack,
			config->memcached_patience } },
		.use_redis = { &redis_dialect, &d->node, &d->redis },
		.use_memcached = { &memcached_dialect, &d->node, &d->memcached } };
	dialects_reload(d, config);
}

void dialects_reload(struct dialects *d, const struct node_config *config) {
	d->redis.settings = config->redis;
	scripts_map(&d->redis.scripts, &config->redis_scripts);
}
