/* threads.c: threads, their locks and conditions, and the clocks. Between two calls of the
 * conductor no other thread runs, so nothing here is atomic. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "channel.h"

#define SECOND 1000000000LL
#define THREADS_MAX 64

typedef int clock_gettime_function(clockid_t, struct timespec *);
typedef int pthread_create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int pthread_detach_function(pthread_t);
typedef int pthread_join_function(pthread_t, void **);
typedef int pthread_mutex_lock_function(pthread_mutex_t *);
typedef int pthread_mutex_unlock_function(pthread_mutex_t *);
typedef int pthread_cond_signal_function(pthread_cond_t *);
typedef int pthread_cond_wait_function(pthread_cond_t *, pthread_mutex_t *);

/* How many threads wait for a lock, and for a condition. */
static unsigned locks_awaited, conditions_awaited;

struct thread {
	pthread_t thread;
	/* The conductor's number of it; 0: a free place. */
	int64_t number;
	/* What it begins with. */
	void *(*run)(void *);
	void *arg;
	int channel;
};

static struct thread threads[THREADS_MAX];

/* ---- clocks ---- */

int clock_gettime(clockid_t id, struct timespec *out) {
	if (!channel_open()) {
		return REAL(clock_gettime)(id, out);
	}
	int64_t ns = channel_clock(id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE);
	*out = (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
	return 0;
}

int gettimeofday(struct timeval *out, /* style: gettimeofday, because this replaces it */
	void *zone) {
	struct timespec t;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*out = (struct timeval){ .tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *out) { /* style: time, because this replaces it */
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (out != NULL) {
		*out = t.tv_sec;
	}
	return t.tv_sec;
}

/* ---- threads ---- */

static void *thread_main(void *arg) {
	struct thread *self = arg;
	channel_take(self->channel);
	channel_ask(CALL_HELLO, -1, 0, 0);
	void *result = self->run(self->arg);
	channel_end();
	return result;
}

static struct thread *free_place(void) {
	for (unsigned i = 0; i < THREADS_MAX; i++) {
		if (threads[i].number == 0) {
			return &threads[i];
		}
	}
	abort();
}

static struct thread *place_of(pthread_t thread) {
	for (unsigned i = 0; i < THREADS_MAX; i++) {
		if (threads[i].number != 0 && pthread_equal(threads[i].thread, thread)) {
			return &threads[i];
		}
	}
	abort();
}

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
	void *arg) {
	if (!channel_open()) {
		return REAL(pthread_create)(out, attributes, run, arg);
	}
	struct thread *t = free_place();
	t->run = run;
	t->arg = arg;
	t->channel = channel_new();
	t->number = channel_ask(CALL_SPAWN, -1, 0, 0);
	if (REAL(pthread_create)(out, attributes, thread_main, t) != 0) {
		abort();
	}
	t->thread = *out;
	return 0;
}

int pthread_join(pthread_t thread, void **out) {
	if (channel_open()) {
		struct thread *t = place_of(thread);
		channel_ask(CALL_JOIN, -1, t->number, 0);
		t->number = 0;
	}
	return REAL(pthread_join)(thread, out);
}

int pthread_detach(pthread_t thread) {
	if (channel_open()) {
		place_of(thread)->number = 0;
	}
	return REAL(pthread_detach)(thread);
}

/* ---- locks and conditions ---- */

int pthread_mutex_lock(pthread_mutex_t *lock) {
	if (!channel_open()) {
		return REAL(pthread_mutex_lock)(lock);
	}
	int error;
	while ((error = pthread_mutex_trylock(lock)) == EBUSY) {
		locks_awaited++;
		channel_ask(CALL_LOCK, -1, 0, 0);
		locks_awaited--;
	}
	return error;
}

int pthread_mutex_unlock(pthread_mutex_t *lock) {
	int error = REAL(pthread_mutex_unlock)(lock);
	if (channel_open() && locks_awaited > 0) {
		channel_ask(CALL_UNLOCK, -1, 0, 0);
	}
	return error;
}

/* Lets go of the lock and waits in one step: the conductor wakes those who wait for a lock, too.
 * Returns 0, or ETIMEDOUT. */
static int wait_for(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until) {
	REAL(pthread_mutex_unlock)(lock);
	conditions_awaited++;
	int64_t late = channel_ask(CALL_WAIT, -1, (int64_t)(intptr_t)condition, until);
	conditions_awaited--;
	pthread_mutex_lock(lock);
	return late ? ETIMEDOUT : 0;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock) {
	return channel_open() ? wait_for(condition, lock, 0)
		: REAL(pthread_cond_wait)(condition, lock);
}

/* The clock of every condition with a timeout is taken to be the monotonic one. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
	const struct timespec *until) {
	return wait_for(condition, lock, (int64_t)until->tv_sec * SECOND + until->tv_nsec);
}

int pthread_cond_signal(pthread_cond_t *condition) {
	if (!channel_open()) {
		return REAL(pthread_cond_signal)(condition);
	}
	if (conditions_awaited > 0) {
		channel_ask(CALL_SIGNAL, -1, (int64_t)(intptr_t)condition, 0);
	}
	return 0;
}
