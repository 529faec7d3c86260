/* log.h: writes log lines to stderr. A line is the name of an event and key=value pairs, or an
 * object of JSON; when systemd reads the log, it begins with a priority <N>.
 *
 * Values are quoted where they need it, so that a line can always be taken apart again. Whoever
 * knows a lock_id may release the lock, so LOG_LOCK shows its first four bytes and no more. Several
 * threads may log at once: a line is one write, and from log_begin on none of them waits for it
 * (log_writer.h).
 *
 *   log_event(LEVEL_INFO, "peer_up", LOG_TEXT("peer", name), LOG_NUMBER("boot", boot));
 */
#ifndef PAWL_NODE_LOG_H
#define PAWL_NODE_LOG_H

#include "core.h"
#include "log_limit.h"

/* The levels, with the numbers of syslog: a lower number is more important. */
enum log_level { LEVEL_ERROR = 3, LEVEL_WARNING = 4, LEVEL_NOTICE = 5, LEVEL_INFO = 6,
	LEVEL_DEBUG = 7 };

/* How lines are written: as an event with key=value pairs, or as one object of JSON. */
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* The kinds of fields. END ends a list of fields, and NONE is left out. */
enum log_kind { LOG_KIND_END, LOG_KIND_NONE, LOG_KIND_TEXT, LOG_KIND_BYTES, LOG_KIND_NUMBER,
	LOG_KIND_SPAN, LOG_KIND_LOCK, LOG_KIND_NODE };

/* One field of a line; the macros below make them. */
struct log_field {
	enum log_kind kind;
	const char *name;
	/* TEXT, BYTES. */
	struct slice bytes;
	/* NUMBER; SPAN, in nanoseconds. */
	uint64_t number;
	/* LOCK, NODE. */
	const struct id128 *id;
};

#define LOG_TEXT(n, s) { .kind = LOG_KIND_TEXT, .name = (n), .bytes = log_slice(s) }
#define LOG_BYTES(n, b) { .kind = LOG_KIND_BYTES, .name = (n), .bytes = (b) }
/* The field is left out if there are no bytes. */
#define LOG_GIVEN(n, b) \
	{ .kind = (b).size ? LOG_KIND_BYTES : LOG_KIND_NONE, .name = (n), .bytes = (b) }
#define LOG_NUMBER(n, v) { .kind = LOG_KIND_NUMBER, .name = (n), .number = (uint64_t)(v) }
/* The field is left out if the number is negative, which means that it is not known. */
#define LOG_KNOWN(n, v) \
	{ .kind = (v) < 0 ? LOG_KIND_NONE : LOG_KIND_NUMBER, .name = (n), \
	.number = (uint64_t)(v) }
/* A duration, printed as 1.5s, 300ms or 20us. */
#define LOG_SPAN(n, ns) { .kind = LOG_KIND_SPAN, .name = (n), .number = (uint64_t)(ns) }
#define LOG_LOCK(n, i) { .kind = LOG_KIND_LOCK, .name = (n), .id = (i) }
#define LOG_NODE(n, i) { .kind = LOG_KIND_NODE, .name = (n), .id = (i) }

/* Writes a line to the log of the process. */
#define log_event(level, event, ...) \
	log_write((level), (event), \
		(const struct log_field[]){ __VA_ARGS__, { .kind = LOG_KIND_END } })
/* Writes an event without fields. */
void log_plain(enum log_level level, const char *event);
void log_write(enum log_level level, const char *event, const struct log_field *fields);

/* Accepts NULL, which gives an empty slice. */
struct slice log_slice(const char *text);

/* Sets the level: less important events are not written. It is LEVEL_INFO at the start. Other
 * threads may log meanwhile. */
void log_level_set(enum log_level level);
/* Sets the format of the lines of the process. It is LOG_FORMAT_TEXT at the start. */
void log_format_set(enum log_format format);
/* Returns how many events of this level there were since the start of the process, those of all
 * nodes together, also those that were not written. */
uint64_t log_counted(enum log_level level);
/* Returns whether a line of this level would be written. This is for fields that are costly to put
 * together. */
bool log_wanted(enum log_level level);
/* Reads the environment: if stderr is systemd's journal, lines begin with priorities instead of
 * times and levels. Call it once in main. */
void log_start(void);
/* From now on a thread writes the lines, so that no reader of the log can stop the node. Returns 0
 * or PAWL_ENOMEM. */
int log_begin(void);
/* To be called at the end of the process. Waits at most a second for what is still to be
 * written. */
void log_end(void);

/* ---- the lines of one node, where a process has several, or a program wants them itself ---- */

struct log {
	enum log_level level;
	/* Takes the event and its fields, ending with a NUL, without a time and without an end of
	 * line. It may be called from any of the node's functions and callbacks. */
	void (*line)(void *ctx, enum log_level level, const char *text);
	void *ctx;
	struct log_limit limit;
};
/* Writes a line to the log of a node. If `log` is NULL, it goes to the log of the process, as with
 * log_event. */
#define log_to(log, level, event, ...) \
	log_write_to((log), (level), (event), \
		(const struct log_field[]){ __VA_ARGS__, { .kind = LOG_KIND_END } })
/* Writes a warning that anybody who reaches a listener can cause. Fewer of these are written per
 * second. */
#define log_untrusted(log, event, ...) \
	log_write_limited((log), LEVEL_WARNING, LOG_LIMIT_OUTSIDE, (event), \
		(const struct log_field[]){ __VA_ARGS__, { .kind = LOG_KIND_END } })
void log_plain_to(struct log *log, enum log_level level, const char *event);
void log_write_to(struct log *log, enum log_level level, const char *event,
	const struct log_field *fields);
void log_write_limited(struct log *log, enum log_level level, uint32_t lines, const char *event,
	const struct log_field *fields);

/* Logs what the core notes for an operator. */
void log_core_note(struct log *log, const struct core *core, const struct core_note *note);

/* Formats a line without its end and without the time, for tests. Writes at most `size` bytes,
 * including the terminating 0, and returns the number of bytes before it. */
size_t log_format(char *out, size_t size, const char *event, const struct log_field *fields);

#endif
