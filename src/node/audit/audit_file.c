/* audit_file.c: the queue of lines, and the thread that writes them. */
#include "audit_file.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "audit_disk.h"
#include "check.h"
#include "pawl/error.h"

/* How many bytes may wait for the thread, besides those about denied requests. Both together are
 * below the least size of a file, so a file is rotated at most once in what waits. */
#define QUEUE_BYTES ((size_t)512 << 10)
/* How many seconds the end of the node waits for the disk. */
#define CLOSE_S 1

/* Lines that wait, and what is to be done before those from the offsets on; SIZE_MAX: nothing. */
struct batch {
	char *bytes;
	size_t used;
	/* How many of these bytes are lines about denied requests. */
	size_t denied;
	size_t rotate_at, reopen_at;
	uint32_t keep;
	/* The number of the last line. */
	uint64_t last;
	/* Somebody waits for one of the lines. */
	bool wanted;
};

struct audit_file {
	pthread_mutex_t lock;
	/* Signals that there is something to write, or that the thread is to end; and that it has
	 * ended. */
	pthread_cond_t filled, ended;
	pthread_t thread;

	/* The fields up to `trouble_what` are protected by the lock. */
	struct batch next;
	struct list receipts;
	bool stopping, over;
	struct audit_counts counts;
	int trouble;
	const char *trouble_what;

	/* Of the thread. */
	struct batch now;
	struct audit_disk disk;

	/* Of the loop. */
	uint64_t number, size;
	struct event *event;
	int event_fd;
	void (*told)(void *ctx);
	void *ctx;
};

/* ---- the thread ---- */

static uint64_t lines_in(const char *bytes, size_t size) {
	uint64_t lines = 0;
	for (const char *at = bytes, *end; size > 0
		&& (end = memchr(at, '\n', size - (size_t)(at - bytes))) != NULL; at = end + 1) {
		lines++;
	}
	return lines;
}

/* Writes a piece of the batch. */
static void write_piece(struct audit_file *f, const char *bytes, size_t size,
	struct audit_counts *did) {
	if (size == 0) {
		return;
	}
	const uint64_t lines = lines_in(bytes, size);
	if (audit_disk_write(&f->disk, bytes, size)) {
		did->lines += lines;
	} else {
		did->dropped += lines;
	}
}

/* Writes the batch, with what is to be done in between. */
static struct audit_counts write_batch(struct audit_file *f) {
	const struct batch *b = &f->now;
	struct audit_counts did = { 0, 0, 0 };
	size_t at = 0;
	f->disk.trouble = 0;
	f->disk.unsynced = false;
	while (at < b->used) {
		size_t end = b->used;
		if (b->wanted && at > 0 && (at == b->rotate_at || at == b->reopen_at)) {
			/* The lines so far are in a file that is closed now. */
			audit_disk_sync(&f->disk);
		}
		if (at == b->rotate_at) {
			audit_disk_rotate(&f->disk, b->keep);
		}
		if (at == b->reopen_at) {
			audit_disk_reopen(&f->disk);
		}
		end = b->rotate_at > at && b->rotate_at < end ? b->rotate_at : end;
		end = b->reopen_at > at && b->reopen_at < end ? b->reopen_at : end;
		write_piece(f, b->bytes + at, end - at, &did);
		at = end;
	}
	if (b->wanted && did.dropped == 0) {
		audit_disk_sync(&f->disk);
	}
	did.failures = f->disk.trouble != 0;
	return did;
}

static void file_tell(struct audit_file *f) {
	const uint64_t one = 1;
	ssize_t n;
	while ((n = write(f->event_fd, &one, sizeof one)) < 0 && errno == EINTR) {
	}
}

/* Notes what has become of a batch. To be called with the lock. */
static void file_report(struct audit_file *f, const struct audit_counts *did) {
	const bool changed = (f->trouble != 0) != (f->disk.trouble != 0);
	const bool lost = did->dropped > 0 || f->disk.unsynced;
	f->counts.lines += did->lines;
	f->counts.dropped += did->dropped;
	f->counts.failures += did->failures;
	f->trouble = f->disk.trouble;
	f->trouble_what = f->disk.what;
	for (struct list *n = list_first(&f->receipts); n; n = list_after(&f->receipts, n)) {
		struct audit_receipt *r = CONTAINER_OF(n, struct audit_receipt, in);
		if (r->fate == AUDIT_WAITS && r->number <= f->now.last) {
			r->fate = lost ? AUDIT_LOST : AUDIT_WRITTEN;
		}
	}
	if (f->now.wanted || changed) {
		file_tell(f);
	}
}

static void batch_clear(struct batch *b, char *bytes) {
	*b = (struct batch){ .bytes = bytes, .rotate_at = SIZE_MAX, .reopen_at = SIZE_MAX };
}

static void *file_main(void *arg) {
	struct audit_file *f = arg;
	pthread_mutex_lock(&f->lock);
	while (f->next.used > 0 || !f->stopping) {
		if (f->next.used == 0) {
			pthread_cond_wait(&f->filled, &f->lock);
			continue;
		}
		char *room = f->now.bytes;
		f->now = f->next;
		batch_clear(&f->next, room);
		pthread_mutex_unlock(&f->lock);
		const struct audit_counts did = write_batch(f);
		pthread_mutex_lock(&f->lock);
		file_report(f, &did);
	}
	f->over = true;
	pthread_cond_signal(&f->ended);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* ---- the loop ---- */

/* To be called with the lock, when there is room. */
static void file_append(struct audit_file *f, struct slice line) {
	struct batch *b = &f->next;
	memcpy(b->bytes + b->used, line.data, line.size);
	b->used += line.size;
	b->last = f->number;
	f->size += line.size;
}

bool audit_file_put_denied(struct audit_file *f, struct slice line) {
	CHECK(line.size > 0 && line.size <= AUDIT_LINE_MAX);
	pthread_mutex_lock(&f->lock);
	const bool room = line.size <= AUDIT_DENIED_BYTES - f->next.denied;
	if (room) {
		f->number++;
		file_append(f, line);
		f->next.denied += line.size;
		pthread_cond_signal(&f->filled);
	}
	pthread_mutex_unlock(&f->lock);
	return room;
}

bool audit_file_put(struct audit_file *f, struct slice line, enum audit_before before,
	uint32_t keep, struct audit_receipt *receipt) {
	struct batch *b = &f->next;
	CHECK(line.size > 0 && line.size <= AUDIT_LINE_MAX);
	pthread_mutex_lock(&f->lock);
	f->number++;
	const bool room = line.size <= QUEUE_BYTES - (b->used - b->denied);
	if (room) {
		/* Of two times to open the path anew, the first one is enough. */
		b->rotate_at = before == AUDIT_ROTATE ? b->used : b->rotate_at;
		b->reopen_at = before == AUDIT_REOPEN && b->reopen_at == SIZE_MAX
			? b->used : b->reopen_at;
		b->keep = before == AUDIT_ROTATE ? keep : b->keep;
		f->size = before == AUDIT_GO_ON ? f->size : 0;
		file_append(f, line);
		b->wanted = b->wanted || receipt;
	} else {
		f->counts.dropped++;
	}
	if (receipt) {
		receipt->number = f->number;
		receipt->fate = room ? AUDIT_WAITS : AUDIT_LOST;
		list_append(&f->receipts, &receipt->in);
	}
	pthread_cond_signal(&f->filled);
	pthread_mutex_unlock(&f->lock);
	return room;
}

enum audit_fate audit_file_fate(struct audit_file *f, const struct audit_receipt *receipt) {
	pthread_mutex_lock(&f->lock);
	const enum audit_fate fate = receipt->fate;
	pthread_mutex_unlock(&f->lock);
	return fate;
}

void audit_file_forget(struct audit_file *f, struct audit_receipt *receipt) {
	pthread_mutex_lock(&f->lock);
	list_remove(&receipt->in);
	pthread_mutex_unlock(&f->lock);
}

struct audit_counts audit_file_counts(struct audit_file *f) {
	pthread_mutex_lock(&f->lock);
	const struct audit_counts counts = f->counts;
	pthread_mutex_unlock(&f->lock);
	return counts;
}

uint64_t audit_file_size(const struct audit_file *f) {
	return f->size;
}

int audit_file_trouble(struct audit_file *f, const char **what) {
	pthread_mutex_lock(&f->lock);
	const int trouble = f->trouble;
	*what = f->trouble_what;
	pthread_mutex_unlock(&f->lock);
	return trouble;
}

static void file_on_event(evutil_socket_t fd, short what, void *ctx) {
	struct audit_file *f = ctx;
	uint64_t times;
	(void)what;
	if (read(fd, &times, sizeof times) == sizeof times) {
		f->told(f->ctx);
	}
}

/* ---- life ---- */

/* The thread blocks all signals, because only the loop handles them. */
static int file_spawn(struct audit_file *f) {
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = pthread_create(&f->thread, NULL, file_main, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? PAWL_ENOMEM : 0;
}

static void file_free(struct audit_file *f) {
	if (f->event) {
		event_free(f->event);
	}
	if (f->event_fd >= 0) {
		close(f->event_fd);
	}
	audit_disk_close(&f->disk);
	free(f->next.bytes);
	free(f->now.bytes);
	free(f);
}

static int file_prepare(struct audit_file *f, struct event_base *base) {
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->filled, NULL);
	pthread_cond_init(&f->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	list_init(&f->receipts);
	batch_clear(&f->next, malloc(QUEUE_BYTES + AUDIT_DENIED_BYTES));
	batch_clear(&f->now, malloc(QUEUE_BYTES + AUDIT_DENIED_BYTES));
	f->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->event = f->event_fd < 0 ? NULL
		: event_new(base, f->event_fd, EV_READ | EV_PERSIST, file_on_event, f);
	return f->next.bytes && f->now.bytes && f->event && event_add(f->event, NULL) == 0
		? 0 : PAWL_ENOMEM;
}

int audit_file_check(const char *path, char why[AUDIT_WHY_BYTES]) {
	return audit_disk_check(path, why, AUDIT_WHY_BYTES);
}

int audit_file_open(const char *path, struct event_base *base, void (*told)(void *ctx), void *ctx,
	struct audit_file **out, char why[AUDIT_WHY_BYTES]) {
	struct audit_file *f = calloc(1, sizeof *f);
	snprintf(why, AUDIT_WHY_BYTES, "out of memory");
	if (!f) {
		return PAWL_ENOMEM;
	}
	f->told = told;
	f->ctx = ctx;
	f->event_fd = -1;
	int error = audit_disk_open(&f->disk, path, &f->size, why, AUDIT_WHY_BYTES);
	if (!error) {
		error = file_prepare(f, base);
		error = error ? error : file_spawn(f);
		snprintf(why, AUDIT_WHY_BYTES, "out of memory, or too many threads or open files");
	}
	if (error) {
		file_free(f);
		return error;
	}
	*out = f;
	return 0;
}

void audit_file_close(struct audit_file *f) {
	struct timespec until = { .tv_sec = 0 };
	int late = 0;
	if (!f) {
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += CLOSE_S;
	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	pthread_cond_signal(&f->filled);
	while (!f->over && !late) {
		late = pthread_cond_timedwait(&f->ended, &f->lock, &until);
	}
	const bool over = f->over;
	pthread_mutex_unlock(&f->lock);
	if (over) {
		pthread_join(f->thread, NULL);
		file_free(f);
	} else {
		/* The thread hangs in a write, and ends with the process; so what it uses stays. */
		event_free(f->event);
		pthread_detach(f->thread);
	}
}
