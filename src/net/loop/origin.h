/* origin.h: where a connection comes from, for logs and for operators. */
#ifndef PAWL_NET_ORIGIN_H
#define PAWL_NET_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "address.h"

#define ORIGIN_UNKNOWN (-1)
#define ORIGIN_GIDS_MAX 64
#define ORIGIN_IDENTITY_BYTES 32

struct origin {
	/* The other end: host:port; of a Unix socket, which has no address there, the path at which it came in. */
	char address[ADDRESS_TEXT_BYTES];
	/* How much of it names the machine: all but the port. */
	uint16_t host_bytes;
	/* It comes from this machine. */
	bool local;
	/* The process at the other end of a Unix socket, as it was when it connected; else ORIGIN_UNKNOWN. */
	int64_t uid, pid;
	/* Its groups, at that time too. `more_gids`: there are others. */
	uint32_t gids[ORIGIN_GIDS_MAX];
	uint32_t gid_count;
	bool more_gids;
};

/* Of a connection that was accepted at a listener with that address. */
void origin_of(int fd, const struct sockaddr *from, socklen_t size, const char *listener, struct origin *out);
/* Who is at the other end as far as the kernel says, for a connection without TLS from this machine: unix:uid:N, or plain. */
void origin_identity(const struct origin *from, char out[ORIGIN_IDENTITY_BYTES]);
/* One that only has a name. */
void origin_named(const char *name, struct origin *out);

#endif
