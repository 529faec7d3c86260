/* status.c: pawl status: shows the status of a node, and the cluster as that node sees it. */
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "field.h"
#include "output.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char status_help[] =
	"usage: pawl status [--all] [--watch] [--interval DURATION] [--check]\n"
	"\n"
	"Shows the status of the first node that answers: whether it votes, whom it\n"
	"follows or what it waits for, the nodes of the cluster as it sees them, how far\n"
	"behind they are, what it holds, and what to do next. pawl cluster show asks all\n"
	"nodes and combines what they say.\n"
	"\n"
	"  --all                ask every node of --endpoints, and print a line for each\n"
	"  --watch              repeat until interrupted (with --json: one object a line)\n"
	"  --interval DURATION  time between repeats with --watch (default 1s)\n"
	"  --check              for scripts: exit status 0 only if the node is ready for\n"
	"                       clients, as /readyz of its admin port says, and a quorum\n"
	"                       answers; otherwise 1, and a line that says why not. A\n"
	"                       further line for each limit that is full, or nearly,\n"
	"                       and for an audit file that cannot be written\n"
	"\n"
	"The exit status is 3 if no node answers; with --all, if one of them does not.\n"
	"\n"
	"Example:\n"
	"  pawl status --all --endpoints a:7117,b:7117,c:7117\n"
	"  pawl status --check --endpoints 127.0.0.1:7117 && echo ready\n";

/* ---- one node at length ---- */

static void print_state(const struct pawl_value *tree) {
	const char *waits_for = field_text(tree, "waits_for");
	int64_t left_ms = field_int(tree, "left_ms", 0);
	if (*waits_for && left_ms > 0) {
		output_field("state", "%s, waits %" PRId64 " s more at most, for %s",
			field_text(tree, "state"), (left_ms + 999) / 1000, waits_for);
	} else if (*waits_for) {
		output_field("state", "%s, waits for %s", field_text(tree, "state"), waits_for);
	} else {
		output_field("state", "%s", field_text(tree, "state"));
	}
}

/* Prints which master a replica follows, and how old its view may be. */
static void print_following(const struct view_node *self) {
	if (self->catching_up) {
		output_field("follows", "%s; a snapshot is arriving, %" PRId64 " records so far",
			self->following, self->snapshot_done);
	} else if (*self->following && self->age_ms != VIEW_UNKNOWN) {
		output_field("follows", "%s, with a view at most %s old", self->following,
			output_duration(self->age_ms));
	} else if (*self->following) {
		output_field("follows", "%s, just started", self->following);
	} else {
		output_field("follows", "nobody: no master is linked with a majority");
	}
}

static void print_change(const struct view_change *c) {
	if (*c->step && c->total > 0) {
		output_field("change", "to epoch %" PRId64 ": %s, %" PRId64 " of %" PRId64,
			c->epoch, c->step, c->done, c->total);
	} else if (*c->step) {
		output_field("change", "to epoch %" PRId64 ": %s", c->epoch, c->step);
	}
}

static void print_limits(const struct view_node *self) {
	for (size_t i = 0; self && i < self->limit_count; i++) {
		char text[VIEW_LIMIT_TEXT_BYTES];
		view_limit_text(&self->limits[i], text);
		output_field(self->limits[i].reached ? "FULL" : "nearly full", "%s", text);
	}
}

static const char *link_of(const struct view_node *n) {
	return n->self ? "self" : n->stranger ? "STRANGER" : n->linked ? "up" : "DOWN";
}

static void print_peers(const struct view *v) {
	if (v->count == 0) {
		return;
	}
	printf("\n%-16s %-8s %-24s %-8s %-7s %-9s %s\n", "NODE", "ROLE", "ADDRESS", "LINK", "VOTES",
		"BEHIND", "ROUND TRIP");
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		char lag[24] = "-";
		if (n->lag != VIEW_UNKNOWN) {
			snprintf(lag, sizeof lag, "%" PRId64, n->lag);
		}
		printf("%-16s %-8s %-24s %-8s %-7s %-9s ", *n->name ? n->name : "-",
			*n->role ? n->role : "-", *n->address ? n->address : "-", link_of(n),
			n->voting ? "yes"
				: n->replica ? "-"
				: "no",
			lag);
		if (n->self || !n->linked || n->round_trip_us == 0) {
			printf("-\n");
		} else {
			printf("%.2fms\n", (double)n->round_trip_us / 1000);
		}
	}
}

static void say_line(void *ctx, const char *sentence) {
	bool *any = ctx;
	fputs(*any ? "" : "\nWhat to do:\n", stdout);
	output_line(stdout, "  - %s", sentence);
	*any = true;
}

static void print_status(const struct pawl_result *result) {
	const struct pawl_value *tree = result->tree;
	struct view v;
	view_read(&v, tree);
	const struct view_node *self = view_find(&v, v.node);
	output_field("node", "%s (%s), pawl %s, up %s", v.node, *v.role ? v.role : "-",
		field_text(tree, "version"), output_duration(field_int(tree, "uptime_ms", 0)));
	output_field("at", "%s", result->endpoint);
	print_state(tree);
	if (self && self->replica) {
		print_following(self);
	}
	output_field("cluster", "%s, epoch %" PRId64 "%s", *v.cluster ? v.cluster : "-", v.epoch,
		v.complete ? "" : v.settled ? ", not complete" : ", NOT SETTLED");
	output_field("votes", "%" PRId64 " masters vote, %" PRId64 " are needed", v.voting,
		v.quorum);
	print_change(&v.change);
	output_field("keys", "%" PRId64 " held, %" PRId64 " promised, %" PRId64 " waiters",
		field_int(tree, "held", 0), field_int(tree, "promises", 0),
		field_int(tree, "waiters", 0));
	output_field("memory", "%.1f MiB", (double)field_int(tree, "memory_bytes", 0) / 1048576);
	print_limits(self);
	if (self && *self->audit_trouble) {
		output_field("audit file", "FAILS: %s", self->audit_trouble);
	}
	output_field_duration("max lease", v.max_lease_ms);
	if (*field_text(tree, "rights")) {
		output_field("rights", "%s",
			strcmp(field_text(tree, "rights"), "none") == 0
				? "no rules file ([acl] file)"
				: field_text(tree, "rights"));
	}
	if (self && self->certificate_ended) {
		output_field("certificate", "serial %s, HAS ENDED", self->serial);
	} else if (self && self->certificate_days != VIEW_UNKNOWN) {
		output_field("certificate", "serial %s, valid for %" PRId64 " days", self->serial,
			self->certificate_days);
	}
	print_peers(&v);
	bool any = false;
	advice_give(&v, say_line, &any);
}

/* ---- every node in a line ---- */

static void print_line(const char *endpoint, const struct pawl_result *result) {
	if (result->error) {
		printf("%-28s %-16s %s\n", endpoint, "-",
			*result->message ? result->message : pawl_error_message(result->error));
		return;
	}
	const struct pawl_value *tree = result->tree;
	printf("%-28s %-16s %-8s %-13s %5" PRId64 " %3" PRId64 "/%-3" PRId64 " %9" PRId64
		" %8" PRId64 " %9s\n",
		endpoint, field_text(tree, "node"), field_text(tree, "role"),
		field_text(tree, "state"), field_int(tree, "epoch", 0),
		field_int(tree, "voting", 0), field_int(tree, "quorum", 0),
		field_int(tree, "held", 0), field_int(tree, "waiters", 0),
		output_duration(field_int(tree, "uptime_ms", 0)));
}

static json_t *line_json(const char *endpoint, const struct pawl_result *result) {
	json_t *object = result->error ? json_object() : output_json_tree(result->tree);
	output_json_bytes(object, "endpoint", pawl_str(endpoint));
	if (result->error) {
		json_t *error = output_json_tree(result->tree);
		output_json_set(error, "code", json_string(pawl_error_code(result->error)));
		output_json_set(error, "message", json_string(result->message));
		output_json_set(object, "error", error);
	}
	return object;
}

/* ---- for scripts ---- */

#define CHECK_TIMEOUT_MS 5000
/* The key that nodes read to find out whether a quorum answers; everybody may read it. */
#define CHECK_KEY "pawl:probe"

/* Says which limits are full, and whether the audit file fails. The node is ready nevertheless, as
 * /readyz says, too: what it has granted stays, and those who ask for no more are served. */
static void check_say_trouble(const struct pawl_value *tree) {
	struct view v;
	view_read(&v, tree);
	const struct view_node *self = view_find(&v, v.node);
	for (size_t i = 0; self && i < self->limit_count; i++) {
		char text[VIEW_LIMIT_TEXT_BYTES];
		view_limit_text(&self->limits[i], text);
		printf("%s: %s\n", self->limits[i].reached ? "full" : "nearly full", text);
	}
	if (self && *self->audit_trouble) {
		printf("audit file fails: %s\n", self->audit_trouble);
	}
}

/* `tree` is what the node has said of itself. */
static int check_say(const struct cli_command_line *line, const struct pawl_value *tree, bool ready,
	const char *why) {
	if (line->json) {
		json_t *object = json_object(), *all = output_json_tree(tree);
		output_json_set(object, "ready", json_boolean(ready));
		output_json_bytes(object, "not_ready", pawl_str(why));
		output_json_set(object, "limits", json_incref(json_object_get(all, "limits")));
		output_json_bytes(object, "audit_trouble",
			pawl_str(field_text(tree, "audit_trouble")));
		output_json(object);
		json_decref(all);
	} else {
		printf("%s%s\n", ready ? "ready" : "not ready: ", why);
		check_say_trouble(tree);
	}
	return ready ? CLI_DONE : CLI_REFUSED;
}

/* Without an admin port, a node does not ask the others whether they answer, so this does. */
static int check_quorum(const struct cli_command_line *line, struct pawl *client,
	const struct pawl_value *tree) {
	const struct pawl_request request = { .method = PAWL_GET, .key = pawl_str(CHECK_KEY),
		.quorum = true, .timeout_ms = line->timeout_ms };
	struct pawl_result *result = cli_call(client, &request);
	const bool ready = !result->error || result->error == PAWL_EINDETERMINATE;
	int status = check_say(line, tree, ready,
		ready ? "" : *result->message ? result->message
			: pawl_error_message(result->error));
	pawl_result_free(result);
	return status;
}

static int status_check(const struct cli_command_line *line) {
	const struct pawl_request request = { .method = PAWL_STATUS,
		.timeout_ms = line->timeout_ms };
	struct pawl *client = cli_connect(line);
	struct pawl_result *result = cli_call(client, &request);
	int status;
	if (result->error) {
		status = cli_fail(line, result, "status", NULL);
	} else if (field_bool(result->tree, "ready")) {
		status = check_quorum(line, client, result->tree);
	} else {
		const char *why = field_text(result->tree, "not_ready");
		status = check_say(line, result->tree, false,
			*why ? why : "this node is of an older version, which does not say");
	}
	return cli_finish(client, result, status);
}

/* ---- asking ---- */

#define ASK_TIMEOUT_MS 2000

struct status;

struct endpoint {
	const char *text;

	/* This client talks to this endpoint only. */
	struct pawl *client;
	struct pawl_result *result;
	struct status *status;
};

struct status {
	const struct cli_command_line *line;
	bool all, watch, check;
	uint32_t interval_ms;

	/* The memory that the texts of the endpoints point into. */
	char *list;
	struct endpoint endpoints[64];

	/* The loop of all clients, if there are several. */
	struct event_base *base;
	size_t count, waiting;
	int exit_status;
};

static void ask_one(struct status *s) {
	const struct pawl_request request = { .method = PAWL_STATUS };
	struct pawl_result *result = cli_call(s->endpoints[0].client, &request);
	if (result->error) {
		s->exit_status = cli_fail(s->line, result, "status", NULL);
	} else {
		s->exit_status = CLI_DONE;
		if (s->line->json) {
			output_json(output_json_tree(result->tree));
		} else {
			print_status(result);
		}
	}
	pawl_result_free(result);
}

static void on_answer(struct pawl_result *take_result, void *arg) {
	struct endpoint *e = arg;
	e->result = take_result;
	e->status->waiting--;
}

/* Asks all nodes at once, so that a node that does not answer delays no other. */
static void ask_each(struct status *s) {
	const struct pawl_request request = { .method = PAWL_STATUS,
		.timeout_ms = s->line->timeout_ms ? s->line->timeout_ms : ASK_TIMEOUT_MS };
	for (size_t i = 0; i < s->count; i++) {
		s->endpoints[i].status = s;
		int error = pawl_start(s->endpoints[i].client, &request, on_answer,
			&s->endpoints[i], NULL);
		if (error) {
			fprintf(stderr, "pawl: %s\n", pawl_error_message(error));
			exit(CLI_REFUSED);
		}
		s->waiting++;
	}
	while (s->waiting > 0 && event_base_loop(s->base, EVLOOP_ONCE) == 0) {
	}
}

static void ask_all(struct status *s) {
	json_t *nodes = json_array();
	s->exit_status = CLI_DONE;
	if (!s->line->json) {
		printf("%-28s %-16s %-8s %-13s %5s %-7s %9s %8s %9s\n", "ENDPOINT", "NODE", "ROLE",
			"STATE", "EPOCH", "VOTES", "HELD", "WAITERS", "UP");
	}
	ask_each(s);
	for (size_t i = 0; i < s->count; i++) {
		struct pawl_result *result = s->endpoints[i].result;
		if (result->error) {
			s->exit_status = CLI_UNREACHABLE;
		}
		if (s->line->json) {
			json_array_append_new(nodes, line_json(s->endpoints[i].text, result));
		} else {
			print_line(s->endpoints[i].text, result);
		}
		pawl_result_free(result);
		s->endpoints[i].result = NULL;
	}
	if (s->line->json) {
		json_t *object = json_object();
		output_json_set(object, "nodes", nodes);
		output_json(object);
	} else {
		json_decref(nodes);
	}
}

static void connect_all(struct status *s) {
	struct cli_command_line one = *s->line;
	char *rest = s->list;
	while (rest && s->count < COUNT(s->endpoints)) {
		struct endpoint *e = &s->endpoints[s->count++];
		e->text = one.endpoints = s->all ? strsep(&rest, ",") : s->list;
		e->client = cli_connect_on(&one, s->base);
		rest = s->all ? rest : NULL;
	}
}

/* These clients hold nothing, so their loop only notices a lost connection. */
static void pause_watching(struct status *s) {
	if (s->base) {
		const struct timeval interval = { .tv_sec = s->interval_ms / 1000,
			.tv_usec = (suseconds_t)(s->interval_ms % 1000) * 1000 };
		event_base_loopexit(s->base, &interval);
		event_base_dispatch(s->base);
	} else {
		pawl_poll(s->endpoints[0].client, s->interval_ms);
	}
}

static int status_run(struct cli_command_line *line) {
	struct status s = { .line = line, .interval_ms = 1000 };
	const struct cli_option options[] = {
		{ "all", CLI_FLAG, &s.all },
		{ "watch", CLI_FLAG, &s.watch },
		{ "interval", CLI_DURATION, &s.interval_ms },
		{ "check", CLI_FLAG, &s.check },
	};
	cli_options(line, options, COUNT(options), 0, 0, NULL);
	if (s.interval_ms == 0) {
		cli_misuse(line, "--interval must be longer than 0");
	}
	if (s.check && (s.all || s.watch)) {
		cli_misuse(line, "--check asks one node, once");
	}
	if (s.check) {
		line->timeout_ms = line->timeout_ms ? line->timeout_ms : CHECK_TIMEOUT_MS;
		return status_check(line);
	}
	s.list = s.all ? cli_nodes(line) : strdup(line->endpoints);
	s.base = s.all ? event_base_new() : NULL;
	if (!s.list || (s.all && !s.base)) {
		return CLI_REFUSED;
	}
	connect_all(&s);
	do {
		if (s.watch && !line->json) {
			/* This clears the screen. */
			fputs("\033[H\033[2J", stdout);
		}
		if (s.all) {
			ask_all(&s);
		} else {
			ask_one(&s);
		}
		if (s.watch && fflush(stdout) == 0) {
			pause_watching(&s);
		}
	} while (s.watch && !ferror(stdout));
	for (size_t i = 0; i < s.count; i++) {
		pawl_free(s.endpoints[i].client);
	}
	if (s.base) {
		event_base_free(s.base);
	}
	free(s.list);
	return s.exit_status;
}

const struct cli_command cli_status = { "status", "show the status of a node and its cluster",
	status_help, status_run };
