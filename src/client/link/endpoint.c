/* endpoint.c: reads one endpoint. */
#include "endpoint.h"

#include <netdb.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

static const char tls_prefix[] = "tls://", unix_prefix[] = "unix:", srv_prefix[] = "srv:",
	file_prefix[] = "file:";

static bool copy(char *out, size_t room, const char *from, size_t size) {
	if (size >= room) {
		return false;
	}
	memcpy(out, from, size);
	out[size] = '\0';
	return true;
}

static bool begins(const char *text, const char *prefix) {
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool port_valid(const char *port) {
	unsigned value = 0;
	if (*port == '\0') {
		return false;
	}
	for (const char *p = port; *p; p++) {
		if (*p < '0' || *p > '9') {
			return false;
		}
		/* No overflow is possible, because at most five digits fit into the field. */
		value = value * 10 + (unsigned)(*p - '0');
	}
	return value >= 1 && value <= UINT16_MAX;
}

/* Takes the text as an address, and looks nothing up. */
static bool parse_address(const char *host, struct endpoint *e) {
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST };
	struct addrinfo *found = NULL;
	if (getaddrinfo(host, e->port, &hints, &found) != 0) {
		return false;
	}
	bool fits = found->ai_addrlen <= sizeof(e->address.addr);
	if (fits) {
		memcpy(&e->address.addr, found->ai_addr, found->ai_addrlen);
		e->address.size = found->ai_addrlen;
	}
	freeaddrinfo(found);
	return fits;
}

/* Parses "host:port", "[v6]:port" or "name:port@address". */
static const char *parse_host_port(const char *text, struct endpoint *e) {
	const char *at = strchr(text, '@'), *end = at ? at : text + strlen(text);
	const char *host = text, *colon = memrchr(text, ':', (size_t)(end - text));
	if (!colon) {
		return "an endpoint lacks a port: write host:port";
	}
	size_t size = (size_t)(colon - text);
	if (text[0] == '[') {
		if (size < 3 || text[size - 1] != ']') {
			return "an endpoint in brackets must be written as [address]:port";
		}
		host++;
		size -= 2;
	} else if (memchr(text, ':', size)) {
		return "an IPv6 address needs brackets: [::1]:7000";
	}
	if (size == 0 || !copy(e->host, sizeof(e->host), host, size)) {
		return "an endpoint's host is empty or too long";
	}
	if (!copy(e->port, sizeof(e->port), colon + 1, (size_t)(end - colon - 1))
		|| !port_valid(e->port)) {
		return "an endpoint's port must be a number from 1 to 65535";
	}
	bool known = parse_address(at ? at + 1 : e->host, e);
	e->kind = known ? ENDPOINT_ADDRESS : ENDPOINT_NAME;
	return known || !at ? NULL : "what follows @ in an endpoint must be an address";
}

static const char *parse_unix(const char *path, struct endpoint *e) {
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	e->kind = ENDPOINT_UNIX;
	if (*path == '\0' || !copy(addr.sun_path, sizeof(addr.sun_path), path, strlen(path))) {
		return "the path of a Unix socket is empty or too long";
	}
	memcpy(e->host, addr.sun_path, sizeof(addr.sun_path));
	memcpy(&e->address.addr, &addr, sizeof(addr));
	e->address.size = sizeof(addr);
	return NULL;
}

/* Parses what follows the prefix: a path, or the name of SRV records. */
static const char *parse_rest(enum endpoint_kind kind, const char *rest, struct endpoint *e) {
	e->kind = kind;
	if (*rest == '\0' || !copy(e->host, sizeof(e->host), rest, strlen(rest))) {
		return kind == ENDPOINT_FILE
			? "the path of a file of endpoints is empty or too long"
			: "the name of SRV records is empty or too long";
	}
	return NULL;
}

const char *endpoint_parse(struct slice text, struct endpoint *e) {
	*e = (struct endpoint){ .kind = ENDPOINT_ADDRESS };
	if (text.size == 0) {
		return "an endpoint is empty";
	}
	if (!copy(e->text, sizeof(e->text), (const char *)text.data, text.size)) {
		return "an endpoint is too long";
	}
	if (begins(e->text, unix_prefix)) {
		return parse_unix(e->text + strlen(unix_prefix), e);
	}
	if (begins(e->text, file_prefix)) {
		return parse_rest(ENDPOINT_FILE, e->text + strlen(file_prefix), e);
	}
	if (strpbrk(e->text, "; ")) {
		return "endpoints are separated by commas alone: host:port,host:port";
	}
	e->tls = begins(e->text, tls_prefix);
	const char *rest = e->text + (e->tls ? strlen(tls_prefix) : 0);
	if (begins(rest, srv_prefix)) {
		return parse_rest(ENDPOINT_SRV, rest + strlen(srv_prefix), e);
	}
	if (!e->tls && strstr(rest, "://")) {
		return "an endpoint's scheme is unknown: write host:port, tls://host:port, "
			"unix:/path, srv:name or file:path";
	}
	return parse_host_port(rest, e);
}

bool endpoint_located(const struct endpoint *e) {
	return e->address.size || e->address.by.dial;
}

bool endpoint_same(const struct endpoint *a, const struct endpoint *b) {
	return a->source == b->source && a->address.size == b->address.size
		&& memcmp(&a->address.addr, &b->address.addr, a->address.size) == 0
		&& strcmp(a->host, b->host) == 0;
}
