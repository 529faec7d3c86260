/* address.h: parses, resolves and prints the addresses that a node listens on or connects to:
 * `host:port`, `[v6]:port` and `unix:/path`.
 */
#ifndef PAWL_NET_ADDRESS_H
#define PAWL_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The size of a printed address, in bytes, with the terminating 0. */
#define ADDRESS_TEXT_BYTES 320

/* A parsed address. */
struct address {
	/* The address is a Unix socket, and host is its path. */
	bool local;
	/* "" and "*" stand for every interface. */
	char host[256];
	/* Digits. */
	char port[6];
};

/* Returns 0 or PAWL_EINVAL. */
int address_parse(const char *text, struct address *out);

/* An address as the kernel takes it. */
struct address_socket {
	struct sockaddr_storage addr;
	socklen_t size;
};

/* Fills in up to `max` socket addresses and returns how many there are. Looking up a name blocks;
 * with numeric_only, names are not looked up. Returns 0 if nothing is found. */
size_t address_resolve(const struct address *a, bool numeric_only,
	struct address_socket *out, size_t max);

/* Prints an address of a socket in the form that address_parse accepts; "unknown" if that is not
 * possible. */
void address_print(const struct sockaddr *addr, socklen_t size, char out[ADDRESS_TEXT_BYTES]);

/* Gives the address as IPv6, with an IPv4 address mapped into it. Returns false and leaves `out`
 * alone if the address is neither. */
bool address_ip(const struct sockaddr *addr, uint8_t out[16]);
/* Unix sockets count as loopback. */
bool address_is_loopback(const struct sockaddr *addr);

#endif
