/* health.c: the checks that a node is ready. */
#include "health.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Adds a check. The format says what is wrong. */
__attribute__((format(printf, 4, 5))) static void health_add(struct health *h, const char *name,
	bool ok, const char *format, ...) {
	struct health_check *check = &h->checks[h->count++];
	va_list args;
	check->name = name;
	check->ok = ok;
	h->ready = h->ready && ok;
	va_start(args, format);
	vsnprintf(check->why, sizeof check->why, format, args);
	va_end(args);
	if (ok) {
		check->why[0] = '\0';
	}
}

static const char *health_state(const struct health_facts *f) {
	switch (f->state) {
	case CORE_UNBORN:
		return "the cluster is not born yet";
	case CORE_OUTSIDE:
		return "this node is in no configuration";
	case CORE_HANDOVER:
		return "taking over from the masters of the previous epoch";
	case CORE_RECOVERING:
		return "recovering";
	case CORE_DRAINED:
		return "drained";
	case CORE_FOLLOWING:
	case CORE_VOTING:
		return "";
	}
	return "unknown";
}

/* Without a link to a quorum there is no need to wait for a read that asks one. */
static void health_add_quorum(struct health *h, const struct health_facts *f) {
	if (f->voting < f->quorum) {
		health_add(h, "quorum", false, "%" PRIu32 " of %" PRIu32, f->voting, f->quorum);
	} else if (f->probe == PROBE_NONE) {
		health_add(h, "quorum", false, "no answer yet");
	} else {
		health_add(h, "quorum", f->probe != PROBE_FAILED, "%" PRIu32 " of %" PRIu32,
			f->answered, f->quorum);
	}
}

static void health_add_follows(struct health *h, const struct health_facts *f) {
	health_add(h, "follow", f->follows && !f->catching_up, "%s",
		f->follows ? "a snapshot is still arriving"
			: "no master is linked with a quorum");
	if (f->age == SPAN_MAX) {
		health_add(h, "age", false, "unknown");
	} else {
		health_add(h, "age", f->age < HEALTH_AGE_MAX, "%" PRId64 " ms, at most %" PRId64,
			f->age / SPAN_MS, HEALTH_AGE_MAX / SPAN_MS);
	}
}

void health_judge(const struct health_facts *f, struct health *out) {
	bool waits = f->waits_for && f->waits_for[0];
	char more[48] = "";
	*out = (struct health){ .ready = true };
	health_add(out, "loop", f->loop, "it stood still for more than a second");
	health_add(out, "drain", !f->draining, "a planned stop has begun");
	if (f->state == CORE_FOLLOWING) {
		health_add_follows(out, f);
		return;
	}
	if (f->left > 0) {
		snprintf(more, sizeof more, ", waits %" PRId64 " s more at most",
			(f->left + SPAN_S - 1) / SPAN_S);
	}
	health_add(out, "vote", f->state == CORE_VOTING, "%s%s%s%s", health_state(f), more,
		waits ? ", waits for " : "", waits ? f->waits_for : "");
	health_add_quorum(out, f);
}
