/* plan.c: what a change makes of the present configuration. It is pure: the configuration and the
 * change go in, and the next configuration or a refusal comes out. */
#include "plan.h"

#include <string.h>

#include "pawl/error.h"

static struct plan refuse(int error, const char *why, struct slice who) {
	return (struct plan){ .error = error, .why = why, .who = who };
}

static struct plan go(void) {
	return (struct plan){ .error = PAWL_OK };
}

static int find(const struct config *c, struct slice name) {
	for (uint32_t i = 0; i < c->node_count; i++) {
		if (slice_equal(slice_str(c->nodes[i].name), name)) {
			return (int)i;
		}
	}
	return -1;
}

static void take_out(struct config *c, uint32_t at) {
	memmove(&c->nodes[at], &c->nodes[at + 1], (c->node_count - at - 1) * sizeof *c->nodes);
	c->node_count--;
}

static void put_in(struct config *c, uint32_t at, const struct config_node *node) {
	memmove(&c->nodes[at + 1], &c->nodes[at], (c->node_count - at) * sizeof *c->nodes);
	c->nodes[at] = *node;
	c->node_count++;
}

static bool copy_text(struct slice from, char *to, size_t max) {
	if (from.size > max || memchr(from.data, 0, from.size) != NULL) {
		return false;
	}
	memcpy(to, from.data, from.size);
	to[from.size] = 0;
	return true;
}

/* Fills in a node that is to be in the configuration: with what the present configuration knows of
 * it, else with what its link told. */
static struct plan fill(const struct plan_view *view, struct slice name, struct slice address,
	bool master, struct config_node *out) {
	int at = find(view->present, name);
	struct config_node node = { .master = master };
	struct plan_node link = { .known = false };
	if (name.size == 0 || !copy_text(name, node.name, NODE_NAME_MAX)) {
		return refuse(PAWL_EBADREQUEST, "a name has 1 to 63 bytes", name);
	}
	if (!copy_text(address, node.address, ADDRESS_MAX)) {
		return refuse(PAWL_EBADREQUEST, "an address has at most 255 bytes: host:port",
			name);
	}
	view->look(view->ctx, node.name, &link);
	if (node.address[0] == 0) {
		memcpy(node.address, at >= 0 ? view->present->nodes[at].address : link.address,
			sizeof node.address);
	}
	if (at >= 0 && !(view->renew && (link.known || view->must_know))) {
		node.id = view->present->nodes[at].id;
	} else if (link.known) {
		node.id = link.id;
	} else {
		*out = node;
		return (struct plan){ .error = PAWL_ENOTFOUND, .why = "it is not known yet",
			.who = name, .ask = true };
	}
	if (node.address[0] == 0) {
		return refuse(PAWL_EBADREQUEST,
			"its address is not known: add-replica NAME HOST:PORT", name);
	}
	*out = node;
	return go();
}

static struct plan add_replica(const struct plan_view *view, const struct core_change *w,
	struct config *c) {
	struct config_node node;
	int at = find(c, w->name);
	if (at >= 0 && c->nodes[at].master && w->address.size > 0 &&
		!slice_equal(slice_str(c->nodes[at].address), w->address)) {
		return refuse(PAWL_EBADREQUEST,
			"it is a master, at another address: set-nodes gives it a new one",
			w->name);
	}
	struct plan_view renewing = *view;
	/* A replica that has lost its files is the same replica. */
	renewing.renew = at >= 0 && !c->nodes[at].master;
	struct plan p = fill(&renewing, w->name, w->address, at >= 0 && c->nodes[at].master, &node);
	if (p.error != PAWL_OK) {
		return p;
	}
	if (at >= 0) {
		c->nodes[at] = node;
	} else if (c->node_count == CONFIG_NODES_MAX) {
		return refuse(PAWL_EFULL, "a configuration has at most 48 nodes: remove one first",
			w->name);
	} else {
		put_in(c, c->node_count, &node);
	}
	return go();
}

static struct plan set_role(const struct core_change *w, struct config *c, bool master) {
	int at = find(c, w->name);
	if (at < 0) {
		return refuse(PAWL_ENOTFOUND,
			"there is no such node: add it first, with add-replica NAME HOST:PORT",
			w->name);
	}
	struct config_node node = c->nodes[at];
	uint32_t masters = config_masters(c);
	if (node.master == master) {
		return go();
	}
	if (master && masters == MASTERS_MAX) {
		return refuse(PAWL_EFULL, "there are 9 masters already", w->name);
	}
	if (!master && masters == 1) {
		return refuse(PAWL_EBADREQUEST, "it is the only master: promote another one first",
			w->name);
	}
	node.master = master;
	take_out(c, (uint32_t)at);
	put_in(c, master ? masters : masters - 1, &node);
	return go();
}

static struct plan take_away(const struct core_change *w, struct config *c) {
	int at = find(c, w->name);
	if (at < 0) {
		/* The node is gone already. */
		return go();
	}
	if (c->nodes[at].master && config_masters(c) == 1) {
		return refuse(PAWL_EBADREQUEST, "it is the only master: promote another one first",
			w->name);
	}
	take_out(c, (uint32_t)at);
	return go();
}

/* The node `name` leaves and `other` takes its place. With one name for both, it is a node that
 * came back with a new identity. */
static struct plan replace(const struct plan_view *view, const struct core_change *w,
	struct config *c) {
	bool same = slice_equal(w->name, w->other);
	int at = find(c, w->name), other = find(c, w->other);
	if (at < 0) {
		return other >= 0 ? go() : refuse(PAWL_ENOTFOUND, "there is no such node", w->name);
	}
	struct config_node node;
	struct plan_view renewing = *view;
	renewing.renew = renewing.must_know = same;
	struct plan p = fill(&renewing, w->other, w->address, c->nodes[at].master, &node);
	if (p.error != PAWL_OK) {
		return p;
	}
	if (!same && other >= 0 && c->nodes[other].master) {
		return refuse(PAWL_EBADREQUEST,
			"it is a master already: remove the old one instead", w->other);
	}
	c->nodes[at] = node;
	if (!same && other >= 0) {
		take_out(c, (uint32_t)other);
	}
	return go();
}

static struct plan set_nodes(const struct plan_view *view, const struct core_change *w,
	struct config *c) {
	struct config next = *c;
	next.node_count = 0;
	for (int masters = 1; masters >= 0; masters--) {
		for (uint32_t i = 0; i < w->node_count; i++) {
			const struct core_change_node *n = &w->nodes[i];
			if (n->master != (masters == 1)) {
				continue;
			}
			if (find(&next, n->name) >= 0) {
				return refuse(PAWL_EBADREQUEST, "it is named twice", n->name);
			}
			if (next.node_count == CONFIG_NODES_MAX) {
				return refuse(PAWL_EFULL, "a configuration has at most 48 nodes",
					n->name);
			}
			struct plan p = fill(view, n->name, n->address, n->master,
				&next.nodes[next.node_count]);
			if (p.error != PAWL_OK) {
				return p;
			}
			next.node_count++;
		}
	}
	*c = next;
	return go();
}

static struct plan set_timing(const struct core_change *w, struct config *c) {
	c->max_lease = w->max_lease ? w->max_lease : c->max_lease;
	c->request_timeout = w->request_timeout ? w->request_timeout : c->request_timeout;
	c->promise_timeout = w->promise_timeout ? w->promise_timeout : c->promise_timeout;
	c->drift_ppm = w->has_drift ? w->drift_ppm : c->drift_ppm;
	return go();
}

static struct plan apply(const struct plan_view *view, const struct core_change *w,
	struct config *c) {
	switch (w->kind) {
	case CHANGE_ADD_REPLICA: return add_replica(view, w, c);
	case CHANGE_PROMOTE: return set_role(w, c, true);
	case CHANGE_DEMOTE: return set_role(w, c, false);
	case CHANGE_REMOVE: return take_away(w, c);
	case CHANGE_REPLACE: return replace(view, w, c);
	case CHANGE_SET_NODES: return set_nodes(view, w, c);
	case CHANGE_SET_TIMING: return set_timing(w, c);
	case CHANGE_FORCE: break;
	}
	return refuse(PAWL_EBADREQUEST, "no such change", w->name);
}

static bool same_nodes(const struct config *a, const struct config *b) {
	if (a->node_count != b->node_count) {
		return false;
	}
	for (uint32_t i = 0; i < a->node_count; i++) {
		const struct config_node *x = &a->nodes[i], *y = &b->nodes[i];
		if (strcmp(x->name, y->name) != 0 || strcmp(x->address, y->address) != 0 ||
			!id128_equal(x->id, y->id) || x->master != y->master) {
			return false;
		}
	}
	return true;
}

static bool same_aim(const struct config *a, const struct config *b) {
	return same_nodes(a, b) && a->max_lease == b->max_lease &&
		a->request_timeout == b->request_timeout &&
		a->promise_timeout == b->promise_timeout && a->drift_ppm == b->drift_ppm;
}

/* Returns the second of two nodes that have one address, or NULL. Two such nodes are a slip of the
 * pen, because one of them would never be reached. */
static const struct config_node *without_own_address(const struct config *c) {
	for (uint32_t i = 1; i < c->node_count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(c->nodes[i].address, c->nodes[j].address) == 0) {
				return &c->nodes[i];
			}
		}
	}
	return NULL;
}

struct plan plan_change(const struct plan_view *view, const struct core_change *wanted,
	struct config *out) {
	*out = *view->present;
	struct plan p = apply(view, wanted, out);
	if (p.error != PAWL_OK) {
		return p;
	}
	p.nothing = same_aim(out, view->present);
	out->epoch = view->present->epoch + 1;
	out->previous_master_count = config_masters(view->present);
	memset(out->previous_masters, 0, sizeof out->previous_masters);
	memcpy(out->previous_masters, view->present->nodes,
		out->previous_master_count * sizeof *out->previous_masters);
	const char *problem = config_problem(out);
	problem = problem ? problem : config_timing_problem(out, view->present);
	if (problem) {
		return refuse(PAWL_EBADREQUEST, problem, wanted->name);
	}
	const struct config_node *twin = p.nothing ? NULL : without_own_address(out);
	return twin
		? refuse(PAWL_EBADREQUEST, "another node of the cluster has that address",
			slice_str(twin->name))
		: p;
}
