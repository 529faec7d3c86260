/* look_up.c: getaddrinfo in a thread, see look_up.h. */
#include "look_up.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <netdb.h>
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
	look_up_fn *look;
	struct look_up_wanted wanted;

	/* The thread writes it before it writes to `fd`. */
	struct look_up_found found;

	/* An eventfd, which says that the thread is done. */
	int fd;

	/* ---- the loop's ---- */

	struct event event;
	look_up_done_fn *done;
	void *ctx;
};

/* getaddrinfo sorts the addresses by how well they can be reached, so the families keep their
 * order. */
void look_up_addresses(const char *host, const char *port, unsigned rank, unsigned weight,
	struct look_up_found *out) {
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	int error = getaddrinfo(host, port, &hints, &found);
	if (error) {
		char text[128];
		const char *why = error == EAI_SYSTEM ? strerror_r(errno, text, sizeof(text))
			: gai_strerror(error);
		(void)snprintf(out->problem, sizeof(out->problem),
			"the host name cannot be resolved (%s)", why);
		return;
	}
	int family = found->ai_family;
	for (const struct addrinfo *a = found; a && out->count < LOOK_UP_PLACES_MAX;
		a = a->ai_next) {
		struct look_up_place *to = &out->places[out->count];
		if (a->ai_addrlen <= sizeof(to->addr)) {
			rank += a->ai_family != family;
			family = a->ai_family;
			(void)snprintf(to->host, sizeof(to->host), "%s", host);
			(void)snprintf(to->port, sizeof(to->port), "%s", port);
			memcpy(&to->addr, a->ai_addr, a->ai_addrlen);
			to->size = a->ai_addrlen;
			to->rank = rank;
			to->weight = weight;
			out->count++;
		}
	}
	freeaddrinfo(found);
}

void look_up_now(const struct look_up_wanted *wanted, struct look_up_found *out) {
	if (wanted->srv) {
		look_up_srv(wanted->host, out);
	} else {
		look_up_addresses(wanted->host, wanted->port, 0, 1, out);
	}
}

static void let_go(struct look_up *l) {
	if (atomic_fetch_sub(&l->owners, 1) != 1) {
		return;
	}
	struct allocator libc = alloc_libc(NULL);
	if (l->fd >= 0) {
		close(l->fd);
	}
	alloc_free(&libc, l, sizeof(*l));
}

static void *run(void *arg) {
	struct look_up *l = arg;
	const uint64_t one = 1;
	l->look(&l->wanted, &l->found);
	CHECK(write(l->fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
	let_go(l);
	return NULL;
}

static void on_done(evutil_socket_t fd, short what, void *arg) {
	struct look_up *l = arg;
	uint64_t one;
	(void)what;
	/* After this the loop sees what the thread has written. */
	CHECK(read(fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
	/* It is added for one time only, so nothing refers to it any more. */
	l->done(l->ctx, l, &l->found);
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
		error = pthread_create(&thread, &attributes, run, l);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return error ? -1 : 0;
}

struct look_up *look_up_start(struct event_base *base, look_up_fn *look,
	const struct look_up_wanted *wanted, look_up_done_fn *done, void *ctx) {
	struct allocator libc = alloc_libc(NULL);
	struct look_up *l = alloc_new(&libc, sizeof(*l));
	if (!l) {
		return NULL;
	}
	*l = (struct look_up){ .look = look, .wanted = *wanted,
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .done = done, .ctx = ctx };
	atomic_init(&l->owners, 2);
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
