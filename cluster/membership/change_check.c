/* change_check.c: what a change that was asked for means, and everything that can be said against
 * it, before any master is asked to agree. */
#include "plan.h"
#include "membership.h"

/* Tells plan_change what this node knows of the node with this name. */
static void describe_node(void *ctx, const char *name, struct plan_node *out) {
	const struct core *core = ctx;
	int at = peer_table_find_name(core, name);
	*out = (struct plan_node){ .known = false };
	if (at >= 0) {
		const struct peer *p = &core->peers[at];
		out->known = p->up || at == (int)core->self;
		out->id = p->link_id;
		memcpy(out->address, p->node.address, sizeof out->address);
	}
}

static bool reached(const struct core *core, const struct config_node *n) {
	return peer_table_find_id(core, n->id) >= 0;
}

/* No change is proposed before the last one is complete, except one that replaces the masters that
 * are missing. Tells whether the configuration keeps one of those. */
static bool leaves_missing(const struct core *core, const struct config *c) {
	for (uint32_t i = 0; i < core->masters; i++) {
		int at = peer_votes(core, i) ? -1 : config_find_id(c, core->config.nodes[i].id);
		if (at >= 0 && c->nodes[at].master) {
			return true;
		}
	}
	return false;
}

static bool reaches_quorum(const struct core *core, const struct config *c) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < config_masters(c); i++) {
		n += reached(core, &c->nodes[i]);
	}
	return n >= config_quorum(c);
}

/* Has a node dialled as a non-member, because it has to be heard of first. False: there is no
 * room. */
static bool ask_who(struct core *core, const struct core_change *w, struct slice who) {
	char name[NODE_NAME_MAX + 1] = { 0 }, address[ADDRESS_MAX + 1] = { 0 };
	struct slice at = w->address;
	for (uint32_t i = 0; i < w->node_count; i++) {
		at = slice_equal(w->nodes[i].name, who) ? w->nodes[i].address : at;
	}
	memcpy(name, who.data, who.size);
	memcpy(address, at.data, at.size);
	int index = peer_table_non_member(core, name, address);
	if (index >= 0) {
		peer_table_dial(core, (uint32_t)index, address);
	}
	return index >= 0;
}

/* ---- nodes that are not there yet ---- */

/* A list of names as text: "n1, n3 and 2 more". */
struct names {
	char text[CHANGE_STEP_BYTES / 2 + NODE_NAME_MAX];
	size_t size;
	/* How many names found no room. */
	uint32_t more;
};

static void names_text(struct names *n, const char *text) {
	size_t size = strlen(text);
	size = size < sizeof n->text - n->size ? size : sizeof n->text - n->size;
	slice_put((uint8_t *)n->text + n->size, slice_of(text, size));
	n->size += size;
}

static void names_add(struct names *n, const char *name) {
	if (n->more || n->size + 2 + strlen(name) > CHANGE_STEP_BYTES / 2) {
		n->more++;
		return;
	}
	names_text(n, n->size ? ", " : "");
	names_text(n, name);
}

static struct slice names_slice(struct names *n) {
	if (n->more && n->more < 10) {
		char more[] = " and 0 more";
		more[5] = (char)('0' + n->more);
		names_text(n, more);
	} else if (n->more) {
		names_text(n, " and others");
	}
	return slice_of(n->text, n->size);
}

struct obstacle {
	int error;
	const char *why;
	/* What is waited for: "to answer". */
	const char *until;
	struct slice who;
};

/* A change waits for nodes that are not there yet, and says so in its status, before it is
 * refused. */
static void wait_or_refuse(struct core *core, const struct obstacle *o) {
	struct change *g = &core->membership->change;
	if (g->state != CHANGE_WAIT) {
		g->until = instant_add(core->now,
			span_longer(CHANGE_WAIT_TIMEOUTS * core->config.request_timeout,
				CHANGE_WAIT_LEAST));
	}
	if (instant_expired(core->now, g->until)) {
		change_finish(core, o->error, o->why, o->who);
		return;
	}
	uint8_t *at = (uint8_t *)g->waits_for;
	struct slice who = slice_of(o->who.data,
		o->who.size < CHANGE_STEP_BYTES - 64 ? o->who.size : CHANGE_STEP_BYTES - 64);
	at = slice_put(slice_put(at, slice_str("waiting for ")), who);
	at = slice_put(slice_put(at, slice_str(" ")), slice_str(o->until));
	*at = '\0';
	if (g->state != CHANGE_WAIT) {
		change_step(core, CHANGE_WAIT, g->waits_for);
	}
}

static void unknown(struct core *core, const struct plan *p) {
	if (!ask_who(core, &core->membership->change.wanted, p->who)) {
		change_finish(core, PAWL_EFULL, "there is no room for another link", p->who);
		return;
	}
	const struct obstacle o = { PAWL_ENOTFOUND,
		"does not answer: is pawld running there, under this name and in this cluster, and "
		"the address right?", "to answer", p->who };
	wait_or_refuse(core, &o);
}

/* The change before this one is not complete, and this change keeps masters that are missing. */
static void incomplete(struct core *core) {
	struct names names = { .size = 0 };
	for (uint32_t i = 0; i < core->masters; i++) {
		if (!peer_votes(core, i)) {
			names_add(&names, core->config.nodes[i].name);
		}
	}
	const struct obstacle o = { PAWL_EUNSETTLED,
		"the change before this one is not complete: wait for the masters that do not vote "
		"yet, or replace them", "to vote in the present configuration",
		names_slice(&names) };
	wait_or_refuse(core, &o);
}

/* Tells whether a majority of the present masters is linked. They decide on the next configuration;
 * without a majority there is nothing that --anyway could do. */
static bool reaches_present(const struct core *core) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		n += peer_reachable(core, i);
	}
	return n >= core->quorum;
}

static void undecidable(struct core *core) {
	struct names names = { .size = 0 };
	for (uint32_t i = 0; i < core->masters; i++) {
		if (!peer_reachable(core, i)) {
			names_add(&names, core->config.nodes[i].name);
		}
	}
	const struct obstacle o = { PAWL_ENOQUORUM,
		"a majority of the present masters has to agree to any change, and too few answer: "
		"nothing was changed", "to answer", names_slice(&names) };
	wait_or_refuse(core, &o);
}

static void unreached(struct core *core) {
	const struct config *c = &core->membership->change.target;
	struct names names = { .size = 0 };
	for (uint32_t i = 0; i < config_masters(c); i++) {
		if (!reached(core, &c->nodes[i])) {
			names_add(&names, c->nodes[i].name);
		}
	}
	const struct obstacle o = { PAWL_ENOQUORUM,
		"too few of the new masters answer: the cluster would lose its quorum (--anyway "
		"does it all the same)", "to answer", names_slice(&names) };
	wait_or_refuse(core, &o);
}

/* Tells whether the node is linked and has not adopted the present configuration. What it lacks for
 * that (proof.c) it would lack for the next one, too. */
static bool behind(const struct core *core, const struct config_node *n) {
	const int index = peer_table_find_id(core, n->id);
	return index >= 0 && index != (int)core->self && !core->peers[index].epoch_frame;
}

/* Tells whether the change lets the node in, or makes it a master. */
static bool is_given_part(const struct core *core, const struct config_node *n) {
	const int at = config_find_id(&core->config, n->id);
	return at < 0 || (n->master && !core->config.nodes[at].master);
}

static bool gives_part_behind(const struct core *core, const struct config *c) {
	bool gives = false;
	for (uint32_t i = 0; i < c->node_count; i++) {
		gives = gives || (is_given_part(core, &c->nodes[i]) && behind(core, &c->nodes[i]));
	}
	return gives;
}

/* Tells whether the change gives a part to a node that has the state of the cluster as it was
 * before, or after, a forced start. Such a node never adopts a configuration of this cluster. */
static bool gives_part_apart(const struct core *core, const struct config *c, struct slice *who) {
	for (uint32_t i = 0; i < c->node_count; i++) {
		const int index = peer_table_find_id(core, c->nodes[i].id);
		const struct peer *p = index >= 0 ? &core->peers[index] : NULL;
		if (p && index != (int)core->self && p->frame_came && p->epoch > 0 &&
			p->epoch >> 32 != core->config.epoch >> 32 &&
			is_given_part(core, &c->nodes[i])) {
			*who = slice_str(p->node.name);
			return true;
		}
	}
	return false;
}

static void too_old(struct core *core) {
	const struct config *c = &core->membership->change.target;
	struct names names = { .size = 0 };
	for (uint32_t i = 0; i < c->node_count; i++) {
		if (is_given_part(core, &c->nodes[i]) && behind(core, &c->nodes[i])) {
			names_add(&names, c->nodes[i].name);
		}
	}
	const struct obstacle o = { PAWL_EUNSETTLED,
		"has not adopted the present configuration, and could not adopt the next one: "
		"'pawl status' there says what helps", "to adopt the present configuration",
		names_slice(&names) };
	wait_or_refuse(core, &o);
}

/* ---- roles ---- */

static bool is_master(const struct core *core, struct id128 id) {
	const int at = config_find_id(&core->config, id);
	return at >= 0 && core->config.nodes[at].master;
}

/* Returns the peer index of a linked node that is to become a master and must not be one, or -1.
 * This is asked again when a node has come that the change waited for. */
static int unfit(const struct core *core, const struct config *c) {
	for (uint32_t i = 0; i < config_masters(c); i++) {
		const int at = peer_table_find_id(core, c->nodes[i].id);
		if (at >= 0 && core->peers[at].no_master && !is_master(core, c->nodes[i].id)) {
			return at;
		}
	}
	return -1;
}

static void refuse_role(struct core *core, uint32_t peer) {
	COUNT(core, role_refused);
	out_note(core, NOTE_ROLE_REFUSED, peer, 0, NULL, slice_of(NULL, 0));
	change_finish(core, PAWL_EDENIED,
		"its certificate does not let it be a master: give it one without a role (pawl "
		"cert node NAME), reload it, and try again",
		slice_str(core->peers[peer].node.name));
}

/* ---- timing ---- */

/* How many times the longest round trip must fit into request_timeout, because networks and
 * machines are not always as quick as they were lately. */
#define ROUND_TRIPS 8

/* Writes the time in milliseconds, rounded up, and returns the end of the text. */
static uint8_t *put_ms(uint8_t *to, span_ns span) {
	char digits[24];
	size_t at = sizeof digits;
	uint64_t ms = (uint64_t)((span + SPAN_MS - 1) / SPAN_MS);
	do {
		digits[--at] = (char)('0' + ms % 10);
		ms /= 10;
	} while (ms);
	return slice_put(slice_put(to, slice_of(digits + at, sizeof digits - at)), slice_str("ms"));
}

/* Returns why the timing must not be set, as far as this node can tell; NULL: it may be. A
 * request_timeout that is not lowered is not examined. What was measured goes into *who, so that
 * the sentence itself is constant text, and is said also where there is no memory for more. */
static const char *timing_problem(const struct core *core, const struct config *c,
	char text[CHANGE_STEP_BYTES], struct slice *who) {
	uint32_t peer;
	span_ns longest = pace_longest(core, &peer);
	if (c->max_lease < core->config.max_lease && c->max_lease < core->limits.lease_min) {
		return "max_lease must not be below [limits] lease_min of this node: no lease "
			"would be possible";
	}
	if (c->request_timeout >= core->config.request_timeout ||
		c->request_timeout / ROUND_TRIPS >= longest) {
		return NULL;
	}
	uint8_t *to = slice_put((uint8_t *)text, slice_str(core->peers[peer].node.name));
	to = slice_put(put_ms(slice_put(to, slice_str(": a round trip with it took ")), longest),
		slice_str(" lately, and 8 times that is "));
	to = put_ms(to, ROUND_TRIPS * longest);
	*who = slice_of(text, (size_t)(to - (uint8_t *)text));
	return "request_timeout must be at least 8 times the longest round trip";
}

/* This is called again while the change waits. */
void change_check(struct core *core) {
	struct change *g = &core->membership->change;
	struct plan_view view = { .present = &core->config, .look = describe_node, .ctx = core };
	struct plan p = plan_change(&view, &g->wanted, &g->target);
	char text[CHANGE_STEP_BYTES];
	if (p.error == PAWL_OK &&
		(p.why = timing_problem(core, &g->target, text, &p.who)) != NULL) {
		p.error = PAWL_EBADREQUEST;
	}
	const int barred = p.error == PAWL_OK ? unfit(core, &g->target) : -1;
	if (barred >= 0) {
		refuse_role(core, (uint32_t)barred);
	} else if (p.ask) {
		unknown(core, &p);
	} else if (p.error != PAWL_OK) {
		change_finish(core, p.error, p.why, p.who);
	} else if (p.nothing) {
		COUNT(core, change_nothing);
		change_finish(core, PAWL_OK, NULL, p.who);
	} else if (!core->complete && leaves_missing(core, &g->target)) {
		incomplete(core);
	} else if (!reaches_present(core)) {
		undecidable(core);
	} else if (gives_part_apart(core, &g->target, &p.who)) {
		change_finish(core, PAWL_EBADREQUEST,
			"has the state of the cluster as it was before it was started over, and "
			"will never come: stop it, empty its state directory, name present masters "
			"in its file, start it, and repeat this", p.who);
	} else if (gives_part_behind(core, &g->target)) {
		too_old(core);
	} else if (!g->anyway && !reaches_quorum(core, &g->target)) {
		unreached(core);
	} else {
		g->value = g->target;
		change_prepare(core);
	}
}

/* ---- the masters of the next epoch copy what the present ones know ---- */

void change_ask_ahead(struct core *core) {
	struct change *g = &core->membership->change;
	uint8_t bytes[CONFIG_BYTES_MAX];
	struct message m = { .kind = MESSAGE_COPY_AHEAD, .round = g->round };
	m.blob = slice_of(bytes, config_encode(&g->value, bytes));
	for (uint32_t i = 0; i < config_masters(&g->value); i++) {
		int index = peer_table_find_id(core, g->value.nodes[i].id);
		if (index >= 0) {
			g->ahead[index].asked = true;
			out_send(core, (uint32_t)index, &m);
		}
	}
	/* A master that is asked for a snapshot has to know for what. */
	for (uint32_t i = 0; i < core->masters; i++) {
		if (!g->ahead[i].asked && peer_reachable(core, i)) {
			out_send(core, i, &m);
		}
	}
	g->at = instant_add(core->now, core->config.request_timeout);
}

void change_ahead_evaluate(struct core *core) {
	struct change *g = &core->membership->change;
	bool all = true;
	for (uint32_t i = 0; i < config_masters(&g->value); i++) {
		/* Without a peer index the node is gone, even where another node has its name. */
		const int index = peer_table_find_id(core, g->value.nodes[i].id);
		/* A node whose link has just come back is asked again in a moment. */
		all = all && (index < 0 || g->ahead[index].ready);
	}
	if (all) {
		propose_start(core);
	}
}

void change_prepare(struct core *core) {
	struct change *g = &core->membership->change;
	g->round = (core->durable.boot << 32) + (uint32_t)(g->round + 1);
	if (config_same_masters(&g->value, &core->config)) {
		/* With the same masters, whoever votes goes on voting. */
		propose_start(core);
		return;
	}
	change_step(core, CHANGE_PREPARE, "prepare");
	change_ask_ahead(core);
	/* Perhaps none of the future masters is linked. */
	change_ahead_evaluate(core);
}

void change_ahead(struct core *core, uint32_t from, const struct message *m) {
	struct change *g = &core->membership->change;
	if (g->state != CHANGE_PREPARE || m->round != g->round || !g->ahead[from].asked) {
		return;
	}
	if (m->status == STATUS_FULL) {
		change_finish(core, PAWL_EFULL,
			"has no room for a second table of leases in addition to its own: see its "
			"[limits] memory and keys", slice_str(core->peers[from].node.name));
		return;
	}
	struct ahead *ahead = &g->ahead[from];
	/* A master that is ready goes on copying what changes, which is no progress of the
	 * change. */
	if (m->number != ahead->number && !ahead->ready) {
		g->progress = core->now;
	}
	ahead->number = m->number;
	ahead->ready = m->status == STATUS_OK;
	ahead->other = m->status == STATUS_HELD;
	change_ahead_evaluate(core);
}

void change_copying_stalled(struct core *core) {
	const struct change *g = &core->membership->change;
	bool other = false;
	for (uint32_t i = 0; i < core->peer_count; i++) {
		other = other || (g->ahead[i].asked && g->ahead[i].other);
	}
	if (other) {
		change_finish(core, PAWL_EBUSY,
			"another change is being prepared: look at 'pawl cluster show', and repeat "
			"this one if it is still wanted", slice_of(NULL, 0));
	} else {
		change_finish(core, PAWL_ETIMEOUT,
			"a new master makes no progress in copying the leases: its log says why",
			slice_of(NULL, 0));
	}
}

void change_peer_added(struct core *core, uint32_t peer) {
	core->membership->change.ahead[peer] = (struct ahead){ .asked = false };
}
