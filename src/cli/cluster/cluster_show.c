/* cluster_show.c: pawl cluster show: puts together what the nodes say. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "cluster_answers.h"
#include "field.h"
#include "output.h"

/* ---- telling ---- */

static const char *behind(const struct view_node *n) {
	static char text[64];
	if (n->catching_up) {
		snprintf(text, sizeof text, "%" PRId64 " copied", n->snapshot_done);
	} else if (n->lag != VIEW_UNKNOWN) {
		snprintf(text, sizeof text, "%" PRId64, n->lag);
	} else {
		return "-";
	}
	return text;
}

static const char *state_of(const struct view_node *n) {
	if (*n->state) {
		return n->state;
	}
	return n->stranger ? "STRANGER"
		: n->voting ? "voting"
		: n->self || n->linked ? "up"
		: "DOWN";
}

/* A node that was in the cluster once, and is gone, is not shown. */
static bool is_shown(const struct view_node *n) {
	return n->master || n->replica || n->self || n->linked || *n->state;
}

static void print_nodes(const struct view *v) {
	printf("\n%-16s %-8s %-24s %-13s %-6s %-12s %-7s %-8s %-9s %s\n", "NODE", "ROLE", "ADDRESS",
		"STATE", "VOTES", "BEHIND", "AGE", "RIGHTS", "VERSION", "FOLLOWS");
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		if (!is_shown(n)) {
			continue;
		}
		printf("%-16s %-8s %-24s %-13s %-6s %-12s %-7s %-8.8s %-9s %s\n", n->name,
			*n->role ? n->role : "-", *n->address ? n->address : "-", state_of(n),
			n->voting ? "yes"
				: n->master ? "NO"
				: "-",
			behind(n), n->age_ms == VIEW_UNKNOWN ? "-" : output_duration(n->age_ms),
			*n->rights ? n->rights : "-", *n->version ? n->version : "-",
			*n->following ? n->following : "-");
	}
}

static void say_line(void *ctx, const char *sentence) {
	bool *any = ctx;
	fputs(*any ? "" : "\nWhat to do:\n", stdout);
	output_line(stdout, "  - %s", sentence);
	*any = true;
}

static void print_timing(const struct view *v) {
	output_field("timing",
		"leases up to %s, request timeout %s, promise timeout %s, clock drift %g%%",
		output_duration(v->max_lease_ms), output_duration(v->request_timeout_ms),
		output_duration(v->promise_timeout_ms), (double)v->clock_drift_ppm / 10000);
}

/* Returns why there is no answer, without the endpoint if the sentence begins with it. */
static const char *why_silent(const struct cluster_asked *a) {
	const char *why = a->result ? a->result->message : pawl_error_message(PAWL_ENOMEM);
	size_t size = strlen(a->endpoint);
	return strncmp(why, a->endpoint, size) == 0 && strncmp(why + size, ": ", 2) == 0
		? why + size + 2
		: why;
}

/* ---- links between nodes ---- */

/* Returns what the status says about its node's link with a peer; NULL if it says nothing. */
static const struct pawl_value *peer_in(const struct pawl_value *status, const char *name) {
	const struct pawl_value *peers = pawl_value_get(status, "peers");
	for (size_t i = 0; peers && peers->kind == PAWL_ARRAY && i < peers->count; i++) {
		if (strcmp(field_text(&peers->items[i], "node"), name) == 0) {
			return &peers->items[i];
		}
	}
	return NULL;
}

/* Returns whether the status says that its node has no link with this one. */
static bool lacks_link(const struct pawl_value *status, const char *name) {
	const struct pawl_value *peer = peer_in(status, name);
	return peer && !field_bool(peer, "self") && !field_bool(peer, "linked");
}

static const struct pawl_value *answer_of(const struct cluster_answers *s, const char *name) {
	for (size_t i = 0; i < s->count; i++) {
		const struct pawl_value *status = cluster_answer(&s->asked[i]);
		if (status && strcmp(field_text(status, "node"), name) == 0) {
			return status;
		}
	}
	return NULL;
}

/* Returns whether the node is a master that the best one of those asked is linked with. What that
 * one lacks itself, advice_give says. */
static bool is_linked_master(const struct view_node *n) {
	return n && n->master && n->linked && !n->stranger && !view_just_started(n);
}

/* Says which two masters have no link with each other although both run, where the node whose view
 * is shown is linked with both. Nothing else shows it, and a failure of that node would then cost
 * the quorum. */
static void advise_links(const struct cluster_answers *s, const struct view *v, advice_say *say,
	void *ctx) {
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *one = &v->nodes[i];
		const struct pawl_value *status = answer_of(s, one->name);
		for (size_t k = 0; status && is_linked_master(one) && k < v->count; k++) {
			const struct view_node *other = &v->nodes[k];
			const struct pawl_value *there = answer_of(s, other->name);
			if (!is_linked_master(other) || !lacks_link(status, other->name)
				|| (k < i && there && lacks_link(there, one->name))) {
				continue;
			}
			/* Only the one that dials knows why. */
			const char *why = field_text(peer_in(status, other->name), "trouble");
			if (!*why) {
				why = field_text(peer_in(there, one->name), "trouble");
			}
			char text[1024];
			snprintf(text, sizeof text,
				"%s and %s both run, but have no link with each other%s%s%s: "
				"repair what is between them, in both directions; do not restart "
				"them",
				one->name, other->name, *why ? " (" : "", why, *why ? ")" : "");
			say(ctx, text);
		}
	}
}

/* Names the nodes that go on as the cluster from before a forced start, which the best node is not
 * linked with: a majority of them grants what the new cluster grants, too. */
static void advise_old_cluster(const struct cluster_answers *s, const struct view *v,
	advice_say *say, void *ctx) {
	for (size_t i = 0; i < s->count; i++) {
		const struct pawl_value *status = cluster_answer(&s->asked[i]);
		const char *name = status ? field_text(status, "node") : "";
		const int64_t epoch = status ? field_int(status, "epoch", 0) : 0;
		const struct view_node *known = view_find(v, name);
		if (epoch > 0 && view_is_from_before(v, epoch) && !(known && known->linked)) {
			char text[512];
			snprintf(text, sizeof text,
				"%s goes on as the cluster from before it was started over with "
				"%s, and grants again what is held there: stop it, and empty its "
				"state directory",
				name, v->node);
			say(ctx, text);
		}
	}
}

/* Gives the advice, and names the endpoints where no node answers. */
static void advise_all(const struct cluster_answers *s, const struct view *v, advice_say *say,
	void *ctx) {
	advice_give(v, say, ctx);
	advise_links(s, v, say, ctx);
	advise_old_cluster(s, v, say, ctx);
	for (size_t i = 0; i < s->count; i++) {
		if (!cluster_answer(&s->asked[i])) {
			char text[512];
			snprintf(text, sizeof text, "no node answers at %s: %s",
				s->asked[i].endpoint, why_silent(&s->asked[i]));
			say(ctx, text);
		}
	}
}

static void print_view(const struct cluster_answers *s, const struct cluster_asked *from,
	const struct view *v) {
	output_field("cluster", "%s, epoch %" PRId64 ", %s", *v->cluster ? v->cluster : "-",
		v->epoch,
		v->complete ? "complete"
			: v->settled ? "settled, not complete"
			: "NOT SETTLED");
	output_field("as seen by", "%s at %s", v->node, from->endpoint);
	output_field("votes", "%" PRId64 " of %zu masters vote, %" PRId64 " are needed", v->voting,
		view_masters(v), v->quorum);
	print_timing(v);
	if (*v->change.step) {
		output_field("change", "to epoch %" PRId64 ": %s", v->change.epoch, v->change.step);
	}
	print_nodes(v);
	bool any = false;
	advise_all(s, v, say_line, &any);
}

static void add_sentence(void *ctx, const char *sentence) {
	json_array_append_new(ctx, json_string(sentence));
}

/* Returns the number, or null if it is not known. */
static json_t *known(int64_t number) {
	return number == VIEW_UNKNOWN ? json_null() : json_integer(number);
}

static json_t *node_json(const struct view_node *n) {
	json_t *object = json_object();
	output_json_bytes(object, "node", pawl_str(n->name));
	output_json_bytes(object, "role", pawl_str(n->role));
	output_json_bytes(object, "address", pawl_str(n->address));
	output_json_bytes(object, "state", pawl_str(state_of(n)));
	output_json_bytes(object, "waits_for", pawl_str(n->waits_for));
	output_json_set(object, "left_ms", json_integer(n->left_ms));
	output_json_set(object, "voting", json_boolean(n->voting));
	output_json_set(object, "copied", n->catching_up ? json_integer(n->snapshot_done)
		: json_null());
	output_json_set(object, "lag", n->catching_up ? json_null() : known(n->lag));
	output_json_set(object, "age_ms", known(n->age_ms));
	output_json_bytes(object, "rights", pawl_str(n->rights));
	output_json_bytes(object, "version", pawl_str(n->version));
	output_json_bytes(object, "follows", pawl_str(n->following));
	output_json_bytes(object, "trouble", pawl_str(n->trouble));
	return object;
}

static json_t *change_json(const struct view_change *change) {
	if (!*change->step) {
		return json_null();
	}
	json_t *object = json_object();
	output_json_set(object, "epoch", json_integer(change->epoch));
	output_json_bytes(object, "step", pawl_str(change->step));
	return object;
}

/* Prints what print_view shows. */
static void print_json(const struct cluster_answers *s, const struct cluster_asked *from,
	const struct view *v) {
	json_t *object = json_object(), *advice = json_array(), *nodes = json_array();
	const struct {
		const char *name;
		int64_t number;
	} numbers[] = {
		{ "epoch", v->epoch },
		{ "voting", v->voting },
		{ "masters", (int64_t)view_masters(v) },
		{ "quorum", v->quorum },
		{ "max_lease_ms", v->max_lease_ms },
		{ "request_timeout_ms", v->request_timeout_ms },
		{ "promise_timeout_ms", v->promise_timeout_ms },
		{ "clock_drift_ppm", v->clock_drift_ppm },
	};
	for (size_t i = 0; i < v->count; i++) {
		if (is_shown(&v->nodes[i])) {
			json_array_append_new(nodes, node_json(&v->nodes[i]));
		}
	}
	advise_all(s, v, add_sentence, advice);
	output_json_bytes(object, "cluster", pawl_str(v->cluster));
	output_json_bytes(object, "seen_by", pawl_str(v->node));
	output_json_bytes(object, "endpoint", pawl_str(from->endpoint));
	output_json_set(object, "settled", json_boolean(v->settled));
	output_json_set(object, "complete", json_boolean(v->complete));
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		output_json_set(object, numbers[i].name, json_integer(numbers[i].number));
	}
	output_json_set(object, "change", change_json(&v->change));
	output_json_set(object, "nodes", nodes);
	output_json_set(object, "advice", advice);
	output_json(object);
}

static int tell(const struct cluster_answers *s) {
	const struct cluster_asked *from = cluster_answers_best(s);
	if (!from) {
		return cluster_answers_fail(s, "show");
	}
	struct view v;
	view_read(&v, cluster_answer(from));
	for (size_t i = 0; i < s->count; i++) {
		if (cluster_answer(&s->asked[i])) {
			view_add(&v, cluster_answer(&s->asked[i]));
		}
	}
	if (s->line->json) {
		print_json(s, from, &v);
	} else {
		print_view(s, from, &v);
	}
	return CLI_DONE;
}

int cluster_show(const struct cli_command_line *line) {
	struct cluster_answers s = { .line = line };
	int status = cluster_answers_ask(&s) ? tell(&s) : CLI_REFUSED;
	cluster_answers_done(&s);
	return status;
}
