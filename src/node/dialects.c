/* dialects.c: what a dialect asks a node for. */
#include "dialects.h"

#include <openssl/rand.h>
#include <time.h>

#include "check.h"
#include "config_file.h"
#include "log.h"
#include "text.h"
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

static uint32_t dialects_masters(void *ctx) {
	const struct service *service = ctx;
	const struct config *config = core_config(service->driver->core);
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

static struct slice dialects_identity(void *ctx, uint64_t number) {
	return service_client_identity(ctx, number);
}

static int dialects_keep(void *ctx, uint64_t number, struct slice key, struct id128 lock_id,
	struct instant until) {
	return service_keep(ctx, number, key, lock_id, until);
}

static void dialects_reached_at(void *ctx, uint64_t number, char out[ADDRESS_MAX + 1]) {
	const struct service *service = ctx;
	char text[ADDRESS_TEXT_BYTES];
	sessions_reached_at(service->sessions, number, text);
	(void)text_copy(out, ADDRESS_MAX + 1, text);
}

static void dialects_unknown_script(void *ctx, uint64_t number, const char *sha1) {
	const struct service *service = ctx;
	struct session_who who;
	if (sessions_who(service->sessions, number, &who)) {
		log_untrusted(service->driver->log, "unknown_script", LOG_TEXT("sha1", sha1),
			LOG_BYTES("identity", who.identity), LOG_TEXT("from", who.from->address),
			LOG_TEXT("remedy",
				"pawl redis-script tells what it may mean; [redis.scripts] names "
				"its meaning"));
	}
}

void dialects_init(struct dialects *d, struct service *service, const struct node_config *config) {
	*d = (struct dialects){ .use_redis = { &redis_dialect, &d->node, &d->redis },
		.use_memcached = { &memcached_dialect, &d->node, &d->memcached } };
	d->node = (struct dialect_node){ .unix_ms = dialects_unix_ms, .draw = dialects_draw,
		.cluster = core_config(service->driver->core), .masters = dialects_masters,
		.now = dialects_now, .identity = dialects_identity, .keep = dialects_keep,
		.reached_at = dialects_reached_at, .unknown_script = dialects_unknown_script,
		.ctx = service };
	dialects_reload(d, config);
}

void dialects_reload(struct dialects *d, const struct node_config *config) {
	d->redis.settings = config->redis;
	d->memcached.settings = config->memcached;
	scripts_map(&d->redis.scripts, &config->redis_scripts);
}
