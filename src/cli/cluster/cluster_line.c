/* cluster_line.c: reads the command line of pawl cluster. */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define WAIT_DEFAULT_MS 600000
/* Stands for a duration that is not given. */
#define UNNAMED UINT32_MAX

const char cluster_help[] =
	"usage: pawl cluster show\n"
	"       pawl cluster add-replica NAME HOST:PORT\n"
	"       pawl cluster promote NAME | demote NAME | remove NAME\n"
	"       pawl cluster replace OLD NEW\n"
	"       pawl cluster set-nodes --masters A,B,C [--replicas D,E]\n"
	"       pawl cluster set-timing [--max-lease D] [--request-timeout D] [--promise-timeout "
		"D] [--clock-drift P%]\n"
	"       pawl cluster force --yes\n"
	"\n"
	"Shows or changes who the nodes of the cluster are. Locks stay held over a change, and it "
		"may be repeated: what is\n"
	"reached already succeeds and changes nothing. So after an interruption, an error or a "
		"lost connection give the same\n"
	"command again. Any master can be asked; a majority of the masters has to agree. For "
		"administrators.\n"
	"\n"
	"  show         the nodes, who votes, who is behind, and what to do next. Asks every node "
		"of --endpoints\n"
	"  add-replica  NAME runs with a configuration of its own (see docs/operations/install.md) "
		"and listens for its\n"
	"               peers at HOST:PORT. It follows a master and serves reads; it does not "
		"vote\n"
	"  promote      a replica becomes a master. It copies what is held first, so that nothing "
		"pauses for long\n"
	"  demote       a master becomes a replica\n"
	"  remove       NAME leaves. Stop its pawld afterwards, and revoke its certificate (pawl "
		"cert revoke)\n"
	"  replace      NEW, a replica, becomes a master in the place of OLD, which leaves: for a "
		"machine that is dead or is to\n"
	"               be retired. The same name twice: a node that lost its state file gets its "
		"own place again\n"
	"  set-nodes    the whole set at once; nodes that are not in yet as NAME=HOST:PORT. Who is "
		"not named leaves\n"
	"  set-timing   the constants that belong to the cluster: the longest lease, how long "
		"masters are waited for, and\n"
	"               how far clocks may differ in their rates (1%, 0.5%, 200ppm). A request "
		"timeout is at least 10ms, and\n"
	"               eight times the longest round trip of late\n"
	"  force        after a majority of the masters is lost FOR GOOD: the one node of "
		"--endpoints starts over as the only\n"
	"               master. The others must be dead. Says what may be lost, and does it with "
		"--yes only. It may be a\n"
	"               node that a change has left out by mistake\n"
	"\n"
	"  --anyway     for promote, demote, remove, replace and set-nodes: also when too few of "
		"the new masters answer now. A\n"
	"               majority of the present masters has to agree all the same\n"
	"  --wait D     how long to wait for the change (default 10m); it may go on when this is "
		"over\n"
	"\n"
	"Exit status 1 when it is refused (another change came first, no such node, ...), 3 "
		"without a majority.\n"
	"\n"
	"Example:\n"
	"  pawl cluster add-replica d d.example:7118\n"
	"  pawl cluster replace b d                     # b is dead: d votes in its place\n"
	"  pawl cluster set-nodes --masters d,e=e.example:7118,f=f.example:7118 --replicas a\n"
	"  pawl cluster set-timing --max-lease 2m\n";

enum { MAY_ANYWAY = 1, MAY_YES = 2, MAY_NODES = 4, MAY_TIMING = 8 };

static const struct verb {
	const char *name;

	/* 0 if the verb makes no change. */
	enum pawl_change_kind kind;
	int operands;
	const char *usage;
	int may;
} verbs[] = {
	{ "show", 0, 0, "show", 0 },
	{ "add-replica", PAWL_ADD_REPLICA, 2, "add-replica NAME HOST:PORT", 0 },
	{ "promote", PAWL_PROMOTE, 1, "promote NAME", MAY_ANYWAY },
	{ "demote", PAWL_DEMOTE, 1, "demote NAME", MAY_ANYWAY },
	{ "remove", PAWL_REMOVE, 1, "remove NAME", MAY_ANYWAY },
	{ "replace", PAWL_REPLACE, 2, "replace OLD NEW", MAY_ANYWAY },
	{ "set-nodes", PAWL_SET_NODES, 0, "set-nodes --masters A,B,C [--replicas D,E]",
		MAY_ANYWAY | MAY_NODES },
	{ "set-timing", PAWL_SET_TIMING, 0, "set-timing --max-lease 2m (or another constant)",
		MAY_TIMING },
	{ "force", PAWL_FORCE, 0, "force --yes", MAY_YES },
};

/* The options as they are on the command line. */
struct named {
	const char *masters, *replicas, *drift;
	uint32_t max_lease_ms, request_timeout_ms, promise_timeout_ms;
	bool anyway, yes;
};

static const struct verb *verb_find(const struct cli_command_line *line, const char *name) {
	for (size_t i = 0; i < COUNT(verbs); i++) {
		if (strcmp(verbs[i].name, name) == 0) {
			return &verbs[i];
		}
	}
	cli_misuse(line, "there is no 'pawl cluster %s'", name);
}

static void refuse_strange(const struct cli_command_line *line, const struct verb *verb,
	const struct named *n) {
	bool timing = n->max_lease_ms != UNNAMED || n->request_timeout_ms != UNNAMED
		|| n->promise_timeout_ms != UNNAMED || n->drift;
	const struct {
		bool named;
		int may;
		const char *what;
	} rows[] = {
		{ n->anyway, MAY_ANYWAY, "--anyway" },
		{ n->yes, MAY_YES, "--yes" },
		{ n->masters || n->replicas, MAY_NODES, "--masters and --replicas" },
		{ timing, MAY_TIMING, "constants of time" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].named && !(verb->may & rows[i].may)) {
			cli_misuse(line, "%s: not for %s", rows[i].what, verb->name);
		}
	}
}

static char *keep(const char *text) {
	char *copy = strdup(text);
	if (!copy) {
		/* These are only a few bytes at the start of the program. */
		abort();
	}
	return copy;
}

static void take_nodes(const struct cli_command_line *line, const struct named *n,
	struct cluster_wanted *w) {
	if (!n->masters) {
		cli_misuse(line,
			"set-nodes needs --masters: the whole set, as in --masters "
			"a,b,c=host:port");
	}
	w->masters = keep(n->masters);
	const char *problem = cluster_nodes_parse(w->masters, true, w->nodes,
		&w->change.node_count);
	if (problem) {
		cli_misuse(line,
			"--masters %s: %s; write names, and NAME=HOST:PORT for nodes that are not "
			"in yet",
			n->masters, problem);
	}
	if (n->replicas && *n->replicas) {
		w->replicas = keep(n->replicas);
		problem = cluster_nodes_parse(w->replicas, false, w->nodes, &w->change.node_count);
	}
	if (problem) {
		cli_misuse(line,
			"--replicas %s: %s; write names, and NAME=HOST:PORT for nodes that are not "
			"in yet",
			n->replicas, problem);
	}
	w->change.nodes = w->nodes;
}

static uint32_t take_duration(const struct cli_command_line *line, const char *name, uint32_t ms) {
	if (ms == 0) {
		cli_misuse(line, "--%s 0 cannot be", name);
	}
	return ms == UNNAMED ? 0 : ms;
}

static void take_timing(const struct cli_command_line *line, const struct named *n,
	struct pawl_change *change) {
	change->max_lease_ms = take_duration(line, "max-lease", n->max_lease_ms);
	change->request_timeout_ms = take_duration(line, "request-timeout", n->request_timeout_ms);
	change->promise_timeout_ms = take_duration(line, "promise-timeout", n->promise_timeout_ms);
	change->has_clock_drift = n->drift != NULL;
	if (n->drift && !cluster_drift_parse(n->drift, &change->clock_drift_ppm)) {
		cli_misuse(line, "--clock-drift: '%s' is none: write 1%%, 0.5%% or 200ppm",
			n->drift);
	}
	if (!change->max_lease_ms && !change->request_timeout_ms && !change->promise_timeout_ms
		&& !n->drift) {
		cli_misuse(line,
			"set-timing needs one of --max-lease, --request-timeout, "
			"--promise-timeout, --clock-drift");
	}
}

static void take_operands(const struct cli_command_line *line, const struct verb *verb,
	char **operands, int count, struct pawl_change *change) {
	if (count != verb->operands) {
		cli_misuse(line, "%s: pawl cluster %s",
			count < verb->operands ? "something is missing" : "this is too much",
			verb->usage);
	}
	for (int i = 0; i < count; i++) {
		if (!*operands[i]) {
			cli_misuse(line, "a name is empty");
		}
	}
	change->kind = verb->kind;
	change->name = count > 0 ? operands[0] : NULL;
	const char *second = count > 1 ? operands[1] : NULL;
	if (verb->kind == PAWL_ADD_REPLICA) {
		change->address = second;
	} else {
		change->other = second;
	}
	if (change->address && !strchr(change->address, ':')) {
		cli_misuse(line, "'%s' is no HOST:PORT: where the other nodes reach %s",
			change->address, change->name);
	}
}

/* The forced start is done to the node that answers, so that must be the node which the user
 * means. */
static void check_force(const struct cli_command_line *line) {
	if (strchr(line->endpoints, ',')) {
		cli_misuse(line,
			"force is for one node, which starts over as the only master: name that "
			"one with --endpoints (now: %s)",
			line->endpoints);
	}
}

void cluster_read_line(struct cli_command_line *line, struct cluster_wanted *w) {
	struct named n = { .max_lease_ms = UNNAMED, .request_timeout_ms = UNNAMED,
		.promise_timeout_ms = UNNAMED };
	*w = (struct cluster_wanted){ .wait_ms = WAIT_DEFAULT_MS };
	const struct cli_option options[] = {
		{ "anyway", CLI_FLAG, &n.anyway },
		{ "yes", CLI_FLAG, &n.yes },
		{ "wait", CLI_DURATION, &w->wait_ms },
		{ "masters", CLI_TEXT, &n.masters },
		{ "replicas", CLI_TEXT, &n.replicas },
		{ "max-lease", CLI_DURATION, &n.max_lease_ms },
		{ "request-timeout", CLI_DURATION, &n.request_timeout_ms },
		{ "promise-timeout", CLI_DURATION, &n.promise_timeout_ms },
		{ "clock-drift", CLI_TEXT, &n.drift },
	};
	int count;
	char **operands = cli_options(line, options, COUNT(options), 1, 3, &count);
	const struct verb *verb = verb_find(line, operands[0]);
	w->verb = verb->name;
	refuse_strange(line, verb, &n);
	take_operands(line, verb, operands + 1, count - 1, &w->change);
	if (w->wait_ms == 0) {
		cli_misuse(line, "--wait 0 would leave before the change begins: name at least 1s");
	}
	if (verb->kind == PAWL_SET_NODES) {
		take_nodes(line, &n, w);
	} else if (verb->kind == PAWL_SET_TIMING) {
		take_timing(line, &n, &w->change);
	} else if (verb->kind == PAWL_FORCE) {
		check_force(line);
	}
	w->yes = n.yes;
	w->change.anyway = n.anyway || n.yes;
}
