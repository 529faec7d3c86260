/* address.c: parses, resolves and prints addresses of sockets. */
#include "address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "pawl/error.h"

#define UNIX_PREFIX "unix:"

static int address_parse_path(const char *path, struct address *out) {
	struct address a = { .local = true };
	if (*path == 0 || strlen(path) >= sizeof ((struct sockaddr_un *)NULL)->sun_path) {
		return PAWL_EINVAL;
	}
	memcpy(a.host, path, strlen(path) + 1);
	*out = a;
	return 0;
}

int address_parse(const char *text, struct address *out) {
	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
		return address_parse_path(text + strlen(UNIX_PREFIX), out);
	}
	struct address a = { 0 };
	const char *colon = strrchr(text, ':');
	if (!colon) {
		return PAWL_EINVAL;
	}
	const char *host = text;
	size_t size = (size_t)(colon - text);
	if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
		host++;
		size -= 2;
	} else if (memchr(host, ':', size)) {
		/* In a bare IPv6 address nobody can tell which colon begins the port. */
		return PAWL_EINVAL;
	}
	char *end;
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (size >= sizeof a.host || colon[1] < '0' || colon[1] > '9' || *end || port > 65535) {
		return PAWL_EINVAL;
	}
	memcpy(a.host, host, size);
	snprintf(a.port, sizeof a.port, "%lu", port);
	*out = a;
	return 0;
}

static size_t address_of_path(const struct address *a, struct address_socket *out) {
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	/* address_parse has checked that the path fits. */
	memcpy(un.sun_path, a->host, strlen(a->host) + 1);
	memset(out, 0, sizeof *out);
	memcpy(&out->addr, &un, sizeof un);
	out->size = sizeof un;
	return 1;
}

size_t address_resolve(const struct address *a, bool numeric_only,
	struct address_socket *out, size_t max) {
	if (a->local) {
		return max > 0 ? address_of_path(a, out) : 0;
	}
	bool any = a->host[0] == 0 || strcmp(a->host, "*") == 0;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	if (numeric_only) {
		hints.ai_flags |= AI_NUMERICHOST;
	}
	if (getaddrinfo(any ? NULL : a->host, a->port, &hints, &list) != 0) {
		return 0;
	}
	size_t n = 0;
	for (const struct addrinfo *i = list; i && n < max; i = i->ai_next) {
		if (i->ai_addrlen <= sizeof out[n].addr) {
			memset(&out[n], 0, sizeof out[n]);
			memcpy(&out[n].addr, i->ai_addr, i->ai_addrlen);
			out[n++].size = i->ai_addrlen;
		}
	}
	freeaddrinfo(list);
	return n;
}

void address_print(const struct sockaddr *addr, socklen_t size, char out[ADDRESS_TEXT_BYTES]) {
	char host[64], port[8];
	if (addr->sa_family == AF_UNIX) {
		struct sockaddr_un un = { 0 };
		memcpy(&un, addr, size < sizeof un ? size : sizeof un);
		snprintf(out, ADDRESS_TEXT_BYTES, UNIX_PREFIX "%.*s",
			(int)sizeof un.sun_path, un.sun_path);
		return;
	}
	if (getnameinfo(addr, size, host, sizeof host, port, sizeof port,
		NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
		snprintf(out, ADDRESS_TEXT_BYTES, "unknown");
		return;
	}
	snprintf(out, ADDRESS_TEXT_BYTES, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

bool address_ip(const struct sockaddr *addr, uint8_t out[16]) {
	if (addr->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, addr, sizeof in);
		memset(out, 0, 10);
		memset(out + 10, 0xff, 2);
		memcpy(out + 12, &in.sin_addr, 4);
	} else if (addr->sa_family == AF_INET6) {
		struct sockaddr_in6 in;
		memcpy(&in, addr, sizeof in);
		memcpy(out, &in.sin6_addr, 16);
	}
	return addr->sa_family == AF_INET || addr->sa_family == AF_INET6;
}

bool address_is_loopback(const struct sockaddr *addr) {
	if (addr->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, addr, sizeof in);
		return ntohl(in.sin_addr.s_addr) >> 24 == 127;
	}
	if (addr->sa_family == AF_INET6) {
		struct sockaddr_in6 in;
		memcpy(&in, addr, sizeof in);
		return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr)
			|| (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr) && in.sin6_addr.s6_addr[12] == 127);
	}
	return addr->sa_family == AF_UNIX;
}
