/* request_counts.h: counts the requests of this node's clients: results, durations and waits, in
 * all and for groups of keys. Counting a request takes some additions. */
#ifndef PAWL_NODE_REQUEST_COUNTS_H
#define PAWL_NODE_REQUEST_COUNTS_H

#include "buckets.h"
#include "client_method.h"
#include "core.h"
#include "list.h"

/* The results that are told apart, by their negative numbers; 0 stands for "ok". */
#define REQUEST_RESULTS 40
/* A request that may wait for this long is one of those that wait until they get what they want,
 * such as the candidates of an election. In nanoseconds. */
#define REQUEST_ENDLESS (24 * 3600 * SPAN_S)

/* Of the keys of one group. */
struct request_group {
	/* Requests under way that may wait. */
	uint64_t waiters;
	uint64_t grants;
	/* How long the granted requests had waited. */
	struct buckets waits;
};

/* The totals are since the start. */
struct request_counts {
	uint64_t results[CLIENT_METHODS][REQUEST_RESULTS];
	/* From when a request is served until it is answered; a wait for others is a part of it. */
	struct buckets durations[CLIENT_METHODS];
	/* How long the granted requests had waited, and how many locks were granted by mode. */
	struct buckets waits;
	uint64_t grants[FIGURE_MODES];
	/* The last one is of all keys that are in no group. */
	struct request_group groups[KEY_GROUPS_MAX + 1];
	/* The requests that may wait, the oldest first; those whose wait is endless are apart. */
	struct list waiting, endless;
};

/* What is remembered of a request that is under way. While it is zeroed, it is not counted. */
struct request_count {
	struct list waiting;
	/* The clock `boot` of that time. */
	int64_t begun;
	/* An enum client_method; and the index of the group, or KEY_GROUPS_MAX. */
	uint8_t method, group;
	/* The request is counted, and has not been answered. */
	bool open;
};

void request_counts_init(struct request_counts *c);
/* A request begins to be served at `now`. It may wait for others for as long as `wait`, in
 * nanoseconds; 0 if it does not wait. */
void request_counts_begin(struct request_counts *c, struct request_count *one,
	enum client_method method, uint32_t group, span_ns wait, struct instant now);
/* It is answered with a PAWL_E... or 0. A request that is not open is not counted again. */
void request_counts_answer(struct request_counts *c, struct request_count *one, int error,
	struct instant now);
/* Nobody waits for its answer any more. */
void request_counts_forget(struct request_counts *c, struct request_count *one);
/* Counts a request that was answered as soon as it was served. */
void request_counts_at_once(struct request_counts *c, enum client_method method, int error);
/* Counts what was granted by the reply, which has no error, to an acquire of a key of the group. */
void request_counts_granted(struct request_counts *c, uint32_t group,
	const struct core_reply *reply);
/* Returns how long the oldest request has waited whose wait is not endless, in nanoseconds; 0 if
 * none waits. */
span_ns request_counts_oldest(const struct request_counts *c, struct instant now);

#endif
