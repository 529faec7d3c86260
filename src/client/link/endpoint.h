/* endpoint.h: where nodes can be reached: "host:port", "tls://host:port", "unix:/path", separated by commas. */
#ifndef PAWL_CLIENT_ENDPOINT_H
#define PAWL_CLIENT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "alloc.h"

#define ENDPOINTS_MAX 32
#define ENDPOINT_TEXT_MAX 320
#define ENDPOINT_ADDRESSES_MAX 8

/* How the program itself connects: a connected, non-blocking socket, or a negative PAWL_E... */
struct endpoint_dial {
	int (*dial)(void *arg); /* NULL: by an address */
	void *arg;
};

struct endpoint_address {
	struct sockaddr_storage addr;
	socklen_t size;
	struct endpoint_dial by;
};

struct endpoint {
	char text[ENDPOINT_TEXT_MAX]; /* as written */
	char host[256];               /* a Unix socket: its path */
	char port[6];
	bool tls, local;
	struct endpoint_dial by; /* dial.c: instead of looking up an address */
	struct endpoint_address addresses[ENDPOINT_ADDRESSES_MAX]; /* of the last look-up */
	size_t address_count, address_at; /* 0: look it up; the one to try */
};

struct endpoint_list {
	const struct allocator *alloc;
	struct endpoint *items;
	size_t count;
};

/* 0, PAWL_ENOMEM, or PAWL_EINVAL with a sentence in *out_problem (static storage). */
int endpoint_list_parse(struct endpoint_list *list, const struct allocator *alloc, const char *text,
	const char **out_problem);
void endpoint_list_done(struct endpoint_list *list);

/* The address to try, looked up when none is known: NULL when the name has none. May block in getaddrinfo unless the host is
 * an address. */
const struct endpoint_address *endpoint_address(struct endpoint *e);
/* The present address failed. True: there is another one to try. False: none is left, look it up again next time. */
bool endpoint_next_address(struct endpoint *e);
/* Look its addresses up again next time, and begin with the first. */
void endpoint_forget(struct endpoint *e);

#endif
