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
	"For a script that guards what a lock protects. check: exit status 0 when nobody with a "
		"higher token was here before, and\n"
	"TOKEN is then recorded in FILE, on disk, before this returns; 1 when somebody newer was "
		"here: refuse what is asked; 2 when\n"
	"that cannot be told, because FILE cannot be used or the command line is wrong: refuse, "
		"and call somebody. FILE is made if\n"
	"it is missing; losing it forgets everything. Several processes of one machine may use it "
		"at once. A check\n"
	"and what it allows are two steps: do them under a lock of the machine (flock), or let a "
		"database do both at once\n"
	"(docs/guide).\n"
	"\n"
	"  --shared             TOKEN is a reader's (pawl run --shared): not below any writer's; "
		"readers do not disturb each other\n"
	"\n"
	"Example:\n"
	"  flock out.lock sh -c 'pawl fence check /var/lib/out.fence out \"$PAWL_TOKEN\" && mv new "
		"out'\n";

/* This is not status 1, which is for a token that is refused: here nothing has been compared. */
static int fail_file(const struct cli_command_line *line, const char *path, int error) {
	const char *why = error == PAWL_EIO && errno ? strerror(errno)
		: error == PAWL_EIO ? "it is damaged, or no such store"
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
		fprintf(stderr, "pawl fence: %s: refused: token %" PRIu64 " was here before\n",
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
		cli_misuse(line, "there is no 'fence %s': say check or show", operands[0]);
	}
	if (checks != (count == 4)) {
		cli_misuse(line, checks ? "which token?" : "show takes no token");
	}
	if (checks && (!cli_number_parse(operands[3], &token) || token == 0 || token > INT64_MAX)) {
		cli_misuse(line,
			"'%s' is no token: those are whole numbers above 0, as in PAWL_TOKEN",
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
	"keep the highest token seen, for what a lock protects", fence_help, fence_run };
