/* log_text.h: a log line while it is put together, in a bounded space. For the logging alone. */
#ifndef PAWL_NODE_LOG_TEXT_H
#define PAWL_NODE_LOG_TEXT_H

#include "log.h"

/* The most bytes of a value in a line: LOG_BYTES_SHOWN of what others chose, and LOG_TEXT_SHOWN of
 * a sentence of our own, whose end has the remedy. */
#define LOG_BYTES_SHOWN 256
#define LOG_TEXT_SHOWN 512

struct log_text {
	char *data;
	/* `used` is always below `size`; what does not fit is cut off. */
	size_t size, used;
};

/* Append to the line. */
void log_char(struct log_text *t, char c);
void log_chars(struct log_text *t, const char *s);
void log_hex(struct log_text *t, const uint8_t *b, size_t size);
void log_number(struct log_text *t, uint64_t v);
void log_span(struct log_text *t, uint64_t ns);
/* Appends the time in UTC with milliseconds, such as 2026-11-23T12:00:00.000Z. */
void log_time(struct log_text *t);

/* Appends the event as an object of JSON (log_json.c). If not all fields fit, those that do not are
 * left out, and "truncated":true says so. Bytes that are not UTF-8 are shown in hex digits, under
 * the field's name with _hex. `suppressed` is left out if it is 0. */
void log_json(struct log_text *t, enum log_level level, const char *event,
	const struct log_field *fields, uint64_t suppressed);
/* Returns the name of a level. */
const char *log_level_name(enum log_level level);

#endif
