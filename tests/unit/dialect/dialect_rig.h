/* dialect_rig.h: a connection of a dialect without a node: commands go in, and the test answers the
 * requests that come out. */
#ifndef PAWL_TEST_DIALECT_RIG_H
#define PAWL_TEST_DIALECT_RIG_H

#include "unit.h"

#include "client.h"
#include "pawl/error.h"
#include "stand_in.h"

/* The lease of what lasts for so long, the slack included, by every clock with the drift of the
 * stand-in. */
#define RIG_LEASE(span) span_cover((span), 10000)

/* A connection, and what it says. */
struct connection {
	struct allocator alloc;
	struct stand_in node;
	const struct dialect *dialect;
	/* What the dialect has made for the connection. */
	void *state;
	struct buffer out, answer;
	const struct client_request *request;
	/* What followed from the last answer. */
	enum dialect_step step;
	/* Of the locks that are read: the identity of their holder, whether they have no end, the
	 * clock of the write that has set the value (0: it came with the lock), and the order, and
	 * whether a quorum has that. */
	const char *holder;
	bool endless, settled;
	uint32_t order;
	uint64_t written;
};

/* Opens a connection from 10.0.0.1:5, and closes it. *state is the struct connection. */
int rig_open(void **state, const struct dialect *dialect, void *server, int64_t unix_ms);
int rig_disconnect(void **state);

/* The client sends a command without its last line break, which must be taken whole, after all
 * replies so far have left. */
enum dialect_step rig_command(struct connection *c, const char *text);
/* The node answers the request; and it refuses it with the message "so it is". */
enum dialect_step rig_reply(struct connection *c, const struct core_reply *core);
enum dialect_step rig_refused(struct connection *c, int error);
/* The key that was read is held with this value and label for so long, or free with a value of
 * NULL. Its lock_id begins with 9, and its fencing token is 42. */
enum dialect_step rig_read(struct connection *c, const char *value, const char *label,
	int64_t left_ms);
/* The acquire has got its lock, with the fencing token 42; the lease was extended; the value was
 * set by the write with the clock 50; the lock was released; that with the token 42 was broken. */
enum dialect_step rig_taken(struct connection *c);
enum dialect_step rig_extended(struct connection *c);
enum dialect_step rig_updated(struct connection *c);
enum dialect_step rig_released(struct connection *c);
enum dialect_step rig_broken(struct connection *c);

/* The client has been told exactly this since the last command; and something that begins so. */
void rig_assert_said(struct connection *c, const char *expected);
bool rig_starts_with(const struct connection *c, const char *text);

#endif
