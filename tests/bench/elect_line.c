/* elect_line.c: connections with Redis servers. */
#include "elect_line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void line_send(struct line *line, const char *text, size_t size) {
	if (send(line->fd, text, size, 0) != (ssize_t)size) {
		load_fail("redis does not take what is sent", errno);
	}
}

void line_take(struct line *line, size_t size) {
	line->size -= size;
	memmove(line->input, line->input + size, line->size);
}

static void on_input(evutil_socket_t fd, short what, void *arg) {
	struct line *line = arg;
	(void)what;
	ssize_t got = recv(fd, line->input + line->size, sizeof line->input - line->size,
		MSG_DONTWAIT);
	if (got <= 0) {
		if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
			return;
		}
		load_fail("redis closed a connection", errno);
	}
	line->size += (size_t)got;
	line->act(line);
}

static int connected(const char *address) {
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	struct sockaddr_in port = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtoul(address, NULL, 10)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const bool on_path = address[0] == '/' && strlen(address) < sizeof local.sun_path;
	int yes = 1, fd = socket(on_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(local.sun_path, address, on_path ? strlen(address) : 0);
	if (fd < 0 || (on_path ? connect(fd, (struct sockaddr *)&local, sizeof local)
		: connect(fd, (struct sockaddr *)&port, sizeof port)) != 0) {
		load_fail("redis cannot be reached", errno);
	}
	/* A Unix socket refuses this, and does not need it. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	return fd;
}

struct line *line_new(struct load *load, const char *address, void (*act)(struct line *line)) {
	struct line *line = calloc(1, sizeof *line);
	if (!line) {
		load_fail("out of memory", ENOMEM);
		return NULL;
	}
	line->load = load;
	line->act = act;
	line->fd = connected(address);
	line->event = event_new(load->base, line->fd, EV_READ | EV_PERSIST, on_input, line);
	event_add(line->event, NULL);
	return line;
}
