/* The command line of pawl run. */
#include "run.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "output.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define NS_PER_MS 1000000
#define GRACE_DEFAULT_MS 5000
#define SILENCE_MS 2000
#define LEAST_MS(a, b) ((a) < (b) ? (a) : (b))

const char run_help[] =
	"usage: pawl run KEY [--lease DURATION] [--wait DURATION] [--value V] [--owner NAME] [--grace DURATION]\n"
	"                -- CMD [ARG...]\n"
	"\n"
	"Holds the lock KEY while CMD runs, renewing it meanwhile, and gives it back when CMD is over; what CMD left running\n"
	"is ended first. CMD runs in a process group of its own, with PAWL_KEY, PAWL_LOCK_ID and PAWL_TOKEN (the fencing\n"
	"token) in its environment; signals are passed on, and CMD's exit status is pawl's (128 + N when signal N killed it).\n"
	"\n"
	"When the lease cannot be kept CMD gets SIGTERM, then SIGKILL, so that it is gone before anybody else can have KEY,\n"
	"and the exit status is 4. This holds also when CMD ignores SIGTERM, when pawl is killed, stopped or cut off from\n"
	"the network, and for what CMD put into the background. It does not reach processes that changed their user\n"
	"(sudo), that somebody else started for CMD, or that hang in the kernel, and it needs a machine that runs: what\n"
	"must not be written without the lock, even then, carries PAWL_TOKEN to a resource that checks it.\n"
	"\n"
	"  --lease DURATION     how long the lock outlives the loss of this machine (default 30s)\n"
	"  --wait DURATION      wait so long for others to let go of KEY, first come first served (default: one try)\n"
	"  --value V            bytes that everybody can read at KEY meanwhile\n"
	"  --owner NAME         who holds it, for people (default: host and process)\n"
	"  --grace DURATION     between SIGTERM and SIGKILL; at most a quarter of the lease\n"
	"                       (default 5s, or a sixth of the lease if that is less)\n"
	"\n"
	"Example:\n"
	"  pawl run nightly-backup --lease 1m --wait 10m -- sh -c 'backup --fence \"$PAWL_TOKEN\"'\n";

/* How the lease is divided, in its sixths: renewal begins after two; a node that hangs is left for the next one after one more;
 * the last one and the margin before it are CMD's: `grace` to tidy up after SIGTERM, `margin` for the kernel to carry out
 * SIGKILL. What lies between is for trying again. */
static void set_times(struct cli_command_line *line, struct run_wanted *w, uint32_t grace_ms) {
	uint32_t lease = w->lock.lease_ms;
	if (lease < 20) {
		cli_misuse(line, "--lease: a lease of less than 20ms leaves no time to end a command; the least of a cluster is 100ms");
	}
	if (grace_ms > lease / 4) {
		cli_misuse(line, "--grace: %s is more than a quarter of the lease (%s): use a longer --lease",
			output_duration(grace_ms), output_duration(lease));
	}
	grace_ms = grace_ms ? grace_ms : LEAST_MS(lease / 6, GRACE_DEFAULT_MS);
	uint32_t margin_ms = LEAST_MS(lease / 10, 1000);
	line->silence_ms = LEAST_MS(lease / 6, SILENCE_MS);
	w->guarding.grace_ns = (int64_t)grace_ms * NS_PER_MS;
	w->guarding.margin_ns = (int64_t)margin_ms * NS_PER_MS;
	w->lock.warn_ms = grace_ms + margin_ms + lease / 50;
}

/* From the program's name to the end of the last argument: they lie one behind the other. */
static void set_title(const struct cli_command_line *line, struct run_wanted *w) {
	const char *end = program_invocation_name;
	for (int i = 0; i < line->argc; i++) {
		const char *after = line->argv[i] + strlen(line->argv[i]) + 1;
		end = after > end ? after : end;
	}
	w->guarding.title = program_invocation_name;
	w->guarding.title_size = (size_t)(end - program_invocation_name);
}

void run_read_line(struct cli_command_line *line, struct run_wanted *w) {
	const char *value = NULL, *owner = NULL;
	uint32_t grace_ms = 0;
	w->lock.lease_ms = CLI_LEASE_DEFAULT_MS;
	const struct cli_option options[] = {
		{ "lease", CLI_DURATION, &w->lock.lease_ms }, { "wait", CLI_DURATION, &w->lock.wait_ms },
		{ "value", CLI_TEXT, &value }, { "owner", CLI_TEXT, &owner }, { "grace", CLI_DURATION, &grace_ms },
	};
	set_title(line, w);
	int cut = 1; /* what follows "--" is CMD's and is not looked at */
	while (cut < line->argc && strcmp(line->argv[cut], "--") != 0) {
		cut++;
	}
	w->guarding.command = cut < line->argc ? line->argv + cut + 1 : NULL;
	int most = cut < line->argc ? 1 : INT_MAX; /* who forgot the "--" is told so below */
	line->argc = cut;
	char **operands = cli_options(line, options, COUNT(options), 1, most, NULL);
	if (!w->guarding.command || !w->guarding.command[0]) {
		cli_misuse(line, "there is no command to run: write it after '--', as in: pawl run KEY -- make deploy");
	}
	w->key = w->guarding.key = operands[0];
	w->lock.key = cli_key(line, w->key);
	w->lock.value = pawl_str(value);
	w->lock.owner = pawl_str(owner);
	set_times(line, w, grace_ms);
}
