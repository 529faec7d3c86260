/* wake.c: ends a blocking call from outside: another thread, a signal handler or a callback. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"
#include "client_core.h"

/* While the loop does not run, the eventfd keeps the wake for the next blocking call. */
static void on_wake(evutil_socket_t fd, short what, void *ctx) {
	struct pawl *client = ctx;
	struct blocking *blocking = client->blocking;
	uint64_t count;
	(void)what;
	if (*blocking->over && !blocking->interrupted) {
		/* This call has what it waits for, so the wake is for the next one. */
		return;
	}
	CHECK(read(fd, &count, sizeof(count)) > 0 || errno == EAGAIN || errno == EINTR);
	if (blocking->interrupted) {
		return;
	}
	client_core_enter(client);
	blocking->interrupted = true;
	if (blocking->call) {
		client->handlers->call_interrupted(blocking->call);
	}
	client_core_leave(client);
}

int wake_init(struct pawl *client) {
	client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (client->wake_fd < 0) {
		return PAWL_EIO;
	}
	CHECK(event_assign(&client->wake, client->base, client->wake_fd, EV_READ | EV_PERSIST,
		on_wake, client) == 0);
	client->wake_watched = event_add(&client->wake, NULL) == 0;
	return client->wake_watched ? 0 : PAWL_ENOMEM;
}

void wake_done(struct pawl *client) {
	if (client->wake_watched) {
		event_del(&client->wake);
	}
	if (client->wake_fd >= 0) {
		close(client->wake_fd);
	}
}

void pawl_wake(struct pawl *client) {
	const uint64_t one = 1;
	const int before = errno;
	if (client->wake_fd >= 0) {
		/* This can fail only if so many wakes are there already that one more makes no
		 * difference. */
		ssize_t written = write(client->wake_fd, &one, sizeof(one));
		(void)written;
	}
	errno = before;
}
