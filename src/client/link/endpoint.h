/* endpoint.h: where nodes can be reached, as it is written in the options or in a file:
 *
 *   host:port, tls://host:port       one endpoint for each address of the host
 *   name:port@address                this address of the name alone (also with tls://)
 *   unix:/path                       a Unix socket
 *   srv:name, tls://srv:name         what the SRV records of the name say
 *   file:path                        what the file says
 */
#ifndef PAWL_CLIENT_ENDPOINT_H
#define PAWL_CLIENT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "slice.h"

#define ENDPOINT_TEXT_MAX 336

enum endpoint_kind {
	ENDPOINT_ADDRESS,
	ENDPOINT_UNIX,
	ENDPOINT_NAME,
	ENDPOINT_SRV,
	ENDPOINT_FILE
};

/* A function of the program that makes a connection. It returns a connected, non-blocking socket or
 * a negative PAWL_E... value. */
struct endpoint_dial {
	/* NULL means that the client connects to an address. */
	int (*dial)(void *arg);
	void *arg;
};

struct endpoint_address {
	struct sockaddr_storage addr;
	/* 0: the address is not known. */
	socklen_t size;
	/* Used instead of an address if it is set. */
	struct endpoint_dial by;
};

struct endpoint {
	/* The endpoint as the options would have it. */
	char text[ENDPOINT_TEXT_MAX];

	/* The host, whose name the node's certificate must carry; or the path of a socket or a
	 * file. */
	char host[256];
	char port[6];
	enum endpoint_kind kind;
	bool tls;

	/* Known from the start for addresses and Unix sockets. A name gets it by a look-up. */
	struct endpoint_address address;

	/* The number of the source in the list that has found this endpoint. */
	unsigned source;
};

/* Parses one endpoint. Returns NULL, or what is wrong (static storage). */
const char *endpoint_parse(struct slice text, struct endpoint *out);

/* Returns whether a connection can be made without any look-up. */
bool endpoint_located(const struct endpoint *e);
/* Returns whether both stand for the same address of the same source. */
bool endpoint_same(const struct endpoint *a, const struct endpoint *b);

#endif
