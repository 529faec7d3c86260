/* job.c: a thread for each job, which reports its end on the loop through an eventfd. */
#include "job.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"

/* A job has two owners, the thread and the loop, and the last of them frees it. So a look-up that
 * nobody waits for any more can take as long as it likes. */
struct job {
	const struct job_work *work;
	void *data, *ctx;
	struct event *ended;
	int fd;
	pthread_t thread;
	atomic_int owners;
};

static void job_drop(struct job *job) {
	if (atomic_fetch_sub(&job->owners, 1) == 1) {
		if (job->work->release) {
			job->work->release(job->data);
		}
		close(job->fd);
		free(job);
	}
}

static void *job_main(void *arg) {
	struct job *job = arg;
	job->work->run(job->data);
	uint64_t one = 1;
	ssize_t n;
	while ((n = write(job->fd, &one, sizeof one)) < 0 && errno == EINTR) {
	}
	CHECK(n == sizeof one);
	job_drop(job);
	return NULL;
}

static void job_on_ended(evutil_socket_t fd, short what, void *arg) {
	struct job *job = arg;
	(void)fd;
	(void)what;
	event_free(job->ended);
	pthread_join(job->thread, NULL);
	job->work->done(job->ctx, job->data);
	job_drop(job);
}

/* The thread blocks all signals, because only the loop handles them. */
static int job_spawn(struct job *job) {
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&job->thread, NULL, job_main, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? PAWL_ENOMEM : 0;
}

int job_start(struct event_base *base, const struct job_work *work, void *take_data, void *ctx,
	struct job **out) {
	struct job *job = calloc(1, sizeof *job);
	if (!job) {
		return PAWL_ENOMEM;
	}
	*job = (struct job){ .work = work, .data = take_data, .ctx = ctx,
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	atomic_init(&job->owners, 2);
	job->ended = job->fd < 0 ? NULL : event_new(base, job->fd, EV_READ, job_on_ended, job);
	if (!job->ended || event_add(job->ended, NULL) != 0 || job_spawn(job) != 0) {
		if (job->ended) {
			event_free(job->ended);
		}
		if (job->fd >= 0) {
			close(job->fd);
		}
		free(job);
		return PAWL_ENOMEM;
	}
	*out = job;
	return 0;
}

void job_wait(struct job *job) {
	if (job) {
		event_free(job->ended);
		pthread_join(job->thread, NULL);
		job_drop(job);
	}
}

void job_give_up(struct job *job) {
	if (job) {
		event_free(job->ended);
		pthread_detach(job->thread);
		job_drop(job);
	}
}
