/* channel.c: the channels to the conductor, and the clocks that come with its answers. */
#include "channel.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* The lowest descriptor of a channel. Those of the program stay below, and have the numbers that
 * they would have without the library. */
#define CHANNEL_FD 600

static _Thread_local int channel = -1;

/* What the last answer has told, whichever thread got it: one thread runs at a time. */
static int64_t boot_ns, wall_ns;

void *channel_real(const char *name) {
	void *found = dlsym(RTLD_NEXT, name);
	if (found == NULL) {
		abort();
	}
	return found;
}

int64_t channel_clock(bool wall) {
	return wall ? wall_ns : boot_ns;
}

bool channel_open(void) {
	return channel >= 0;
}

/* The library's own functions replace those of libc, so the channel uses system calls. */
int channel_new(void) {
	const char *path = getenv("PAWL_TEST_CONDUCTOR");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	if (path == NULL || strlen(path) >= sizeof to.sun_path) {
		abort();
	}
	memcpy(to.sun_path, path, strlen(path));
	int low = (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (low < 0 || syscall(SYS_connect, low, &to, sizeof to) != 0) {
		abort();
	}
	int fd = (int)syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, CHANNEL_FD);
	if (fd < 0) {
		abort();
	}
	syscall(SYS_close, low);
	return fd;
}

void channel_take(int fd) {
	channel = fd;
}

static void channel_send(const struct call_out *call, const void *data, size_t size) {
	struct iovec parts[] = { { (void *)(uintptr_t)call, sizeof *call },
		{ (void *)(uintptr_t)data, size } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	if (syscall(SYS_sendmsg, channel, &message, MSG_NOSIGNAL) < 0) {
		_exit(99);
	}
}

static size_t channel_receive(struct call_back *back, void *out, size_t max) {
	struct iovec parts[] = { { back, sizeof *back }, { out, max } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n;
	do {
		n = syscall(SYS_recvmsg, channel, &message, 0);
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof *back) {
		_exit(99);
	}
	return (size_t)n - sizeof *back;
}

int64_t channel_call(struct call_out call, const void *data, size_t size, void *out, size_t max,
	size_t *got) {
	struct call_back back;
	channel_send(&call, data, size);
	size_t n = channel_receive(&back, out, max);
	boot_ns = back.boot;
	wall_ns = back.wall;
	if (got != NULL) {
		*got = n;
	}
	if (back.signal != 0) {
		/* The handler runs here and now. It may call the conductor itself. */
		pthread_kill(pthread_self(), back.signal);
	}
	if (back.result < 0) {
		errno = back.error;
	}
	return back.result;
}

int64_t channel_ask(enum call call, int fd, int64_t a, int64_t b) {
	return channel_call((struct call_out){ call, fd, a, b }, NULL, 0, NULL, 0, NULL);
}

void channel_end(void) {
	const struct call_out call = { .call = CALL_EXIT };
	int fd = channel;
	channel_send(&call, NULL, 0);
	channel = -1;
	syscall(SYS_close, fd);
}

__attribute__((constructor)) static void channel_begin(void) {
	if (getenv("PAWL_TEST_CONDUCTOR") != NULL) {
		channel_take(channel_new());
		channel_ask(CALL_HELLO, -1, 0, 0);
	}
}
