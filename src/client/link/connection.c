/* connection.c: one connection that never blocks. It moves bytes, and knows nothing about the
 * messages in them. */
#include "connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"

/* The input has room for one response of the largest size and what came with it. */
#define CONNECTION_IN_BYTES_MAX ((size_t)20 << 20)
#define CONNECTION_OUT_BYTES_MAX ((size_t)16 << 20)
#define CONNECTION_READ_BYTES ((size_t)65536)
/* This limits the reads of one turn, so that one connection does not keep the program's other
 * connections waiting. */
#define CONNECTION_READS_MAX 16

void connection_init(struct connection *c, const struct allocator *alloc, struct event_base *base,
	struct connection_owner owner) {
	*c = (struct connection){ .base = base, .owner = owner, .fd = -1 };
	buffer_init(&c->in, alloc, CONNECTION_IN_BYTES_MAX);
	buffer_init(&c->out, alloc, CONNECTION_OUT_BYTES_MAX);
	buffer_init(&c->net, alloc, CONNECTION_OUT_BYTES_MAX + CONNECTION_OUT_BYTES_MAX / 4);
}

void connection_done(struct connection *c) {
	connection_close(c);
	buffer_done(&c->in);
	buffer_done(&c->out);
	buffer_done(&c->net);
}

static int connection_problem(struct connection *c, int error, const char *text) {
	(void)snprintf(c->problem, sizeof(c->problem), "%s", text);
	return error;
}

static int connection_errno(struct connection *c, int error, int number) {
	char text[128];
	return connection_problem(c, error, strerror_r(number, text, sizeof(text)));
}

/* A reset means that the other side has ended the connection. Any other error means that the
 * network has broken it. */
static int connection_broken(struct connection *c, int number) {
	bool reset = number == ECONNRESET || number == EPIPE;
	c->ended = c->ended || reset;
	c->broken = !reset;
	return connection_errno(c, PAWL_ECLOSED, number);
}

static int arm(struct connection *c, struct event *event, bool *armed, bool want) {
	if (*armed == want) {
		return 0;
	}
	if ((want ? event_add(event, NULL) : event_del(event)) != 0) {
		return connection_problem(c, PAWL_ENOMEM, "the event loop accepts no more events");
	}
	*armed = want;
	return 0;
}

/* With TLS, everything is encrypted before it is written. */
static int connection_encrypt(struct connection *c) {
	int error = 0;
	if (c->state == CONNECTION_UP && c->out.size) {
		error = tls_filter_give(&c->filter, buffer_slice(&c->out));
		buffer_clear(&c->out);
	}
	if (error) {
		return connection_problem(c, error, tls_filter_problem(&c->filter));
	}
	error = tls_filter_drain(&c->filter, &c->net);
	return error ? connection_problem(c, error, pawl_error_message(error)) : 0;
}

int connection_flush(struct connection *c) {
	struct buffer *from = c->encrypts ? &c->net : &c->out;
	if (c->state == CONNECTION_CLOSED || c->state == CONNECTION_CONNECTING) {
		return 0;
	}
	int error = c->encrypts ? connection_encrypt(c) : 0;
	size_t sent = 0;
	while (!error && sent < from->size) {
		ssize_t n = send(c->fd, from->data + sent, from->size - sent, MSG_NOSIGNAL);
		if (n >= 0) {
			sent += (size_t)n;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			break;
		} else if (errno != EINTR) {
			error = connection_broken(c, errno);
		}
	}
	buffer_consume(from, sent);
	return error ? error : arm(c, &c->writing, &c->write_armed, from->size > 0);
}

static void connection_down(struct connection *c, int error) {
	c->owner.down(c->owner.ctx, error);
}

/* The bytes that arrived move the handshake on. Once it is done, the owner may send. */
static int connection_decrypt(struct connection *c, struct slice encrypted) {
	int error = tls_filter_take(&c->filter, encrypted, &c->in);
	if (error) {
		(void)connection_problem(c, error,
			error == PAWL_ETLS ? tls_filter_problem(&c->filter)
				: pawl_error_message(error));
		/* Send the TLS alert if that is possible; the other side may log it. */
		(void)connection_flush(c);
		return error;
	}
	if (c->state == CONNECTION_HANDSHAKE && c->filter.ready) {
		c->state = CONNECTION_UP;
		c->owner.up(c->owner.ctx);
		if (c->state != CONNECTION_UP) {
			return 0;
		}
	}
	return connection_flush(c);
}

/* Reads once. Returns the number of bytes, 0 if there is nothing more now, or a negative error. */
static int connection_receive(struct connection *c) {
	uint8_t chunk[CONNECTION_READ_BYTES];
	uint8_t *room = c->encrypts ? chunk : buffer_reserve(&c->in, CONNECTION_READ_BYTES);
	if (!room) {
		return connection_problem(c, PAWL_ENOMEM, pawl_error_message(PAWL_ENOMEM));
	}
	ssize_t n = recv(c->fd, room, CONNECTION_READ_BYTES, 0);
	if (n < 0) {
		bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
		return later ? 0 : connection_broken(c, errno);
	}
	if (n == 0) {
		c->ended = true;
		return connection_problem(c, PAWL_ECLOSED, "the node closed the connection");
	}
	if (!c->encrypts) {
		buffer_commit(&c->in, (size_t)n);
		return (int)n;
	}
	int error = connection_decrypt(c, slice_of(chunk, (size_t)n));
	if (!error && c->state == CONNECTION_UP && c->filter.closed) {
		c->ended = true;
		error = connection_problem(c, PAWL_ECLOSED, "the node closed the connection");
	}
	return error ? error : (int)n;
}

void connection_read_now(struct connection *c) {
	if (c->state != CONNECTION_HANDSHAKE && c->state != CONNECTION_UP) {
		return;
	}
	int got = 0;
	const unsigned opened = c->opened;
	const size_t before = c->in.size;
	for (int i = 0; i < CONNECTION_READS_MAX; i++) {
		got = connection_receive(c);
		if (c->state == CONNECTION_CLOSED) {
			/* The owner has closed the connection when it came up. */
			return;
		}
		if (got < (int)CONNECTION_READ_BYTES) {
			/* That was everything, or an error. The owner gets what came before it
			 * first. */
			break;
		}
	}
	if (c->in.size > before) {
		/* A part of a message that was there before is nothing that the node says now. */
		c->owner.data(c->owner.ctx);
	}
	if (got < 0 && c->state != CONNECTION_CLOSED && c->opened == opened) {
		connection_down(c, got);
	}
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
	struct connection_owner owner = ((struct connection *)ctx)->owner;
	(void)fd;
	(void)what;
	owner.enter(owner.ctx);
	connection_read_now(ctx);
	owner.leave(owner.ctx);
}

static int connection_start_talking(struct connection *c) {
	int error = arm(c, &c->reading, &c->read_armed, true);
	if (error) {
		return error;
	}
	if (c->encrypts) {
		c->state = CONNECTION_HANDSHAKE;
		return connection_decrypt(c, slice_of(NULL, 0));
	}
	c->state = CONNECTION_UP;
	c->owner.up(c->owner.ctx);
	/* This sends nothing if the owner has closed the connection. */
	return connection_flush(c);
}

static void connection_write_now(struct connection *c) {
	int error = 0;
	if (c->state == CONNECTION_CONNECTING) {
		int number = 0;
		socklen_t size = sizeof(number);
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &number, &size) != 0) {
			number = errno;
		}
		error = number ? connection_errno(c, PAWL_EUNREACHABLE, number)
			: connection_start_talking(c);
	} else {
		error = connection_flush(c);
		if (!error && connection_backlog(c) == 0) {
			c->owner.room(c->owner.ctx);
		}
	}
	if (error && c->state != CONNECTION_CLOSED) {
		connection_down(c, error);
	}
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
	struct connection_owner owner = ((struct connection *)ctx)->owner;
	(void)fd;
	(void)what;
	owner.enter(owner.ctx);
	connection_write_now(ctx);
	owner.leave(owner.ctx);
}

static int connection_connect(struct connection *c, const struct endpoint_address *address) {
	if (address->by.dial) {
		c->fd = address->by.dial(address->by.arg);
		return c->fd < 0 ? connection_problem(c, c->fd, pawl_error_message(c->fd)) : 0;
	}
	c->fd = socket(address->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0) {
		return connection_errno(c, PAWL_EUNREACHABLE, errno);
	}
	if (address->addr.ss_family != AF_UNIX) {
		int on = 1;
		/* If this fails, only speed is lost. */
		(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	const void *addr = &address->addr;
	if (connect(c->fd, addr, address->size) != 0 && errno != EINPROGRESS) {
		return connection_errno(c, PAWL_EUNREACHABLE, errno);
	}
	return 0;
}

int connection_open(struct connection *c, const struct endpoint_address *address, SSL_CTX *tls,
	const char *host) {
	CHECK(c->state == CONNECTION_CLOSED);
	c->opened++;
	c->problem[0] = '\0';
	c->encrypts = tls != NULL;
	c->ended = c->broken = false;
	c->state = CONNECTION_CONNECTING;
	int error = tls ? tls_filter_init(&c->filter, tls, host) : 0;
	if (error) {
		(void)connection_problem(c, error, pawl_error_message(error));
	} else {
		error = connection_connect(c, address);
	}
	if (!error) {
		CHECK(event_assign(&c->reading, c->base, c->fd, EV_READ | EV_PERSIST, on_readable,
			c) == 0);
		CHECK(event_assign(&c->writing, c->base, c->fd, EV_WRITE | EV_PERSIST, on_writable,
			c) == 0);
		/* The socket becomes writable when it is connected, and also when connecting has
		 * failed. */
		error = arm(c, &c->writing, &c->write_armed, true);
	}
	if (error) {
		connection_close(c);
	}
	return error;
}

int connection_leave_open(struct connection *c) {
	int fd = c->fd;
	c->fd = -1;
	connection_close(c);
	return fd;
}

void connection_close(struct connection *c) {
	if (c->state == CONNECTION_CLOSED) {
		return;
	}
	if (c->read_armed) {
		event_del(&c->reading);
	}
	if (c->write_armed) {
		event_del(&c->writing);
	}
	c->read_armed = c->write_armed = false;
	if (c->fd >= 0) {
		close(c->fd);
	}
	c->fd = -1;
	tls_filter_done(&c->filter);
	buffer_clear(&c->in);
	buffer_clear(&c->out);
	buffer_clear(&c->net);
	c->state = CONNECTION_CLOSED;
}
