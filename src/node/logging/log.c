/* log.c: formats log lines, and decides by level and rate which of them are written. */
#include "log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log_limit.h"
#include "log_text.h"
#include "log_writer.h"

static _Atomic int log_level_now = LEVEL_INFO;
static _Atomic int log_format_now = LOG_FORMAT_TEXT;
/* How many events there were of each level. */
static _Atomic uint64_t log_counts[LEVEL_DEBUG + 1];
static atomic_bool log_priorities;

static bool log_plain_byte(uint8_t c) {
	return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=';
}

/* Writes a value as it is if nothing in it could be mistaken; otherwise in quotes, with \xNN for
 * bytes that are not printable. So a key that a client chose cannot forge a line. */
static void log_bytes(struct log_text *t, struct slice s, size_t max) {
	size_t shown = s.size < max ? s.size : max;
	bool bare = shown > 0 && shown == s.size;
	for (size_t i = 0; i < shown; i++) {
		bare = bare && log_plain_byte(s.data[i]);
	}
	if (!bare) {
		log_char(t, '"');
	}
	for (size_t i = 0; i < shown; i++) {
		uint8_t c = s.data[i];
		if (bare || log_plain_byte(c) || c == ' ' || c == '=') {
			log_char(t, (char)c);
		} else if (c == '"' || c == '\\') {
			log_char(t, '\\');
			log_char(t, (char)c);
		} else {
			log_chars(t, "\\x");
			log_hex(t, &c, 1);
		}
	}
	if (!bare) {
		log_chars(t, shown < s.size ? "...\"" : "\"");
	}
}

static void log_value(struct log_text *t, const struct log_field *f) {
	switch (f->kind) {
	case LOG_KIND_TEXT:
		log_bytes(t, f->bytes, LOG_TEXT_SHOWN);
		return;
	case LOG_KIND_BYTES:
		log_bytes(t, f->bytes, LOG_BYTES_SHOWN);
		return;
	case LOG_KIND_NUMBER:
		log_number(t, f->number);
		return;
	case LOG_KIND_SPAN:
		log_span(t, f->number);
		return;
	case LOG_KIND_LOCK:
		/* Whoever knows all of a lock_id may release the lock. */
		log_hex(t, f->id->b, 4);
		log_chars(t, "...");
		return;
	case LOG_KIND_NODE:
		log_hex(t, f->id->b, sizeof f->id->b);
		return;
	case LOG_KIND_NONE:
	case LOG_KIND_END:
		return;
	}
}

static void log_fields(struct log_text *t, const char *event, const struct log_field *fields) {
	log_chars(t, event);
	for (const struct log_field *f = fields; f->kind != LOG_KIND_END; f++) {
		if (f->kind == LOG_KIND_NONE) {
			continue;
		}
		log_char(t, ' ');
		log_chars(t, f->name);
		log_char(t, '=');
		log_value(t, f);
	}
}

size_t log_format(char *out, size_t size, const char *event, const struct log_field *fields) {
	struct log_text t = { out, size, 0 };
	log_fields(&t, event, fields);
	out[t.used] = '\0';
	return t.used;
}

/* Writes a priority in front of a line if systemd reads it. Returns whether it does. */
static bool log_priority(struct log_text *t, enum log_level level) {
	if (!atomic_load(&log_priorities)) {
		return false;
	}
	log_char(t, '<');
	log_char(t, (char)('0' + (int)level));
	log_char(t, '>');
	return true;
}

/* Writes the time and the level, or a priority, in front of a line. */
static void log_prefix(struct log_text *t, enum log_level level) {
	if (!log_priority(t, level)) {
		log_time(t);
		log_char(t, ' ');
		log_chars(t, log_level_name(level));
		log_char(t, ' ');
	}
}

static bool log_may_pass(struct log_limit *limit, const char *event, uint32_t lines,
	uint64_t *out_suppressed) {
	struct timespec now = { .tv_sec = 0 };
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return log_limit_pass(limit, event, lines, now.tv_sec, out_suppressed);
}

static bool log_may_write(const char *event, uint32_t lines, uint64_t *out_suppressed) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct log_limit limit;
	pthread_mutex_lock(&lock);
	bool pass = log_may_pass(&limit, event, lines, out_suppressed);
	pthread_mutex_unlock(&lock);
	return pass;
}

static void log_body(struct log_text *t, const char *event, const struct log_field *fields,
	uint64_t suppressed) {
	log_fields(t, event, fields);
	if (suppressed > 0) {
		log_chars(t, " suppressed=");
		log_number(t, suppressed);
	}
}

/* Writes a whole line of the log of the process, with its end. */
static void log_own_line(struct log_text *t, enum log_level level, const char *event,
	const struct log_field *fields, uint64_t suppressed) {
	if (atomic_load(&log_format_now) == LOG_FORMAT_JSON) {
		log_priority(t, level);
		log_json(t, level, event, fields, suppressed);
	} else {
		log_prefix(t, level);
		log_body(t, event, fields, suppressed);
	}
	t->data[t->used++] = '\n';
}

static void log_count(enum log_level level) {
	atomic_fetch_add_explicit(&log_counts[level], 1, memory_order_relaxed);
}

uint64_t log_counted(enum log_level level) {
	return atomic_load_explicit(&log_counts[level], memory_order_relaxed);
}

static void log_write_own(enum log_level level, uint32_t lines, const char *event,
	const struct log_field *fields) {
	char line[LOG_LINE_MAX];
	struct log_text t = { line, sizeof line, 0 };
	uint64_t suppressed;
	if (!log_wanted(level) || !log_may_write(event, lines, &suppressed)) {
		return;
	}
	log_own_line(&t, level, event, fields, suppressed);
	log_writer_put(line, t.used);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields) {
	log_count(level);
	log_write_own(level, LOG_LIMIT_LINES, event, fields);
}

static size_t log_lost_line(uint64_t lost, char out[LOG_LINE_MAX]) {
	struct log_text t = { out, LOG_LINE_MAX, 0 };
	const struct log_field fields[] = { LOG_NUMBER("lines", lost),
		LOG_TEXT("why", "the reader of this log was too slow, or the log "
			"could not be written"),
		{ .kind = LOG_KIND_END } };
	log_count(LEVEL_WARNING);
	log_own_line(&t, LEVEL_WARNING, "log_lines_lost", fields, 0);
	return t.used;
}

int log_begin(void) {
	return log_writer_start(STDERR_FILENO, log_lost_line);
}

void log_end(void) {
	log_writer_stop();
}

void log_plain(enum log_level level, const char *event) {
	log_write(level, event, (const struct log_field[]){ { .kind = LOG_KIND_END } });
}

void log_write_to(struct log *log, enum log_level level, const char *event,
	const struct log_field *fields) {
	log_write_limited(log, level, LOG_LIMIT_LINES, event, fields);
}

void log_write_limited(struct log *log, enum log_level level, uint32_t lines, const char *event,
	const struct log_field *fields) {
	char line[LOG_LINE_MAX];
	struct log_text t = { line, sizeof line, 0 };
	uint64_t suppressed;
	log_count(level);
	if (!log) {
		log_write_own(level, lines, event, fields);
	} else if (level <= log->level && log_may_pass(&log->limit, event, lines, &suppressed)) {
		log_body(&t, event, fields, suppressed);
		line[t.used] = '\0';
		log->line(log->ctx, level, line);
	}
}

void log_plain_to(struct log *log, enum log_level level, const char *event) {
	log_write_to(log, level, event, (const struct log_field[]){ { .kind = LOG_KIND_END } });
}

struct slice log_slice(const char *text) {
	return text ? slice_str(text) : slice_of(NULL, 0);
}

void log_level_set(enum log_level level) {
	atomic_store(&log_level_now, (int)level);
}

void log_format_set(enum log_format format) {
	atomic_store(&log_format_now, (int)format);
}

bool log_wanted(enum log_level level) {
	return (int)level <= atomic_load(&log_level_now);
}

void log_start(void) {
	/* The variable has the device:inode of the journal's stream. It is also inherited by
	 * processes whose stderr goes elsewhere. */
	const char *journal = getenv("JOURNAL_STREAM");
	struct stat st;
	char ours[64];
	if (journal && fstat(STDERR_FILENO, &st) == 0) {
		snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
		atomic_store(&log_priorities, strcmp(ours, journal) == 0);
	}
}
