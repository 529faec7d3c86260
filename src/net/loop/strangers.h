/* strangers.h: the connections of one kind of port that have not said yet who they are: an address cannot have many, all together are
 * few and take little memory, and when one more comes the oldest goes. Who speaks at once is no stranger for long; who stays silent
 * keeps nobody out. */
#ifndef PAWL_NET_STRANGERS_H
#define PAWL_NET_STRANGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

/* What a TLS handshake takes at most: OpenSSL's state, and room for the largest message that it lets the other side announce. Measured
 * with OpenSSL 3.0: 48 KB of one that is half done, 181 KB of one that announces a message of 130,000 bytes. */
#define STRANGER_TLS_BYTES (256u << 10)
#define STRANGER_PLAIN_BYTES (4u << 10) /* of a plain connection */

/* Why a stranger was closed for a newer one. */
extern const char strangers_evicted[];

struct stranger_address { /* IPv4 mapped into IPv6; a Unix socket: zeros */
	uint8_t ip[16];
};

struct stranger { /* part of a connection; zeroed: it is no stranger */
	struct list in;
	struct stranger_address address;
	size_t bytes; /* that it may take; set by the owner */
};

struct strangers_limits {
	uint32_t count, per_address; /* per_address: of one IPv4 address, one IPv6 network of 64 bits, or all Unix sockets */
	size_t bytes;
};

struct strangers_counts {
	uint32_t now;              /* connections that have not said who they are */
	uint64_t evicted, refused; /* since the start: closed for a newer one; closed for any other reason */
};

struct strangers {
	struct list all; /* oldest first */
	uint32_t count;
	size_t bytes;
};

void strangers_init(struct strangers *s);
/* Who must go before the newcomer, which has its address and bytes, can be added; ask again until it is NULL: there is room. One for
 * which busy() says true waits for this node and not for the other side: it goes only if all that could go are busy. */
struct stranger *strangers_victim(const struct strangers *s, const struct strangers_limits *limits, const struct stranger *newcomer,
	bool (*busy)(const struct stranger *stranger));
struct stranger *strangers_oldest(const struct strangers *s); /* NULL: there is none */
void strangers_add(struct strangers *s, struct stranger *stranger);
bool strangers_remove(struct strangers *s, struct stranger *stranger); /* false: it was none */

/* The address of the other end of a socket. */
struct stranger_address stranger_address_of(int fd);

#endif
