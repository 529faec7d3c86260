/* origin.h: where a connection comes from, for logs and for operators. */
#ifndef PAWL_NET_ORIGIN_H
#define PAWL_NET_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "address.h"

/* The value of a user or process id that is not known. */
#define ORIGIN_UNKNOWN (-1)

/* The largest number of listeners that are told apart. */
#define ORIGIN_LISTENERS 16

/* A process in more groups than this has more_gids. */
#define ORIGIN_GIDS_MAX 64

/* The size of an identity that origin_identity writes, in bytes, with the terminating 0. */
#define ORIGIN_IDENTITY_BYTES 32

/* Where one connection comes from. */
struct origin {
	/* The other end as host:port. The other end of a Unix socket has no address; then this is
	 * the path of the listener. */
	char address[ADDRESS_TEXT_BYTES];
	/* How many bytes of `address` name the machine: all but the port. */
	uint16_t host_bytes;
	/* The connection comes from this machine. */
	bool local;
	/* The user and the process at the other end of a Unix socket at the time when it connected;
	 * otherwise ORIGIN_UNKNOWN. */
	int64_t uid, pid;
	/* The groups of that process at the same time, its own group first. `more_gids` says that
	 * it is in further groups. */
	uint32_t gids[ORIGIN_GIDS_MAX];
	uint32_t gid_count;
	bool more_gids;
	/* The number of the listener, which its owner gives; below ORIGIN_LISTENERS. */
	uint8_t listener;
};

/* Finds the origin of a connection that was accepted by the listener with the address
 * `listener`. */
void origin_of(int fd, const struct sockaddr *from, socklen_t size, const char *listener,
	struct origin *out);
/* Says who is at the other end of a connection without TLS from this machine, as far as the kernel
 * knows: unix:uid:N, or plain. */
void origin_identity(const struct origin *from, char out[ORIGIN_IDENTITY_BYTES]);
/* Makes an origin that has nothing but a name. */
void origin_named(const char *name, struct origin *out);

#endif
