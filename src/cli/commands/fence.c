/* fence.c: pawl fence: keeps the highest token seen, by name, in a file. It is for scripts that
 * guard a resource. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "output.h"
#include "pawl/fence.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char fence_help[] =
	"usage: pawl fence check FILE NAME TOKEN [--shared]\n"
	"       pawl fence show FILE NAME\n"
	"\n"
	"For a script that protects a resource with fencing tokens. check exits\n"
	"\n"
	"  with 0 if no higher token has been seen for NAME: TOKEN is now recorded in\n"
	"         FILE, on disk\n"
	"  with 1 if a higher one has been seen: refuse the request\n"
	"  with 2 if this cannot be decided, because FILE cannot be used or the command\n"
	"         line is wrong: refuse the request, and alert somebody\n"
	"\n"
	"FILE is created if it is missing; losing it loses all tokens. Several processes\n"
	"of one machine may use it at once. A check and the action that it allows are two\n"
	"steps: do both under a lock of the machine (flock), or let a database do them in\n"
	"one step (docs/guide).\n"
	"\n"
	"  --shared             TOKEN is a reader's (pawl run --shared): it must not be\n"
	"                       below any writer's; readers do not exclude each other\n"
	"\n"
	"Example:\n"
	"  flock out.lock sh -c \\\n"
	"    'pawl fence check /var/lib/out.fence out \"$PAWL_TOKEN\" && mv new out'\n";

/* This is not status 1, which is for a token that is refused: here nothing has been compared. */
static int fail_file(const struct cli_command_line *line, const char *path, int error) {
	const char *why = error == PAWL_EIO && errno ? strerror(errno)
		: error == PAWL_EIO ? "the file is damaged, or is not a fence file"
		: pawl_error_message(error);
	char text[512];
	snprintf(text, sizeof text, "%s: %s", path, why);
	struct pawl_result failed = { .error = error, .message = text, .endpoint = "",
		.field = "" };
	(void)cli_fail(line, &failed, "fence", NULL);
	return CLI_USAGE;
}

static void print(const struct cli_command_line *line, const char *name, uint64_t highest,
	const bool *allowed) {
	if (line->json) {
		json_t *object = json_object();
		output_json_bytes(object, "name", pawl_str(name));
		output_json_set(object, "highest", json_integer((json_int_t)highest));
		if (allowed) {
			output_json_set(object, "allowed", json_boolean(*allowed));
		}
		output_json(object);
	} else if (!allowed) {
		printf("%" PRIu64 "\n", highest);
	} else if (!*allowed) {
		output_line(stderr, "pawl fence: %s: refused: token %" PRIu64 " has been seen",
			name, highest);
	}
}

static int check(const struct cli_command_line *line, struct pawl_fence *fence, char **operands,
	uint64_t token, bool shared) {
	uint64_t highest = 0;
	errno = 0;
	int error = pawl_fence_store_check(fence, pawl_str(operands[2]), token,
		shared ? PAWL_SHARED : PAWL_EXCLUSIVE, &highest);
	if (error && error != PAWL_ELOST) {
		return fail_file(line, operands[1], error);
	}
	const bool allowed = error == 0;
	print(line, operands[2], highest, &allowed);
	return allowed ? CLI_DONE : CLI_REFUSED;
}

static int show(const struct cli_command_line *line, struct pawl_fence *fence, char **operands) {
	uint64_t highest = 0;
	errno = 0;
	int error = pawl_fence_highest(fence, pawl_str(operands[2]), &highest);
	if (error) {
		return fail_file(line, operands[1], error);
	}
	print(line, operands[2], highest, NULL);
	return CLI_DONE;
}

/* Refuses names under which something else would be stored than the user meant. An empty name comes
 * from a variable that is not set. */
static void check_names(const struct cli_command_line *line, const char *path, const char *name) {
	if (!*path || !*name) {
		cli_misuse(line, "the %s is empty", *path ? "NAME" : "FILE");
	}
	if (strlen(name) > PAWL_FENCE_NAME_MAX) {
		cli_misuse(line, "a NAME has at most %d bytes", PAWL_FENCE_NAME_MAX);
	}
}

static int fence_run(struct cli_command_line *line) {
	bool shared = false;
	int count;
	uint64_t token = 0;
	const struct cli_option options[] = { { "shared", CLI_FLAG, &shared } };
	char **operands = cli_options(line, options, COUNT(options), 3, 4, &count);
	bool checks = strcmp(operands[0], "check") == 0;
	if (!checks && strcmp(operands[0], "show") != 0) {
		cli_misuse(line, "unknown subcommand '%s': use check or show", operands[0]);
	}
	if (checks != (count == 4)) {
		cli_misuse(line, checks ? "check needs a TOKEN" : "show takes no TOKEN");
	}
	if (checks && (!cli_number_parse(operands[3], &token) || token == 0 || token > INT64_MAX)) {
		cli_misuse(line,
			"'%s' is not a token: write a whole number above 0, as in PAWL_TOKEN",
			operands[3]);
	}
	check_names(line, operands[1], operands[2]);
	struct pawl_fence *fence;
	errno = 0;
	if (!checks && access(operands[1], F_OK) != 0) {
		/* A command that only looks must not create the file. */
		return fail_file(line, operands[1], PAWL_EIO);
	}
	int error = pawl_fence_open(operands[1], &fence);
	if (error) {
		return fail_file(line, operands[1], error);
	}
	int status = checks ? check(line, fence, operands, token, shared)
		: show(line, fence, operands);
	pawl_fence_close(fence);
	return status;
}

const struct cli_command cli_fence = { "fence",
	"keep the highest token seen, to protect a resource", fence_help, fence_run };
