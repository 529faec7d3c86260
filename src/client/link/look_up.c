/* look_up.c: getaddrinfo in a thread, see look_up.h. */
#include "look_up.h"

#include <event2/event_struct.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "alloc.h"
#include "check.h"

/* The thread may outlive the client and its allocator, so the memory is the C library's. The last
 * of the two that lets go frees it. */
struct look_up {
	atomic_int owners;
	char host[256], port[6];

	/* The thread writes it before it writes to `fd`. */
	struct addrinfo *found;

	/* An eventfd, which says that the thread is done. */
	int fd;

	/* ---- the loop's ---- */

	struct event event;
	look_up_done_fn *done;
	void *ctx;
	size_t which;
};

static void let_go(struct look_up *l) {
	if (atomic_fetch_sub(&l->owners, 1) != 1) {
		return;
	}
	struct allocator libc = alloc_libc(NULL);
	if (l->found) {
		freeaddrinfo(l->found);
	}
	if (l->fd >= 0) {
		close(l->fd);
	}
	alloc_free(&libc, l, sizeof(*l));
}

static void *look(void *arg) {
	struct look_up *l = arg;
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	const uint64_t one = 1;
	if (getaddrinfo(l->host, l->port, &hints, &l->found) != 0) {
		l->found = NULL;
	}
	CHECK(write(l->fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
	let_go(l);
	return NULL;
}

static void on_done(evutil_socket_t fd, short what, void *arg) {
	struct look_up *l = arg;
	(void)fd;
	(void)what;
	/* It is added for one time only, so nothing refers to it any more. */
	l->done(l->ctx, l->which, l->found);
	let_go(l);
}

/* The program's signals are for its own threads. */
static int start_thread(struct look_up *l) {
	sigset_t all, before;
	pthread_t thread;
	pthread_attr_t attributes;
	if (pthread_attr_init(&attributes) != 0) {
		return -1;
	}
	sigfillset(&all);
	int error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = error ? error : pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!error) {
		error = pthread_create(&thread, &attributes, look, l);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return error ? -1 : 0;
}

struct look_up *look_up_start(struct event_base *base, const char *host, const char *port,
	look_up_done_fn *done, void *ctx, size_t which) {
	struct allocator libc = alloc_libc(NULL);
	struct look_up *l = alloc_new(&libc, sizeof(*l));
	if (!l) {
		return NULL;
	}
	*l = (struct look_up){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .done = done,
		.ctx = ctx, .which = which };
	atomic_init(&l->owners, 2);
	(void)snprintf(l->host, sizeof(l->host), "%s", host);
	(void)snprintf(l->port, sizeof(l->port), "%s", port);
	bool ready = l->fd >= 0 && event_assign(&l->event, base, l->fd, EV_READ, on_done, l) == 0
		&& event_add(&l->event, NULL) == 0;
	if (ready && start_thread(l) == 0) {
		return l;
	}
	if (ready) {
		event_del(&l->event);
	}
	atomic_store(&l->owners, 1);
	let_go(l);
	return NULL;
}

void look_up_abandon(struct look_up *take_look_up) {
	if (take_look_up) {
		event_del(&take_look_up->event);
		let_go(take_look_up);
	}
}
