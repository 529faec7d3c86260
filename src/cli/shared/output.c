/* output.c: what people see. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

static const char overview[] =
	"usage: pawl [OPTION...] COMMAND [ARG...]\n"
	"\n"
	"Locks and leases, granted by a quorum of nodes.\n"
	"\n"
	"Hold a lock:\n";

static const char overview_end[] =
	"\n"
	"pawl COMMAND --help explains a command, with an example.\n"
	"Exit status: 0 success; 1 refused (held, timeout, not found, mismatch, ...), or\n"
	"nobody holds the key or leads (get, leader);\n"
	"2 wrong usage; 3 no quorum, or no node reachable. run and elect return CMD's\n"
	"status; their own are 111 to 117 (pawl run --help).\n";

void output_help(const struct cli_command_line *line, const char *common) {
	if (line->command) {
		printf("%s%s", line->command->help, common);
		return;
	}
	fputs(overview, stdout);
	for (size_t i = 0; i < line->topic_count; i++) {
		const struct cli_topic *topic = &line->topics[i];
		if (topic->heading) {
			printf("\n%s\n", topic->heading);
		}
		if (!topic->unlisted) {
			printf("  %-11s %s\n", topic->command->name, topic->command->summary);
		}
	}
	printf("%s%s", common, overview_end);
}

void output_misuse(bool json, const char *command, const char *text) {
	if (json) {
		json_t *error = json_object(), *object = json_object();
		output_json_set(error, "code", json_string("bad_request"));
		output_json_bytes(error, "message", pawl_str(text));
		output_json_set(object, "error", error);
		output_json(object);
	}
	fprintf(stderr, "pawl%s%s: %s\nTry: pawl%s%s --help\n", command ? " " : "",
		command ? command : "", text, command ? " " : "", command ? command : "");
}

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

static void put_label(const char *label) {
	printf("%-11s ", label);
}

void output_field(const char *label, const char *format, ...) {
	put_label(label);
	va_list args;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

void output_field_bytes(const char *label, struct pawl_bytes bytes) {
	put_label(label);
	output_bytes(stdout, bytes, 0);
	putchar('\n');
}

void output_field_duration(const char *label, int64_t ms) {
	output_field(label, "%s", output_duration(ms));
}

/* Returns whether all of this is UTF-8 without control characters, so that it can be shown as it
 * is. This keeps terminals safe from keys. */
static bool is_plain(const unsigned char *p, size_t size) {
	for (size_t i = 0; i < size; i++) {
		if (p[i] < 0x20 || p[i] == 0x7f
			|| (p[i] == 0xc2 && i + 1 < size && p[i + 1] < 0xa0)) {
			return false;
		}
	}
	/* This fails if the text is not UTF-8. */
	json_t *text = json_stringn((const char *)p, size);
	json_decref(text);
	return text != NULL;
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
