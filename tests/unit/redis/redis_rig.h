/* redis_rig.h: the dialect of Redis without a node (dialect_rig.h). */
#ifndef PAWL_TEST_REDIS_RIG_H
#define PAWL_TEST_REDIS_RIG_H

#include "dialect_rig.h"

#include <stdio.h>

#include "redis.h"

/* What the connection of a test shares with others; made anew for each test, with a slack of
 * 100 ms. */
extern struct redis_server rig_server;

/* The setup of a test. It is 1,000 s after 1970. */
int rig_connect(void **state);
/* The key that was read is held with this value for so long, or free with NULL. */
enum dialect_step rig_read_as(struct connection *c, const char *value, int64_t left_ms);

/* A test with its setup and teardown. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_connect, rig_disconnect)

#endif
