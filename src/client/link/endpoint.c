/* endpoint.c: reads endpoints, and looks up their addresses. */
#include "endpoint.h"

#include <netdb.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include "check.h"
#include "pawl/error.h"

static bool copy(char *out, size_t room, const char *from, size_t size) {
	if (size >= room) {
		return false;
	}
	memcpy(out, from, size);
	out[size] = '\0';
	return true;
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

/* Parses "host:port" or "[v6]:port". Returns NULL, or a sentence that says what is wrong. */
static const char *parse_host_port(const char *text, struct endpoint *e) {
	const char *host = text, *colon = strrchr(text, ':');
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
	if (!copy(e->port, sizeof(e->port), colon + 1, strlen(colon + 1)) || !port_valid(e->port)) {
		return "an endpoint's port must be a number from 1 to 65535";
	}
	return NULL;
}

static const char *parse_one(const char *text, size_t size, struct endpoint *e) {
	static const char unix_prefix[] = "unix:", tls_prefix[] = "tls://";
	if (size == 0) {
		return "an endpoint is empty";
	}
	if (!copy(e->text, sizeof(e->text), text, size)) {
		return "an endpoint is too long";
	}
	if (strncmp(e->text, unix_prefix, strlen(unix_prefix)) == 0) {
		const char *path = e->text + strlen(unix_prefix);
		struct sockaddr_un addr;
		e->local = true;
		if (*path == '\0' || strlen(path) >= sizeof(addr.sun_path)) {
			return "the path of a Unix socket is empty or too long";
		}
		return copy(e->host, sizeof(e->host), path, strlen(path))
			? NULL
			: "the path of a Unix socket is too long";
	}
	e->tls = strncmp(e->text, tls_prefix, strlen(tls_prefix)) == 0;
	if (!e->tls && strstr(e->text, "://")) {
		return "an endpoint's scheme is unknown: write host:port, tls://host:port or "
			"unix:/path";
	}
	return parse_host_port(e->text + (e->tls ? strlen(tls_prefix) : 0), e);
}

/* Cuts off the endpoint that begins at *text, without the blanks around it, and returns its size.
 * *text moves behind the comma; after the last endpoint it is NULL. */
static size_t cut(const char **text, const char **out_start) {
	const char *start = *text, *end = strchr(start, ',');
	*text = end ? end + 1 : NULL;
	if (!end) {
		end = start + strlen(start);
	}
	while (start < end && *start == ' ') {
		start++;
	}
	while (end > start && end[-1] == ' ') {
		end--;
	}
	*out_start = start;
	return (size_t)(end - start);
}

static size_t count_endpoints(const char *text) {
	size_t count = 1;
	for (const char *p = text; *p; p++) {
		count += *p == ',';
	}
	return count;
}

int endpoint_list_parse(struct endpoint_list *list, const struct allocator *alloc, const char *text,
	const char **out_problem) {
	*list = (struct endpoint_list){ .alloc = alloc };
	size_t count = text && *text ? count_endpoints(text) : 0;
	if (count == 0 || count > ENDPOINTS_MAX) {
		*out_problem = count ? "at most 32 endpoints are allowed" : "no endpoint is given";
		return PAWL_EINVAL;
	}
	list->items = alloc_new(alloc, count * sizeof(list->items[0]));
	if (!list->items) {
		return PAWL_ENOMEM;
	}
	list->count = count;
	for (size_t i = 0; i < count; i++) {
		const char *start;
		size_t size = cut(&text, &start);
		*out_problem = parse_one(start, size, &list->items[i]);
		if (*out_problem) {
			endpoint_list_done(list);
			return PAWL_EINVAL;
		}
	}
	return 0;
}

void endpoint_list_done(struct endpoint_list *list) {
	for (size_t i = 0; i < list->count; i++) {
		look_up_abandon(list->items[i].look_up);
	}
	if (list->items) {
		alloc_free(list->alloc, list->items, list->count * sizeof(list->items[0]));
	}
	*list = (struct endpoint_list){ 0 };
}

static void look_up_dialled(struct endpoint *e) {
	e->addresses[0] = (struct endpoint_address){ .by = e->by };
	e->address_count = 1;
}

static void look_up_local(struct endpoint *e) {
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	CHECK(copy(addr.sun_path, sizeof(addr.sun_path), e->host, strlen(e->host)));
	memcpy(&e->addresses[0].addr, &addr, sizeof(addr));
	e->addresses[0].size = sizeof(addr);
	e->address_count = 1;
}

/* An address needs no look-up. */
static void look_up_numeric(struct endpoint *e) {
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST };
	struct addrinfo *found = NULL;
	if (getaddrinfo(e->host, e->port, &hints, &found) == 0) {
		endpoint_found(e, found);
		freeaddrinfo(found);
	}
}

void endpoint_found(struct endpoint *e, const struct addrinfo *found) {
	endpoint_forget(e);
	for (const struct addrinfo *a = found; a && e->address_count < ENDPOINT_ADDRESSES_MAX;
		a = a->ai_next) {
		struct endpoint_address *to = &e->addresses[e->address_count];
		if (a->ai_addrlen <= sizeof(to->addr)) {
			memcpy(&to->addr, a->ai_addr, a->ai_addrlen);
			to->size = a->ai_addrlen;
			e->address_count++;
		}
	}
}

const struct endpoint_address *endpoint_address(struct endpoint *e) {
	if (e->address_count == 0 && e->by.dial) {
		look_up_dialled(e);
	} else if (e->address_count == 0 && e->local) {
		look_up_local(e);
	} else if (e->address_count == 0) {
		look_up_numeric(e);
	}
	return e->address_count ? &e->addresses[e->address_at] : NULL;
}

bool endpoint_next_address(struct endpoint *e) {
	if (e->address_at + 1 < e->address_count) {
		e->address_at++;
		return true;
	}
	endpoint_forget(e);
	return false;
}

void endpoint_forget(struct endpoint *e) {
	e->address_at = 0;
	e->address_count = 0;
}
