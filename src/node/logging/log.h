/* log.h: one line = an event's name and key=value pairs, to stderr; with <N> priorities when systemd reads it.
 *
 * Values are quoted where they need it, so a line can always be taken apart again. lock_ids are the proof of holding:
 * LOG_LOCK shows their first four bytes and no more. Safe from several threads: a line is one write, and from log_begin on none
 * of them waits for it (log_writer.h).
 *
 *	log_event(LEVEL_INFO, "peer_up", LOG_TEXT("peer", name), LOG_NUMBER("boot", boot));
 */
#ifndef PAWL_NODE_LOG_H
#define PAWL_NODE_LOG_H

#include "core.h"
#include "log_limit.h"

enum log_level { LEVEL_ERROR = 3, LEVEL_WARNING = 4, LEVEL_NOTICE = 5, LEVEL_INFO = 6, LEVEL_DEBUG = 7 };

enum log_kind { LOG_KIND_END, LOG_KIND_NONE, LOG_KIND_TEXT, LOG_KIND_BYTES, LOG_KIND_NUMBER, LOG_KIND_SPAN, LOG_KIND_LOCK, LOG_KIND_NODE };

struct log_field {
	enum log_kind kind;
	const char *name;
	struct slice bytes;
	uint64_t number;
	const struct id128 *id;
};

#define LOG_TEXT(n, s) { .kind = LOG_KIND_TEXT, .name = (n), .bytes = log_slice(s) }
#define LOG_BYTES(n, b) { .kind = LOG_KIND_BYTES, .name = (n), .bytes = (b) }
#define LOG_NUMBER(n, v) { .kind = LOG_KIND_NUMBER, .name = (n), .number = (uint64_t)(v) }
/* Left out when it is negative: not known. */
#define LOG_KNOWN(n, v) { .kind = (v) < 0 ? LOG_KIND_NONE : LOG_KIND_NUMBER, .name = (n), .number = (uint64_t)(v) }
#define LOG_SPAN(n, ns) { .kind = LOG_KIND_SPAN, .name = (n), .number = (uint64_t)(ns) } /* printed as 1.5s, 300ms, 20us */
#define LOG_LOCK(n, i) { .kind = LOG_KIND_LOCK, .name = (n), .id = (i) }
#define LOG_NODE(n, i) { .kind = LOG_KIND_NODE, .name = (n), .id = (i) }

#define log_event(level, event, ...) \
	log_write((level), (event), (const struct log_field[]){ __VA_ARGS__, { .kind = LOG_KIND_END } })
/* An event without fields. */
void log_plain(enum log_level level, const char *event);
void log_write(enum log_level level, const char *event, const struct log_field *fields);

struct slice log_slice(const char *text); /* NULL: empty */

/* Less important events than `level` are not written. LEVEL_INFO at the start. Safe while other threads log. */
void log_level_set(enum log_level level);
/* Whether a line of this level would be written: for what is costly to put together. */
bool log_wanted(enum log_level level);
/* Reads the environment: priorities instead of times and levels when stderr is systemd's journal. Call once in main. */
void log_start(void);
/* From now on a thread writes the lines, so that no reader of the log can stop the node. 0 or PAWL_ENOMEM. */
int log_begin(void);
/* At the end of the process: waits a second at most for what is still to be written. */
void log_end(void);

/* ---- the lines of one node, where a process has several, or a program wants them itself ---- */
struct log {
	enum log_level level;
	/* Event and fields, with a NUL, without time and end of line. From any of the node's functions and callbacks. */
	void (*line)(void *ctx, enum log_level level, const char *text);
	void *ctx;
	struct log_limit limit;
};
/* NULL: as log_event. */
#define log_to(log, level, event, ...) \
	log_write_to((log), (level), (event), (const struct log_field[]){ __VA_ARGS__, { .kind = LOG_KIND_END } })
/* A warning that anybody can cause who reaches a listener: fewer of them a second. */
#define log_outside(log, event, ...) \
	log_write_limited((log), LEVEL_WARNING, LOG_LIMIT_OUTSIDE, (event), (const struct log_field[]){ __VA_ARGS__, { .kind = LOG_KIND_END } })
void log_plain_to(struct log *log, enum log_level level, const char *event);
void log_write_to(struct log *log, enum log_level level, const char *event, const struct log_field *fields);
void log_write_limited(struct log *log, enum log_level level, uint32_t lines, const char *event, const struct log_field *fields);

/* What the core says that an operator should read. */
void log_core_note(struct log *log, const struct core *core, const struct core_note *note);

/* Formats a line without its end, for tests: at most size bytes with the 0; the time is left out. */
size_t log_format(char *out, size_t size, const char *event, const struct log_field *fields);

#endif
