/* output.c: what people see. */
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
	const char *blank = command ? " " : "", *name = command ? command : "";
	output_line(stderr, "pawl%s%s: %s", blank, name, text);
	fprintf(stderr, "Try: pawl%s%s --help\n", blank, name);
}

static void put_label(const char *label) {
	printf("%-11s ", label);
}

void output_field(const char *label, const char *format, ...) {
	put_label(label);
	va_list args;
	va_start(args, format);
	output_line_of(stdout, format, args);
	va_end(args);
}

void output_field_bytes(const char *label, struct pawl_bytes bytes) {
	put_label(label);
	output_bytes(stdout, bytes, 0);
	putchar('\n');
}

void output_field_duration(const char *label, int64_t ms) {
	output_field(label, "%s", output_duration(ms));
}
