/* disk.c: hands states to the thread that writes the state file, one after the other. */
#include "disk.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

#include "job.h"
#include "pawl/error.h"
#include "state_file.h"
#include "time_source.h"

/* What the thread works on. The loop does not touch it while the thread runs. */
struct disk_job {
	struct state_file *file;
	struct durable state;
	uint64_t seq;
	/* Why it could not be written, as an errno value; 0 if it was. */
	int problem;
	/* How long the write and its sync took. */
	span_ns took;
};

struct disk {
	struct event_base *base;
	disk_done *done;
	void *ctx;
	/* A write has not been reported yet: `job` is its thread, or NULL if there is none. */
	bool busy;
	struct job *job;
	struct disk_job now;
	/* Reports a write that was done without a thread. */
	struct event *written;
	/* `next` waits to be written. */
	bool waiting;
	struct durable next;
	uint64_t next_seq;
	struct disk_counts counts;
};

static void disk_run(void *data) {
	struct disk_job *write = data;
	struct instant begun = time_source_now();
	write->problem = state_file_write(write->file, &write->state) == 0 ? 0 : errno;
	write->took = instant_elapsed_long(time_source_now(), begun);
}

static void disk_begin(struct disk *p);

static void disk_report(struct disk *p) {
	uint64_t seq = p->now.seq;
	int problem = p->now.problem;
	p->busy = false;
	p->counts.writes++;
	p->counts.failures += problem != 0;
	buckets_add(&p->counts.took, p->now.took);
	if (p->waiting) {
		disk_begin(p);
	}
	p->done(p->ctx, seq, problem);
}

static void disk_on_done(void *ctx, void *data) {
	struct disk *p = ctx;
	(void)data;
	p->job = NULL;
	disk_report(p);
}

static void disk_on_written(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	disk_report(ctx);
}

static const struct job_work disk_work = { disk_run, disk_on_done, NULL };

static void disk_begin(struct disk *p) {
	p->waiting = false;
	p->busy = true;
	p->now.state = p->next;
	p->now.seq = p->next_seq;
	if (job_start(p->base, &disk_work, &p->now, p, &p->job) != 0) {
		/* There is no thread to be had, so the loop waits for the disk, once. The caller is
		 * not told before it has returned to the loop: it may be in the middle of a
		 * flush. */
		disk_run(&p->now);
		event_active(p->written, EV_TIMEOUT, 0);
	}
}

const struct disk_counts *disk_counts(const struct disk *p) {
	return &p->counts;
}

void disk_write(struct disk *p, const struct durable *state, uint64_t seq) {
	p->next = *state;
	p->next_seq = seq;
	p->waiting = true;
	if (!p->busy) {
		disk_begin(p);
	}
}

int disk_new(struct event_base *base, struct state_file *file, disk_done *done, void *ctx,
	struct disk **out) {
	struct disk *p = calloc(1, sizeof *p);
	if (!p) {
		return PAWL_ENOMEM;
	}
	p->base = base;
	p->done = done;
	p->ctx = ctx;
	p->now.file = file;
	p->written = event_new(base, -1, 0, disk_on_written, p);
	if (!p->written) {
		free(p);
		return PAWL_ENOMEM;
	}
	*out = p;
	return 0;
}

void disk_free(struct disk *p) {
	if (p) {
		job_wait(p->job);
		event_free(p->written);
		free(p);
	}
}
