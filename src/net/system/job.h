/* job.h: runs work that may block (syncing a file, looking up a name) in a thread of its own, and
 * reports its end on the loop.
 */
#ifndef PAWL_NET_JOB_H
#define PAWL_NET_JOB_H

struct event_base;
struct job;

/* What a job does. The struct is static and shared by all jobs of its kind. */
struct job_work {
	/* Does the work; runs in the thread. */
	void (*run)(void *data);
	/* Runs on the loop after run(), unless the job was given up. The job is gone when it
	 * returns. */
	void (*done)(void *ctx, void *data);
	/* Frees `data`. It is called once, in either thread, when nobody needs `data` any more. May
	 * be NULL. */
	void (*release)(void *data);
};

/* Returns 0 or PAWL_ENOMEM; on PAWL_ENOMEM `data` remains the caller's. `work` is borrowed and
 * static. */
int job_start(struct event_base *base, const struct job_work *work, void *take_data, void *ctx,
	struct job **out);
/* Blocks until run() is over. done() will not be called. Accepts NULL. */
void job_wait(struct job *job);
/* Returns at once. done() will not be called. Accepts NULL. */
void job_give_up(struct job *job);

#endif
