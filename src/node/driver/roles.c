/* roles.c: compares the roles in certificates with changes of the cluster, and with this node's own
 * place in it.
 */
#include "roles.h"

#include <stdio.h>

#include "log.h"

/* Returns the index of the peer with that name, or -1. */
static int roles_find(const struct driver *d, struct slice name) {
	for (uint32_t i = 0; i < core_peer_count(d->core); i++) {
		if (slice_equal(name, slice_str(core_peer(d->core, i)->name))) {
			return (int)i;
		}
	}
	return -1;
}

static const struct tls_identity *roles_certificate(const struct driver *d, int peer) {
	if (peer < 0) {
		return NULL;
	}
	if ((uint32_t)peer == core_self(d->core)) {
		return d->own_certificate.serial[0] ? &d->own_certificate : NULL;
	}
	return d->peers ? peers_certificate(d->peers, (uint32_t)peer) : NULL;
}

static bool roles_forbid_master(const struct driver *d, int peer, char why[ROLES_WHY_BYTES]) {
	const struct tls_identity *certificate = roles_certificate(d, peer);
	if (!certificate || certificate->role >= NODE_ROLE_MASTER) {
		return false;
	}
	const char *name = core_peer(d->core, (uint32_t)peer)->name;
	snprintf(why, ROLES_WHY_BYTES,
		"%s cannot be a master: its certificate (serial %s) only allows it to be a %s. "
		"Make one without a role (pawl cert node %s), reload that "
		"node, and try again", name,
		certificate->serial, certificate->role == NODE_ROLE_EMBEDDED
		? "replica inside a program" : "replica", name);
	return true;
}

/* Returns whether the node whose place another one takes was a replica. A node that is not known
 * may be a master. */
static bool roles_was_replica(const struct driver *d, struct slice name) {
	int peer = roles_find(d, name);
	return peer >= 0 && !core_peer(d->core, (uint32_t)peer)->master;
}

bool roles_forbid(const struct driver *d, const struct core_change *change,
	char why[ROLES_WHY_BYTES]) {
	switch (change->kind) {
	case CHANGE_PROMOTE:
		return roles_forbid_master(d, roles_find(d, change->name), why);
	case CHANGE_REPLACE:
		return !roles_was_replica(d, change->name)
			&& roles_forbid_master(d, roles_find(d, change->other), why);
	case CHANGE_SET_NODES:
		for (uint32_t i = 0; i < change->node_count; i++) {
			if (change->nodes[i].master
				&& roles_forbid_master(d, roles_find(d, change->nodes[i].name),
				why)) {
				return true;
			}
		}
		return false;
	case CHANGE_FORCE:
		return roles_forbid_master(d, (int)core_self(d->core), why);
	case CHANGE_ADD_REPLICA:
	case CHANGE_DEMOTE:
	case CHANGE_REMOVE:
	case CHANGE_SET_TIMING:
		return false;
	}
	return false;
}

/* This only logs: the nodes that know the new configuration refuse this node's links by
 * themselves. */
void roles_check_own(struct driver *d) {
	const struct tls_identity *own = &d->own_certificate;
	bool forbidden = own->serial[0] && own->role < NODE_ROLE_MASTER
		&& d->nodes[core_self(d->core)]->master;
	if (forbidden && !d->role_told) {
		log_to(d->log, LEVEL_ERROR, "role_refused", LOG_TEXT("peer", d->context.node),
			LOG_TEXT("role", node_role_name(own->role)),
			LOG_TEXT("why",
				"this node is a master in the configuration, but its certificate "
				"does not allow that"),
			LOG_TEXT("remedy",
				"give this node a certificate without a role (pawl cert node) and "
				"reload, or demote it (pawl cluster demote)"));
	}
	d->role_told = forbidden;
}
