/* view.h: the cluster as a node's status shows it, in plain members; and what its operator should
 * do next. */
#ifndef PAWL_CLI_VIEW_H
#define PAWL_CLI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIEW_NODES_MAX 64
#define VIEW_UNKNOWN (-1)
#define VIEW_LIMITS_MAX 16

/* A limit of a node that is nearly, or quite, reached. */
struct view_limit {
	const char *name;
	int64_t used, limit;
	bool reached;
	/* How much of it one party has at least, and which one; 0 and "" if the node does not
	 * say. */
	int64_t most;
	const char *whose;
};

struct view_node {
	/* The role is "master", "replica", or what else the node calls it. */
	const char *name, *address, *role;

	/* Neither is set for a node that is not in the cluster. */
	bool master, replica;

	/* The node has just left the cluster on purpose. Whoever made the change sets this. */
	bool has_left;

	/* As the node that was asked sees it. */
	bool self, linked, voting;

	/* The node has this name, but another identity, because its state was lost. */
	bool stranger;
	bool other_epoch;

	/* The epoch that it is in; 0 for unknown. */
	int64_t epoch;

	/* 0 means that it was not measured. */
	int64_t round_trip_us;

	/* How many entries the node lacks of those that the node that was asked has; VIEW_UNKNOWN
	 * if it does not follow that node. */
	int64_t lag;

	/* What the node says about itself, if it was asked; otherwise `state` is "". */
	const char *state, *waits_for, *following;

	/* age_ms is VIEW_UNKNOWN on masters, and before a replica has followed anybody. */
	int64_t left_ms, age_ms, snapshot_done;

	/* How long it has run; VIEW_UNKNOWN if it was not asked. */
	int64_t uptime_ms;
	bool catching_up;

	/* Why the node that was asked has no link with it; "" if it has one, or does not know. */
	const char *trouble;

	/* Which release of Pawl the node is; "" if that is not known. */
	const char *version;

	/* The digest of the node's access rules; "none" if it has none, "" if that is not known. */
	const char *rights;

	/* The serial number of its certificate; "" if it has no TLS or is not linked. */
	const char *serial;

	/* For how many days its certificate is still valid; VIEW_UNKNOWN if that is not known. It
	 * has ended. */
	int64_t certificate_days;
	bool certificate_ended;

	/* Why it cannot write its audit file; "" if it can, has none, or was not asked. */
	const char *audit_trouble;

	/* What the node says about its limits, if it was asked. */
	struct view_limit limits[VIEW_LIMITS_MAX];
	size_t limit_count;
};

/* The change that is under way at the node that was asked; if there is none, `step` is "". */
struct view_change {
	const char *step;
	int64_t done, total, epoch;
};

/* The texts are borrowed from the answers. */
struct view {
	const char *node, *role, *cluster, *state;
	int64_t epoch, quorum, voting;
	int64_t max_lease_ms, request_timeout_ms, promise_timeout_ms, clock_drift_ppm;
	bool settled, complete;
	struct view_change change;
	struct view_node nodes[VIEW_NODES_MAX];
	size_t count;
};

/* Returns NULL if there is no such node. */
const struct view_node *view_find(const struct view *v, const char *name);
size_t view_masters(const struct view *v);
/* Returns a replica that could take a master's place now: it is linked, and up to date as far as is
 * known. Returns NULL if there is none. */
const struct view_node *view_candidate(const struct view *v);
/* Returns a node with which the cluster was started over, while the node that was asked has the
 * state from before; NULL if there is none. */
const struct view_node *view_started_over(const struct view *v);
/* Returns whether the epoch is one of the cluster from before a forced start that the node that was
 * asked knows of. */
bool view_is_from_before(const struct view *v, int64_t epoch);
/* Returns whether the node has begun a moment ago, so that its links may not be made yet. */
bool view_just_started(const struct view_node *n);

#define VIEW_LIMIT_TEXT_BYTES 1024
/* Writes "NAME, 90 of 100", and who has most of it. */
void view_limit_text(const struct view_limit *limit, char out[VIEW_LIMIT_TEXT_BYTES]);

/* Calls `say` with a sentence for everything that an operator should do something about, the most
 * urgent first. If all is well, it is not called. */
typedef void advice_say(void *ctx, const char *sentence);
void advice_give(const struct view *v, advice_say *say, void *ctx);

#endif
