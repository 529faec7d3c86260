/* log_limit.c: counts the lines of each event within a second. */
#include "log_limit.h"

#include <stddef.h>
#include <string.h>

static struct log_limit_row *log_limit_row(struct log_limit *limit, const char *event) {
	for (size_t i = 0; i < LOG_LIMIT_EVENTS; i++) {
		struct log_limit_row *row = &limit->rows[i];
		if (!row->event) {
			row->event = event;
		}
		/* Two files may have the same literal at two addresses. */
		if (row->event == event || strcmp(row->event, event) == 0) {
			return row;
		}
	}
	return NULL;
}

bool log_limit_pass(struct log_limit *limit, const char *event, uint32_t lines, int64_t second,
	uint64_t *out_suppressed) {
	struct log_limit_row *row = log_limit_row(limit, event);
	*out_suppressed = 0;
	if (!row) {
		return true;
	}
	if (row->second != second) {
		row->second = second;
		row->lines = 0;
	}
	if (row->lines >= lines) {
		row->suppressed++;
		return false;
	}
	row->lines++;
	*out_suppressed = row->suppressed;
	row->suppressed = 0;
	return true;
}
