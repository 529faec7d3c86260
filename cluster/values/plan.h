/* plan.h: from a change that was asked for to the configuration that it means. Private to cluster/. */
#ifndef PAWL_CLUSTER_PLAN_H
#define PAWL_CLUSTER_PLAN_H

#include "core.h"

struct plan_node { /* what the links tell about a name */
	bool known; /* there is a link, and this is who is at its other end */
	struct id128 id;
	char address[ADDRESS_MAX + 1]; /* as it was dialled; may be empty */
};

struct plan_view {
	const struct config *present;
	void (*look)(void *ctx, const char *name, struct plan_node *out);
	void *ctx;
	bool renew;     /* the identity at the other end counts, where there is a link, not the one of the configuration */
	bool must_know; /* ... and there must be one */
};

struct plan {
	int error;         /* 0, PAWL_EBADREQUEST, PAWL_ENOTFOUND, PAWL_EFULL */
	const char *why;   /* with an error: static text about `who` */
	struct slice who;
	bool ask;          /* PAWL_ENOTFOUND: a link to `who` would tell */
	bool nothing;      /* it is so already */
};

struct plan plan_change(const struct plan_view *view, const struct core_change *wanted, struct config *out);

#endif
