/* cluster_before.c: what is said and asked before a change of the cluster. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cluster_before.h"
#include "cluster_plan.h"
#include "output.h"

#define NAMES_BYTES 512

struct before {
	const struct cli_command_line *line;
	const struct cluster_wanted *wanted;
	const struct view *view;
	struct progress *progress;
	struct cluster_plan plan;
};

/* ---- texts ---- */

/* Writes "a, b, c"; what does not fit is left out. */
static const char *list(const struct cluster_names *names, char text[NAMES_BYTES]) {
	size_t used = 0;
	snprintf(text, NAMES_BYTES, "none");
	for (size_t i = 0; i < names->count && used < NAMES_BYTES; i++) {
		used += (size_t)snprintf(text + used, NAMES_BYTES - used, "%s%s", i ? ", " : "",
			names->names[i]);
	}
	return text;
}

static void say_nodes(struct progress *p, const char *what, const struct cluster_set *set) {
	char masters[NAMES_BYTES], replicas[NAMES_BYTES];
	progress_say(p, "%s: masters %s; replicas %s", what, list(&set->masters, masters),
		list(&set->replicas, replicas));
}

static void say_plan(const struct before *b) {
	say_nodes(b->progress, "before", &b->plan.before);
	say_nodes(b->progress, "after", &b->plan.after);
	progress_say(b->progress, "masters that may fail at the same time: %zu before, %zu after",
		cluster_failures_borne(&b->plan.before), cluster_failures_borne(&b->plan.after));
}

static void list_masters(FILE *to, const struct view *v) {
	const char *between = "";
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		if (n->master && !n->self) {
			fprintf(to, "%s%s%s", between, n->name,
				n->linked ? " (WHICH ANSWERS)" : "");
			between = ", ";
		}
	}
	fputs(*between ? "" : "(none)", to);
}

static void explain_force(const struct view *v) {
	FILE *to = stderr;
	fprintf(to,
		"pawl cluster force starts the cluster '%s' over, with %s as its only master.\n\n",
		v->cluster, v->node);
	fputs("  The other masters must be dead, now and for ever: ", to);
	list_masters(to, v);
	fputs(".\n  If one of them still runs, or comes back with its state, two holders of one "
		"lock are possible.\n",
		to);
	fprintf(to,
		"  Nothing is granted until every lease that somebody may still trust has "
			"expired: about %s, or\n"
		"  more if the longest lease was longer before. All locks and their values are "
			"lost unless their\n"
		"  holders acquire them again. Fencing tokens continue above all earlier ones.\n"
		"  The other nodes have to be added again, with empty state directories.\n\n",
		output_duration(v->max_lease_ms));
}

/* ---- names ---- */

static bool is_member(const struct before *b, const char *name) {
	const struct view_node *n = name ? view_find(b->view, name) : NULL;
	return n && (n->master || n->replica);
}

/* A node that is to leave and is not in the cluster has left already, or its name may be that of a
 * node which was never added. */
static void note_missing_nodes(const struct before *b) {
	const struct pawl_change *change = &b->wanted->change;
	bool leaves = change->kind == PAWL_REMOVE || change->kind == PAWL_REPLACE;
	if (!leaves || is_member(b, change->name)) {
		return;
	}
	progress_say(b->progress, "note: %s is not in the cluster (any more)", change->name);
	const struct view_node *successor = change->kind == PAWL_REPLACE
		? view_find(b->view, change->other)
		: NULL;
	if (successor && successor->replica) {
		progress_say(b->progress,
			"note: %s stays a replica. To make it a master, give the master that it is "
			"to replace",
			change->other);
	}
}

static int refuse_unknown(const struct before *b) {
	const struct pawl_change *change = &b->wanted->change;
	bool leaves = change->kind == PAWL_REMOVE || change->kind == PAWL_REPLACE;
	char masters[NAMES_BYTES], replicas[NAMES_BYTES], text[3 * NAMES_BYTES];
	snprintf(text, sizeof text,
		"there is no node %s in the cluster%s. Its masters are %s; its replicas: %s%s",
		b->plan.unknown,
		leaves ? ": it has left already, or the name is mistyped"
			: change->kind == PAWL_SET_NODES ? ": write NAME=HOST:PORT for a new node"
			: "",
		list(&b->plan.before.masters, masters), list(&b->plan.before.replicas, replicas),
		". Nothing was changed");
	const struct pawl_result none = { .error = PAWL_ENOTFOUND, .method = PAWL_CHANGE,
		.message = text, .endpoint = "", .field = "" };
	return cli_fail(b->line, &none, "cluster", b->wanted->verb);
}

/* ---- the question ---- */

static bool lowers(const struct before *b) {
	return cluster_failures_borne(&b->plan.after) < cluster_failures_borne(&b->plan.before);
}

static bool confirmed(const struct before *b) {
	char answer[16] = "", masters[NAMES_BYTES];
	fprintf(stderr,
		"After this change the masters are %s.\nHow many of them may fail: %zu; before the "
		"change: %zu. If more fail, nothing is granted.\nChange the cluster? (yes/no) ",
		list(&b->plan.after.masters, masters), cluster_failures_borne(&b->plan.after),
		cluster_failures_borne(&b->plan.before));
	fflush(stderr);
	return fgets(answer, sizeof answer, stdin)
		&& (strcmp(answer, "yes\n") == 0 || strcmp(answer, "y\n") == 0);
}

/* Returns whether the user agrees to a change after which fewer masters may fail. */
static bool agreed(const struct before *b) {
	if (!lowers(b) || b->wanted->yes) {
		return true;
	}
	if (b->line->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		cli_misuse(b->line,
			"nothing was done: masters that may fail at the same time: %zu before this "
			"change, %zu after it. If that is meant, repeat with --yes; --dry-run "
			"shows what would change",
			cluster_failures_borne(&b->plan.before),
			cluster_failures_borne(&b->plan.after));
	}
	return confirmed(b);
}

/* ---- a dry run ---- */

static json_t *names_json(const struct cluster_names *names) {
	json_t *array = json_array();
	for (size_t i = 0; i < names->count; i++) {
		json_array_append_new(array, json_string(names->names[i]));
	}
	return array;
}

static json_t *set_json(const struct cluster_set *set) {
	json_t *object = json_object();
	output_json_set(object, "masters", names_json(&set->masters));
	output_json_set(object, "replicas", names_json(&set->replicas));
	output_json_set(object, "failures_borne",
		json_integer((json_int_t)cluster_failures_borne(set)));
	return object;
}

struct timing {
	const char *name, *field;
	int64_t before, after;
};

/* Writes the four constants of the timing before and after the change; the drift is in
 * millionths. */
static void read_timing(const struct before *b, struct timing out[4]) {
	const struct view *v = b->view;
	const struct pawl_change *c = &b->wanted->change;
	const struct timing rows[4] = {
		{ "max lease", "max_lease_ms", v->max_lease_ms, c->max_lease_ms },
		{ "request timeout", "request_timeout_ms", v->request_timeout_ms,
			c->request_timeout_ms },
		{ "promise timeout", "promise_timeout_ms", v->promise_timeout_ms,
			c->promise_timeout_ms },
		{ "clock drift", "clock_drift_ppm", v->clock_drift_ppm, c->clock_drift_ppm },
	};
	for (size_t i = 0; i < 4; i++) {
		bool given = rows[i].after != 0 || (i == 3 && c->has_clock_drift);
		out[i] = rows[i];
		out[i].after = given ? rows[i].after : rows[i].before;
	}
}

static int dry_run(const struct before *b) {
	bool timing = b->wanted->change.kind == PAWL_SET_TIMING;
	struct timing rows[4];
	read_timing(b, rows);
	if (b->line->json) {
		json_t *object = json_object(), *before = set_json(&b->plan.before),
		       *after = set_json(&b->plan.after);
		for (size_t i = 0; i < 4; i++) {
			output_json_set(before, rows[i].field, json_integer(rows[i].before));
			output_json_set(after, rows[i].field, json_integer(rows[i].after));
		}
		output_json_set(object, "dry_run", json_true());
		output_json_set(object, "before", before);
		output_json_set(object, "after", after);
		return output_json(object);
	}
	for (size_t i = 0; timing && i < 3; i++) {
		progress_say(b->progress, "%s: %s before, %s after", rows[i].name,
			output_duration(rows[i].before), output_duration(rows[i].after));
	}
	if (timing) {
		progress_say(b->progress, "%s: %g%% before, %g%% after", rows[3].name,
			(double)rows[3].before / 10000, (double)rows[3].after / 10000);
	}
	say_plan(b);
	progress_say(b->progress, "dry run: nothing was changed");
	return CLI_DONE;
}

bool cluster_before(const struct cli_command_line *line, const struct cluster_wanted *wanted,
	const struct view *v, struct progress *p, int *out_status) {
	struct before b = { .line = line, .wanted = wanted, .view = v, .progress = p };
	bool force = wanted->change.kind == PAWL_FORCE;
	cluster_plan_make(v, &wanted->change, &b.plan);
	/* A node outside knows no names; it will refuse the change itself. */
	bool knows = b.plan.before.masters.count > 0;
	if (force) {
		explain_force(v);
	} else {
		note_missing_nodes(&b);
	}
	if (knows && b.plan.unknown) {
		*out_status = refuse_unknown(&b);
		return false;
	}
	if (wanted->dry_run) {
		*out_status = dry_run(&b);
		return false;
	}
	if (force && !wanted->yes) {
		cli_misuse(line, "nothing was done: repeat with --yes if all of this is true");
	}
	if (!force && knows && !agreed(&b)) {
		fprintf(stderr, "pawl cluster %s: nothing was done\n", wanted->verb);
		*out_status = CLI_REFUSED;
		return false;
	}
	return true;
}
