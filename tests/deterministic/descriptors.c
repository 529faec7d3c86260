/* descriptors.c: sockets, epoll, timers, counters and pipes of the conductor instead of the
 * kernel's. Each has a descriptor of the kernel that stands for it and does nothing, so that its
 * number belongs to nothing else. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "channel.h"

#define FDS_MAX 600
#define EVENTS_MAX 64
#define SECOND 1000000000LL

/* The descriptors that are the conductor's. */
static bool conducted[FDS_MAX];

static bool is_conducted(int fd) {
	return channel_open() && fd >= 0 && fd < FDS_MAX && conducted[fd];
}

static int stand_in(void) {
	int fd = (int)syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd >= FDS_MAX) {
		syscall(SYS_close, fd);
		errno = EMFILE;
		return -1;
	}
	return fd;
}

static void drop(int fd) {
	int error = errno;
	conducted[fd] = false;
	syscall(SYS_close, fd);
	errno = error;
}

/* Makes a descriptor of the conductor. */
static int make(enum call call, int64_t a, int64_t b) {
	int fd = stand_in();
	if (fd < 0) {
		return -1;
	}
	conducted[fd] = true;
	if (channel_ask(call, fd, a, b) < 0) {
		drop(fd);
		return -1;
	}
	return fd;
}

/* ---- sockets ----
 * glibc declares addresses as transparent unions. */

int socket(int domain, int type, int protocol) {
	(void)protocol;
	return make(CALL_SOCKET, domain, type);
}

static int with_address(enum call call, int fd, const struct sockaddr *to, socklen_t size) {
	return (int)channel_call((struct call_out){ .call = call, .fd = fd }, to, size, NULL, 0,
		NULL);
}

int bind(int fd, __CONST_SOCKADDR_ARG to, socklen_t size) {
	return with_address(CALL_BIND, fd, to.__sockaddr__, size);
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size) {
	return with_address(CALL_CONNECT, fd, to.__sockaddr__, size);
}

int listen(int fd, int backlog) {
	return (int)channel_ask(CALL_LISTEN, fd, backlog, 0);
}

int shutdown(int fd, int how) {
	return (int)channel_ask(CALL_SHUTDOWN, fd, how, 0);
}

static int of_address(struct call_out call, struct sockaddr *out, socklen_t *size) {
	struct sockaddr_storage room;
	size_t got = 0;
	int64_t result = channel_call(call, NULL, 0, &room, sizeof room, &got);
	if (result >= 0 && out != NULL) {
		memcpy(out, &room, got < *size ? got : *size);
		*size = (socklen_t)got;
	}
	return (int)result;
}

int accept4(int fd, __SOCKADDR_ARG out, socklen_t *size, int flags) {
	(void)flags;
	int taken = stand_in();
	if (taken < 0) {
		return -1;
	}
	conducted[taken] = true;
	const struct call_out call = { .call = CALL_ACCEPT, .fd = fd, .a = taken };
	if (of_address(call, out.__sockaddr__, size) < 0) {
		drop(taken);
		return -1;
	}
	return taken;
}

int getsockname(int fd, __SOCKADDR_ARG out, socklen_t *size) {
	const struct call_out call = { .call = CALL_NAME, .fd = fd };
	return of_address(call, out.__sockaddr__, size);
}

int getpeername(int fd, __SOCKADDR_ARG out, socklen_t *size) {
	const struct call_out call = { .call = CALL_PEER_NAME, .fd = fd };
	return of_address(call, out.__sockaddr__, size);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size) {
	(void)fd;
	(void)level;
	(void)name;
	(void)value;
	(void)size;
	return 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *size) {
	if (level != SOL_SOCKET || name != SO_ERROR) {
		errno = ENOPROTOOPT;
		return -1;
	}
	int error = (int)channel_ask(CALL_ERROR, fd, 0, 0);
	memcpy(value, &error, sizeof error);
	*size = sizeof error;
	return 0;
}

/* ---- bytes ---- */

typedef ssize_t read_function(int, void *, size_t);
typedef ssize_t write_function(int, const void *, size_t);
typedef int close_function(int);

static ssize_t take(int fd, void *to, size_t max) {
	size_t got = 0, most = max < CALL_BYTES_MAX ? max : CALL_BYTES_MAX;
	const struct call_out call = { .call = CALL_READ, .fd = fd, .a = (int64_t)most };
	int64_t n = channel_call(call, NULL, 0, to, most, &got);
	return n < 0 ? -1 : (ssize_t)got;
}

static ssize_t give(enum call call, int fd, const void *from, size_t size) {
	return channel_call((struct call_out){ .call = call, .fd = fd }, from,
		size < CALL_BYTES_MAX ? size : CALL_BYTES_MAX, NULL, 0, NULL);
}

ssize_t recv(int fd, void *to, size_t max, int flags) {
	(void)flags;
	return take(fd, to, max);
}

ssize_t send(int fd, const void *from, size_t size, int flags) {
	(void)flags;
	return give(CALL_WRITE, fd, from, size);
}

ssize_t read(int fd, void *to, size_t max) {
	return is_conducted(fd) ? take(fd, to, max) : REAL(read)(fd, to, max);
}

/* What goes to the standard error is the log. */
ssize_t write(int fd, const void *from, size_t size) {
	if (is_conducted(fd)) {
		return give(CALL_WRITE, fd, from, size);
	}
	if (channel_open() && fd == STDERR_FILENO) {
		return give(CALL_LOG, fd, from, size);
	}
	return REAL(write)(fd, from, size);
}

int close(int fd) {
	if (!is_conducted(fd)) {
		return REAL(close)(fd);
	}
	channel_ask(CALL_CLOSE, fd, 0, 0);
	drop(fd);
	return 0;
}

/* ---- epoll ---- */

int epoll_create1(int flags) {
	(void)flags;
	return make(CALL_EPOLL, 0, 0);
}

int epoll_ctl(int fd, int operation, int watched, struct epoll_event *event) {
	struct epoll_event none = { 0 };
	return (int)channel_call((struct call_out){ CALL_EPOLL_CTL, fd, operation, watched },
		event != NULL ? event : &none, sizeof none, NULL, 0, NULL);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms) {
	int most = max < EVENTS_MAX ? max : EVENTS_MAX;
	const struct call_out call = { CALL_EPOLL_WAIT, fd, most, timeout_ms };
	return (int)channel_call(call, NULL, 0, events, (size_t)most * sizeof *events, NULL);
}

/* ---- timers, counters and pipes ---- */

int timerfd_create(int id, int flags) {
	(void)id;
	(void)flags;
	return make(CALL_TIMER, 0, 0);
}

/* All clocks but the wall clock are the same here, and there is no interval. */
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before) {
	int64_t at = (int64_t)when->it_value.tv_sec * SECOND + when->it_value.tv_nsec;
	(void)before;
	if (at != 0 && !(flags & TFD_TIMER_ABSTIME)) {
		at += channel_clock(false);
	}
	return (int)channel_ask(CALL_TIMER_SET, fd, at, 0);
}

int eventfd(unsigned count, int flags) {
	return make(CALL_COUNTER, count, flags);
}

int pipe2(int fds[2], int flags) {
	(void)flags;
	fds[0] = stand_in();
	fds[1] = stand_in();
	if (fds[0] < 0 || fds[1] < 0) {
		return -1;
	}
	conducted[fds[0]] = conducted[fds[1]] = true;
	return (int)channel_ask(CALL_PIPE, fds[0], fds[1], 0);
}
