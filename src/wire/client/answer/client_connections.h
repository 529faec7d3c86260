/* client_connections.h: the answer to `clients`, which the server writes one connection, or one
 * share, after the other. */
#ifndef PAWL_WIRE_CLIENT_CONNECTIONS_H
#define PAWL_WIRE_CLIENT_CONNECTIONS_H

#include "client.h"
#include "pack.h"
#include "share.h"

/* The fields that not every connection has. */
enum client_connection_has {
	/* The user and the process of a client on a Unix socket. */
	CLIENT_CONNECTION_PROCESS = 1 << 0,
	CLIENT_CONNECTION_OWN = 1 << 1
};

struct client_connection {
	/* The bits of enum client_connection_has. */
	uint32_t present;
	/* The number of the connection at this node, which `kick` takes. */
	uint64_t client;
	struct slice identity, address;
	uint32_t uid, pid;
	/* How long the connection has been there, and how long the client has said nothing, in
	 * nanoseconds. */
	span_ns age, silent;
	/* How many requests have come over the connection. */
	uint64_t requests;
	/* How many of them are not answered yet; how many of these wait for others; and how many
	 * watches the connection has. */
	uint32_t open, waits, watches;
	/* Bytes: those that came, those that were sent, those that the client has not read yet, and
	 * those of the node's memory that the connection uses. */
	uint64_t received, sent, unsent, memory;
	/* The request came over this connection. */
	bool own;
};

/* The bits of client_share.present: there is a limit for this kind; what is used is known, of all
 * kinds but the rate; and the share has an identity, and an address. */
#define CLIENT_SHARE_LIMITED(kind) (1u << (kind))
#define CLIENT_SHARE_USED (1u << SHARE_KINDS)
#define CLIENT_SHARE_IDENTITY (1u << (SHARE_KINDS + 1))
#define CLIENT_SHARE_ADDRESS (1u << (SHARE_KINDS + 2))

/* What an identity, or an address, has of the node, and may have of it. The clients without an
 * identity at one address have a share, too: it has both, and its identity is empty. */
struct client_share {
	/* The bits CLIENT_SHARE_.... */
	uint32_t present;
	/* The number of the share at this node. */
	uint64_t share;
	struct slice identity, address;
	/* For each kind, how much is used, and the limit. */
	uint64_t used[SHARE_KINDS], max[SHARE_KINDS];
};

/* An answer that is being written. */
struct client_connections {
	struct pack pack;
	struct pack_open result, list;
};
/* Begin an answer with shares, and add one. */
void client_shares_begin(struct client_connections *c, uint32_t msgid, struct buffer *out);
void client_shares_put(struct client_connections *c, const struct client_share *item);
/* Begin an answer with connections, and add one. */
void client_connections_begin(struct client_connections *c, uint32_t msgid, struct buffer *out);
void client_connections_put(struct client_connections *c, const struct client_connection *item);
/* Ends the answer, of either sort. `node` is the name of the node; `more` says that the list was
 * cut short. Returns 0, PAWL_ENOMEM or PAWL_ETOOLARGE; after an error the buffer is as it was
 * before the answer began. */
int client_connections_end(struct client_connections *c, const char *node, bool more);

#endif
