/* shown.c: how durations, and texts that others have chosen, are shown to people. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

const char *output_duration(int64_t ms) {
	static char ring[4][24];
	static unsigned next;
	char *out = ring[next++ % 4];
	if (ms < 1000) {
		snprintf(out, sizeof ring[0], "%" PRId64 "ms", ms);
	} else if (ms < 60000) {
		snprintf(out, sizeof ring[0], "%" PRId64 ".%" PRId64 "s", ms / 1000,
			ms % 1000 / 100);
	} else if (ms < 3600000) {
		snprintf(out, sizeof ring[0], "%" PRId64 "m%02" PRId64 "s", ms / 60000,
			ms % 60000 / 1000);
	} else {
		snprintf(out, sizeof ring[0], "%" PRId64 "h%02" PRId64 "m", ms / 3600000,
			ms % 3600000 / 60000);
	}
	return out;
}

/* Characters that are not shown, or that change how those around them are shown: line ends, marks
 * of the writing direction, and marks that are invisible. */
static const struct {
	uint32_t first, last;
} hidden[] = { { 0x00, 0x1f }, { 0x7f, 0x9f }, { 0x61c, 0x61c }, { 0x200b, 0x200b },
	{ 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff },
	{ 0xfff9, 0xfffb }, { 0xe0000, 0xe007f } };

/* Returns the character of well-formed UTF-8 that begins here, and its size. */
static uint32_t character(const unsigned char *p, size_t *out_size) {
	static const unsigned char rest[] = { 0x7f, 0x1f, 0x0f, 0x07 };
	size_t size = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t code = p[0] & rest[size - 1];
	for (size_t i = 1; i < size; i++) {
		code = code << 6 | (p[i] & 0x3f);
	}
	*out_size = size;
	return code;
}

/* Returns whether all of this is UTF-8 without hidden characters, so that it can be shown as it is.
 * This keeps terminals safe from keys. */
static bool is_plain(const unsigned char *p, size_t size) {
	/* This fails if the text is not UTF-8. */
	json_t *text = json_stringn((const char *)p, size);
	json_decref(text);
	bool plain = text != NULL;
	for (size_t i = 0, step; plain && i < size; i += step) {
		uint32_t code = character(p + i, &step);
		for (size_t k = 0; k < sizeof hidden / sizeof *hidden; k++) {
			plain = plain && (code < hidden[k].first || code > hidden[k].last);
		}
	}
	return plain;
}

void output_bytes(FILE *to, struct pawl_bytes bytes, int width) {
	const unsigned char *p = bytes.data;
	int columns = 0;
	if (bytes.size == 0) {
		columns += fprintf(to, "-");
	} else if (is_plain(p, bytes.size)) {
		fwrite(p, 1, bytes.size, to);
		for (size_t i = 0; i < bytes.size; i++) {
			/* Only the first byte of a character counts as a column. */
			columns += (p[i] & 0xc0) != 0x80;
		}
	} else {
		for (size_t i = 0; i < bytes.size; i++) {
			bool shown = p[i] >= 0x20 && p[i] < 0x7f && p[i] != '\\';
			columns += shown ? fprintf(to, "%c", p[i]) : fprintf(to, "\\x%02x", p[i]);
		}
	}
	if (columns < width) {
		fprintf(to, "%*s", width - columns, "");
	}
}

void output_text(FILE *to, const char *text) {
	if (*text) {
		output_bytes(to, (struct pawl_bytes){ text, strlen(text) }, 0);
	}
}

void output_line_of(FILE *to, const char *format, va_list args) {
	char *text;
	if (vasprintf(&text, format, args) < 0) {
		fputs("(out of memory)\n", to);
		return;
	}
	output_text(to, text);
	fputc('\n', to);
	free(text);
}

void output_line(FILE *to, const char *format, ...) {
	va_list args;
	va_start(args, format);
	output_line_of(to, format, args);
	va_end(args);
}

const char *output_name(const char *text) {
	static char *ring[8];
	static unsigned next;
	char **place = &ring[next++ % (sizeof ring / sizeof *ring)];
	size_t size;
	free(*place);
	*place = NULL;
	FILE *to = open_memstream(place, &size);
	if (!to) {
		return "(out of memory)";
	}
	output_text(to, text);
	return fclose(to) == 0 && *place ? *place : "(out of memory)";
}
