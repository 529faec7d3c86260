/* stand_in.h: what stands in for a node in tests of dialects: it says what a dialect asks a node
 * for, and encodes answers to the requests of the dialect. */
#ifndef PAWL_TEST_STAND_IN_H
#define PAWL_TEST_STAND_IN_H

#include "client.h"
#include "dialect.h"

/* The number of the only connection. The longest lease is 60 s, and there are three masters. */
#define STAND_IN_NUMBER 7
#define STAND_IN_LEASE (60 * SPAN_S)

struct stand_in {
	/* What the dialect gets. */
	struct dialect_node node;
	/* The time of day in milliseconds, and the present in nanoseconds; and by how much the
	 * present goes on when it is asked for. */
	int64_t unix_ms, now, passes;
	/* The identity of the connection, and the address at which it has reached the node. */
	const char *identity, *reached_at;
	/* How many lock_ids were drawn. The last one begins with this number. */
	uint8_t drawn;
	/* The lock that the node keeps, or the error that it says instead. One of so many is
	 * refused as one too many; 0: none is. */
	struct id128 kept;
	struct instant kept_until;
	char kept_key[KEY_MAX + 1];
	int keep_error;
	unsigned refuses, asked;
	/* The SHA1 of a script that was not known. */
	char unknown[64];
};

/* The pointers to texts may be changed afterwards. */
void stand_in_init(struct stand_in *s);

/* Encode an answer, and an error with the message "so it is", into the empty buffer. */
void stand_in_reply(const struct core_reply *core, struct buffer *out);
void stand_in_refuse(int error, struct buffer *out);

#endif
