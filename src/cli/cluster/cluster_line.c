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
	"       pawl cluster set-timing [--max-lease D] [--request-timeout D]\n"
	"                               [--promise-timeout D] [--clock-drift P%]\n"
	"       pawl cluster force --yes\n"
	"\n"
	"Shows or changes which nodes the cluster has. Locks stay held during a change. A\n"
	"change may be repeated: if its aim is already reached, it succeeds and changes\n"
	"nothing. So after an interruption, an error or a lost connection, repeat the\n"
	"command. Any master can be asked; a majority of the masters has to agree. For\n"
	"administrators.\n"
	"\n"
	"  show         lists the nodes, who votes, who is behind, and what to do next;\n"
	"               it asks every node of --endpoints\n"
	"  add-replica  adds NAME, which must run with a configuration of its own (see\n"
	"               docs/operations/install.md) and listen for its peers at\n"
	"               HOST:PORT. It follows a master and serves reads; it does not vote\n"
	"  promote      makes a replica a master. The replica first copies what is held,\n"
	"               so that nothing pauses for long\n"
	"  demote       makes a master a replica\n"
	"  remove       removes NAME. Stop its pawld afterwards, and revoke its\n"
	"               certificate (pawl cert revoke)\n"
	"  replace      makes the replica NEW a master in place of OLD, which leaves: for\n"
	"               a machine that is dead or to be retired. With the same name\n"
	"               twice, a node that lost its state file gets its place back\n"
	"  set-nodes    sets all nodes at once; write NAME=HOST:PORT for nodes that are\n"
	"               not in the cluster yet. Nodes that are not listed leave\n"
	"  set-timing   sets the timing of the cluster: the longest lease, the time to\n"
	"               wait for masters, and how far the rates of clocks may differ (1%,\n"
	"               0.5%, 200ppm). A request timeout is at least 10ms, and at least\n"
	"               eight times the longest recent round trip\n"
	"  force        after a majority of the masters is lost FOR GOOD: the one node\n"
	"               of --endpoints starts over as the only master. The others must be\n"
	"               dead. Explains what may be lost, and does it only with --yes. The\n"
	"               node may be one that a change left out by mistake\n"
	"\n"
	"  --anyway     for promote, demote, remove, replace and set-nodes: proceed even\n"
	"               if too few of the new masters answer now. A majority of the\n"
	"               present masters must still agree\n"
	"  --yes        do not ask. A change after which fewer masters may fail asks first,\n"
	"               and without a terminal it needs --yes\n"
	"  --dry-run    show the nodes and the timing before and after the change, and how\n"
	"               many masters may fail, and change nothing\n"
	"  --wait D     how long to wait for the change (default 10m); the change may\n"
	"               still continue afterwards\n"
	"\n"
	"The exit status is 1 if the change is refused (another change came first, there\n"
	"is no such node, ...), and 3 without a majority.\n"
	"\n"
	"Example:\n"
	"  pawl cluster add-replica d d.example:7118\n"
	"  pawl cluster replace b d                     # b is dead: d votes in its place\n"
	"  pawl cluster set-nodes --masters d,e=e.example:7118,f=f.example:7118 \\\n"
	"    --replicas a\n"
	"  pawl cluster set-timing --max-lease 2m\n";

/* MAY_CHANGE: --yes and --dry-run. */
enum { MAY_ANYWAY = 1, MAY_CHANGE = 2, MAY_NODES = 4, MAY_TIMING = 8 };

static const struct verb {
	const char *name;

	/* 0 if the verb makes no change. */
	enum pawl_change_kind kind;
	int operands;
	const char *usage;
	int may;
} verbs[] = {
	{ "show", 0, 0, "show", 0 },
	{ "add-replica", PAWL_ADD_REPLICA, 2, "add-replica NAME HOST:PORT",
		MAY_CHANGE },
	{ "promote", PAWL_PROMOTE, 1, "promote NAME", MAY_CHANGE | MAY_ANYWAY },
	{ "demote", PAWL_DEMOTE, 1, "demote NAME", MAY_CHANGE | MAY_ANYWAY },
	{ "remove", PAWL_REMOVE, 1, "remove NAME", MAY_CHANGE | MAY_ANYWAY },
	{ "replace", PAWL_REPLACE, 2, "replace OLD NEW", MAY_CHANGE | MAY_ANYWAY },
	{ "set-nodes", PAWL_SET_NODES, 0, "set-nodes --masters A,B,C [--replicas D,E]",
		MAY_CHANGE | MAY_ANYWAY | MAY_NODES },
	{ "set-timing", PAWL_SET_TIMING, 0, "set-timing --max-lease 2m (or another timing option)",
		MAY_CHANGE | MAY_TIMING },
	{ "force", PAWL_FORCE, 0, "force --yes", MAY_CHANGE },
};

/* The options as they are on the command line. */
struct named {
	const char *masters, *replicas, *drift;
	uint32_t max_lease_ms, request_timeout_ms, promise_timeout_ms;
	bool anyway, yes, dry_run;
};

static const struct verb *verb_find(const struct cli_command_line *line, const char *name) {
	for (size_t i = 0; i < COUNT(verbs); i++) {
		if (strcmp(verbs[i].name, name) == 0) {
			return &verbs[i];
		}
	}
	cli_misuse(line, "unknown subcommand '%s'", name);
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
		{ n->yes, MAY_CHANGE, "--yes" },
		{ n->dry_run, MAY_CHANGE, "--dry-run" },
		{ n->masters || n->replicas, MAY_NODES, "--masters and --replicas" },
		{ timing, MAY_TIMING, "timing options" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].named && !(verb->may & rows[i].may)) {
			cli_misuse(line, "%s cannot be used with %s", rows[i].what, verb->name);
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
			"set-nodes needs --masters with all masters, as in --masters "
			"a,b,c=host:port");
	}
	w->masters = keep(n->masters);
	const char *problem = cluster_nodes_parse(w->masters, true, w->nodes,
		&w->change.node_count);
	if (problem) {
		cli_misuse(line,
			"--masters %s: %s; write NAME, or NAME=HOST:PORT for nodes that are not in "
			"the cluster yet",
			n->masters, problem);
	}
	if (n->replicas && *n->replicas) {
		w->replicas = keep(n->replicas);
		problem = cluster_nodes_parse(w->replicas, false, w->nodes, &w->change.node_count);
	}
	if (problem) {
		cli_misuse(line,
			"--replicas %s: %s; write NAME, or NAME=HOST:PORT for nodes that are not "
			"in the cluster yet",
			n->replicas, problem);
	}
	w->change.nodes = w->nodes;
}

static uint32_t take_duration(const struct cli_command_line *line, const char *name, uint32_t ms) {
	if (ms == 0) {
		cli_misuse(line, "--%s must be longer than 0", name);
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
		cli_misuse(line, "--clock-drift: '%s' is not a drift: write 1%%, 0.5%% or 200ppm",
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
			count < verb->operands ? "an argument is missing" : "too many arguments",
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
		cli_misuse(line, "'%s' is not HOST:PORT, the address at which other nodes reach %s",
			change->address, change->name);
	}
}

/* The forced start is done to the node that answers, so that must be the node which the user
 * means. */
static void check_force(const struct cli_command_line *line) {
	char *nodes = cli_nodes(line);
	if (strchr(nodes, ',')) {
		cli_misuse(line,
			"force is for one node, which starts over as the only master: give only "
			"that one with --endpoints (now: %s)",
			nodes);
	}
	free(nodes);
}

void cluster_read_line(struct cli_command_line *line, struct cluster_wanted *w) {
	struct named n = { .max_lease_ms = UNNAMED, .request_timeout_ms = UNNAMED,
		.promise_timeout_ms = UNNAMED };
	*w = (struct cluster_wanted){ .wait_ms = WAIT_DEFAULT_MS };
	const struct cli_option options[] = {
		{ "anyway", CLI_FLAG, &n.anyway },
		{ "yes", CLI_FLAG, &n.yes },
		{ "dry-run", CLI_FLAG, &n.dry_run },
		{ "wait", CLI_DURATION, &w->wait_ms },
		{ "masters", CLI_LIST, &n.masters },
		{ "replicas", CLI_LIST, &n.replicas },
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
		cli_misuse(line, "--wait 0 ends before the change begins: give at least 1s");
	}
	if (verb->kind == PAWL_SET_NODES) {
		take_nodes(line, &n, w);
	} else if (verb->kind == PAWL_SET_TIMING) {
		take_timing(line, &n, &w->change);
	} else if (verb->kind == PAWL_FORCE) {
		check_force(line);
	}
	w->yes = n.yes;
	w->dry_run = n.dry_run;
	/* A forced start is confirmed by `anyway`. */
	w->change.anyway = n.anyway || (verb->kind == PAWL_FORCE && n.yes);
}
