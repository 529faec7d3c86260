/* advice.c: says what an operator should do next, from what a node's status shows. Each sentence
 * says what is wrong and then the remedy. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "view.h"

#define SENTENCE_MAX 2048
/* The number of log entries that a busy cluster makes in several seconds. */
#define LAG_MANY 100000
/* An echo comes every few milliseconds, so a view of this age is very old. */
#define AGE_LONG_MS 2000
#define CERTIFICATE_DAYS_FEW 30
/* Nodes dial each other again after a second or less. */
#define START_LONG_MS 3000

const struct view_node *view_find(const struct view *v, const char *name) {
	for (size_t i = 0; i < v->count; i++) {
		if (strcmp(v->nodes[i].name, name) == 0) {
			return &v->nodes[i];
		}
	}
	return NULL;
}

size_t view_masters(const struct view *v) {
	size_t masters = 0;
	for (size_t i = 0; i < v->count; i++) {
		masters += v->nodes[i].master;
	}
	return masters;
}

static bool present(const struct view_node *n) {
	return n->self || n->linked;
}

const struct view_node *view_candidate(const struct view *v) {
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		if (n->replica && present(n) && !n->stranger && !n->catching_up
			&& n->lag < LAG_MANY) {
			return n;
		}
	}
	return NULL;
}

bool view_just_started(const struct view_node *n) {
	return n->uptime_ms != VIEW_UNKNOWN && n->uptime_ms < START_LONG_MS;
}

struct adviser {
	const struct view *v;
	advice_say *say;
	void *ctx;
};

static void advise(const struct adviser *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void advise(const struct adviser *a, const char *format, ...) {
	char text[SENTENCE_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	a->say(a->ctx, text);
}

/* Returns whether the node that was asked belongs to the cluster. Only then does what it sees of
 * the others mean anything. */
static bool inside(const struct view *v) {
	const struct view_node *self = view_find(v, v->node);
	return v->epoch > 0 && self && (self->master || self->replica);
}

/* ---- the cluster as a whole ---- */

static bool has_majority(const struct view *v) {
	return v->voting >= v->quorum;
}

/* A master that has answered this command runs, although the node that was asked has no link with
 * it. */
static bool all_masters_run(const struct view *v) {
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		if (n->master && !present(n) && !*n->state) {
			return false;
		}
	}
	return true;
}

static void advise_majority(const struct adviser *a) {
	const struct view *v = a->v;
	if (!has_majority(v)) {
		advise(a,
			"nothing can be granted: %s sees %" PRId64 " of the %" PRId64
			" votes that are needed%s",
			v->node, v->voting, v->quorum,
			all_masters_run(v)
				? ""
				: ". Start the masters that are down. If a majority of the "
				  "machines is lost for good, read pawl cluster force --help");
	}
}

static void advise_change(const struct adviser *a) {
	const struct view *v = a->v;
	if (*v->change.step) {
		advise(a, "a change to epoch %" PRId64 " is in progress at %s (%s): wait for it",
			v->change.epoch, v->node, v->change.step);
	}
}

/* ---- node by node ---- */

static void advise_stranger(const struct adviser *a, const struct view_node *n) {
	advise(a,
		"%s answers with a new identity: it has lost its state file, or another machine "
		"uses its name. If this machine is to be %s, give it that place again: pawl "
		"cluster replace %s %s",
		n->name, n->name, n->name, n->name);
}

/* Returns " (why)" for a node that is not linked, or "". */
static const char *trouble(const struct view_node *n, char text[SENTENCE_MAX]) {
	text[0] = '\0';
	if (*n->trouble) {
		snprintf(text, SENTENCE_MAX, " (%s)", n->trouble);
	}
	return text;
}

static void advise_absent_master(const struct adviser *a, const struct view_node *n) {
	const struct view_node *candidate = view_candidate(a->v);
	char why[SENTENCE_MAX];
	trouble(n, why);
	if (!has_majority(a->v)) {
		/* Without a majority the cluster can agree on nothing, not even on who takes the
		 * place of the master. */
		advise(a, "%s does not answer%s: restart it", n->name, why);
	} else if (candidate) {
		advise(a,
			"%s does not answer%s: restart it, or replace it: pawl cluster replace %s "
			"%s",
			n->name, why, n->name, candidate->name);
	} else {
		advise(a,
			"%s does not answer%s: restart it, or replace it: pawl cluster add-replica "
			"NEW HOST:PORT, then pawl cluster replace %s NEW",
			n->name, why, n->name);
	}
}

static void advise_absent(const struct adviser *a, const struct view_node *n) {
	char why[SENTENCE_MAX];
	if (*n->state && view_just_started(n)) {
		advise(a, "%s has just started, and has no link with %s yet: wait", n->name,
			a->v->node);
	} else if (*n->state) {
		/* It has answered this command, so a restart would only lose its memory. */
		advise(a,
			"%s runs and answers, but has no link with %s%s: repair what is between "
			"them, in both directions; do not restart %s",
			n->name, a->v->node, trouble(n, why), n->name);
	} else if (n->master) {
		advise_absent_master(a, n);
	} else {
		advise(a,
			"replica %s does not answer%s: restart it, or remove it: pawl cluster "
			"remove %s",
			n->name, trouble(n, why), n->name);
	}
}

/* Gives advice about a master that is there and does not vote. */
static void advise_silent_vote(const struct adviser *a, const struct view_node *n) {
	if (strcmp(n->state, "drained") == 0) {
		advise(a, "%s was drained and does not vote: stop and start it", n->name);
	} else if (n->left_ms > 0) {
		advise(a, "%s does not vote yet (%s): wait up to %" PRId64 " s", n->name,
			n->state, (n->left_ms + 999) / 1000);
	} else if (*n->state && *n->waits_for) {
		advise(a, "%s does not vote yet (%s): it waits for %s", n->name, n->state,
			n->waits_for);
	} else if (n->other_epoch) {
		advise(a,
			"%s has not adopted epoch %" PRId64
			" yet: wait; if this does not change, read its log",
			n->name, a->v->epoch);
	} else {
		advise(a, "%s does not vote yet: wait; if this does not change, read its log",
			n->name);
	}
}

static void advise_replica(const struct adviser *a, const struct view_node *n) {
	if (n->catching_up) {
		advise(a,
			"%s is fetching a snapshot (%" PRId64
			" records so far): wait before you promote it",
			n->name, n->snapshot_done);
	} else if (n->lag >= LAG_MANY) {
		advise(a,
			"%s is %" PRId64
			" changes behind: its machine or the network to it may be too slow",
			n->name, n->lag);
	} else if (n->age_ms > AGE_LONG_MS) {
		advise(a,
			"the view of %s is %" PRId64
			" s old: check whether the master that it follows (%s) is linked with a "
			"majority",
			n->name, n->age_ms / 1000, *n->following ? n->following : "none");
	} else if (n->other_epoch) {
		advise(a,
			"%s has not adopted epoch %" PRId64
			" yet: wait; if this does not change, read its log",
			n->name, a->v->epoch);
	}
}

/* A forced start begins a new count of epochs, in the upper half of the number. */
static int64_t starts(int64_t epoch) {
	return epoch >> 32;
}

bool view_is_from_before(const struct view *v, int64_t epoch) {
	return starts(epoch) < starts(v->epoch);
}

static bool is_of_earlier_cluster(const struct view *v, const struct view_node *n) {
	return !n->self && present(n) && n->epoch > 0 && view_is_from_before(v, n->epoch);
}

static bool is_of_later_cluster(const struct view *v, const struct view_node *n) {
	return !n->self && present(n) && starts(n->epoch) > starts(v->epoch);
}

const struct view_node *view_started_over(const struct view *v) {
	for (size_t i = 0; i < v->count; i++) {
		if (is_of_later_cluster(v, &v->nodes[i])) {
			return &v->nodes[i];
		}
	}
	return NULL;
}

static void advise_member_of_nothing(const struct adviser *a, const struct view_node *n) {
	if (n->self || !inside(a->v) || !present(n)) {
		return;
	}
	if (n->has_left) {
		advise(a, "%s has left the cluster and still runs: stop it", n->name);
	} else {
		advise(a,
			"%s is running but is not in the cluster. If it was removed, stop it. To "
			"add it: pawl cluster add-replica %s HOST:PORT",
			n->name, n->name);
	}
}

static void advise_node(const struct adviser *a, const struct view_node *n) {
	if (is_of_earlier_cluster(a->v, n)) {
		advise(a,
			"%s has the state of the cluster as it was before it was started over, so "
			"it will never come: stop it, empty its state directory, name %s in "
			"[cluster.masters] of its file, and start it. Then pawl cluster "
			"add-replica %s HOST:PORT",
			n->name, a->v->node, n->name);
	} else if (is_of_later_cluster(a->v, n)) {
		advise(a,
			"the cluster was started over with %s, and %s has the state from before: "
			"stop %s and empty its state directory; then it can be added again",
			n->name, a->v->node, a->v->node);
	} else if (!n->master && !n->replica) {
		advise_member_of_nothing(a, n);
	} else if (n->stranger) {
		advise_stranger(a, n);
	} else if (!present(n)) {
		advise_absent(a, n);
	} else if (n->master && !n->voting) {
		advise_silent_vote(a, n);
	} else if (n->replica) {
		advise_replica(a, n);
	}
}

/* Returns whether the node that was asked has the name of a node of the configuration, but not its
 * identity. The status then shows that other node without a name. */
static bool lost_its_place(const struct view *v) {
	const struct view_node *namesake = view_find(v, "");
	return namesake && (namesake->master || namesake->replica);
}

/* Gives advice before the birth of the cluster: what each node waits for, and who is not there. */
static void advise_unborn(const struct adviser *a) {
	const struct view *v = a->v;
	bool any = v->count == 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		if (*n->waits_for) {
			advise(a, "%s: %s waits for %s",
				n->master ? "the cluster is not born yet" : "not in a cluster yet",
				n->name, n->waits_for);
		}
	}
	for (size_t i = 0; i < v->count; i++) {
		const struct view_node *n = &v->nodes[i];
		if (n->master && !present(n) && *n->trouble) {
			any = true;
			advise(a, "%s has no link with %s: %s", v->node, n->name, n->trouble);
		} else if (n->master && !present(n)) {
			any = true;
			advise(a, "%s does not answer: start it", n->name);
		}
	}
	if (any) {
		advise(a,
			"start all initial masters. To join a running cluster instead, ask a node "
			"of it: pawl cluster add-replica %s HOST:PORT",
			v->node);
	}
}

static bool self_has_left(const struct view *v) {
	const struct view_node *self = view_find(v, v->node);
	return self && self->has_left;
}

static void advise_outsider(const struct adviser *a) {
	const struct view *v = a->v;
	if (v->epoch > 0 && !inside(v) && lost_its_place(v)) {
		advise(a,
			"%s has the name of a node of the cluster, but a new identity: it has lost "
			"its state file, or it is another machine with that name. If this machine "
			"is to be %s, ask another node: pawl cluster replace %s %s",
			v->node, v->node, v->node, v->node);
	} else if (v->epoch > 0 && !inside(v) && self_has_left(v)) {
		advise(a, "%s has left the cluster and still runs: stop it", v->node);
	} else if (v->epoch > 0 && !inside(v)) {
		advise(a,
			"%s is not in the cluster. To add it, ask a node of the cluster: pawl "
			"cluster add-replica %s HOST:PORT. If it was removed, stop it",
			v->node, v->node);
	} else if (v->epoch == 0) {
		advise_unborn(a);
	}
}

static void advise_number(const struct adviser *a) {
	size_t masters = view_masters(a->v);
	if (masters > 1 && masters % 2 == 0 && a->v->complete) {
		advise(a,
			"%zu masters tolerate no more failures than %zu would: promote a replica, "
			"or demote a master",
			masters, masters - 1);
	}
}

/* Returns the access rules that most nodes have. If several are equally common, those of the node
 * that was asked count. */
static const char *common_rights(const struct view *v) {
	const struct view_node *self = view_find(v, v->node);
	const char *common = self ? self->rights : "";
	size_t most = 0;
	for (size_t i = 0; i < v->count; i++) {
		size_t same = 0;
		for (size_t k = 0; *v->nodes[i].rights && k < v->count; k++) {
			same += strcmp(v->nodes[k].rights, v->nodes[i].rights) == 0;
		}
		if (same > most
			|| (same == most && self
				&& strcmp(v->nodes[i].rights, self->rights) == 0)) {
			most = same;
			common = v->nodes[i].rights;
		}
	}
	return common;
}

static void advise_rights(const struct adviser *a) {
	const char *common = common_rights(a->v);
	for (size_t i = 0; i < a->v->count; i++) {
		const struct view_node *n = &a->v->nodes[i];
		if (*n->rights && strcmp(n->rights, common) != 0) {
			advise(a,
				"%s has other access rules (%.8s) than the rest (%.8s): put the "
				"same rules file ([acl] file) on all nodes, and reload them: "
				"systemctl reload pawld",
				n->name, n->rights, common);
		}
	}
}

static void advise_certificate(const struct adviser *a, const struct view_node *n) {
	if (n->certificate_ended) {
		advise(a,
			"the certificate of %s (serial %s) has ended, so nobody makes a new link "
			"with it: issue a new one (pawl cert node %s --host ...), install it, and "
			"reload: systemctl reload pawld",
			n->name, n->serial, n->name);
	} else if (n->certificate_days == 0) {
		advise(a,
			"the certificate of %s (serial %s) expires within a day: issue a new one "
			"(pawl cert node %s --host ...), install it, and reload: systemctl reload "
			"pawld",
			n->name, n->serial, n->name);
	} else if (n->certificate_days != VIEW_UNKNOWN
		&& n->certificate_days < CERTIFICATE_DAYS_FEW) {
		advise(a,
			"the certificate of %s (serial %s) expires in %" PRId64
			" days: issue a new one (pawl cert node %s --host ...), install it, and "
			"reload: systemctl reload pawld",
			n->name, n->serial, n->certificate_days, n->name);
	}
}

void view_limit_text(const struct view_limit *limit, char out[VIEW_LIMIT_TEXT_BYTES]) {
	if (limit->most > 0) {
		snprintf(out, VIEW_LIMIT_TEXT_BYTES,
			"%s, %" PRId64 " of %" PRId64 ", at least %" PRId64 " of them of %s",
			limit->name, limit->used, limit->limit, limit->most,
			*limit->whose ? limit->whose : "somebody without a name");
	} else {
		snprintf(out, VIEW_LIMIT_TEXT_BYTES, "%s, %" PRId64 " of %" PRId64, limit->name,
			limit->used, limit->limit);
	}
}

static void advise_limits(const struct adviser *a, const struct view_node *n) {
	for (size_t i = 0; i < n->limit_count; i++) {
		char text[VIEW_LIMIT_TEXT_BYTES];
		view_limit_text(&n->limits[i], text);
		if (n->limits[i].reached) {
			advise(a,
				"%s has reached a limit and refuses what needs more (%s): see who "
				"has most (pawl clients --shares), and end it (pawl clients kick) "
				"or give it a smaller share; or raise [limits] %s on all nodes",
				n->name, text, n->limits[i].name);
		} else {
			advise(a,
				"%s has used more than 80 %% of a limit (%s): see who has most "
				"(pawl clients --shares), or raise [limits] %s on all nodes",
				n->name, text, n->limits[i].name);
		}
	}
}

static void advise_audit(const struct adviser *a, const struct view_node *n) {
	if (*n->audit_trouble) {
		advise(a, "the audit file of %s lacks lines: %s", n->name, n->audit_trouble);
	}
}

void advice_give(const struct view *v, advice_say *say, void *ctx) {
	const struct adviser a = { v, say, ctx };
	if (inside(v)) {
		advise_majority(&a);
	}
	advise_outsider(&a);
	for (size_t i = 0; i < v->count && inside(v); i++) {
		advise_node(&a, &v->nodes[i]);
	}
	for (size_t i = 0; i < v->count; i++) {
		advise_certificate(&a, &v->nodes[i]);
		advise_limits(&a, &v->nodes[i]);
		advise_audit(&a, &v->nodes[i]);
	}
	advise_rights(&a);
	advise_change(&a);
	if (inside(v)) {
		advise_number(&a);
	}
}
