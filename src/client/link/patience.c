/* patience.c: how long a node may be silent, see patience.h. */
#include "patience.h"

/* The shortest time. Ordinary pauses of a busy machine are shorter. */
#define PATIENCE_LEAST (6 * SPAN_MS)
/* A node may be silent for this many times as long as its slowest recent answer has taken. */
#define SLOWEST_TIMES 4
/* Stands for the slowest answer before there has been any. */
#define SLOWEST_FIRST (25 * SPAN_MS)
/* With each answer the time of the slowest one decreases by one part in this many. */
#define SLOWEST_FADES 32
/* A longer pause of this process, such as a suspend, says nothing about the next one. */
#define LATE_MOST (100 * SPAN_MS)
#define DOUBLINGS_MAX 20
/* Answers halve the time again, but no more often than this. */
#define HALVED_AFTER SPAN_S
/* In tenths of a request that is sent again. */
#define BUDGET_FULL 100
#define BUDGET_OF_REQUEST 10
#define BUDGET_LEAST 50

void patience_init(struct patience *p) {
	*p = (struct patience){ .slowest = SLOWEST_FIRST, .budget = BUDGET_FULL };
}

void patience_answered(struct patience *p, span_ns took, int64_t now) {
	p->slowest -= p->slowest / SLOWEST_FADES;
	p->slowest = took > p->slowest || !p->answered ? took : p->slowest;
	p->answered = true;
	p->budget += p->budget < BUDGET_FULL;
	if (p->doublings && now - p->doubled_at >= HALVED_AFTER) {
		p->doublings--;
		p->doubled_at = now;
	}
}

void patience_late(struct patience *p, span_ns late) {
	late = late < LATE_MOST ? late : LATE_MOST;
	p->slowest = late > p->slowest ? late : p->slowest;
}

static void doubled(struct patience *p, int64_t now) {
	p->doublings += p->doublings < DOUBLINGS_MAX;
	p->doubled_at = now;
}

void patience_switched(struct patience *p, size_t repeated, int64_t now) {
	size_t left = p->budget / BUDGET_OF_REQUEST;
	p->budget -= repeated < left ? (unsigned)repeated * BUDGET_OF_REQUEST : p->budget;
	doubled(p, now);
}

void patience_too_short(struct patience *p, int64_t now) {
	doubled(p, now);
}

span_ns patience_time(const struct patience *p, span_ns longest) {
	span_ns time = p->slowest < longest ? p->slowest * SLOWEST_TIMES : longest;
	time = time > PATIENCE_LEAST ? time : PATIENCE_LEAST;
	for (unsigned i = 0; i < p->doublings && time < longest; i++) {
		time *= 2;
	}
	return time < longest ? time : longest;
}

bool patience_allows(const struct patience *p) {
	return p->budget >= BUDGET_LEAST;
}
