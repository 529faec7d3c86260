/* address.h: `host:port`, `[v6]:port`, `unix:/path`. */
#ifndef PAWL_NET_ADDRESS_H
#define PAWL_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_BYTES 320

struct address {
	bool local;     /* a Unix socket: host is its path */
	char host[256]; /* "" or "*": every interface */
	char port[6];
};

/* 0 or PAWL_EINVAL. */
int address_parse(const char *text, struct address *out);

struct address_socket {
	struct sockaddr_storage addr;
	socklen_t size;
};

/* Fills up to `max` socket addresses. Blocks on names unless numeric_only; then, and where nothing is found, 0. */
size_t address_resolve(const struct address *a, bool numeric_only, struct address_socket *out, size_t max);

void address_print(const struct sockaddr *addr, socklen_t size, char out[ADDRESS_TEXT_BYTES]);
/* As IPv6, IPv4 mapped into it; false: it is neither, *out stays. */
bool address_ip(const struct sockaddr *addr, uint8_t out[16]);
bool address_is_loopback(const struct sockaddr *addr); /* Unix sockets are, too */

#endif
