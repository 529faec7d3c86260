/* origin.c: finds out where a connection comes from; for a Unix socket, which process is at the
 * other end.
 */
#include "origin.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "rights.h"

void origin_named(const char *name, struct origin *out) {
	*out = (struct origin){ .uid = ORIGIN_UNKNOWN, .pid = ORIGIN_UNKNOWN };
	snprintf(out->address, sizeof out->address, "%s", name);
	out->host_bytes = (uint16_t)strlen(out->address);
}

/* Stores the process's own group, and then the other groups that it is in. */
static void origin_groups(int fd, gid_t own, struct origin *out) {
	socklen_t size = (ORIGIN_GIDS_MAX - 1) * sizeof out->gids[0];
	out->gids[0] = own;
	out->gid_count = 1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &out->gids[1], &size) == 0) {
		out->gid_count += (uint32_t)(size / sizeof out->gids[0]);
	} else {
		/* The process is in more groups than there is room for. */
		out->more_gids = true;
	}
}

void origin_identity(const struct origin *from, char out[ORIGIN_IDENTITY_BYTES]) {
	if (from->uid == ORIGIN_UNKNOWN) {
		snprintf(out, ORIGIN_IDENTITY_BYTES, RIGHTS_PLAIN);
	} else {
		snprintf(out, ORIGIN_IDENTITY_BYTES, RIGHTS_UNIX "uid:%lld", (long long)from->uid);
	}
}

/* The kernel gives the credentials as they were at the time of connect(), so no process can pretend
 * to be another. */
static void origin_of_process(int fd, const char *listener, struct origin *out) {
	struct ucred process;
	socklen_t size = sizeof process;
	origin_named(listener, out);
	out->local = true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &size) == 0) {
		out->uid = process.uid;
		out->pid = process.pid;
		origin_groups(fd, process.gid, out);
	}
}

void origin_of(int fd, const struct sockaddr *from, socklen_t size, const char *listener,
	struct origin *out) {
	if (from->sa_family == AF_UNIX) {
		origin_of_process(fd, listener, out);
		return;
	}
	char address[ADDRESS_TEXT_BYTES];
	address_print(from, size, address);
	origin_named(address, out);
	const char *port = strrchr(address, ':');
	out->host_bytes = port ? (uint16_t)(port - address) : out->host_bytes;
	out->local = address_is_loopback(from);
}
