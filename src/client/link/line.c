#include "line.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"

#define LINE_IN_BYTES_MAX ((size_t)20 << 20)  /* one response of the largest size, and what came with it */
#define LINE_OUT_BYTES_MAX ((size_t)16 << 20)
#define LINE_READ_BYTES ((size_t)65536)
#define LINE_READS_MAX 16 /* in one turn, so that one line does not starve the program's others */

void line_init(struct line *l, const struct allocator *alloc, struct event_base *base, struct line_owner owner) {
	*l = (struct line){ .base = base, .owner = owner, .fd = -1 };
	buffer_init(&l->in, alloc, LINE_IN_BYTES_MAX);
	buffer_init(&l->out, alloc, LINE_OUT_BYTES_MAX);
	buffer_init(&l->net, alloc, LINE_OUT_BYTES_MAX + LINE_OUT_BYTES_MAX / 4);
}

void line_done(struct line *l) {
	line_close(l);
	buffer_done(&l->in);
	buffer_done(&l->out);
	buffer_done(&l->net);
}

static int line_problem(struct line *l, int error, const char *text) {
	(void)snprintf(l->problem, sizeof(l->problem), "%s", text);
	return error;
}

static int line_errno(struct line *l, int error, int number) {
	char text[128];
	return line_problem(l, error, strerror_r(number, text, sizeof(text)));
}

/* A reset says that the other side has ended it, anything else that the network did. */
static int line_broken(struct line *l, int number) {
	bool reset = number == ECONNRESET || number == EPIPE;
	l->ended = l->ended || reset;
	l->broken = !reset;
	return line_errno(l, PAWL_ECLOSED, number);
}

static int arm(struct line *l, struct event *event, bool *armed, bool want) {
	if (*armed == want) {
		return 0;
	}
	if ((want ? event_add(event, NULL) : event_del(event)) != 0) {
		return line_problem(l, PAWL_ENOMEM, "the event loop takes no more events");
	}
	*armed = want;
	return 0;
}

/* With TLS, everything is encrypted before it is written. */
static int line_encrypt(struct line *l) {
	int error = 0;
	if (l->state == LINE_UP && l->out.size) {
		error = tls_filter_give(&l->filter, buffer_slice(&l->out));
		buffer_clear(&l->out);
	}
	if (error) {
		return line_problem(l, error, tls_filter_problem(&l->filter));
	}
	error = tls_filter_drain(&l->filter, &l->net);
	return error ? line_problem(l, error, pawl_error_message(error)) : 0;
}

int line_flush(struct line *l) {
	struct buffer *from = l->encrypts ? &l->net : &l->out;
	if (l->state == LINE_CLOSED || l->state == LINE_CONNECTING) {
		return 0;
	}
	int error = l->encrypts ? line_encrypt(l) : 0;
	size_t sent = 0;
	while (!error && sent < from->size) {
		ssize_t n = send(l->fd, from->data + sent, from->size - sent, MSG_NOSIGNAL);
		if (n >= 0) {
			sent += (size_t)n;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			break;
		} else if (errno != EINTR) {
			error = line_broken(l, errno);
		}
	}
	buffer_consume(from, sent);
	return error ? error : arm(l, &l->writing, &l->write_armed, from->size > 0);
}

static void line_down(struct line *l, int error) {
	l->owner.down(l->owner.ctx, error);
}

/* The handshake moves by what arrived; once it is done the owner may send. */
static int line_decrypt(struct line *l, struct slice encrypted) {
	int error = tls_filter_take(&l->filter, encrypted, &l->in);
	if (error) {
		(void)line_problem(l, error, error == PAWL_ETLS ? tls_filter_problem(&l->filter) : pawl_error_message(error));
		(void)line_flush(l); /* the alert, as far as it goes: the other side may log it */
		return error;
	}
	if (l->state == LINE_HANDSHAKE && l->filter.ready) {
		l->state = LINE_UP;
		l->owner.up(l->owner.ctx);
		if (l->state != LINE_UP) {
			return 0;
		}
	}
	return line_flush(l);
}

/* One read. > 0: bytes, 0: nothing more now, negative: an error. */
static int line_receive(struct line *l) {
	uint8_t chunk[LINE_READ_BYTES];
	uint8_t *room = l->encrypts ? chunk : buffer_reserve(&l->in, LINE_READ_BYTES);
	if (!room) {
		return line_problem(l, PAWL_ENOMEM, pawl_error_message(PAWL_ENOMEM));
	}
	ssize_t n = recv(l->fd, room, LINE_READ_BYTES, 0);
	if (n < 0) {
		bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
		return later ? 0 : line_broken(l, errno);
	}
	if (n == 0) {
		l->ended = true;
		return line_problem(l, PAWL_ECLOSED, "the node closed the connection");
	}
	if (!l->encrypts) {
		buffer_commit(&l->in, (size_t)n);
		return (int)n;
	}
	int error = line_decrypt(l, slice_of(chunk, (size_t)n));
	if (!error && l->state == LINE_UP && l->filter.closed) {
		l->ended = true;
		error = line_problem(l, PAWL_ECLOSED, "the node closed the connection");
	}
	return error ? error : (int)n;
}

void line_read_now(struct line *l) {
	if (l->state != LINE_HANDSHAKE && l->state != LINE_UP) {
		return;
	}
	int got = 0;
	for (int i = 0; i < LINE_READS_MAX; i++) {
		got = line_receive(l);
		if (l->state == LINE_CLOSED) {
			return; /* by the owner, when it came up */
		}
		if (got < (int)LINE_READ_BYTES) {
			break; /* that was all, or an error: what came before it is looked at first */
		}
	}
	if (l->in.size) {
		l->owner.data(l->owner.ctx);
	}
	if (got < 0 && l->state != LINE_CLOSED) {
		line_down(l, got);
	}
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
	struct line_owner owner = ((struct line *)ctx)->owner;
	(void)fd;
	(void)what;
	owner.enter(owner.ctx);
	line_read_now(ctx);
	owner.leave(owner.ctx);
}

static int line_start_talking(struct line *l) {
	int error = arm(l, &l->reading, &l->read_armed, true);
	if (error) {
		return error;
	}
	if (l->encrypts) {
		l->state = LINE_HANDSHAKE;
		return line_decrypt(l, slice_of(NULL, 0));
	}
	l->state = LINE_UP;
	l->owner.up(l->owner.ctx);
	return line_flush(l); /* nothing, where the owner has closed it */
}

static void line_write_now(struct line *l) {
	int error = 0;
	if (l->state == LINE_CONNECTING) {
		int number = 0;
		socklen_t size = sizeof(number);
		if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &number, &size) != 0) {
			number = errno;
		}
		error = number ? line_errno(l, PAWL_EUNREACHABLE, number) : line_start_talking(l);
	} else {
		error = line_flush(l);
		if (!error && line_backlog(l) == 0) {
			l->owner.room(l->owner.ctx);
		}
	}
	if (error && l->state != LINE_CLOSED) {
		line_down(l, error);
	}
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
	struct line_owner owner = ((struct line *)ctx)->owner;
	(void)fd;
	(void)what;
	owner.enter(owner.ctx);
	line_write_now(ctx);
	owner.leave(owner.ctx);
}

static int line_connect(struct line *l, const struct endpoint_address *address) {
	if (address->by.dial) {
		l->fd = address->by.dial(address->by.arg);
		return l->fd < 0 ? line_problem(l, l->fd, pawl_error_message(l->fd)) : 0;
	}
	l->fd = socket(address->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0) {
		return line_errno(l, PAWL_EUNREACHABLE, errno);
	}
	if (address->addr.ss_family != AF_UNIX) {
		int on = 1;
		(void)setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only speed is lost without */
	}
	const void *addr = &address->addr;
	if (connect(l->fd, addr, address->size) != 0 && errno != EINPROGRESS) {
		return line_errno(l, PAWL_EUNREACHABLE, errno);
	}
	return 0;
}

int line_open(struct line *l, const struct endpoint_address *address, SSL_CTX *tls, const char *host) {
	CHECK(l->state == LINE_CLOSED);
	l->problem[0] = '\0';
	l->encrypts = tls != NULL;
	l->ended = l->broken = false;
	l->state = LINE_CONNECTING;
	int error = tls ? tls_filter_init(&l->filter, tls, host) : 0;
	if (error) {
		(void)line_problem(l, error, pawl_error_message(error));
	} else {
		error = line_connect(l, address);
	}
	if (!error) {
		CHECK(event_assign(&l->reading, l->base, l->fd, EV_READ | EV_PERSIST, on_readable, l) == 0);
		CHECK(event_assign(&l->writing, l->base, l->fd, EV_WRITE | EV_PERSIST, on_writable, l) == 0);
		error = arm(l, &l->writing, &l->write_armed, true); /* writable: connected, or not */
	}
	if (error) {
		line_close(l);
	}
	return error;
}

int line_leave_open(struct line *l) {
	int fd = l->fd;
	l->fd = -1;
	line_close(l);
	return fd;
}

void line_close(struct line *l) {
	if (l->state == LINE_CLOSED) {
		return;
	}
	if (l->read_armed) {
		event_del(&l->reading);
	}
	if (l->write_armed) {
		event_del(&l->writing);
	}
	l->read_armed = l->write_armed = false;
	if (l->fd >= 0) {
		close(l->fd);
	}
	l->fd = -1;
	tls_filter_done(&l->filter);
	buffer_clear(&l->in);
	buffer_clear(&l->out);
	buffer_clear(&l->net);
	l->state = LINE_CLOSED;
}
