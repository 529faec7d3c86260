/* plan.h: turns a change that was asked for into the configuration that it means. Private to
 * cluster/. */
#ifndef PAWL_CLUSTER_PLAN_H
#define PAWL_CLUSTER_PLAN_H

#include "core.h"

/* What the links tell about the node with a name. */
struct plan_node {
	/* There is a link, and `id` is the identity at its other end. */
	bool known;
	/* That identity. */
	struct id128 id;
	/* The address at which it was dialled. It may be empty. */
	char address[ADDRESS_MAX + 1];
};

/* What a plan is made from. */
struct plan_view {
	/* The configuration that is changed. */
	const struct config *present;
	/* Says what the links tell about the name; *out is unknown before the call. */
	void (*look)(void *ctx, const char *name, struct plan_node *out);
	void *ctx;
	/* Where there is a link, the identity at its other end counts, and not the one of the
	 * configuration. */
	bool renew;
	/* With `renew`: there must be a link. */
	bool must_know;
};

/* The outcome of the plan. */
struct plan {
	/* 0, PAWL_EBADREQUEST, PAWL_ENOTFOUND, PAWL_EFULL. */
	int error;
	/* With an error: static text about `who`. */
	const char *why;
	/* The name of the node that `why` is about. */
	struct slice who;
	/* PAWL_ENOTFOUND: a link to `who` would tell what is not known. */
	bool ask;
	/* The configuration is so already. */
	bool nothing;
};

/* Makes the configuration that the change means. *out is the whole configuration, and is valid
 * without an error only. */
struct plan plan_change(const struct plan_view *view, const struct core_change *wanted,
	struct config *out);

#endif
