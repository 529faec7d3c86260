/* polled.c: the client in a loop that is not libevent's: one descriptor that is readable when any
 * of the client's own is ready.
 *
 * libevent does not tell the descriptor of its own epoll instance. So the program gets another one,
 * and inside it is a second one, which has all descriptors of the client and is made anew before
 * each wait. Only a new one is sure to have nothing left of connections that were closed: an epoll
 * instance keeps a closed connection for as long as any process has a copy of its descriptor
 * (pawl_on_connected). */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client_core.h"

/* How long the program may wait while the descriptor cannot tell it anything, because the process
 * has no descriptor left for the inner instance. */
#define BLIND_MS 10

static void close_inner(struct pawl *client) {
	if (client->polled_inner >= 0) {
		(void)epoll_ctl(client->polled_fd, EPOLL_CTL_DEL, client->polled_inner, NULL);
		close(client->polled_inner);
		client->polled_inner = -1;
	}
}

void polled_done(struct pawl *client) {
	close_inner(client);
	if (client->polled_fd >= 0) {
		close(client->polled_fd);
	}
}

/* Adds the descriptor that the event waits for. Returns 0, or -1 if that fails. */
static int add(const struct event_base *base, const struct event *event, void *arg) {
	const int inner = *(const int *)arg, fd = event_get_fd(event);
	const short what = event_get_events(event);
	struct epoll_event wanted = { .data.fd = fd };
	(void)base;
	wanted.events = (what & EV_READ ? EPOLLIN : 0u) | (what & EV_WRITE ? EPOLLOUT : 0u);
	if (fd < 0 || epoll_ctl(inner, EPOLL_CTL_ADD, fd, &wanted) == 0) {
		return 0;
	}
	/* A connection is read and written, with an event for each. */
	wanted.events = EPOLLIN | EPOLLOUT;
	return errno == EEXIST ? epoll_ctl(inner, EPOLL_CTL_MOD, fd, &wanted) : -1;
}

/* Makes the inner instance anew. Returns whether that has succeeded. */
static bool renew_inner(struct pawl *client) {
	struct epoll_event readable = { .events = EPOLLIN };
	int inner = epoll_create1(EPOLL_CLOEXEC);
	close_inner(client);
	client->polled_inner = inner;
	return inner >= 0 && event_base_foreach_event(client->base, add, &inner) == 0
		&& epoll_ctl(client->polled_fd, EPOLL_CTL_ADD, inner, &readable) == 0;
}

int pawl_fd(struct pawl *client) {
	if (!client->own_base) {
		return PAWL_EINVAL;
	}
	if (client->polled_fd < 0) {
		client->polled_fd = epoll_create1(EPOLL_CLOEXEC);
	}
	return client->polled_fd >= 0 ? client->polled_fd : PAWL_EIO;
}

int pawl_timeout_ms(struct pawl *client) {
	if (pawl_fd(client) == PAWL_EINVAL) {
		return -1;
	}
	agenda_settle(&client->agenda);
	if (event_base_get_num_events(client->base, EVENT_BASE_COUNT_ACTIVE) > 0) {
		return 0;
	}
	return renew_inner(client) ? -1 : BLIND_MS;
}
