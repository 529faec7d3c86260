/* announced.c: which nodes are to be masters of the next epoch, so that they may copy ahead what
 * this node has. It decides nothing about the change itself. */
#include "recovery.h"

/* When nobody has asked again for so long, the coordinator of the change is gone, and the decree,
 * if there was one, has not arrived. */
struct instant announced_until(const struct core *core) {
	return instant_add(core->now, 2 * core->config.promise_timeout);
}

/* Of two changes that are announced at the same time, the one whose configuration has the smaller
 * hash goes first, at all nodes. Otherwise each of them would undo at one node what the other one
 * has done there. Returns false if this change is not the one. */
bool announced_goes_first(struct core *core, const struct config *c) {
	struct announced *a = &core->recovery->announced;
	const uint64_t hash = config_hash(c);
	if (a->count && a->hash < hash && !instant_expired(core->now, a->until)) {
		COUNT(core, copy_ahead_goes_first);
		return false;
	}
	a->hash = hash;
	a->until = announced_until(core);
	a->count = config_masters(c);
	for (uint32_t i = 0; i < a->count; i++) {
		a->masters[i] = c->nodes[i].id;
	}
	return true;
}

bool announced_next_master(const struct core *core, uint32_t peer) {
	const struct config *accepted = &core->durable.decree_config;
	const struct id128 id = core->peers[peer].link_id;
	const int at = accepted->epoch == core->config.epoch + 1 ? config_find_id(accepted, id)
		: -1;
	bool is = at >= 0 && accepted->nodes[at].master;
	for (uint32_t i = 0; i < core->recovery->announced.count; i++) {
		is = is || id128_equal(core->recovery->announced.masters[i], id);
	}
	return is && proof_identity(core, peer);
}

/* What may be chosen is the next epoch of this cluster, whose handover asks this epoch's
 * masters. */
bool announced_may_follow(const struct core *core, const struct config *c) {
	bool good = config_problem(c) == NULL && c->epoch == core->config.epoch + 1 &&
		id128_equal(c->cluster_id, core->config.cluster_id) &&
		strcmp(c->cluster, core->config.cluster) == 0 &&
		c->previous_master_count == core->masters;
	for (uint32_t i = 0; good && i < core->masters; i++) {
		good = id128_equal(c->previous_masters[i].id, core->config.nodes[i].id);
	}
	return good;
}
