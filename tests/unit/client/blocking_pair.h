/* blocking_pair.h: a client in the blocking style, with real clocks, and the only node that it
 * has. */
#ifndef PAWL_TESTS_BLOCKING_PAIR_H
#define PAWL_TESTS_BLOCKING_PAIR_H

#include "unit.h"

#include "client_rig.h"

/* The fake node runs on the client's own loop, so that one thread runs both. */
struct pair {
	struct fake_node node;
	struct pawl *client;
};

static void pair_open(struct pair *p) {
	const char *problem;
	fake_open(&p->node);
	struct pawl_options o = { .endpoints = p->node.endpoint, .timeout_ms = 2000 };
	assert_int_equal(pawl_new(&o, &p->client, &problem), 0);
	fake_attach(&p->node, p->client->base);
}

static void pair_close(struct pair *p) {
	fake_close(&p->node);
	pawl_free(p->client);
}

#endif
