/* cluster_plan.c: foresees the nodes that the cluster has after a change. It is pure: what a node
 * says of the cluster and the change go in. */
#include "cluster_plan.h"

#include <string.h>

static void add(struct cluster_names *to, const char *name) {
	if (to->count < VIEW_NODES_MAX && !cluster_names_have(to, name)) {
		to->names[to->count++] = name;
	}
}

static void drop(struct cluster_names *from, const char *name) {
	size_t kept = 0;
	for (size_t i = 0; i < from->count; i++) {
		if (strcmp(from->names[i], name) != 0) {
			from->names[kept++] = from->names[i];
		}
	}
	from->count = kept;
}

bool cluster_names_have(const struct cluster_names *names, const char *name) {
	bool found = false;
	for (size_t i = 0; i < names->count; i++) {
		found = found || strcmp(names->names[i], name) == 0;
	}
	return found;
}

static bool has(const struct cluster_set *set, const char *name) {
	return cluster_names_have(&set->masters, name) || cluster_names_have(&set->replicas, name);
}

static void leave(struct cluster_set *set, const char *name) {
	drop(&set->masters, name);
	drop(&set->replicas, name);
}

size_t cluster_failures_borne(const struct cluster_set *set) {
	return set->masters.count ? (set->masters.count - 1) / 2 : 0;
}

static void read_view(const struct view *v, struct cluster_set *out) {
	for (size_t i = 0; i < v->count; i++) {
		if (v->nodes[i].master) {
			add(&out->masters, v->nodes[i].name);
		} else if (v->nodes[i].replica) {
			add(&out->replicas, v->nodes[i].name);
		}
	}
}

/* A node that is to leave may have left already. If it still runs, the others know it, and there is
 * nothing to do. */
static void remove_node(const struct view *v, const char *name, struct cluster_plan *p) {
	p->unknown = view_find(v, name) ? NULL : name;
	leave(&p->after, name);
}

/* If the old node is not in the cluster, the change has been made already, or a name is mistyped.
 * Only if the old node still runs, and so is known, the first is sure. */
static void replace_node(const struct view *v, const struct pawl_change *change,
	struct cluster_plan *p) {
	bool master = cluster_names_have(&p->before.masters, change->name);
	if (!has(&p->before, change->name)) {
		p->unknown = view_find(v, change->name) ? NULL : change->name;
		return;
	}
	leave(&p->after, change->name);
	leave(&p->after, change->other);
	add(master ? &p->after.masters : &p->after.replicas, change->other);
}

static void set_nodes(const struct view *v, const struct pawl_change *change,
	struct cluster_plan *p) {
	p->after = (struct cluster_set){ .masters.count = 0 };
	for (size_t i = 0; i < change->node_count; i++) {
		const struct pawl_change_node *n = &change->nodes[i];
		add(n->master ? &p->after.masters : &p->after.replicas, n->name);
		if (!n->address && !view_find(v, n->name) && !p->unknown) {
			p->unknown = n->name;
		}
	}
}

static void set_role(const char *name, bool master, struct cluster_plan *p) {
	if (!has(&p->before, name)) {
		p->unknown = name;
		return;
	}
	leave(&p->after, name);
	add(master ? &p->after.masters : &p->after.replicas, name);
}

void cluster_plan_make(const struct view *v, const struct pawl_change *change,
	struct cluster_plan *out) {
	*out = (struct cluster_plan){ .unknown = NULL };
	read_view(v, &out->before);
	out->after = out->before;
	switch (change->kind) {
	case PAWL_ADD_REPLICA:
		if (!has(&out->before, change->name)) {
			add(&out->after.replicas, change->name);
		}
		break;
	case PAWL_PROMOTE:
	case PAWL_DEMOTE:
		set_role(change->name, change->kind == PAWL_PROMOTE, out);
		break;
	case PAWL_REMOVE:
		remove_node(v, change->name, out);
		break;
	case PAWL_REPLACE:
		replace_node(v, change, out);
		break;
	case PAWL_SET_NODES:
		set_nodes(v, change, out);
		break;
	case PAWL_SET_TIMING:
		break;
	case PAWL_FORCE:
		out->after = (struct cluster_set){ .masters.count = 0 };
		add(&out->after.masters, v->node);
		break;
	}
}
