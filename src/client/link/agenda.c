/* agenda.c: rings alarms on CLOCK_BOOTTIME, with one timerfd. */
#include "agenda.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"

int agenda_init(struct agenda *a, const struct env *env, struct event_base *base,
	event_callback_fn wake, void *ctx) {
	*a = (struct agenda){ .env = env, .fd = -1, .armed_ns = INT64_MAX };
	wheel_init(&a->wheel, env_now(env).boot);
	if (env->manual) {
		return 0;
	}
	a->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (a->fd < 0) {
		return PAWL_EIO;
	}
	CHECK(event_assign(&a->event, base, a->fd, EV_READ | EV_PERSIST, wake, ctx) == 0);
	if (event_add(&a->event, NULL) != 0) {
		return PAWL_ENOMEM;
	}
	a->watched = true;
	return 0;
}

void agenda_done(struct agenda *a) {
	if (!a->env) {
		return;
	}
	if (a->watched) {
		event_del(&a->event);
	}
	if (a->fd >= 0) {
		close(a->fd);
	}
	*a = (struct agenda){ 0 };
}

void agenda_set(struct agenda *a, struct alarm *alarm, int64_t boot_ns) {
	wheel_arm(&a->wheel, &alarm->timer, boot_ns);
}

void agenda_clear(struct agenda *a, struct alarm *alarm) {
	wheel_disarm(&a->wheel, &alarm->timer);
}

void agenda_ring(struct agenda *a) {
	if (a->fd >= 0) {
		uint64_t count;
		CHECK(read(a->fd, &count, sizeof(count)) > 0 || errno == EAGAIN || errno == EINTR);
		a->armed_ns = INT64_MAX;
	}
	int64_t now = env_now(a->env).boot;
	for (struct wheel_timer *t; (t = wheel_expire(&a->wheel, now)) != NULL;) {
		struct alarm *alarm = CONTAINER_OF(t, struct alarm, timer);
		alarm->ring(alarm);
	}
}

void agenda_settle(struct agenda *a) {
	int64_t at = wheel_deadline(&a->wheel);
	if (a->fd < 0 || at >= a->armed_ns) {
		/* The timer goes off early enough, perhaps with nothing to do. */
		return;
	}
	/* A time of zero would disarm the timer. A time that has passed makes it go off at once. */
	int64_t ns = at > 0 ? at : 1;
	struct itimerspec spec = { .it_value = { .tv_sec = ns / SPAN_S, .tv_nsec = ns % SPAN_S } };
	CHECK(timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
	a->armed_ns = at;
}
