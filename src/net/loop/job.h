/* job.h: work that may block (a sync, a look-up of a name) in a thread of its own, its end reported on the loop. */
#ifndef PAWL_NET_JOB_H
#define PAWL_NET_JOB_H

struct event_base;
struct job;

struct job_work {
	void (*run)(void *data);              /* in the thread */
	void (*done)(void *ctx, void *data);  /* on the loop, unless the job was given up; the job is gone afterwards */
	void (*release)(void *data);          /* once, in either thread, when nobody needs data any more; may be NULL */
};

/* 0 or PAWL_ENOMEM (then data stays the caller's). `work` is borrowed, static. */
int job_start(struct event_base *base, const struct job_work *work, void *take_data, void *ctx, struct job **out);
void job_wait(struct job *job);    /* blocks until run() is over; done() will not be called; accepts NULL */
void job_give_up(struct job *job); /* returns at once; done() will not be called; accepts NULL */

#endif
