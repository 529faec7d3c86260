/* client_connections.h: the answer to `clients`, as the server writes it, one connection after the other. */
#ifndef PAWL_WIRE_CLIENT_CONNECTIONS_H
#define PAWL_WIRE_CLIENT_CONNECTIONS_H

#include "client.h"
#include "pack.h"
#include "share.h"

enum client_connection_has {
	CLIENT_CONNECTION_PROCESS = 1 << 0, /* uid and pid */
	CLIENT_CONNECTION_OWN = 1 << 1
};

struct client_connection {
	uint32_t present; /* bits of enum client_connection_has */
	/* Its number at this node, which `kick` takes. */
	uint64_t client;
	struct slice identity, address;
	uint32_t uid, pid;
	/* How long it has been there, and how long it has said nothing. */
	span_ns age, silent;
	/* Requests since its beginning; those that are not answered yet; those of them that wait for others; what it watches. */
	uint64_t requests;
	uint32_t open, waits, watches;
	/* Bytes since its beginning; those that the client has not read yet; of the node's memory. */
	uint64_t received, sent, unsent, memory;
	/* It is the one that asks. */
	bool own;
};

#define CLIENT_SHARE_LIMITED(kind) (1u << (kind)) /* there is a limit */
#define CLIENT_SHARE_USED (1u << SHARE_KINDS)     /* what is used is known: of all kinds but the rate */
#define CLIENT_SHARE_IDENTITY (1u << (SHARE_KINDS + 1))
#define CLIENT_SHARE_ADDRESS (1u << (SHARE_KINDS + 2))

/* What an identity, an address, or those without an identity at an address (then both are there, and the identity is empty) have of the node. */
struct client_share {
	uint32_t present;
	/* Its number at this node. */
	uint64_t share;
	struct slice identity, address;
	uint64_t used[SHARE_KINDS], most[SHARE_KINDS];
};

/* An answer under way. */
struct client_connections {
	struct pack pack;
	struct pack_open result, list;
};
/* The same with shares instead of connections. */
void client_shares_begin(struct client_connections *c, uint32_t msgid, struct buffer *out);
void client_shares_put(struct client_connections *c, const struct client_share *item);
void client_connections_begin(struct client_connections *c, uint32_t msgid, struct buffer *out);
void client_connections_put(struct client_connections *c, const struct client_connection *item);
/* `node`: its name. 0, PAWL_ENOMEM, PAWL_ETOOLARGE: then the buffer is as it was at the beginning. */
int client_connections_end(struct client_connections *c, const char *node, bool more);

#endif
