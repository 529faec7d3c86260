/* stage_time.c: true time, and the clocks of each node. */
#include "check.h"
#include "stage.h"

__extension__ typedef __int128 wide;

struct instant stage_clock(const struct stage *s, uint32_t node) {
	const struct stage_node *n = &s->nodes[node];
	int64_t t = s->now + (int64_t)((wide)s->now * n->rate_ppb / 1000000000);
	return (struct instant){ t + n->boot_offset, t + n->raw_offset };
}

void stage_jump(struct stage *s, span_ns span) {
	s->now += span;
}

static bool due(const struct stage *s, uint32_t node) {
	return stage_awake(s, node) &&
		stage_clock(s, node).boot >= core_deadline(s->nodes[node].core);
}

void stage_tick(struct stage *s) {
	for (uint32_t i = 0; i < s->count; i++) {
		if (due(s, i)) {
			stage_step(s, i, &(struct core_event){ .kind = CORE_TICK });
		}
	}
}

/* How long until the first deadline, in true time: at least a microsecond, at most `most`. */
static span_ns next(const struct stage *s, span_ns most) {
	for (uint32_t i = 0; i < s->count; i++) {
		if (stage_awake(s, i)) {
			int64_t left = clock_saturating_add(core_deadline(s->nodes[i].core),
				-stage_clock(s, i).boot);
			most = left < most ? left : most;
		}
	}
	return most > SPAN_US ? most : SPAN_US;
}

void stage_wait(struct stage *s, span_ns span) {
	int64_t end = s->now + span;
	stage_mend(s);
	stage_settle(s);
	while (s->now < end) {
		s->now += next(s, end - s->now);
		stage_tick(s);
		stage_mend(s);
		stage_settle(s);
	}
}

bool stage_until_voting(struct stage *s, uint32_t node, span_ns limit) {
	int64_t end = s->now + limit;
	stage_mend(s);
	stage_settle(s);
	while (stage_status(s, node).state != CORE_VOTING && s->now < end) {
		stage_wait(s, SPAN_MS);
	}
	return stage_status(s, node).state == CORE_VOTING;
}
