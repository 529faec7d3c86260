/* strangers.h: keeps count of the strangers of one kind of port, which are the connections that
 * have not said yet who they are. One address cannot have many of them, all together are few and
 * take little memory, and when one more comes, one of them is closed, by chance. A connection that
 * speaks at once is not a stranger for long, and one that stays silent keeps nobody else out.
 */
#ifndef PAWL_NET_STRANGERS_H
#define PAWL_NET_STRANGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"
#include "prng.h"

/* The largest amount of memory that a TLS handshake takes, in bytes: OpenSSL's state, and room for
 * the largest message that OpenSSL lets the other side announce. Measurements with OpenSSL 3.0
 * showed 48 KB for a handshake that is half done, and 181 KB for one that announces a message of
 * 130,000 bytes. */
#define STRANGER_TLS_BYTES (256u << 10)
/* The same for a plain connection. */
#define STRANGER_PLAIN_BYTES (4u << 10)

/* The message for a stranger that was closed in favour of a newer one. */
extern const char strangers_evicted[];

/* The IP address of a connection. An IPv4 address is mapped into IPv6; a Unix socket has zeros. */
struct stranger_address {
	uint8_t ip[16];
};

/* The part of a connection that counts it. While it is zeroed, the connection is no stranger. */
struct stranger {
	/* Link in strangers.all. */
	struct list in;
	struct stranger_address address;
	/* How many bytes the connection may take; the owner sets this. */
	size_t bytes;
};

/* What the strangers of one port may take. */
struct strangers_limits {
	/* The largest number of strangers: of all together, and of one address. One address here is
	 * an IPv4 address, an IPv6 network of 64 bits, or all Unix sockets together. */
	uint32_t count, per_address;
	/* The largest number of bytes that all of them together may take. */
	size_t bytes;
};

/* The strangers of one port in numbers. */
struct strangers_counts {
	/* The number of connections that have not said yet who they are. */
	uint32_t now;
	/* Totals since the start: strangers that were closed for a newer one, and strangers that
	 * were closed for any other reason. */
	uint64_t evicted, refused;
};

/* The strangers of one port. */
struct strangers {
	/* All strangers, the oldest first. */
	struct list all;
	/* Chooses those that have to go. */
	struct prng prng;
	uint32_t count;
	/* The sum of the bytes that they may take. */
	size_t bytes;
};

/* The seed is for the choice of those that have to go. */
void strangers_init(struct strangers *s, uint64_t seed);
/* Returns the stranger that must go before `newcomer`, whose address and bytes are set, can be
 * added. Ask again until the result is NULL, which means that there is room. A stranger for which
 * busy() is true waits for this node and not for the other side; it goes only if all candidates are
 * busy. */
struct stranger *strangers_victim(struct strangers *s, const struct strangers_limits *limits,
	const struct stranger *newcomer, bool (*busy)(const struct stranger *stranger));
/* Returns NULL if there is none. */
struct stranger *strangers_oldest(const struct strangers *s);
/* The stranger becomes the youngest one; its address and bytes are set. */
void strangers_add(struct strangers *s, struct stranger *stranger);
/* Returns false if the connection was no stranger. */
bool strangers_remove(struct strangers *s, struct stranger *stranger);

/* Returns the address of the other end of a socket. */
struct stranger_address stranger_address_of(int fd);

#endif
