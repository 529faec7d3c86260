/* log_limit.h: nobody can fill a disk by making this node log: of each event so many lines a second are written, the rest is counted. */
#ifndef PAWL_NODE_LOG_LIMIT_H
#define PAWL_NODE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_EVENTS 96  /* events told apart; those beyond are not limited */
#define LOG_LIMIT_LINES 50   /* of one event in one second */
#define LOG_LIMIT_OUTSIDE 10 /* of one that anybody can cause who reaches a listener */

struct log_limit_row {
	const char *event; /* borrowed: names are literals */
	int64_t second;
	uint32_t lines;
	uint64_t suppressed;
};

struct log_limit {
	struct log_limit_row rows[LOG_LIMIT_EVENTS];
};

/* Whether a line of the event may be written now, at most `lines` of them a second, and how many were suppressed since the last
 * one that was. */
bool log_limit_pass(struct log_limit *limit, const char *event, uint32_t lines, int64_t second, uint64_t *out_suppressed);

#endif
