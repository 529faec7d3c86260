/* redis_rig.c: see redis_rig.h. */
#include "redis_rig.h"

struct redis_server rig_server;

int rig_connect(void **state) {
	rig_server = (struct redis_server){ .settings = { .slack = 100 * SPAN_MS,
		.master_name = "mymaster" } };
	return rig_open(state, &redis_dialect, &rig_server, 1000000);
}

enum dialect_step rig_read_as(struct connection *c, const char *value, int64_t left_ms) {
	return rig_read(c, value, "", left_ms);
}
