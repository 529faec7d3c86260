/* service_turn.c: says in the log which client kept the node busy in a turn that was long. */
#include <time.h>

#include "check.h"
#include "service_impl.h"

/* A turn is long if it took this long, and this much processor time. */
#define LONG_TURN (100 * SPAN_MS)
/* How often the processor time is read, which is a system call. */
#define LOOK_AFTER (10 * SPAN_MS)

static span_ns service_clock(clockid_t id) {
	struct timespec t;
	CHECK(clock_gettime(id, &t) == 0);
	return (span_ns)t.tv_sec * SPAN_S + t.tv_nsec;
}

/* Returns for how long this turn has been under way. If somebody has set the clock meanwhile, this
 * is wrong. */
static span_ns service_turn_took(const struct service *s) {
	struct timeval begun;
	CHECK(event_base_gettimeofday_cached(s->driver->base, &begun) == 0);
	return service_clock(CLOCK_REALTIME) - (begun.tv_sec * SPAN_S + begun.tv_usec * SPAN_US);
}

static void service_say_long_turn(const struct service *s, span_ns used,
	const struct session_cost *most) {
	log_untrusted(s->driver->log, "long_turn", LOG_SPAN("took", used), LOG_WHO(&most->who),
		LOG_TEXT("method", most->method ? most->method : ""),
		LOG_NUMBER("cost", most->cost));
}

/* Turns that bring nothing to be written do not come here, so the processor time may be that of
 * several turns. Therefore both times have to be long. */
void service_turn_over(struct service *s) {
	struct session_cost most;
	/* The coarse clock is a few milliseconds late, and reading it costs next to nothing. */
	const span_ns now = service_clock(CLOCK_MONOTONIC_COARSE);
	const bool looks = now - s->looked >= LOOK_AFTER;
	const bool any = sessions_costliest(s->sessions, looks ? &most : NULL);
	if (!looks) {
		return;
	}
	const span_ns used = service_clock(CLOCK_THREAD_CPUTIME_ID), before = s->used;
	s->looked = now;
	s->used = used;
	if (any && before > 0 && used - before >= LONG_TURN
		&& service_turn_took(s) >= LONG_TURN) {
		service_say_long_turn(s, used - before, &most);
	}
}
