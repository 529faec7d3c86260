/* log_writer.c: the thread that writes log lines. */
#include "log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "pawl/error.h"

#define QUEUE_BYTES ((size_t)128 << 10)
/* How many seconds the end of the process waits for a reader of the log. */
#define STOP_S 1

static struct {
	pthread_mutex_t lock;
	/* Signals that there is something to write, or that the writer is to stop. */
	pthread_cond_t filled;
	/* Signals that the thread has ended. */
	pthread_cond_t ended;
	pthread_t thread;
	/* The fields up to `over` are protected by the lock. */
	struct log_queue queue;
	bool started, stopping, over;
	/* The fields below are constant while the thread runs. */
	int fd;
	log_writer_lost *lost;
	char room[QUEUE_BYTES];
} writer = { .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER,
	.fd = STDERR_FILENO };

/* Returns false if the line, or its end, cannot be written, because nobody reads the pipe any more
 * or the disk is full. */
static bool writer_write(const char *line, size_t bytes) {
	while (bytes > 0) {
		ssize_t n = write(writer.fd, line, bytes);
		if (n >= 0) {
			line += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			/* A process that shares the description has made it non-blocking. */
			struct pollfd room = { .fd = writer.fd, .events = POLLOUT };
			(void)poll(&room, 1, -1);
		} else if (errno != EINTR) {
			return false;
		}
	}
	return true;
}

static bool writer_say_lost(uint64_t lost) {
	char line[LOG_LINE_MAX];
	return writer_write(line, writer.lost(lost, line));
}

/* Returns how many lines could not be written and must still be reported. */
static uint64_t writer_write_item(const struct log_queue_item *item, uint64_t lost) {
	lost += item->lost;
	if (lost > 0 && writer_say_lost(lost)) {
		lost = 0;
	}
	if (item->bytes > 0 && !writer_write(item->line, item->bytes)) {
		lost++;
	}
	return lost;
}

/* Waits for something to write. Returns false if the writer is to stop and everything has been
 * written. */
static bool writer_next(struct log_queue_item *out) {
	pthread_mutex_lock(&writer.lock);
	bool some;
	while (!(some = log_queue_take(&writer.queue, out)) && !writer.stopping) {
		pthread_cond_wait(&writer.filled, &writer.lock);
	}
	pthread_mutex_unlock(&writer.lock);
	return some;
}

static void *writer_main(void *arg) {
	struct log_queue_item item;
	uint64_t lost = 0;
	(void)arg;
	while (writer_next(&item)) {
		lost = writer_write_item(&item, lost);
	}
	pthread_mutex_lock(&writer.lock);
	writer.over = true;
	pthread_cond_signal(&writer.ended);
	pthread_mutex_unlock(&writer.lock);
	return NULL;
}

/* The thread blocks all signals, because only the loop handles them. */
static int writer_spawn(void) {
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&writer.thread, NULL, writer_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int log_writer_start(int fd, log_writer_lost *lost) {
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&writer.ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_lock(&writer.lock);
	log_queue_init(&writer.queue, writer.room, sizeof writer.room);
	writer.fd = fd;
	writer.lost = lost;
	writer.stopping = writer.over = false;
	writer.started = writer_spawn() == 0;
	bool started = writer.started;
	pthread_mutex_unlock(&writer.lock);
	return started ? 0 : PAWL_ENOMEM;
}

void log_writer_stop(void) {
	struct timespec until = { .tv_sec = 0 };
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_S;
	pthread_mutex_lock(&writer.lock);
	bool started = writer.started;
	int late = 0;
	writer.stopping = true;
	pthread_cond_signal(&writer.filled);
	while (started && !writer.over && !late) {
		late = pthread_cond_timedwait(&writer.ended, &writer.lock, &until);
	}
	bool over = writer.over;
	pthread_mutex_unlock(&writer.lock);
	/* A thread that is not over hangs in a write that nobody takes, and ends with the
	 * process. */
	if (over) {
		pthread_join(writer.thread, NULL);
	}
}

void log_writer_put(const char *line, size_t bytes) {
	pthread_mutex_lock(&writer.lock);
	bool started = writer.started;
	if (started) {
		log_queue_put(&writer.queue, line, bytes);
		pthread_cond_signal(&writer.filled);
	}
	pthread_mutex_unlock(&writer.lock);
	if (!started) {
		/* If it fails, there is nobody to tell. */
		(void)writer_write(line, bytes);
	}
}
