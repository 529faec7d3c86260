/* health.h: whether a node is ready for clients, and why not. This is pure. */
#ifndef PAWL_NODE_HEALTH_H
#define PAWL_NODE_HEALTH_H

#include "core.h"

/* A replica whose view is older than this is not ready, in nanoseconds. */
#define HEALTH_AGE_MAX (5 * SPAN_S)
/* A loop that has not turned for longer than this does not live, in nanoseconds. */
#define HEALTH_LOOP_MAX SPAN_S

/* What is known of the last read that asked a quorum. */
enum probe_state {
	/* No such reads are made, because nobody would see what they find. */
	PROBE_OFF,
	/* The first one is under way. */
	PROBE_NONE,
	PROBE_OK,
	PROBE_FAILED
};

/* What the judgement rests on. */
struct health_facts {
	enum core_state state;
	/* What the node waits for; NULL or "" for nothing. */
	const char *waits_for;
	/* The time in nanoseconds after which it has waited long enough; 0 for unknown. */
	span_ns left;
	/* A planned stop has begun. */
	bool draining;
	/* The loop has turned within the last second, and had done so before. */
	bool loop;
	/* The quorum; and the masters that vote and are linked, this node included. */
	uint32_t quorum, voting;
	enum probe_state probe;
	/* PROBE_FAILED: how many masters answered. */
	uint32_t answered;
	/* FOLLOWING: the replica follows a master; a snapshot is still arriving; and how old its
	 * view is, in nanoseconds, or SPAN_MAX. */
	bool follows, catching_up;
	span_ns age;
};

#define HEALTH_WHY_BYTES 1024
struct health_check {
	/* A word, in static storage. */
	const char *name;
	bool ok;
	/* If it is not ok: what is wrong, such as "1 of 2". */
	char why[HEALTH_WHY_BYTES];
};

#define HEALTH_CHECKS_MAX 4
struct health {
	/* All checks are ok. */
	bool ready;
	uint32_t count;
	struct health_check checks[HEALTH_CHECKS_MAX];
};

void health_judge(const struct health_facts *facts, struct health *out);

#endif
