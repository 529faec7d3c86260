/* dialer.c: looks up an address, in a thread if it is a name, and begins to connect. */
#include "dialer.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "address.h"
#include "job.h"
#include "pawl/error.h"

/* The largest number of addresses of one name that are tried. */
#define RESOLVED_MAX 16

/* Looks up a name. It belongs to the job once the job runs. */
struct dialer_lookup {
	struct address address;
	struct address_socket found[RESOLVED_MAX];
	size_t count;
};

struct dialer {
	dialer_dialled *dialled;
	void *ctx;
	unsigned attempt;
	struct job *job;
	/* Reports on the next turn of the loop, if the address was numeric and no thread was
	 * needed. */
	struct event *later;
	int fd;
};

static int dialer_connect(const struct address_socket *to) {
	int fd = socket(to->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;
	if (fd < 0) {
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, (const struct sockaddr *)&to->addr, to->size) != 0
		&& errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

static int dialer_connect_found(const struct dialer *d, const struct dialer_lookup *lookup) {
	return lookup->count > 0 ? dialer_connect(&lookup->found[d->attempt % lookup->count]) : -1;
}

static void dialer_look_up(void *data) {
	struct dialer_lookup *lookup = data;
	lookup->count = address_resolve(&lookup->address, false, lookup->found, RESOLVED_MAX);
}

static void dialer_on_found(void *ctx, void *data) {
	struct dialer *d = ctx;
	d->job = NULL;
	d->dialled(d->ctx, dialer_connect_found(d, data));
}

static void dialer_on_later(evutil_socket_t fd, short what, void *ctx) {
	struct dialer *d = ctx;
	(void)fd;
	(void)what;
	int connecting = d->fd;
	d->fd = -1;
	d->dialled(d->ctx, connecting);
}

static const struct job_work dialer_work = { dialer_look_up, dialer_on_found, free };

/* Takes over `take_lookup`, even if it fails. */
static int dialer_begin(struct dialer *d, struct event_base *base,
	struct dialer_lookup *take_lookup) {
	take_lookup->count = address_resolve(&take_lookup->address, true, take_lookup->found,
		RESOLVED_MAX);
	if (take_lookup->count == 0) {
		int error = job_start(base, &dialer_work, take_lookup, d, &d->job);
		if (error) {
			free(take_lookup);
		}
		return error;
	}
	d->fd = dialer_connect_found(d, take_lookup);
	free(take_lookup);
	d->later = event_new(base, -1, 0, dialer_on_later, d);
	if (!d->later) {
		return PAWL_ENOMEM;
	}
	event_active(d->later, EV_TIMEOUT, 0);
	return 0;
}

int dialer_new(struct event_base *base, const char *address, unsigned attempt,
	dialer_dialled *dialled, void *ctx, struct dialer **out) {
	struct dialer *d = calloc(1, sizeof *d);
	struct dialer_lookup *lookup = calloc(1, sizeof *lookup);
	if (!d || !lookup) {
		free(d);
		free(lookup);
		return PAWL_ENOMEM;
	}
	*d = (struct dialer){ .dialled = dialled, .ctx = ctx, .attempt = attempt, .fd = -1 };
	if (address_parse(address, &lookup->address) != 0) {
		free(lookup);
		free(d);
		return PAWL_EINVAL;
	}
	int error = dialer_begin(d, base, lookup);
	if (error) {
		dialer_free(d);
		return error;
	}
	*out = d;
	return 0;
}

void dialer_free(struct dialer *d) {
	if (!d) {
		return;
	}
	job_give_up(d->job);
	if (d->later) {
		event_free(d->later);
	}
	if (d->fd >= 0) {
		close(d->fd);
	}
	free(d);
}
