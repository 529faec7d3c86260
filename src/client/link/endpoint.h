/* endpoint.h: where nodes can be reached: "host:port", "tls://host:port" and "unix:/path",
 * separated by commas. */
#ifndef PAWL_CLIENT_ENDPOINT_H
#define PAWL_CLIENT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "alloc.h"
#include "look_up.h"

#define ENDPOINTS_MAX 32
#define ENDPOINT_TEXT_MAX 320
#define ENDPOINT_ADDRESSES_MAX 8

/* A function of the program that makes a connection. It returns a connected, non-blocking socket or
 * a negative PAWL_E... value. */
struct endpoint_dial {
	/* NULL means that the client connects to an address. */
	int (*dial)(void *arg);
	void *arg;
};

struct endpoint_address {
	struct sockaddr_storage addr;
	socklen_t size;
	struct endpoint_dial by;
};

struct endpoint {
	/* The endpoint as the options have it. */
	char text[ENDPOINT_TEXT_MAX];

	/* The host; for a Unix socket its path. */
	char host[256];
	char port[6];
	bool tls, local;

	/* dial.c: used instead of an address if it is set. */
	struct endpoint_dial by;

	/* The addresses that the last look-up has found. */
	struct endpoint_address addresses[ENDPOINT_ADDRESSES_MAX];

	/* How many addresses there are (0 means that the name must be looked up), and the one to
	 * try. */
	size_t address_count, address_at;

	/* The look-up of the name, while it is under way. Its owner sets it. */
	struct look_up *look_up;
};

struct endpoint_list {
	const struct allocator *alloc;
	struct endpoint *items;
	size_t count;
};

/* Parses a list of endpoints. Returns 0, PAWL_ENOMEM, or PAWL_EINVAL with a sentence in
 * *out_problem (static storage). Free the list with endpoint_list_done. */
int endpoint_list_parse(struct endpoint_list *list, const struct allocator *alloc, const char *text,
	const char **out_problem);
void endpoint_list_done(struct endpoint_list *list);

/* Returns the address to try; NULL if none is known. Then the name must be looked up, and
 * endpoint_found takes what was found. */
const struct endpoint_address *endpoint_address(struct endpoint *e);
/* Takes the addresses that a look-up has found; NULL means none. */
void endpoint_found(struct endpoint *e, const struct addrinfo *found);
/* Notes that the present address failed. Returns whether there is another one to try; if there is
 * none, the name is looked up again next time. */
bool endpoint_next_address(struct endpoint *e);
/* Makes the next endpoint_address begin with the first address, of a name that is looked up
 * again. */
void endpoint_forget(struct endpoint *e);

#endif
