/* log_limit.h: who can make this node log can not fill its disk: so many lines of an event a second, the rest is counted. */
#ifndef PAWL_NODE_LOG_LIMIT_H
#define PAWL_NODE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_EVENTS 64 /* events told apart; those beyond are not limited */
#define LOG_LIMIT_LINES 50  /* of one event in one second */

struct log_limit_row {
	const char *event; /* by its address: names are literals */
	int64_t second;
	uint32_t lines;
	uint64_t suppressed;
};

struct log_limit {
	struct log_limit_row rows[LOG_LIMIT_EVENTS];
};

/* Whether a line of the event may be written now, and how many were suppressed since the last one that was. */
bool log_limit_pass(struct log_limit *limit, const char *event, int64_t second, uint64_t *out_suppressed);

#endif
