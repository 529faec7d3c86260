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
	"usage: pawl run KEY... [OPTION...] -- CMD [ARG...]\n"
	"\n"
	"Runs CMD while holding the lock KEY. pawl renews the lock, and releases it when\n"
	"CMD has ended; processes that CMD has left running are ended first. With several\n"
	"KEYs it holds all of them or none; their order does not matter. CMD's\n"
	"environment has PAWL_KEY (the first KEY), PAWL_LOCK_ID, PAWL_TOKEN (the fencing\n"
	"token of the first KEY), PAWL_TOKENS (the tokens of all KEYs in the order in\n"
	"which they are given, such as 17,5) and, for permits, PAWL_SLOTS (the permit\n"
	"numbers, such as 0,3).\n"
	"\n"
	"On a terminal CMD belongs to the shell's job, however its input and output are\n"
	"redirected: it may ask questions there, Ctrl-C reaches it, and Ctrl-Z stops it,\n"
	"until fg or bg. The lease is not renewed meanwhile: when it ends, CMD is ended.\n"
	"Without a terminal CMD has a process group of its own. Signals that are sent to\n"
	"pawl are passed on to CMD.\n"
	"\n"
	"The exit status is CMD's: 128 + N if signal N killed it, 126 or 127 if it could\n"
	"not be started. If pawl itself has failed, it is one of these:\n"
	"  111  another failure: the node has refused, or a process could not be started\n"
	"  112  wrong usage\n"
	"  113  no quorum, or no node reachable\n"
	"  114  the lock was lost while CMD ran\n"
	"  115  KEY is held, and there was no --wait\n"
	"  116  the time of --wait is over, or a node has ended the wait because of a\n"
	"       deadlock\n"
	"  117  denied by the access rules\n"
	"\n"
	"If the lease cannot be renewed, CMD gets SIGTERM and then SIGKILL, so that it is\n"
	"gone before anybody else can get KEY. This holds even\n"
	"if CMD ignores SIGTERM, and if pawl is killed, stopped or cut off from the\n"
	"network, and it includes what CMD has put into the background. It does not reach\n"
	"processes that have changed their user (sudo), that another program started on\n"
	"CMD's behalf, or that hang in the kernel, and it works only while the machine is\n"
	"running. If SIGKILL ends both pawl and its guardian (the process between pawl\n"
	"and CMD) at once, CMD dies, but what CMD has started lives on; a systemd unit of\n"
	"its own (KillMode=control-group or mixed) ends that soon after, usually within\n"
	"the lease. A write that must never happen without the lock must pass PAWL_TOKEN\n"
	"to a resource that checks it.\n"
	"\n"
	"  --lease DURATION     how long others must wait if this machine is lost\n"
	"                       (default 30s, or the cluster's max_lease if that is\n"
	"                       less)\n"
	"  --wait DURATION      wait up to DURATION for the lock, or forever, first come,\n"
	"                       first served (default: try once); a terminal is\n"
	"                       told for whom\n"
	"  -E, --conflict-exit-code N\n"
	"                       the exit status instead of 115 and 116, from 0 to 255\n"
	"  --value V            bytes that others can read under KEY while it is held\n"
	"  --owner NAME         the holder's name, shown to others (default: host and\n"
	"                       process)\n"
	"  --grace DURATION     time between SIGTERM and SIGKILL, at most a quarter of\n"
	"                       the lease (default 5s, or a sixth of the lease if that\n"
	"                       is less)\n"
	TERMS_HELP
	"  --release-on-disconnect\n"
	"                       free the key as soon as pawl is gone, rather than when\n"
	"                       the lease expires\n"
	"  --on-ask ignore|term what to do when somebody asks for KEY (pawl ask-release):\n"
	"                       ignore (default), or term (send SIGTERM to CMD)\n"
	"\n"
	"Example:\n"
	"  pawl run nightly-backup --lease 1m --wait 10m -- \\\n"
	"    sh -c 'backup --fence \"$PAWL_TOKEN\"'\n";

const char elect_help[] =
	"usage: pawl elect NAME [OPTION...] [-- CMD [ARG...]]\n"
	"\n"
	"Takes part in the election NAME, waits for as long as it takes, and runs CMD\n"
	"while it leads. Without CMD it says that it leads, and leads until it is\n"
	"stopped. Only one candidate leads at a time: if leadership cannot be kept, CMD\n"
	"is ended before another candidate can be elected, in the same way and with the\n"
	"same limits as with pawl run (see pawl run --help). CMD has PAWL_KEY (the\n"
	"election's name), PAWL_LOCK_ID and PAWL_TOKEN in its environment. When CMD ends\n"
	"by itself, pawl gives up leadership, and the exit status is CMD's; failures of\n"
	"pawl itself have the statuses 111 to 117, as with pawl run. While a candidate\n"
	"waits in the foreground of a terminal, it says there who leads, and its place.\n"
	"\n"
	"When leadership is lost, or when somebody asks for it (pawl ask-release --to, or\n"
	"a candidate with a higher priority and --takeover), CMD gets SIGTERM, and after\n"
	"--grace SIGKILL. When it has ended, pawl becomes a candidate again. If somebody\n"
	"asked for another candidate, that candidate leads next.\n"
	"\n"
	"  --value V            what the leader proclaims, shown by pawl leader; for\n"
	"                       example its address\n"
	"  --as CANDIDATE       this candidate's unique name, for pawl ask-release --to\n"
	"                       (default: host and process)\n"
	"  --priority N         candidates with a higher priority are elected first;\n"
	"                       equal priorities first come, first served (default 0)\n"
	"  --takeover           ask leaders with a lower priority to yield\n"
	"  --once               end after one term: with exit status 114 if leadership was\n"
	"                       lost, with 0 or CMD's status if it was handed over\n"
	"  --lease DURATION     how long others must wait if this machine is lost\n"
	"                       (default 30s, or the cluster's max_lease if that is\n"
	"                       less)\n"
	"  --lock-delay D       if the lease expires without a release, elect nobody for\n"
	"                       this long\n"
	"  --release-on-disconnect\n"
	"                       elect the next leader as soon as pawl is gone, rather\n"
	"                       than when the lease expires\n"
	"  --label TEXT         text that is shown with the leader's host and process\n"
	"  --grace DURATION     time between SIGTERM and SIGKILL, at most a quarter of\n"
	"                       the lease (default 5s, or a sixth of the lease if that\n"
	"                       is less)\n"
	"\n"
	"Example:\n"
	"  pawl elect scheduler --value \"$(hostname):8080\" --release-on-disconnect -- \\\n"
	"    scheduler --port 8080\n";

/* Divides the lease. In its sixths: renewal begins after two of them. After one more, a node that
 * hangs is left for the next one. The last sixth and the margin before it are CMD's: `grace` to
 * tidy up after SIGTERM, and `margin` for the kernel to carry out SIGKILL. The time in between is
 * for trying again. */
void run_set_times(struct cli_command_line *line, struct run_wanted *w) {
	uint32_t lease = w->lock.lease_ms, grace_ms = w->grace_wanted_ms;
	if (lease < 20) {
		cli_misuse(line,
			"--lease: less than 20ms leaves no time to end a command (a cluster's "
			"minimum is 100ms by default)");
	}
	if (grace_ms > lease / 4) {
		cli_misuse(line,
			"--grace: %s is more than a quarter of the lease (%s): use a shorter "
			"--grace or a longer --lease",
			output_duration(grace_ms), output_duration(lease));
	}
	grace_ms = grace_ms ? grace_ms : LEAST_MS(lease / 6, GRACE_DEFAULT_MS);
	uint32_t margin_ms = LEAST_MS(lease / 10, 1000);
	line->silence_ms = LEAST_MS(lease / 6, SILENCE_MS);
	w->grace_ns = (int64_t)grace_ms * NS_PER_MS;
	w->margin_ns = (int64_t)margin_ms * NS_PER_MS;
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

/* Cuts off "--" and what follows it, which is CMD and is not read here. Returns whether there was a
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

/* Stands for a lease that is not given. */
#define LEASE_OPEN UINT32_MAX

static void set_lease(struct cli_command_line *line, struct run_wanted *w) {
	w->lease_open = w->lock.lease_ms == LEASE_OPEN;
	w->lock.lease_ms = w->lease_open ? CLI_LEASE_DEFAULT_MS : w->lock.lease_ms;
	run_set_times(line, w);
}

static void set_lock(struct run_wanted *w, const char *value, const char *owner,
	const struct terms_wanted *terms) {
	w->lock.value = pawl_str(value);
	w->lock.owner = pawl_str(owner);
	w->lock.label = pawl_str(terms->label);
}

_Noreturn static void no_command(const struct cli_command_line *line) {
	cli_misuse(line,
		"no command given: write it after '--', as in: pawl run KEY -- make deploy");
}

/* How many options pawl run has apart from the lock terms. */
#define OWN_OPTIONS 8

void run_read_line(struct cli_command_line *line, struct run_wanted *w) {
	const char *value = NULL, *owner = NULL, *ask = "ignore";
	struct terms_wanted terms = { .shared = false };
	w->lock.lease_ms = LEASE_OPEN;
	w->conflict_status = RUN_NO_STATUS;
	struct cli_option options[OWN_OPTIONS + TERMS_OPTIONS] = {
		{ "lease", CLI_DURATION, &w->lock.lease_ms },
		{ "wait", CLI_WAIT, &w->lock.wait_ms },
		{ "value", CLI_TEXT, &value },
		{ "owner", CLI_TEXT, &owner },
		{ "grace", CLI_DURATION, &w->grace_wanted_ms },
		{ "on-ask", CLI_TEXT, &ask },
		{ "conflict-exit-code", CLI_NUMBER, &w->conflict_status },
		{ "E", CLI_NUMBER, &w->conflict_status },
	};
	set_title(line, w);
	bool found = cut_command(line, w);
	int count;
	if (!found && line->argc > 2 && line->argv[1][0] != '-' && line->argv[2][0] != '-') {
		/* This comes before the options are read, because CMD has options of its own. */
		no_command(line);
	}
	char **operands = cli_options(line, options, terms_options(&terms, options, OWN_OPTIONS), 1,
		INT_MAX, &count);
	if (!found || !w->guarding.command[0]) {
		no_command(line);
	}
	w->key = w->guarding.key = operands[0];
	w->lock.key = cli_key(line, w->key);
	w->lock.terms = terms_read(line, &terms);
	if (count > 1) {
		w->keys = terms_keys(line, &w->lock.terms, operands, (size_t)count);
		w->key_count = (size_t)count;
	}
	if (strcmp(ask, "ignore") != 0 && strcmp(ask, "term") != 0) {
		cli_misuse(line, "--on-ask: '%s' is neither ignore nor term", ask);
	}
	if (w->conflict_status > 255 && w->conflict_status != RUN_NO_STATUS) {
		cli_misuse(line, "-E: an exit status is at most 255");
	}
	w->on_ask = strcmp(ask, "term") == 0 ? RUN_ASK_TERM : RUN_ASK_IGNORE;
	set_lock(w, value, owner, &terms);
	set_lease(line, w);
}

void elect_read_line(struct cli_command_line *line, struct run_wanted *w) {
	static char sleep_word[] = "sleep", for_ever[] = "infinity",
		    *nothing[] = { sleep_word, for_ever, NULL };
	const char *value = NULL, *owner = NULL;
	struct terms_wanted terms = { .shared = false };
	w->elect = true;
	w->lock.lease_ms = LEASE_OPEN;
	const struct cli_option options[] = {
		{ "lease", CLI_DURATION, &w->lock.lease_ms },
		{ "value", CLI_TEXT, &value },
		{ "as", CLI_TEXT, &owner },
		{ "grace", CLI_DURATION, &w->grace_wanted_ms },
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
		cli_misuse(line, "no command given after the '--'");
	}
	w->announces = !found;
	w->guarding.command = found ? w->guarding.command : nothing;
	w->key = w->guarding.key = operands[0];
	w->lock.key = cli_key(line, w->key);
	w->lock.terms = terms_read(line, &terms);
	set_lock(w, value, owner, &terms);
	set_lease(line, w);
}
