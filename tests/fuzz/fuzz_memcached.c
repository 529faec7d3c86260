/* fuzz_memcached.c: any bytes are commands of a client of memcached, or end its connection. The
 * first byte chooses the settings, and the answers to the requests that the commands make. */
#include "fuzz_dialect.h"
#include "memcached.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct memcached_server server;
	const unsigned choice = size > 0 ? data[0] : 0;
	const struct fuzz_dialect f = { .dialect = &memcached_dialect, .server = &server,
		.unix_ms = INT64_C(1700000000000), .key_max = 250 };
	server.settings = (struct memcached_settings){ .slack = 100 * SPAN_MS,
		.keeps = choice & 128, .overwrites = choice & 64, .dev = choice & 32 };
	fuzz_dialect(&f, slice_of(data + (size > 0), size - (size > 0)), choice);
	return 0;
}
