/* log_text.c: the pieces of which log lines are made. */
#include "log_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

void log_char(struct log_text *t, char c) {
	if (t->used + 1 < t->size) {
		t->data[t->used++] = c;
	}
}

void log_chars(struct log_text *t, const char *s) {
	while (*s) {
		log_char(t, *s++);
	}
}

void log_hex(struct log_text *t, const uint8_t *b, size_t size) {
	for (size_t i = 0; i < size; i++) {
		log_char(t, "0123456789abcdef"[b[i] >> 4]);
		log_char(t, "0123456789abcdef"[b[i] & 15]);
	}
}

void log_number(struct log_text *t, uint64_t v) {
	char digits[24];
	snprintf(digits, sizeof digits, "%" PRIu64, v);
	log_chars(t, digits);
}

void log_span(struct log_text *t, uint64_t ns) {
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

/* This is the only use of the wall clock, and it is for the reader. */
void log_time(struct log_text *t) {
	struct timespec now = { .tv_sec = 0 };
	struct tm tm = { .tm_year = 0 };
	char text[64];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	size_t used = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + used, sizeof text - used, ".%03dZ", (int)(now.tv_nsec / 1000000));
	log_chars(t, text);
}

const char *log_level_name(enum log_level level) {
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
