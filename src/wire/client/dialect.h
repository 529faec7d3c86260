/* dialect.h: another protocol than MessagePack-RPC on a connection of a client. A dialect turns
 * the commands of such a connection into requests of the client protocol, one after the other, and
 * their answers into what the client expects. So a command has the rights, the limits, the turns
 * and the counts that its requests have. A dialect knows no sockets and no clocks; src/redis and
 * src/memcached are two of them.
 */
#ifndef PAWL_WIRE_DIALECT_H
#define PAWL_WIRE_DIALECT_H

#include "buffer.h"
#include "client_request.h"

/* What a dialect asks the node for. */
struct dialect_node {
	/* The time of day, in milliseconds since 1970. */
	int64_t (*unix_ms)(void *ctx);
	/* A random lock_id. */
	struct id128 (*draw)(void *ctx);
	/* The configuration of the cluster as the node knows it now, with the longest lease and the
	 * bound on the drift between two clocks; and how many masters it has. */
	const struct config *cluster;
	uint32_t (*masters)(void *ctx);
	/* The present. */
	struct instant (*now)(void *ctx);
	/* The identity under which a connection holds locks, which may be empty; valid until the
	 * next call of anything. The connection is named by its number, here and below. */
	struct slice (*identity)(void *ctx, uint64_t number);
	/* From now on the node extends a lock that the connection has just taken with the longest
	 * lease, until it is released or lost. Nobody else gets it before `until`. Returns 0,
	 * PAWL_EFULL or PAWL_ENOMEM. */
	int (*keep)(void *ctx, uint64_t number, struct slice key, struct id128 lock_id,
		struct instant until);
	/* Writes the address at which the connection has reached the node, as host:port; an empty
	 * text if it came over a Unix socket. */
	void (*reached_at)(void *ctx, uint64_t number, char out[ADDRESS_MAX + 1]);
	/* A script is not known, and was refused; `sha1` is in hex digits. */
	void (*unknown_script)(void *ctx, uint64_t number, const char *sha1);
	void *ctx;
};

enum dialect_step {
	/* Nothing is to be done before more bytes arrive. */
	DIALECT_MORE,
	/* A command has been served. */
	DIALECT_DONE,
	/* A command has been served, and the client is told that it has taken something. No other
	 * command is served before all that was written has left; then sent() is called. If the
	 * connection is gone before that, leave() is called. */
	DIALECT_TOLD,
	/* The request at *out_request is to be made. Nothing is served before its answer. */
	DIALECT_ASK,
	/* The connection is to be closed, after what was written has left. */
	DIALECT_CLOSE,
	/* There is no memory, or no room for an answer: the connection is to be ended. */
	DIALECT_BROKEN
};

/* The number of each request of a dialect, of which there is one at a time. */
#define DIALECT_MSGID 1

struct dialect {
	/* Makes what a new connection needs; `number` is that of the connection, and `from` is
	 * where it comes from. All pointers are borrowed. Returns NULL if there is no memory. */
	void *(*open)(const struct allocator *alloc, const struct dialect_node *node, void *server,
		uint64_t number, const char *from);
	void (*close)(void *state);
	/* Serves the command that `in` begins with, and appends what is to be answered at once to
	 * `out`. *out_taken is how many bytes of `in` it takes, which stay valid until the request
	 * has been made. */
	enum dialect_step (*serve)(void *state, struct slice in, size_t *out_taken,
		struct buffer *out, const struct client_request **out_request);
	/* Handles the answer to the request, which is one whole message. */
	enum dialect_step (*answer)(void *state, struct slice message, struct buffer *out,
		const struct client_request **out_request);
	/* Writes an error that answers no command, before the connection is closed; `message` is
	 * that of the client protocol. */
	void (*refuse)(void *state, struct slice message, struct buffer *out);
	/* The connection is gone. Returns what is to be asked for because an answer did not reach
	 * the client, or NULL. It is called until then. */
	const struct client_request *(*leave)(void *state);
	/* What was written has left after DIALECT_TOLD. A dialect without that step has none. */
	void (*sent)(void *state);
};

/* A dialect, and what its connections share: the node and the dialect's own settings. All is
 * borrowed. */
struct dialect_use {
	const struct dialect *dialect;
	const struct dialect_node *node;
	void *server;
};

#endif
