/* view.h: the cluster as a node's status shows it, read into plain members; and what its operator should do next. */
#ifndef PAWL_CLI_VIEW_H
#define PAWL_CLI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIEW_NODES_MAX 64
#define VIEW_UNKNOWN (-1)

struct view_node {
	const char *name, *address, *role; /* "master", "replica", or what else the node calls it */
	bool master, replica;              /* neither: a node that is not in */
	bool self, linked, voting;         /* as the node that was asked sees it */
	bool stranger;                     /* it has this name, but another identity: its state was lost */
	bool other_epoch;
	int64_t round_trip_us;             /* 0: not measured */
	int64_t lag;                       /* entries that it lacks of what the asked node has; VIEW_UNKNOWN: it does not follow that one */
	/* What it says of itself, where it was asked; else state is "". */
	const char *state, *waits_for, *following, *version;
	int64_t left_ms, age_ms, snapshot_done; /* age_ms: VIEW_UNKNOWN on masters, and before a replica has followed anybody */
	bool catching_up;
	const char *rights;       /* the digest of its access rules, "none": it has none; "": not known */
	const char *serial;       /* of its certificate; "": no TLS, or not linked */
	int64_t certificate_days; /* that its certificate is still valid; VIEW_UNKNOWN: not known */
};

struct view_change { /* under way at the node that was asked; step "": none */
	const char *step;
	int64_t done, total, epoch;
};

struct view { /* texts are borrowed from the answers */
	const char *node, *role, *cluster, *state;
	int64_t epoch, quorum, voting, max_lease_ms;
	bool settled, complete;
	struct view_change change;
	struct view_node nodes[VIEW_NODES_MAX];
	size_t count;
};

const struct view_node *view_find(const struct view *v, const char *name); /* NULL: none */
size_t view_masters(const struct view *v);
/* A replica that could take a master's place now: linked and up to date as far as is known. NULL: none. */
const struct view_node *view_candidate(const struct view *v);

/* Calls `say` with a sentence for everything that an operator should see to, the most urgent first; never when all is well. */
typedef void advice_say(void *ctx, const char *sentence);
void advice_give(const struct view *v, advice_say *say, void *ctx);

#endif
