/* rate.c: a library to be preloaded (LD_PRELOAD) that lets a process live by clocks with rates of
 * its own. PAWL_TEST_RATE is the rate of CLOCK_BOOTTIME and CLOCK_MONOTONIC against true time, and
 * after a blank, where it is another one, that of CLOCK_MONOTONIC_RAW: "1.0190" or "1.0190 1.0".
 * The wall clock stays as it is.
 *
 * A clock that is read shows base + (true - base) * rate, where base is what it showed when the
 * process began. Whatever waits, waits by the same clock: the times that are passed to
 * timerfd_settime, epoll_wait, poll, select and nanosleep are the process's own, and are turned
 * into the kernel's before the kernel sees them. (A process that reads one time and waits by
 * another acts only when something arrives.)
 *
 * A program that is linked dynamically calls libc's clock_gettime, which calls the vDSO. So this
 * library sees every reading of the program and of its libraries (libevent). It does not see system
 * calls that a program makes by itself. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define FDS_MAX 4096 /* a timerfd above that keeps true time */

typedef int clock_gettime_function(clockid_t, struct timespec *);
typedef int timerfd_create_function(int, int);
typedef int timerfd_settime_function(int, int, const struct itimerspec *, struct itimerspec *);
typedef int timerfd_gettime_function(int, struct itimerspec *);
typedef int epoll_wait_function(int, struct epoll_event *, int, int);
typedef int epoll_pwait_function(int, struct epoll_event *, int, int, const sigset_t *);
typedef int epoll_pwait2_function(int, struct epoll_event *, int, const struct timespec *,
	const sigset_t *);
typedef int poll_function(struct pollfd *, nfds_t, int);
typedef int ppoll_function(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
typedef int select_function(int, fd_set *, fd_set *, fd_set *, struct timeval *);
typedef int nanosleep_function(const struct timespec *, struct timespec *);
typedef int clock_nanosleep_function(clockid_t, int, const struct timespec *, struct timespec *);

/* The kernel's clocks, by what changes their rate: NTP slews all but the raw one. */
enum scale { SCALE_NONE, SCALE_BOOT, SCALE_MONOTONIC, SCALE_RAW, SCALE_COUNT };

static struct {
	bool ready;
	double rate[SCALE_COUNT];
	int64_t base[SCALE_COUNT]; /* ns */
} rates;

static unsigned char timer_scale[FDS_MAX]; /* enum scale of a timerfd */

/* ISO C has no cast from what dlsym gives to a function. */
#define REAL(name) (((union { void *object; name##_function *function; }){ \
	.object = real(#name) }).function)

static void *real(const char *name) {
	void *found = dlsym(RTLD_NEXT, name);
	if (found == NULL) {
		abort();
	}
	return found;
}

static int true_clock(clockid_t id, struct timespec *out) {
	static clock_gettime_function *function;
	if (function == NULL) {
		function = REAL(clock_gettime);
	}
	return function(id, out);
}

static int64_t ns_of(const struct timespec *t) {
	return (int64_t)t->tv_sec * SECOND + t->tv_nsec;
}

static struct timespec of_ns(int64_t ns) {
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

static enum scale scale_of(clockid_t id) {
	switch (id) {
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return SCALE_BOOT;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
		return SCALE_MONOTONIC;
	case CLOCK_MONOTONIC_RAW:
		return SCALE_RAW;
	default:
		return SCALE_NONE;
	}
}

static int64_t base_of(clockid_t id) {
	struct timespec t;
	return true_clock(id, &t) == 0 ? ns_of(&t) : 0;
}

/* Ends the process if the text is no rate, because a test that asked for one must not run by true
 * clocks and say nothing. */
static double rate_read(const char **text) {
	char *end;
	double rate = strtod(*text, &end);
	if (end == *text || rate < 0.01 || rate > 100) {
		abort();
	}
	*text = end;
	return rate;
}

__attribute__((constructor)) static void rates_begin(void) {
	const char *text = getenv("PAWL_TEST_RATE");
	if (rates.ready) {
		return;
	}
	rates.ready = true;
	rates.rate[SCALE_NONE] = rates.rate[SCALE_BOOT] = rates.rate[SCALE_RAW] = 1.0;
	if (text != NULL) {
		rates.rate[SCALE_BOOT] = rates.rate[SCALE_RAW] = rate_read(&text);
		if (*text != '\0') {
			rates.rate[SCALE_RAW] = rate_read(&text);
		}
	}
	rates.rate[SCALE_MONOTONIC] = rates.rate[SCALE_BOOT];
	rates.base[SCALE_BOOT] = base_of(CLOCK_BOOTTIME);
	rates.base[SCALE_MONOTONIC] = base_of(CLOCK_MONOTONIC);
	rates.base[SCALE_RAW] = base_of(CLOCK_MONOTONIC_RAW);
}

static int64_t scaled(int64_t span, double by) {
	return (int64_t)((double)span * by);
}

/* Returns a span of the process's time as one of true time. It is a nanosecond longer, so that what
 * waits for it never wakes before its end. */
static int64_t true_span(enum scale s, int64_t span) {
	return span <= 0 || rates.rate[s] == 1.0 ? span : scaled(span, 1 / rates.rate[s]) + 1;
}

/* An instant of the process's clock as one of the kernel's. */
static int64_t true_instant(enum scale s, int64_t at) {
	return at <= rates.base[s] ? at : rates.base[s] + true_span(s, at - rates.base[s]);
}

static int true_ms(int timeout_ms) {
	int64_t ns = true_span(SCALE_MONOTONIC, (int64_t)timeout_ms * 1000000);
	int64_t ms = (ns + 999999) / 1000000;
	return timeout_ms <= 0 ? timeout_ms : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* ---- what is read ---- */

int clock_gettime(clockid_t id, struct timespec *out) {
	enum scale s = scale_of(id);
	rates_begin(); /* somebody's constructor may have come first */
	int error = true_clock(id, out);
	if (error == 0 && s != SCALE_NONE) {
		*out = of_ns(rates.base[s] + scaled(ns_of(out) - rates.base[s], rates.rate[s]));
	}
	return error;
}

/* ---- what is waited for ---- */

int timerfd_create(int id, int flags) {
	int fd = REAL(timerfd_create)(id, flags);
	if (fd >= 0 && fd < FDS_MAX) {
		timer_scale[fd] = (unsigned char)scale_of(id);
	}
	return fd;
}

static enum scale scale_of_timer(int fd) {
	return fd >= 0 && fd < FDS_MAX ? (enum scale)timer_scale[fd] : SCALE_NONE;
}

static void own_spans(enum scale s, struct itimerspec *t) {
	t->it_value = of_ns(scaled(ns_of(&t->it_value), rates.rate[s]));
	t->it_interval = of_ns(scaled(ns_of(&t->it_interval), rates.rate[s]));
}

int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before) {
	enum scale s = scale_of_timer(fd);
	struct itimerspec t = *when;
	int64_t at = ns_of(&t.it_value);
	if (at != 0) { /* 0 disarms */
		t.it_value = of_ns(flags & TFD_TIMER_ABSTIME ? true_instant(s, at)
			: true_span(s, at));
	}
	t.it_interval = of_ns(true_span(s, ns_of(&t.it_interval)));
	int error = REAL(timerfd_settime)(fd, flags, &t, before);
	if (error == 0 && before != NULL) {
		own_spans(s, before);
	}
	return error;
}

int timerfd_gettime(int fd, struct itimerspec *out) {
	int error = REAL(timerfd_gettime)(fd, out);
	if (error == 0) {
		own_spans(scale_of_timer(fd), out);
	}
	return error;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms) {
	return REAL(epoll_wait)(fd, events, max, true_ms(timeout_ms));
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask) {
	return REAL(epoll_pwait)(fd, events, max, true_ms(timeout_ms), mask);
}

/* NULL waits without end, for all that take a span by its address. */
static const struct timespec *true_timespec(enum scale s, const struct timespec *span,
	struct timespec *room) {
	if (span == NULL) {
		return NULL;
	}
	*room = of_ns(true_span(s, ns_of(span)));
	return room;
}

int epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout,
	const sigset_t *mask) {
	struct timespec room;
	return REAL(epoll_pwait2)(fd, events, max,
		true_timespec(SCALE_MONOTONIC, timeout, &room), mask);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
	return REAL(poll)(fds, count, true_ms(timeout_ms));
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
	struct timespec room;
	return REAL(ppoll)(fds, count, true_timespec(SCALE_MONOTONIC, timeout, &room), mask);
}

/* What is left of the time is not told: nobody here asks. */
int select(int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout) {
	struct timeval room = { 0, 0 };
	if (timeout != NULL) {
		int64_t us = (true_span(SCALE_MONOTONIC, (int64_t)timeout->tv_sec * SECOND +
			timeout->tv_usec * 1000) + 999) / 1000;
		room = (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
	}
	return REAL(select)(count, in, out, other, timeout != NULL ? &room : NULL);
}

/* ---- sleeping ---- */

static void own_rest(enum scale s, struct timespec *rest) {
	if (rest != NULL) {
		*rest = of_ns(scaled(ns_of(rest), rates.rate[s]));
	}
}

int nanosleep(const struct timespec *span, /* style: nanosleep, because this replaces it */
	struct timespec *rest) {
	struct timespec room;
	int error = REAL(nanosleep)(true_timespec(SCALE_MONOTONIC, span, &room), rest);
	if (error != 0 && errno == EINTR) {
		own_rest(SCALE_MONOTONIC, rest);
	}
	return error;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *when, struct timespec *rest) {
	enum scale s = scale_of(id);
	struct timespec t = of_ns(flags & TIMER_ABSTIME ? true_instant(s, ns_of(when))
		: true_span(s, ns_of(when)));
	int error = REAL(clock_nanosleep)(id, flags, &t, rest);
	if (error == EINTR && !(flags & TIMER_ABSTIME)) {
		own_rest(s, rest);
	}
	return error;
}
