/* redis_rig.h: the dialect of Redis without a node: commands go in, and the test answers the
 * requests that come out. */
#ifndef PAWL_TEST_REDIS_RIG_H
#define PAWL_TEST_REDIS_RIG_H

#include "unit.h"

#include <stdio.h>

#include "client.h"
#include "pawl/error.h"
#include "redis.h"

/* A connection, and what it says. */
struct connection {
	struct allocator alloc;
	struct dialect_node node;
	struct redis_server server;
	void *redis;
	struct buffer out, answer;
	const struct client_request *request;
	uint8_t drawn;
	int64_t now;
	/* What followed from the last answer. */
	enum dialect_step step;
	/* The identity of the connection, and the address at which it has reached the node. */
	const char *identity, *reached_at;
	/* The lock that the node keeps, or the error that it says instead. */
	struct id128 kept;
	int keep_error;
	/* The SHA1 of a script that was not known. */
	char unknown[2 * SCRIPT_SHA1_BYTES + 1];
};

/* The setup and the teardown of a test, whose state is a struct connection. */
int rig_connect(void **state);
int rig_disconnect(void **state);

/* The client sends an inline command, after all replies so far have left. */
enum dialect_step rig_command(struct connection *c, const char *line);
/* The node answers the request. */
enum dialect_step rig_reply(struct connection *c, const struct core_reply *core);
/* The key that was read is held with this value for so long, or free with NULL. */
enum dialect_step rig_read_as(struct connection *c, const char *value, int64_t left_ms);
enum dialect_step rig_refused(struct connection *c, int error);
/* The acquire has got its lock. */
enum dialect_step rig_taken(struct connection *c);

void rig_assert_said(struct connection *c, const char *expected);
bool rig_starts_with(const struct connection *c, const char *text);

/* A test with its setup and teardown. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_connect, rig_disconnect)

#endif
