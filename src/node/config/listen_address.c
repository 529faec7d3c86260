/* listen_address.c: parses and prints the addresses to listen at. */
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/un.h>

#include "config_file.h"
#include "text.h"

_Static_assert(sizeof ((struct listen_address *)0)->path
	== sizeof ((struct sockaddr_un *)0)->sun_path, "a path fits a socket");

static const char listen_wanted[] = "write host:port, [v6-address]:port or unix:/path";

static const char *listen_parse_port(const char *text, uint16_t *out) {
	unsigned port = 0;
	size_t n = 0;
	for (; text[n] >= '0' && text[n] <= '9' && n < 6; n++) {
		port = port * 10 + (unsigned)(text[n] - '0');
	}
	if (n == 0 || text[n] != '\0' || port > 65535) {
		return "the port is not a number from 0 to 65535";
	}
	*out = (uint16_t)port;
	return NULL;
}

static const char *listen_parse_unix(const char *path, struct listen_address *out) {
	if (path[0] != '/') {
		return "the path of a Unix socket begins with /: write unix:/path";
	}
	if (strlen(path) >= sizeof out->path) {
		return "the path of a Unix socket has at most 107 characters";
	}
	*out = (struct listen_address){ .kind = LISTEN_UNIX };
	text_copy(out->path, sizeof out->path, path);
	return NULL;
}

const char *listen_address_parse(const char *text, bool tls, struct listen_address *out) {
	if (strncmp(text, "unix:", 5) == 0) {
		return listen_parse_unix(text + 5, out);
	}
	struct listen_address a = { .kind = tls ? LISTEN_TLS : LISTEN_PLAIN };
	if (strncmp(text, "plain:", 6) == 0) {
		a.kind = LISTEN_PLAIN;
		text += 6;
	}
	const char *host = text, *end = strrchr(text, ':'), *port = end ? end + 1 : NULL;
	if (text[0] == '[') {
		host = text + 1;
		end = strchr(host, ']');
		port = end && end[1] == ':' ? end + 2 : NULL;
	}
	if (!end || !port || end == host || (size_t)(end - host) > ADDRESS_MAX) {
		return listen_wanted;
	}
	memcpy(a.host, host, (size_t)(end - host));
	if (strpbrk(a.host, " \t[]/") || (text[0] != '[' && strchr(a.host, ':'))) {
		return listen_wanted;
	}
	const char *wrong = listen_parse_port(port, &a.port);
	if (!wrong) {
		*out = a;
	}
	return wrong;
}

bool listen_address_loopback(const struct listen_address *a) {
	if (a->kind == LISTEN_UNIX || strcmp(a->host, "localhost") == 0) {
		return true;
	}
	struct in_addr v4;
	if (inet_pton(AF_INET, a->host, &v4) == 1) {
		return (ntohl(v4.s_addr) >> 24) == 127;
	}
	struct in6_addr v6;
	return inet_pton(AF_INET6, a->host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

void listen_address_format(const struct listen_address *a, char *out, size_t size) {
	switch (a->kind) {
	case LISTEN_NONE:
		snprintf(out, size, "none");
		return;
	case LISTEN_UNIX:
		snprintf(out, size, "unix:%s", a->path);
		return;
	case LISTEN_TLS:
	case LISTEN_PLAIN:
		snprintf(out, size, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host,
			(unsigned)a->port);
		return;
	}
}
