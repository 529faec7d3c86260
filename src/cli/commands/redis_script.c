/* redis_script.c: pawl redis-script: what a script of a Redis client would mean to a node. It asks
 * no node. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static int script_tell(const struct cli_command_line *line, const struct script_account *said,
	bool shows_form) {
	const struct script_meaning *meaning = said->meaning;
	const bool is_lua = said->form_size > 0;
	if (line->json) {
		json_t *object = json_object();
		output_json_set(object, "sha1", json_string(said->sha1));
		output_json_set(object, "form_sha1",
			is_lua ? json_string(said->form_sha1) : json_null());
		output_json_set(object, "meaning",
			meaning ? json_string(script_kind_name(meaning->kind)) : json_null());
		output_json_set(object, "library",
			meaning ? json_string(meaning->library) : json_null());
		if (shows_form) {
			output_json_set(object, "form", json_stringn(said->form, said->form_size));
		}
		output_json(object);
		return meaning ? CLI_DONE : CLI_REFUSED;
	}
	output_field("sha1", "%s", said->sha1);
	output_field("normal form", "%s", is_lua ? said->form_sha1 : "none: this is no Lua");
	output_field("meaning", "%s", meaning ? script_kind_name(meaning->kind)
		: "unknown: nodes refuse it");
	if (meaning) {
		output_field("known from", "%s", meaning->library);
	}
	if (shows_form) {
		printf("%.*s\n", (int)said->form_size, said->form);
	}
	return meaning ? CLI_DONE : CLI_REFUSED;
}

static int redis_script_run(struct cli_command_line *line) {
	static struct script_file file;
	bool shows_form = false;
	int count;
	const struct cli_option options[] = { { "form", CLI_FLAG, &shows_form } };
	char **operands = cli_options(line, options, sizeof options / sizeof *options, 1, 1,
		&count);
	if (!script_read(line, operands[0], &file)) {
		return CLI_USAGE;
	}
	static struct script_account said;
	if (script_describe(file.bytes, file.size, &said) != 0) {
		cli_misuse(line, "%s has too many words or parentheses for a script", operands[0]);
	}
	return script_tell(line, &said, shows_form);
}

const struct cli_command cli_redis_script = { "redis-script",
	"tell what a script of a Redis client means here", redis_script_help, redis_script_run };
