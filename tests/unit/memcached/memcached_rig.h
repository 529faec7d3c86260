/* memcached_rig.h: the dialect of memcached without a node (dialect_rig.h). */
#ifndef PAWL_TESTS_MEMCACHED_RIG_H
#define PAWL_TESTS_MEMCACHED_RIG_H

#include "dialect_rig.h"

#include "memcached.h"

/* What the connection of a test shares with others; made anew for each test, with a slack of
 * 100 ms. */
extern struct memcached_server rig_server;

/* The setup of a test. The time of day is RIG_SECONDS since 1970. */
#define RIG_SECONDS 1700000000
int rig_connect(void **state);

#endif
