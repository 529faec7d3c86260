/* memcached_rig.h: a connection of a client of memcached without a node: the test says what the
 * commands are, and how the node answers. Test programs include unit.h before. */
#ifndef PAWL_TESTS_MEMCACHED_RIG_H
#define PAWL_TESTS_MEMCACHED_RIG_H

#include "client.h"
#include "memcached.h"
#include "pawl/error.h"

/* A connection, and what it says. */
struct connection {
	struct allocator alloc;
	struct dialect_node node;
	struct memcached_server server;
	void *memcached;
	struct buffer out, answer;
	const struct client_request *request;
	/* What is written does not leave. */
	bool unsent;
	uint8_t drawn;
	int64_t now;
	/* The lock that the node keeps, and the error that it says about that. */
	struct id128 kept;
	int keep_error;
	/* Every lock that is read has no end. */
	bool endless;
	/* The value of a lock that is read was set by the write with this clock; 0: it came with
	 * the lock. */
	uint64_t written;
	/* The identity of the locks that are read; the connection has none. */
	const char *identity;
};

/* The setup and the teardown of a test. The time of day is RIG_SECONDS since 1970, the longest
 * lease is 60 s, and the slack 100 ms. */
#define RIG_SECONDS 1700000000
int rig_connect(void **state);
int rig_disconnect(void **state);

/* Hands over a command without its last line break, which must be taken whole. */
enum dialect_step rig_command(struct connection *c, const char *text);
/* Hands over an answer. */
enum dialect_step rig_reply(struct connection *c, const struct core_reply *core);
/* Answers with an error, and the message "so it is". */
enum dialect_step rig_refused(struct connection *c, int error);

/* Answers that the key is held with this value and label, or free with a value of NULL. */
enum dialect_step rig_read(struct connection *c, const char *value, const char *label,
	int64_t left_ms);
/* Answers that the key was taken, with the fencing token 42; that the lease was extended; and that
 * the value was set, by the write with the clock 50. */
enum dialect_step rig_taken(struct connection *c);
enum dialect_step rig_extended(struct connection *c);
enum dialect_step rig_updated(struct connection *c);
enum dialect_step rig_released(struct connection *c);
/* Answers that the lock with the token 42 was broken. */
enum dialect_step rig_broken(struct connection *c);

/* The client has been told exactly this since the last command. */
void rig_assert_said(struct connection *c, const char *expected);

#endif
