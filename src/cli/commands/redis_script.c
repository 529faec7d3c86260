/* redis_script.c: pawl redis-script: what a script of a Redis client would mean to a node. It asks
 * no node. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "commands.h"
#include "output.h"
#include "script.h"

static const char redis_script_help[] =
	"usage: pawl redis-script FILE\n"
	"\n"
	"Tells what a node would do with the Lua script in FILE, if a client of Redis sent\n"
	"it. Nodes do not run scripts: they recognize those that take, renew, release or\n"
	"read a lock. FILE is - for standard input. No node is asked.\n"
	"\n"
	"It prints the SHA1 of the bytes, by which clients name the script; the SHA1 of its\n"
	"normal form, by which nodes recognize it; and what it means. The status is 0 if\n"
	"nodes know the script, and 1 if they refuse it.\n"
	"\n"
	"  --form               print the normal form, too\n"
	"\n"
	"Example:\n"
	"  pawl redis-script release.lua\n";

/* A script as it was read. */
struct script_file {
	char bytes[SCRIPT_BYTES_MAX + 1];
	size_t size;
};

static bool script_read(const struct cli_command_line *line, const char *path,
	struct script_file *out) {
	const bool standard = strcmp(path, "-") == 0;
	char text[512];
	errno = 0;
	FILE *file = standard ? stdin : fopen(path, "rb");
	if (file) {
		out->size = fread(out->bytes, 1, sizeof out->bytes, file);
	}
	const char *why = !file || ferror(file) ? strerror(errno)
		: out->size > SCRIPT_BYTES_MAX ? "the script is longer than 16 KiB" : NULL;
	if (file && !standard) {
		fclose(file);
	}
	if (why) {
		snprintf(text, sizeof text, "%s: %s", path, why);
		struct pawl_result failed = { .error = PAWL_EIO, .message = text, .endpoint = "",
			.field = "" };
		(void)cli_fail(line, &failed, "redis-script", NULL);
	}
	return why == NULL;
}

static void script_say(const struct cli_command_line *line, const char *name, const char *text) {
	if (!line->json) {
		output_field(name, "%s", text);
	}
}

static int script_tell(const struct cli_command_line *line, struct slice script, bool shows_form) {
	const struct allocator alloc = alloc_libc(NULL);
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	char bytes[2 * SCRIPT_SHA1_BYTES + 1], form[2 * SCRIPT_SHA1_BYTES + 1] = "";
	struct buffer normal;
	buffer_init(&normal, &alloc, 2 * SCRIPT_BYTES_MAX);
	script_sha1(script, sha1);
	script_sha1_print(sha1, bytes);
	const bool is_lua = script_form(script, &alloc, &normal) == 0;
	const struct script_meaning *meaning = NULL;
	if (is_lua) {
		script_sha1(buffer_slice(&normal), sha1);
		script_sha1_print(sha1, form);
		meaning = script_find_form(sha1);
	}
	const char *means = meaning ? script_kind_name(meaning->kind)
		: is_lua ? "unknown: nodes refuse it" : "this is no Lua";
	script_say(line, "sha1", bytes);
	script_say(line, "normal form", form);
	script_say(line, "meaning", means);
	if (meaning) {
		script_say(line, "known from", meaning->library);
	}
	if (line->json) {
		json_t *object = json_object();
		output_json_set(object, "sha1", json_string(bytes));
		output_json_set(object, "form_sha1", is_lua ? json_string(form) : json_null());
		output_json_set(object, "meaning", meaning ? json_string(means) : json_null());
		output_json_set(object, "library",
			meaning ? json_string(meaning->library) : json_null());
		if (shows_form && is_lua) {
			output_json_set(object, "form",
				json_stringn((const char *)normal.data, normal.size));
		}
		output_json(object);
	} else if (shows_form && is_lua) {
		printf("%.*s\n", (int)normal.size, (const char *)normal.data);
	}
	buffer_done(&normal);
	return meaning ? CLI_DONE : CLI_REFUSED;
}

static int redis_script_run(struct cli_command_line *line) {
	static struct script_file file;
	bool shows_form = false;
	int count;
	const struct cli_option options[] = { { "form", CLI_FLAG, &shows_form } };
	char **operands = cli_options(line, options, sizeof options / sizeof *options, 1, 1,
		&count);
	return script_read(line, operands[0], &file)
		? script_tell(line, slice_of(file.bytes, file.size), shows_form) : CLI_USAGE;
}

const struct cli_command cli_redis_script = { "redis-script",
	"tell what a script of a Redis client means here", redis_script_help, redis_script_run };
