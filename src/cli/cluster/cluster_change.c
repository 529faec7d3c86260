/* cluster_change.c: changes the cluster. It makes one request, which may take long, and meanwhile
 * asks the same node for its status again and again. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster.h"
#include "cluster_answers.h"
#include "cluster_before.h"
#include "field.h"
#include "output.h"
#include "progress.h"

/* The pause between two looks at the progress. */
#define PAUSE_MS 200
/* If no node answers for this long, the user is told. */
#define ASK_TIMEOUT_MS 5000

struct changing {
	const struct cli_command_line *line;
	const struct cluster_wanted *wanted;
	struct pawl *client;
	struct progress progress;
	struct pawl_call *call;

	/* Why the node that is asked has no link with a node of the change; "" if it has one, or
	 * has not said so yet. */
	char trouble[768];

	/* The result of the change; NULL while the change is under way. */
	struct pawl_result *result;

	/* A request for a status is under way. */
	bool asking;

	/* Why the last of these requests had no answer; 0 if it had one. */
	int silent;

	/* The node that coordinates the change, as far as is known. */
	char endpoint[CLUSTER_ENDPOINT_BYTES];

	/* Another node coordinates now, because the first one no longer answers. What the first one
	 * has begun may go on. */
	bool moved;
	int64_t epoch_before;

	/* Nodes have certificates. */
	bool tls;

	/* The serial number of the certificate of a node that is to leave; "" if it is not
	 * known. */
	char serial[64];
};

/* ---- while it is under way ---- */

static void on_changed(struct pawl_result *take_result, void *arg) {
	struct changing *c = arg;
	c->result = take_result;
	c->call = NULL;
}

static void note_endpoint(struct changing *c, const char *endpoint) {
	if (*c->endpoint && strcmp(c->endpoint, endpoint) != 0) {
		c->moved = true;
		progress_say(&c->progress, "%s no longer answers: asked %s to carry on",
			c->endpoint, endpoint);
	}
	snprintf(c->endpoint, sizeof c->endpoint, "%s", endpoint);
}

static bool is_named(const struct pawl_change *change, const char *name) {
	bool named = (change->name && strcmp(change->name, name) == 0)
		|| (change->other && strcmp(change->other, name) == 0);
	for (size_t i = 0; i < change->node_count; i++) {
		named = named || strcmp(change->nodes[i].name, name) == 0;
	}
	return named;
}

/* A node that is to come in is dialled while the change waits for it. */
static void note_trouble(struct changing *c, const struct view *v) {
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		if (*n->trouble && is_named(&c->wanted->change, n->name)) {
			snprintf(c->trouble, sizeof c->trouble, "%s at %s: %s", n->name,
				n->address, n->trouble);
		}
	}
}

static void on_status(struct pawl_result *take_result, void *arg) {
	struct changing *c = arg;
	c->asking = false;
	c->silent = take_result->tree ? 0 : take_result->error;
	if (!take_result->error && !c->result) {
		struct view v;
		view_read(&v, take_result->tree);
		note_endpoint(c, take_result->endpoint);
		note_trouble(c, &v);
		if (*v.change.step) {
			progress_step(&c->progress, v.change.step, v.change.done, v.change.total);
		}
	}
	pawl_result_free(take_result);
}

static void must(int error) {
	if (error) {
		fprintf(stderr, "pawl: %s\n", pawl_error_message(error));
		exit(error == PAWL_EINVAL || error == PAWL_ETOOLARGE ? CLI_USAGE : CLI_REFUSED);
	}
}

static void ask_status(struct changing *c) {
	const struct pawl_request request = { .method = PAWL_STATUS,
		.timeout_ms = c->line->timeout_ms ? c->line->timeout_ms : ASK_TIMEOUT_MS };
	must(pawl_start(c->client, &request, on_status, c, NULL));
	c->asking = true;
}

static void start(struct changing *c) {
	const struct pawl_request request = { .method = PAWL_CHANGE, .change = &c->wanted->change,
		.wait_ms = c->wanted->wait_ms };
	c->result = NULL;
	c->silent = 0;
	must(pawl_start(c->client, &request, on_changed, c, &c->call));
}

/* Follows the change until there is an outcome, or until nobody answers any more. */
static void follow(struct changing *c) {
	while (!c->result && !c->silent) {
		if (!c->asking) {
			ask_status(c);
		}
		must(pawl_poll(c->client, 1000));
		if (!c->result && !c->silent && !c->asking) {
			must(pawl_poll(c->client, PAUSE_MS));
		}
	}
	progress_end(&c->progress);
}

/* Returns whether it is worth giving the change again. What the dead coordinator has begun may
 * still be going on at another node, or may not be over everywhere. Or it is the very change that
 * came first, which the next node has finished; then nothing is left to do. This does not insist on
 * a whole set of nodes: if the other change was somebody else's, it would be undone. */
static bool worth_repeating(const struct changing *c) {
	int error = c->result ? c->result->error : 0;
	return c->moved && (error == PAWL_EBUSY || error == PAWL_EUNSETTLED ||
		(error == PAWL_EMISMATCH && c->wanted->change.kind != PAWL_SET_NODES));
}

static void run(struct changing *c, int64_t patience_ms) {
	start(c);
	follow(c);
	while (worth_repeating(c) && patience_ms > 0) {
		progress_step(&c->progress, "waiting for the change that was begun", 0, 0);
		pawl_result_free(c->result);
		c->result = NULL;
		must(pawl_poll(c->client, 1000));
		patience_ms -= 1000;
		start(c);
		follow(c);
	}
}

/* ---- a forced start ---- */

/* The answer to a forced start comes when it has begun; the write to the disk and the wait are
 * still to come. Returns true when the wait is over, or when nobody can tell. */
static bool look_at_wait(struct changing *c) {
	const struct pawl_request request = { .method = PAWL_STATUS };
	struct pawl_result *status = cli_call(c->client, &request);
	uint64_t epoch = (uint64_t)field_int(status->tree, "epoch", 0);
	bool voting = strcmp(field_text(status->tree, "state"), "voting") == 0;
	bool over = status->error != 0 || (voting && epoch >= c->result->epoch);
	c->result->epoch = epoch ? epoch : c->result->epoch;
	c->result->settled = field_bool(status->tree, "settled");
	c->result->complete = field_bool(status->tree, "complete");
	c->result->missing_count = voting && c->result->complete ? 0 : c->result->missing_count;
	if (!over) {
		char text[128];
		snprintf(text, sizeof text, "waiting until every lease has expired%s%s",
			c->progress.rewrites ? ", left: " : "",
			c->progress.rewrites
				? output_duration(field_int(status->tree, "left_ms", 0))
				: "");
		progress_step(&c->progress, text, 0, 0);
	}
	pawl_result_free(status);
	return over;
}

static void follow_wait(struct changing *c, int64_t patience_ms) {
	bool over = c->wanted->change.kind != PAWL_FORCE || !c->result || c->result->error;
	while (!over && patience_ms > 0) {
		over = look_at_wait(c);
		if (!over) {
			must(pawl_poll(c->client, 1000));
			patience_ms -= 1000;
		}
	}
	progress_end(&c->progress);
}

/* ---- the outcome ---- */

static int tell_silence(struct changing *c) {
	char text[512];
	bool forced = c->wanted->change.kind == PAWL_FORCE;
	snprintf(text, sizeof text,
		"no node answers any more (%s). The change may have been made, or may still "
		"happen: when a node answers, repeat the command%s",
		pawl_error_message(c->silent),
		forced ? " at the same node" : "; it changes nothing if the change is made");
	const struct pawl_result none = { .error = PAWL_EUNREACHABLE, .message = text,
		.endpoint = "", .field = "", .entry = { 0 } };
	return cli_fail(c->line, &none, "cluster", c->wanted->verb);
}

static void say_advice(void *ctx, const char *sentence) {
	progress_say(ctx, "next: %s", sentence);
}

static void tell_masters(struct progress *p, const char *what, const struct view *v, bool voting) {
	char text[1024] = "";
	size_t used = 0;
	for (size_t i = 0; i < v->count && used < sizeof text; i++) {
		if (v->nodes[i].master && v->nodes[i].voting == voting) {
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
				used ? ", " : "", v->nodes[i].name);
		}
	}
	if (used) {
		progress_say(p, "%s: %s", what, text);
	}
}

/* Marks the node that this change has taken out. */
static void mark_leaver(const struct changing *c, struct view *v) {
	const struct pawl_change *change = &c->wanted->change;
	const bool leaves = change->kind == PAWL_REMOVE || change->kind == PAWL_REPLACE;
	for (size_t i = 0; i < v->count; i++) {
		v->nodes[i].has_left = leaves && strcmp(v->nodes[i].name, change->name) == 0;
	}
}

/* Tells who votes now, and what is left to do. */
static void tell_view(struct changing *c) {
	const struct pawl_request request = { .method = PAWL_STATUS };
	struct pawl_result *status = cli_call(c->client, &request);
	if (!status->error) {
		struct view v;
		view_read(&v, status->tree);
		tell_masters(&c->progress, "vote", &v, true);
		tell_masters(&c->progress, "do not vote yet", &v, false);
		mark_leaver(c, &v);
		advice_give(&v, say_advice, &c->progress);
	}
	pawl_result_free(status);
}

/* A node that was removed keeps its key. As long as its certificate is good, whoever has the key
 * gets in. */
static bool leaves_certificate(const struct changing *c) {
	const struct pawl_change *change = &c->wanted->change;
	return c->tls
		&& (change->kind == PAWL_REMOVE
			|| (change->kind == PAWL_REPLACE
				&& strcmp(change->name, change->other) != 0));
}

/* The node itself may have said which certificate it uses, and links may know an earlier one. So
 * only its name is sure to stand for all that it has, and for no other node's. */
static void tell_certificate(struct changing *c) {
	const char *name = c->wanted->change.name;
	if (leaves_certificate(c) && *c->serial) {
		progress_say(&c->progress,
			"next: stop %s and revoke its certificates by its name: pawl cert revoke "
			"--list FILE node:%s; or only the one that it uses, as it says: pawl cert "
			"revoke serial:%s; until then they still give access to every node",
			name, name, c->serial);
	} else if (leaves_certificate(c)) {
		progress_say(&c->progress,
			"next: stop %s and revoke its certificate: pawl cert revoke %s.crt; or by "
			"name: pawl cert revoke --list FILE node:%s; until then the certificate "
			"still gives access to every node",
			name, name, name);
	}
}

/* The same for programs: the name always, the serial number if the node has said it. */
static json_t *revoke_json(const struct changing *c) {
	json_t *object = json_object();
	output_json_set(object, "name", json_string(c->wanted->change.name));
	output_json_set(object, "serial", *c->serial ? json_string(c->serial) : json_null());
	return object;
}

static int tell_success(struct changing *c) {
	const struct pawl_result *r = c->result;
	bool nothing = (int64_t)r->epoch == c->epoch_before;
	if (c->line->json) {
		json_t *object = output_json_tree(r->tree);
		/* After a forced start this is the epoch by now. */
		output_json_set(object, "epoch", json_integer((json_int_t)r->epoch));
		output_json_set(object, "settled", json_boolean(r->settled));
		output_json_set(object, "complete", json_boolean(r->complete));
		output_json_set(object, "changed", json_boolean(!nothing));
		if (leaves_certificate(c)) {
			output_json_set(object, "revoke", revoke_json(c));
		}
		output_json(object);
	} else {
		progress_say(&c->progress, "%s: epoch %" PRIu64 ", %s",
			nothing ? "nothing to do" : "done", r->epoch,
			r->complete ? "complete"
				: r->settled
				? "settled, not complete (some masters do not vote yet)"
				: "NOT SETTLED: too few masters vote in it");
		if (*r->warning && !(r->settled && c->wanted->change.kind == PAWL_FORCE)) {
			/* The wait that the warning is about is over by now. */
			progress_say(&c->progress, "warning: %s", r->warning);
		}
		tell_view(c);
		tell_certificate(c);
		if (c->wanted->change.kind == PAWL_FORCE) {
			progress_say(&c->progress,
				"next: every other node has the state from before. If it is to "
				"come back: stop it, empty its state directory, name this master "
				"in [cluster.masters] of its file, start it, and add it: pawl "
				"cluster add-replica NAME HOST:PORT");
		}
	}
	return r->settled ? CLI_DONE : CLI_UNREACHABLE;
}

/* The node says that another one does not answer; why it has no link with that one is better to
 * know. */
static int tell_failure(struct changing *c) {
	char text[1536];
	if (c->result->error == PAWL_ENOTFOUND && *c->trouble) {
		snprintf(text, sizeof text, "%s (%s)", c->result->message, c->trouble);
		c->result->message = text;
	}
	return cli_fail(c->line, c->result, "cluster", c->wanted->verb);
}

static int tell(struct changing *c) {
	if (!c->result) {
		return tell_silence(c);
	}
	return c->result->error ? tell_failure(c) : tell_success(c);
}

/* ---- when the user has enough ---- */

static void on_interrupt(int number) {
	static const char text[] = "\npawl: interrupted. The change may still be going on: check "
		"pawl cluster show, or repeat the command\n";
	ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
	(void)written;
	_exit(128 + number);
}

static void watch_interrupts(void) {
	const struct sigaction action = { .sa_handler = on_interrupt };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* ---- before ---- */

/* Notes whose certificate must be revoked afterwards. Its serial number is known only while the
 * node is linked. */
static void note_certificate(struct changing *c, const struct view *v) {
	const struct view_node *leaves = c->wanted->change.name
		? view_find(v, c->wanted->change.name)
		: NULL;
	for (size_t i = 0; i < v->count; i++) {
		c->tls = c->tls || *v->nodes[i].serial;
	}
	snprintf(c->serial, sizeof c->serial, "%s", leaves ? leaves->serial : "");
}

/* Makes the client that asks for the change. It begins at the endpoint that knows most, because a
 * node that is not in the cluster would refuse the change, or tell old news. */
static void connect_to(struct changing *c, const struct cluster_answers *answers,
	const struct cluster_asked *best) {
	char list[CLUSTER_ASKED_MAX * CLUSTER_ENDPOINT_BYTES];
	size_t used = (size_t)snprintf(list, sizeof list, "%s", best->endpoint);
	for (size_t i = 0; i < answers->count && used < sizeof list; i++) {
		if (&answers->asked[i] != best) {
			used += (size_t)snprintf(list + used, sizeof list - used, ",%s",
				answers->asked[i].endpoint);
		}
	}
	struct cli_command_line line = *c->line;
	line.endpoints = used < sizeof list ? list : c->line->endpoints;
	line.prefer_first = true;
	c->client = cli_connect(&line);
}

/* Shows the present state. Returns whether to go on. */
static bool prepare(struct changing *c, const struct cluster_answers *answers, int *out_status) {
	const struct cluster_asked *best = cluster_answers_best(answers);
	struct view v;
	if (!best) {
		*out_status = cluster_answers_fail(answers, c->wanted->verb);
		return false;
	}
	view_read(&v, cluster_answer(best));
	c->epoch_before = v.epoch;
	note_endpoint(c, best->endpoint);
	progress_say(&c->progress,
		"asked %s at %s: epoch %" PRId64 ", %" PRId64 " of %zu masters vote", v.node,
		best->endpoint, v.epoch, v.voting, view_masters(&v));
	note_certificate(c, &v);
	if (!cluster_before(c->line, c->wanted, &v, &c->progress, out_status)) {
		return false;
	}
	connect_to(c, answers, best);
	return true;
}

int cluster_change(const struct cli_command_line *line, const struct cluster_wanted *wanted) {
	struct changing c = { .line = line, .wanted = wanted };
	struct cluster_answers answers = { .line = line };
	int status = CLI_REFUSED;
	progress_init(&c.progress, line->json ? NULL : stdout);
	bool goes_on = cluster_answers_ask(&answers) && prepare(&c, &answers, &status);
	cluster_answers_done(&answers);
	if (goes_on) {
		watch_interrupts();
		run(&c, wanted->wait_ms);
		follow_wait(&c, wanted->wait_ms);
		status = tell(&c);
	}
	/* This ends what is under way, and runs its callback, so `result` may be set only now. */
	pawl_free(c.client);
	pawl_result_free(c.result);
	return status;
}
