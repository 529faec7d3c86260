/* fuzz_redis.c: any bytes are commands of a client of Redis, or end its connection. The first byte
 * chooses the settings, and the answers to the requests that the commands make. */
#include "fuzz_dialect.h"
#include "redis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct redis_server server;
	const unsigned choice = size > 0 ? data[0] : 0;
	const bool allowed = choice & 32;
	const struct fuzz_dialect f = { .dialect = &redis_dialect, .server = &server,
		.unix_ms = 1000000, .key_max = KEY_MAX };
	server = (struct redis_server){ .settings = { .slack = 100 * SPAN_MS, .keeps = allowed,
		.overwrites = allowed, .dev = allowed, .redlock = choice & 64,
		.master_name = "mymaster" } };
	fuzz_dialect(&f, slice_of(data + (size > 0), size - (size > 0)), choice);
	return 0;
}
