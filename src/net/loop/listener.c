/* listener.c: opens listening sockets and accepts connections, a bounded number in each turn of the
 * loop.
 */
#include "listener.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address.h"
#include "pawl/error.h"
#include "time_source.h"

#define BACKLOG 1024
/* The largest number of connections that are accepted in one turn of the loop. Whatever else is
 * ready is served in between. */
#define ACCEPTS_PER_TURN 16
/* A turn accepts no more connections once it has taken this long. */
#define ACCEPTING_MAX (SPAN_MS / 8)
/* How long accepting pauses after this process ran out of descriptors, in milliseconds. */
#define PAUSE_MS 100
/* How long accepting pauses while enough handshakes wait, in milliseconds. */
#define PACE_MS 2
/* How many addresses of one name are tried. */
#define RESOLVED_MAX 8

struct listener {
	struct net_loop *loop;
	listener_accepted *accepted;
	void *ctx;
	int fd;
	bool local;
	struct event *readable, *pause;
	/* The handshakes for which this listener waits, or NULL. */
	const struct handshakes *paced_by;
	char address[ADDRESS_TEXT_BYTES];
};

/* Stops accepting for a while. The connection stays in the backlog, and without the pause a
 * level-triggered event would spin. */
static void listener_pause(struct listener *l, int ms) {
	const struct timeval pause = { 0, ms * 1000 };
	event_del(l->readable);
	event_add(l->pause, &pause);
}

static void listener_on_pause_over(evutil_socket_t fd, short what, void *ctx) {
	struct listener *l = ctx;
	(void)fd;
	(void)what;
	event_add(l->readable, NULL);
}

/* A client that only waits for events sends nothing, so this node would not notice that it is gone
 * forever: a machine that lost its power does not say so. Therefore the kernel probes silent
 * connections. A Unix socket has none of these options, and the calls fail without harm. */
static void listener_tune(int fd) {
	const int on = 1, silent_s = 60, between_s = 15, probes = 4;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &silent_s, sizeof silent_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static void listener_on_readable(evutil_socket_t listening, short what, void *ctx) {
	struct listener *l = ctx;
	(void)what;
	const struct instant begun = time_source_now();
	for (int i = 0; i < ACCEPTS_PER_TURN
		&& instant_elapsed_short(time_source_now(), begun) < ACCEPTING_MAX; i++) {
		if (l->paced_by && l->paced_by->waiting >= HANDSHAKES_WAITING_MAX) {
			listener_pause(l, PACE_MS);
			return;
		}
		struct sockaddr_storage addr;
		socklen_t size = sizeof addr;
		int fd = accept4(listening, (struct sockaddr *)&addr, &size,
			SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM
				|| errno == ENOBUFS) {
				listener_pause(l, PAUSE_MS);
			}
			/* Every other error concerned that one connection only, or means that no
			 * more connections are waiting. */
			return;
		}
		listener_tune(fd);
		struct origin from;
		origin_of(fd, (struct sockaddr *)&addr, size, l->address, &from);
		l->accepted(l->ctx, fd, &from);
	}
}

/* ---- opening ---- */

/* A socket file outlives its process; connecting to it shows whether somebody still listens there.
 * The socket does not block: if the backlog of a live listener is full, a blocking call would wait
 * for as long as that process likes. A non-blocking call says EAGAIN, which is an answer, too. */
static void listener_remove_stale(const struct address *a, const struct address_socket *at) {
	struct stat st;
	if (lstat(a->host, &st) != 0 || !S_ISSOCK(st.st_mode)) {
		return;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&at->addr, at->size) != 0
		&& errno == ECONNREFUSED) {
		unlink(a->host);
	}
	if (fd >= 0) {
		close(fd);
	}
}

static int listener_bind(const struct address *a, const struct address_socket *at) {
	int fd = socket(at->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return -1;
	}
	int on = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (a->local) {
		listener_remove_stale(a, at);
	}
	/* bind creates the file, so the umask must already keep everybody else out at that
	 * moment. */
	mode_t before = umask(0117);
	int bound = bind(fd, (const struct sockaddr *)&at->addr, at->size);
	umask(before);
	if (bound != 0 || listen(fd, BACKLOG) != 0) {
		int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static int listener_open(struct listener *l, const char *text, char why[LISTENER_WHY_BYTES]) {
	struct address a;
	struct address_socket at[RESOLVED_MAX];
	if (address_parse(text, &a) != 0) {
		snprintf(why, LISTENER_WHY_BYTES,
			"cannot listen on %s: write host:port, [v6]:port or unix:/path", text);
		return PAWL_EINVAL;
	}
	size_t n = address_resolve(&a, false, at, RESOLVED_MAX);
	errno = EADDRNOTAVAIL;
	for (size_t i = 0; i < n && l->fd < 0; i++) {
		l->fd = listener_bind(&a, &at[i]);
	}
	if (l->fd < 0) {
		snprintf(why, LISTENER_WHY_BYTES, "cannot listen on %s: %s", text, strerror(errno));
		return PAWL_EUNREACHABLE;
	}
	l->local = a.local;
	struct address_socket bound = { .size = sizeof bound.addr };
	getsockname(l->fd, (struct sockaddr *)&bound.addr, &bound.size);
	address_print((struct sockaddr *)&bound.addr, bound.size, l->address);
	return 0;
}

int listener_new(struct net_loop *loop, const char *address, listener_accepted *accepted, void *ctx,
	struct listener **out, char why[LISTENER_WHY_BYTES]) {
	struct listener *l = alloc_new(loop->alloc, sizeof *l);
	if (!l) {
		snprintf(why, LISTENER_WHY_BYTES, "cannot listen on %s: out of memory", address);
		return PAWL_ENOMEM;
	}
	*l = (struct listener){ .loop = loop, .accepted = accepted, .ctx = ctx, .fd = -1 };
	int error = listener_open(l, address, why);
	if (!error) {
		l->readable = event_new(loop->base, l->fd, EV_READ | EV_PERSIST,
			listener_on_readable, l);
		l->pause = event_new(loop->base, -1, 0, listener_on_pause_over, l);
		if (!l->readable || !l->pause || event_add(l->readable, NULL) != 0) {
			snprintf(why, LISTENER_WHY_BYTES, "cannot listen on %s: out of memory",
				address);
			error = PAWL_ENOMEM;
		}
	}
	if (error) {
		listener_free(l);
		return error;
	}
	*out = l;
	return 0;
}

void listener_free(struct listener *l) {
	if (!l) {
		return;
	}
	if (l->readable) {
		event_free(l->readable);
	}
	if (l->pause) {
		event_free(l->pause);
	}
	if (l->fd >= 0) {
		close(l->fd);
		if (l->local) {
			unlink(l->address + strlen("unix:"));
		}
	}
	alloc_free(l->loop->alloc, l, sizeof *l);
}

void listener_pace(struct listener *l, const struct handshakes *borrowed_handshakes) {
	l->paced_by = borrowed_handshakes;
}

const char *listener_address(const struct listener *l) {
	return l->address;
}
