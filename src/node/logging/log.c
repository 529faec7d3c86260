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
#include "log_writer.h"

/* The most bytes of a value in a line: LOG_BYTES_SHOWN of what others chose, and LOG_TEXT_SHOWN of
 * a sentence of our own, whose end has the remedy. */
#define LOG_BYTES_SHOWN 256
#define LOG_TEXT_SHOWN 512

static _Atomic int log_level_now = LEVEL_INFO;
static atomic_bool log_priorities;

struct log_text {
	char *data;
	/* `used` is always below `size`; what does not fit is cut off. */
	size_t size, used;
};

static void log_char(struct log_text *t, char c) {
	if (t->used + 1 < t->size) {
		t->data[t->used++] = c;
	}
}

static void log_chars(struct log_text *t, const char *s) {
	while (*s) {
		log_char(t, *s++);
	}
}

static void log_hex(struct log_text *t, const uint8_t *b, size_t size) {
	for (size_t i = 0; i < size; i++) {
		log_char(t, "0123456789abcdef"[b[i] >> 4]);
		log_char(t, "0123456789abcdef"[b[i] & 15]);
	}
}

static void log_number(struct log_text *t, uint64_t v) {
	char digits[24];
	snprintf(digits, sizeof digits, "%" PRIu64, v);
	log_chars(t, digits);
}

static void log_span(struct log_text *t, uint64_t ns) {
	char text[32];
	if (ns >= (uint64_t)SPAN_S) {
		snprintf(text, sizeof text, "%.1fs", (double)ns / (double)SPAN_S);
	} else if (ns >= (uint64_t)SPAN_MS) {
		snprintf(text, sizeof text, "%" PRIu64 "ms", ns / (uint64_t)SPAN_MS);
	} else {
		snprintf(text, sizeof text, "%" PRIu64 "us", ns / (uint64_t)SPAN_US);
	}
	log_chars(t, text);
}

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

static const char *log_level_name(enum log_level level) {
	switch (level) {
	case LEVEL_ERROR:
		return "error";
	case LEVEL_WARNING:
		return "warning";
	case LEVEL_NOTICE:
		return "notice";
	case LEVEL_INFO:
		return "info";
	case LEVEL_DEBUG:
		return "debug";
	}
	return "unknown";
}

/* Writes the time, or a priority, in front of a line. This is the only use of the wall clock, and
 * it is for the reader. */
static void log_prefix(struct log_text *t, enum log_level level) {
	if (atomic_load(&log_priorities)) {
		log_char(t, '<');
		log_char(t, (char)('0' + (int)level));
		log_char(t, '>');
		return;
	}
	struct timespec now = { .tv_sec = 0 };
	struct tm tm = { .tm_year = 0 };
	char text[64];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	size_t used = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + used, sizeof text - used, ".%03dZ %s ", (int)(now.tv_nsec / 1000000),
		log_level_name(level));
	log_chars(t, text);
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

static void log_write_own(enum log_level level, uint32_t lines, const char *event,
	const struct log_field *fields) {
	char line[LOG_LINE_MAX];
	struct log_text t = { line, sizeof line, 0 };
	uint64_t suppressed;
	if (!log_wanted(level) || !log_may_write(event, lines, &suppressed)) {
		return;
	}
	log_prefix(&t, level);
	log_body(&t, event, fields, suppressed);
	line[t.used++] = '\n';
	log_writer_put(line, t.used);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields) {
	log_write_own(level, LOG_LIMIT_LINES, event, fields);
}

static size_t log_lost_line(uint64_t lost, char out[LOG_LINE_MAX]) {
	struct log_text t = { out, LOG_LINE_MAX, 0 };
	const struct log_field fields[] = { LOG_NUMBER("lines", lost),
		LOG_TEXT("why", "the reader of this log was too slow, or the log "
			"could not be written"),
		{ .kind = LOG_KIND_END } };
	log_prefix(&t, LEVEL_WARNING);
	log_fields(&t, "log_lines_lost", fields);
	out[t.used++] = '\n';
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
