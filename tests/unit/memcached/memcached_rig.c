/* memcached_rig.c: see memcached_rig.h. */
#include "memcached_rig.h"

struct memcached_server rig_server;

int rig_connect(void **state) {
	rig_server = (struct memcached_server){ .settings = { .slack = 100 * SPAN_MS } };
	return rig_open(state, &memcached_dialect, &rig_server, RIG_SECONDS * INT64_C(1000));
}
