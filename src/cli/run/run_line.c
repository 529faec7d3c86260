/* run_line.c: the command lines of pawl run and pawl elect. */
#include "run.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "output.h"
#include "terms.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define NS_PER_MS 1000000
#define GRACE_DEFAULT_MS 5000
#define SILENCE_MS 2000
#define LEAST_MS(a, b) ((a) < (b) ? (a) : (b))

const char run_help[] =
	"usage: pawl run KEY... [--lease DURATION] [--wait DURATION] [--value V] [--owner NAME] "
		"[--grace DURATION]\n"
	"                [--shared | --permits K --of N] [--priority N] [--lock-delay DURATION] "
		"[--release-on-disconnect]\n"
	"                [--label TEXT] [--on-ask ignore|term] -- CMD [ARG...]\n"
	"\n"
	"Holds the lock KEY while CMD runs, renewing it meanwhile, and gives it back when CMD is "
		"over; what CMD left running\n"
	"is ended first. Of several KEYs it holds all or none, in whatever order they are named. "
		"CMD runs in a process group\n"
	"of its own, with PAWL_KEY (the first), PAWL_LOCK_ID, PAWL_TOKEN (the fencing token) and, "
		"for permits, PAWL_SLOTS (which\n"
	"ones, as 0,3) in its environment; signals are passed on, and CMD's exit status is pawl's "
		"(128 + N when signal N\n"
	"killed it).\n"
	"\n"
	"When the lease cannot be kept CMD gets SIGTERM, then SIGKILL, so that it is gone before "
		"anybody else can have KEY,\n"
	"and the exit status is 4. This holds also when CMD ignores SIGTERM, when pawl is killed, "
		"stopped or cut off from\n"
	"the network, and for what CMD put into the background. It does not reach processes that "
		"changed their user\n"
	"(sudo), that somebody else started for CMD, or that hang in the kernel, and it needs a "
		"machine that runs. And when pawl\n"
	"and its guardian (the process between it and CMD) are both killed at once by SIGKILL, CMD "
		"dies, but what CMD\n"
	"started lives on: a systemd unit of its own (KillMode=control-group or mixed) ends that "
		"soon after, mostly within\n"
	"the lease. What must not be written without the lock, even then, carries PAWL_TOKEN to a "
		"resource that checks it.\n"
	"\n"
	"  --lease DURATION     how long the lock outlives the loss of this machine (default 30s)\n"
	"  --wait DURATION      wait so long for others to let go of KEY, first come first served "
		"(default: one try)\n"
	"  --value V            bytes that everybody can read at KEY meanwhile\n"
	"  --owner NAME         who holds it, for people (default: host and process)\n"
	"  --grace DURATION     between SIGTERM and SIGKILL; at most a quarter of the lease\n"
	"                       (default 5s, or a sixth of the lease if that is less)\n"
	"  --shared             together with others who are shared, as readers are\n"
	"  --permits K --of N   K permits of a semaphore that has N in all (at most 128); all "
		"holders name the same N\n"
	"  --priority N         who waits with a greater one is earlier (default 0)\n"
	"  --lock-delay D       keep KEY closed for so long when the lease runs out without a "
		"release\n"
	"  --release-on-disconnect   free KEY as soon as pawl is gone, not when the lease is over\n"
	"  --label TEXT         shown to those who ask who holds it, beside host and process\n"
	"  --on-ask ACT         when somebody asks for KEY (pawl ask-release): ignore (default), "
		"or term: CMD gets SIGTERM\n"
	"\n"
	"Example:\n"
	"  pawl run nightly-backup --lease 1m --wait 10m -- sh -c 'backup --fence "
		"\"$PAWL_TOKEN\"'\n";

const char elect_help[] =
	"usage: pawl elect NAME [--value V] [--as CANDIDATE] [--priority N] [--takeover] [--once] "
		"[--lease DURATION]\n"
	"                [--lock-delay DURATION] [--release-on-disconnect] [--label TEXT] [--grace "
		"DURATION] [-- CMD [ARG...]]\n"
	"\n"
	"Is a candidate in the election NAME, waits as long as it takes, and runs CMD while "
		"leading; without CMD it says so and\n"
	"leads until it is ended. Of all candidates one leads at a time: when leadership cannot be "
		"kept CMD is ended, as by\n"
	"pawl run and within the same limits (pawl run --help), before another can be elected. CMD "
		"has PAWL_KEY (the election's name), PAWL_LOCK_ID and PAWL_TOKEN in its\n"
	"environment. When CMD ends by itself the leadership is given up, and its exit status is "
		"pawl's.\n"
	"\n"
	"When leadership is lost, or somebody asks for it (pawl ask-release --to, or a candidate "
		"with a greater priority and\n"
	"--takeover), CMD gets SIGTERM, after --grace SIGKILL, and when it has ended this is a "
		"candidate again; whoever asked leads\n"
	"then.\n"
	"\n"
	"  --value V            proclaimed while leading, for pawl leader to show: where the "
		"leader is reached, say\n"
	"  --as CANDIDATE       this candidate's name, for pawl ask-release --to; one that no "
		"other has (default: host and process)\n"
	"  --priority N         the candidate with the greatest one is next; among equals first "
		"come, first served (default 0)\n"
	"  --takeover           ask leaders with a lower priority to yield\n"
	"  --once               end after one term: exit status 4 when it was lost, 0 or CMD's "
		"when it was handed over\n"
	"  --lease DURATION     how long the leadership outlives the loss of this machine (default "
		"30s)\n"
	"  --lock-delay D       elect nobody for so long when the lease runs out without a "
		"release\n"
	"  --release-on-disconnect   the next one is elected as soon as pawl is gone, not when the "
		"lease is over\n"
	"  --label TEXT         shown to those who ask who leads, beside host and process\n"
	"  --grace DURATION     between SIGTERM and SIGKILL; at most a quarter of the lease\n"
	"                       (default 5s, or a sixth of the lease if that is less)\n"
	"\n"
	"Example:\n"
	"  pawl elect scheduler --value \"$(hostname):8080\" --release-on-disconnect -- scheduler "
		"--port 8080\n";

/* Divides the lease. In its sixths: renewal begins after two of them. After one more, a node that
 * hangs is left for the next one. The last sixth and the margin before it are CMD's: `grace` to
 * tidy up after SIGTERM, and `margin` for the kernel to carry out SIGKILL. The time in between is
 * for trying again. */
static void set_times(struct cli_command_line *line, struct run_wanted *w, uint32_t grace_ms) {
	uint32_t lease = w->lock.lease_ms;
	if (lease < 20) {
		cli_misuse(line,
			"--lease: a lease of less than 20ms leaves no time to end a command; the "
			"least of a cluster is 100ms");
	}
	if (grace_ms > lease / 4) {
		cli_misuse(line,
			"--grace: %s is more than a quarter of the lease (%s): use a longer "
			"--lease",
			output_duration(grace_ms), output_duration(lease));
	}
	grace_ms = grace_ms ? grace_ms : LEAST_MS(lease / 6, GRACE_DEFAULT_MS);
	uint32_t margin_ms = LEAST_MS(lease / 10, 1000);
	line->silence_ms = LEAST_MS(lease / 6, SILENCE_MS);
	w->guarding.grace_ns = (int64_t)grace_ms * NS_PER_MS;
	w->guarding.margin_ns = (int64_t)margin_ms * NS_PER_MS;
	w->lock.warn_ms = grace_ms + margin_ms + lease / 50;
}

/* Sets the memory for the title: from the program's name to the end of the last argument, which lie
 * one behind the other. */
static void set_title(const struct cli_command_line *line, struct run_wanted *w) {
	const char *end = program_invocation_name;
	for (int i = 0; i < line->argc; i++) {
		const char *after = line->argv[i] + strlen(line->argv[i]) + 1;
		end = after > end ? after : end;
	}
	w->guarding.title = program_invocation_name;
	w->guarding.title_size = (size_t)(end - program_invocation_name);
}

/* Cuts off what follows "--", which is CMD's and is not looked at. Returns whether there was a
 * "--". */
static bool cut_command(struct cli_command_line *line, struct run_wanted *w) {
	int cut = 1;
	while (cut < line->argc && strcmp(line->argv[cut], "--") != 0) {
		cut++;
	}
	bool found = cut < line->argc;
	w->guarding.command = found ? line->argv + cut + 1 : NULL;
	line->argc = cut;
	return found;
}

static void set_lock(struct run_wanted *w, const char *value, const char *owner,
	const struct terms_wanted *terms) {
	w->lock.value = pawl_str(value);
	w->lock.owner = pawl_str(owner);
	w->lock.label = pawl_str(terms->label);
}

void run_read_line(struct cli_command_line *line, struct run_wanted *w) {
	const char *value = NULL, *owner = NULL, *ask = "ignore";
	uint32_t grace_ms = 0;
	struct terms_wanted terms = { .shared = false };
	w->lock.lease_ms = CLI_LEASE_DEFAULT_MS;
	struct cli_option options[6 + TERMS_OPTIONS] = {
		{ "lease", CLI_DURATION, &w->lock.lease_ms },
		{ "wait", CLI_DURATION, &w->lock.wait_ms },
		{ "value", CLI_TEXT, &value },
		{ "owner", CLI_TEXT, &owner },
		{ "grace", CLI_DURATION, &grace_ms },
		{ "on-ask", CLI_TEXT, &ask },
	};
	set_title(line, w);
	bool found = cut_command(line, w);
	int count;
	char **operands = cli_options(line, options, terms_options(&terms, options, 6), 1, INT_MAX,
		&count);
	if (!found || !w->guarding.command[0]) {
		/* This comes first, so that a user who has forgotten the "--" is told so. */
		cli_misuse(line,
			"there is no command to run: write it after '--', as in: pawl run KEY -- "
			"make deploy");
	}
	w->key = w->guarding.key = operands[0];
	w->lock.key = cli_key(line, w->key);
	w->lock.terms = terms_read(line, &terms);
	if (count > 1) {
		w->keys = terms_keys(line, &w->lock.terms, operands, (size_t)count);
		w->key_count = (size_t)count;
	}
	if (strcmp(ask, "ignore") != 0 && strcmp(ask, "term") != 0) {
		cli_misuse(line, "--on-ask: '%s' is not known: say ignore or term", ask);
	}
	w->on_ask = strcmp(ask, "term") == 0 ? RUN_ASK_TERM : RUN_ASK_IGNORE;
	set_lock(w, value, owner, &terms);
	set_times(line, w, grace_ms);
}

void elect_read_line(struct cli_command_line *line, struct run_wanted *w) {
	static char sleep_word[] = "sleep", for_ever[] = "infinity",
		    *nothing[] = { sleep_word, for_ever, NULL };
	const char *value = NULL, *owner = NULL;
	uint32_t grace_ms = 0;
	struct terms_wanted terms = { .shared = false };
	w->elect = true;
	w->lock.lease_ms = CLI_LEASE_DEFAULT_MS;
	const struct cli_option options[] = {
		{ "lease", CLI_DURATION, &w->lock.lease_ms },
		{ "value", CLI_TEXT, &value },
		{ "as", CLI_TEXT, &owner },
		{ "grace", CLI_DURATION, &grace_ms },
		{ "takeover", CLI_FLAG, &w->takeover },
		{ "once", CLI_FLAG, &w->once },
		{ "priority", CLI_INTEGER, &terms.priority },
		{ "lock-delay", CLI_DURATION, &terms.delay_ms },
		{ "release-on-disconnect", CLI_FLAG, &terms.release_on_disconnect },
		{ "label", CLI_TEXT, &terms.label },
	};
	set_title(line, w);
	bool found = cut_command(line, w);
	char **operands = cli_options(line, options, COUNT(options), 1, 1, NULL);
	if (found && !w->guarding.command[0]) {
		cli_misuse(line, "there is no command behind the '--'");
	}
	w->announces = !found;
	w->guarding.command = found ? w->guarding.command : nothing;
	w->key = w->guarding.key = operands[0];
	w->lock.key = cli_key(line, w->key);
	w->lock.terms = terms_read(line, &terms);
	set_lock(w, value, owner, &terms);
	set_times(line, w, grace_ms);
}
