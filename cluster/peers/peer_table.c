/* peer_table.c: the table of peers: the nodes of the configuration in its order, masters first;
 * then masters of the previous epoch that are not in it; then non-members. A node is known by its
 * name, and keeps its link when it gets another index. */
#include "peers.h"

#include "core_status.h"

/* The table that is to be. */
struct layout {
	struct config_node nodes[NODES_MAX];
	enum standing standing[NODES_MAX];
	uint32_t count;
};

/* Memory that is taken at the start, because a new epoch must not fail where there is none. */
struct peer_table_room {
	struct layout layout;
	struct peer old[NODES_MAX];
};

/* Adds a node, unless its name is there already. False: the table is full. */
static bool add(struct layout *l, const struct config_node *node, enum standing standing) {
	for (uint32_t i = 0; i < l->count; i++) {
		if (strcmp(l->nodes[i].name, node->name) == 0) {
			/* One name has one link. A node that took the place of a former master is
			 * reached instead of that one. */
			return true;
		}
	}
	if (l->count == NODES_MAX) {
		return false;
	}
	l->nodes[l->count] = *node;
	l->standing[l->count++] = standing;
	return true;
}

static int find_name(const struct core *core, const char *name) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (strcmp(core->peers[i].node.name, name) == 0) {
			return (int)i;
		}
	}
	return -1;
}

int peer_table_find_name(const struct core *core, const char *name) {
	return find_name(core, name);
}

int peer_table_find_id(const struct core *core, struct id128 id) {
	if (id128_equal(id, core->durable.node_id)) {
		return (int)core->self;
	}
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (core->peers[i].up && id128_equal(core->peers[i].link_id, id) &&
			proof_identity(core, i)) {
			return (int)i;
		}
	}
	return -1;
}

static void init_peer(struct peer *p) {
	*p = (struct peer){ .up = false };
	list_init(&p->promises);
	list_init(&p->parked);
	list_init(&p->waiters);
}

/* Moves the elements of a list from one peer to another. */
static void move_list(struct list *to, struct list *from) {
	list_init(to);
	struct list *n;
	while ((n = list_first(from)) != NULL) {
		list_remove(n);
		list_append(to, n);
	}
}

static void move_peer(struct peer *to, struct peer *from) {
	*to = *from;
	move_list(&to->promises, &from->promises);
	move_list(&to->parked, &from->parked);
	move_list(&to->waiters, &from->waiters);
}

static bool self_member(const struct core *core) {
	int at = config_find_name(&core->config, core->name);
	return at >= 0 && (core->config_hash == 0 ||
		id128_equal(core->config.nodes[at].id, core->durable.node_id));
}

static void lay_out(struct core *core, struct layout *l) {
	const struct config *c = &core->config;
	struct config_node self = { .id = core->durable.node_id };
	memcpy(self.name, core->name, sizeof self.name);
	/* This is the address that the configuration before this one has, if this node was in
	 * that. */
	const char *address = core->peers[core->self].node.address;
	memcpy(self.address, address[0] ? address : core->address, sizeof self.address);
	l->count = 0;
	bool inside = self_member(core);
	for (uint32_t i = 0; i < c->node_count; i++) {
		/* If the configuration gives this node's name to another identity, this node is a
		 * non-member, and the place of the name is nobody's. */
		bool lost = !inside && strcmp(c->nodes[i].name, core->name) == 0;
		l->nodes[l->count] = c->nodes[i];
		l->standing[l->count] = PEER_MEMBER;
		if (lost) {
			/* Nobody has an empty name, so the place stays and is never linked. */
			l->nodes[l->count].name[0] = 0;
		}
		l->count++;
	}
	for (uint32_t i = 0; i < c->previous_master_count; i++) {
		if (strcmp(c->previous_masters[i].name, core->name) != 0) {
			(void)add(l, &c->previous_masters[i], PEER_FORMER);
		}
	}
	if (!inside) {
		CHECK(l->count < NODES_MAX);
		l->nodes[l->count] = self;
		l->standing[l->count++] = PEER_NON_MEMBER;
	}
	for (uint32_t i = 0; i < core->peer_count; i++) {
		const struct peer *p = &core->peers[i];
		if (i != core->self && (p->up || p->wanted) && p->node.name[0]) {
			(void)add(l, &p->node, PEER_NON_MEMBER);
		}
	}
}

/* Sets what depends on the configuration: whether the link leads to the identity that it has for
 * the name. What the node said under the previous epoch is forgotten. */
static void settle_link(struct core *core, struct peer *p) {
	p->linked = p->up && p->standing != PEER_NON_MEMBER && core_born(core) &&
		id128_equal(p->node.id, p->link_id);
	p->voting = p->epoch_frame = p->in_epoch = p->complete = false;
	/* The answer was for the previous epoch. */
	p->decree.kind = (enum message_kind)0;
	p->far_ahead = p->wrong_noted = p->expected = p->suspect = false;
	p->said_clock = 0;
}

static uint32_t find_self(const struct core *core, const struct layout *l) {
	for (uint32_t i = 0; i < l->count; i++) {
		if (strcmp(l->nodes[i].name, core->name) == 0) {
			return i;
		}
	}
	CHECK(false);
	return 0;
}

static void place_peers(struct core *core, const struct layout *l, struct peer *old,
	const int from[NODES_MAX]) {
	for (uint32_t i = 0; i < l->count; i++) {
		struct peer *p = &core->peers[i];
		if (from[i] >= 0) {
			move_peer(p, &old[from[i]]);
		} else {
			init_peer(p);
		}
		p->node = l->nodes[i];
		p->standing = l->standing[i];
		if (p->standing == PEER_NON_MEMBER && p->up) {
			p->node.id = p->link_id;
		}
		settle_link(core, p);
	}
	for (uint32_t i = l->count; i < core->peer_count; i++) {
		init_peer(&core->peers[i]);
	}
}

static bool has_place(const int from[NODES_MAX], uint32_t before) {
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		if (from[i] == (int)before) {
			return true;
		}
	}
	return false;
}

void peer_table_rebuild(struct core *core) {
	struct layout *l = &core->peering.peer_table_room->layout;
	struct peer *old = core->peering.peer_table_room->old;
	int from[NODES_MAX];
	lay_out(core, l);
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		from[i] = i < l->count && l->nodes[i].name[0]
			? find_name(core, l->nodes[i].name) : -1;
	}
	for (uint32_t i = 0; i < core->peer_count; i++) {
		/* The table is full, so the link ends with its place. */
		if (core->peers[i].up && !has_place(from, i)) {
			core->observers->peer_dropped(core, i);
		}
		move_peer(&old[i], &core->peers[i]);
	}
	place_peers(core, l, old, from);
	/* Whether they are silent shows anew. */
	core->peering.suspects = 0;
	core->self = find_self(core, l);
	core->peers[core->self].link_id = core->durable.node_id;
	core->peer_count = l->count;
	if (core->out) {
		out_permute(core, from);
	}
	core->observers->peers_moved(core, from);
	core->peering.peers_changed = true;
}

int peer_table_init(struct core *core) {
	core->peering.peer_table_room = alloc_new(&core->alloc,
		sizeof *core->peering.peer_table_room);
	if (core->peering.peer_table_room == NULL) {
		return PAWL_ENOMEM;
	}
	peer_table_rebuild(core);
	core->peering.peers_changed = false;
	return PAWL_OK;
}

void peer_table_done(struct core *core) {
	alloc_free(&core->alloc, core->peering.peer_table_room,
		sizeof *core->peering.peer_table_room);
}

/* ---- non-members ---- */

/* Tells whether the place is in use; the places of non-members without a link are not. */
static bool non_member_here(const struct core *core, uint32_t index) {
	const struct peer *p = &core->peers[index];
	return p->standing != PEER_NON_MEMBER || p->up || p->wanted || index == core->self;
}

/* Returns the place of a non-member that is gone, or a new one. */
static uint32_t free_index(const struct core *core) {
	uint32_t index = 0;
	while (index < core->peer_count && non_member_here(core, index)) {
		index++;
	}
	return index;
}

int peer_table_non_member(struct core *core, const char *name, const char *address) {
	int at = find_name(core, name);
	if (at >= 0) {
		return at;
	}
	uint32_t index = free_index(core);
	if (index == NODES_MAX) {
		return PAWL_EFULL;
	}
	struct peer *p = &core->peers[index];
	init_peer(p);
	core->observers->peer_added(core, index);
	if (core->out) {
		out_peer_gone(core, index);
	}
	memcpy(p->node.name, name, strlen(name) + 1);
	memcpy(p->node.address, address, strlen(address) + 1);
	p->standing = PEER_NON_MEMBER;
	core->peering.peers_changed = true;
	COUNT(core, non_member);
	core->peer_count += index == core->peer_count;
	return (int)index;
}

int core_welcome(struct core *core, const char *name) {
	return strlen(name) > NODE_NAME_MAX || name[0] == 0 ? PAWL_EINVAL
		: peer_table_non_member(core, name, "");
}

/* A non-member is gone when its link is, unless a change waits for it. Only the last ones leave the
 * table, so that no index changes. */
void peer_table_non_member_lost(struct core *core) {
	while (core->peer_count > 0) {
		if (non_member_here(core, core->peer_count - 1)) {
			return;
		}
		core->peer_count--;
		core->peering.peers_changed = true;
		if (core->out) {
			out_peer_gone(core, core->peer_count);
		}
	}
}

void peer_table_dial(struct core *core, uint32_t peer, const char *address) {
	struct peer *p = &core->peers[peer];
	core->peering.peers_changed = core->peering.peers_changed || !p->wanted;
	p->wanted = true;
	if (p->standing == PEER_NON_MEMBER && address[0] && strcmp(p->node.address, address) != 0) {
		memcpy(p->node.address, address, strlen(address) + 1);
		core->peering.peers_changed = true;
	}
}

void peer_table_dial_no_more(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		core->peering.peers_changed = core->peering.peers_changed || core->peers[i].wanted;
		core->peers[i].wanted = false;
	}
}

/* A node that is not linked with a quorum of its epoch (before birth, of the initial masters) may
 * have missed a change, and those who would have dialled it may no longer know it. So it dials all
 * nodes it knows. */
void peer_table_beat(struct core *core) {
	uint32_t near = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		near += i == core->self ||
			(core_born(core) ? core->peers[i].in_epoch : core->peers[i].up);
	}
	core->peering.near_at = near >= core->quorum ? core->now : core->peering.near_at;
	bool isolated = instant_elapsed_short(core->now, core->peering.near_at) >
		core->config.request_timeout;
	core->peering.peers_changed = core->peering.peers_changed ||
		isolated != core->peering.isolated;
	core->peering.isolated = isolated;
}

/* ---- looking in ---- */

/* Of two members the one with the smaller name dials. A node that is outside dials the members: it
 * knows their addresses, and they do not know its own. */
bool core_peer_is_member(const struct core *core, uint32_t peer) {
	return core->peers[peer].standing != PEER_NON_MEMBER;
}

bool core_peer_dialled(const struct core *core, uint32_t peer) {
	const struct peer *p = &core->peers[peer];
	if (peer == core->self || p->node.name[0] == 0 || p->node.address[0] == 0) {
		return false;
	}
	bool outside = core->peers[core->self].standing == PEER_NON_MEMBER;
	return outside || core->peering.isolated || p->wanted || p->standing == PEER_NON_MEMBER ||
		strcmp(core->name, p->node.name) < 0;
}

const struct config_node *core_peer(const struct core *core, uint32_t peer) {
	return &core->peers[peer].node;
}

uint32_t core_peer_count(const struct core *core) {
	return core->peer_count;
}

uint32_t core_self(const struct core *core) {
	return core->self;
}

bool core_out_peers_changed(struct core_out *out) {
	struct core *core = out_core(out);
	bool changed = core->peering.peers_changed;
	core->peering.peers_changed = false;
	return changed;
}
