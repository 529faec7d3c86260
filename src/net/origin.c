#include "origin.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

void origin_named(const char *name, struct origin *out) {
	*out = (struct origin){ .uid = ORIGIN_UNKNOWN, .pid = ORIGIN_UNKNOWN };
	snprintf(out->address, sizeof out->address, "%s", name);
	out->host_bytes = (uint16_t)strlen(out->address);
}

/* The kernel says it, as of the time of connect(): nobody can pretend to be another process. */
static void origin_of_process(int fd, const char *listener, struct origin *out) {
	struct ucred process;
	socklen_t size = sizeof process;
	origin_named(listener, out);
	out->local = true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &size) == 0) {
		out->uid = process.uid;
		out->pid = process.pid;
	}
}

void origin_of(int fd, const struct sockaddr *from, socklen_t size, const char *listener, struct origin *out) {
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
