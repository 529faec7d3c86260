/* log_limit.h: makes sure that nobody can fill a disk by making this node log. Of each event a
 * limited number of lines is written per second; the others are counted.
 */
#ifndef PAWL_NODE_LOG_LIMIT_H
#define PAWL_NODE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* The number of events that are told apart. Events beyond that are not limited. */
#define LOG_LIMIT_EVENTS 96
/* How many lines of one event are written in one second. */
#define LOG_LIMIT_LINES 50
/* The same for an event that anybody who reaches a listener can cause. */
#define LOG_LIMIT_OUTSIDE 10

/* The count of one event. */
struct log_limit_row {
	/* Borrowed; the names are literals. */
	const char *event;
	/* The second that is counted, and the lines that were written in it. */
	int64_t second;
	uint32_t lines;
	/* How many lines were suppressed since the last one that was written. */
	uint64_t suppressed;
};

struct log_limit {
	struct log_limit_row rows[LOG_LIMIT_EVENTS];
};

/* Returns whether a line of the event may be written now; at most `lines` of them may be written in
 * a second. *out_suppressed is how many were suppressed since the last line that was written. */
bool log_limit_pass(struct log_limit *limit, const char *event, uint32_t lines, int64_t second,
	uint64_t *out_suppressed);

#endif
