/* change.c: coordinating one change of the configuration, from the request to the new masters'
 * votes (section 6).
 *
 *   WAIT --linked, complete--> PREPARE --copied--> PROMISE --q--> ACCEPT --q--> ADOPT
 *                                                        ^  a rival    |
 *                                                        +-- PAUSE <---+
 *   ADOPT --they vote--> answered
 *
 * Only a master of the present epoch coordinates a change, and any such master may finish a decree
 * whose proposer died. Copying ahead only shortens the gap between the epochs. */
#include "plan.h"
#include "membership.h"

#define WHY_BYTES 400

/* ---- answering ---- */

static void fill_result(const struct core *core, struct core_reply *r) {
	r->epoch = core_born(core) ? core->config.epoch : 0;
	r->settled = epoch_voters(core) >= core->quorum;
	r->complete = core->complete;
	r->missing = epoch_missing(core);
}

/* Puts `who` before `what`. `what` is constant text, because it may be read when this step is long
 * over. */
static struct slice say(struct core *core, const char *what, struct slice who) {
	/* Without memory, the text is said without the name. */
	struct slice text = what ? slice_str(what) : slice_of(NULL, 0);
	uint8_t *to = what && who.size ? out_room(core, WHY_BYTES) : NULL;
	if (to) {
		size_t n = 0, size = strlen(what);
		if (who.size && who.size <= CHANGE_STEP_BYTES) {
			memcpy(to, who.data, who.size);
			memcpy(to + who.size, ": ", 2);
			n = who.size + 2;
		}
		size = size < WHY_BYTES - n ? size : WHY_BYTES - n;
		memcpy(to + n, what, size);
		text = slice_of(to, n + size);
	}
	return text;
}

static void answer(struct core *core, uint64_t id, uint64_t client, int error, const char *why,
	struct slice who) {
	struct core_reply *r = out_reply(core);
	r->id = id;
	r->client = client;
	r->op = CORE_CHANGE;
	r->error = error;
	r->quorum = core->quorum;
	r->why = say(core, why, who);
	fill_result(core, r);
	if (error == PAWL_ENOQUORUM) {
		r->silent = r->missing;
	}
}

void change_finish(struct core *core, int error, const char *why, struct slice who) {
	struct change *g = &core->membership->change;
	core->counts[error == PAWL_OK ? COUNT_change_done : error == PAWL_EMISMATCH
		? COUNT_change_lost : COUNT_change_refused]++;
	if (g->has_caller) {
		answer(core, g->id, g->client, error, why, who);
		out_caller_removed(core);
	}
	if (g->state == CHANGE_PREPARE) {
		for (uint32_t i = 0; i < core->peer_count; i++) {
			struct message end = { .kind = MESSAGE_COPY_AHEAD_END, .round = g->round };
			if (g->ahead[i].asked) {
				out_send(core, i, &end);
			}
		}
	}
	peer_table_dial_no_more(core);
	alloc_free(&core->alloc, g->text, g->text_size);
	uint64_t round = g->round;
	memset(g, 0, sizeof *g);
	g->round = round;
	peer_table_non_member_lost(core);
}

void change_step(struct core *core, enum change_state state, const char *text) {
	core->membership->change.state = state;
	core->membership->change.progress = core->now;
	out_note(core, NOTE_CHANGE, core->self, core->membership->change.value.epoch, text,
		slice_of(NULL, 0));
}

const char *change_step_name(const struct core *core) {
	switch (core->membership->change.state) {
	case CHANGE_IDLE: return NULL;
	case CHANGE_WAIT: return core->membership->change.waits_for;
	case CHANGE_PREPARE: return "copying leases to the new masters";
	case CHANGE_PROMISE: case CHANGE_PAUSE: return "asking the masters to decide";
	case CHANGE_ACCEPT: return "having the decision written down";
	case CHANGE_ADOPT: return "decided; waiting for the new masters to vote";
	}
	return NULL;
}

void change_progress(const struct core *core, uint64_t *done, uint64_t *total) {
	const struct change *g = &core->membership->change;
	*done = *total = 0;
	for (uint32_t i = 0; g->state == CHANGE_PREPARE && i < core->peer_count; i++) {
		/* Each future master copies from enough sources, each of which has about as much as
		 * this node. */
		if (g->ahead[i].asked) {
			*done += g->ahead[i].number;
			*total += config_sources(core->masters) * table_live(core)->held_count;
		}
	}
}

/* ---- it is adopted ---- */

/* Answers the change once its masters vote. `over`: it has waited for that long enough. */
static void adopted_evaluate(struct core *core, bool over) {
	const struct change *g = &core->membership->change;
	if (g->forcing) {
		return;
	}
	bool all = true;
	for (uint32_t i = 0; i < core->masters; i++) {
		all = all && (peer_votes(core, i) || !peer_reachable(core, i));
	}
	bool settled = epoch_voters(core) >= core->quorum;
	if (core->config.epoch >= g->value.epoch && ((settled && all) || over)) {
		const char *warning = settled ? NULL
			: "it was decided, but too few of its masters vote yet: look at 'pawl "
				"cluster show'";
		change_finish(core, PAWL_OK,
			core->complete || !settled ? warning
			: "it is settled, but some masters do not vote yet", slice_of(NULL, 0));
	}
}

/* The configuration may be that of this node's own change, or somebody else's. */
void change_adopted(struct core *core) {
	struct change *g = &core->membership->change;
	if (g->state == CHANGE_IDLE) {
		return;
	}
	if (g->forcing) {
		change_finish(core, PAWL_OK,
			"nothing is granted before the longest lease is over: see 'pawl status'",
			slice_of(NULL, 0));
		return;
	}
	bool mine = g->value.epoch == core->config.epoch &&
		config_hash(&g->value) == core->config_hash && !g->foreign;
	if (mine) {
		change_step(core, CHANGE_ADOPT, "adopted");
		/* Next the votes are counted (change_peer_changed). */
		g->until = instant_add(core->now, ADOPT_WAIT);
	} else if (g->state == CHANGE_ADOPT && !g->foreign && g->value.epoch < core->config.epoch) {
		change_finish(core, PAWL_OK,
			"it was decided, and another change after it: look at 'pawl cluster show'",
			slice_of(NULL, 0));
	} else if (g->finishing) {
		COUNT(core, decree_finished_for_other);
		change_finish(core, PAWL_OK, NULL, slice_of(NULL, 0));
	} else {
		change_finish(core, PAWL_EMISMATCH,
			"another change was chosen first: look at 'pawl cluster show', and repeat "
			"this one if it is still wanted", slice_of(NULL, 0));
	}
}

void change_peer_changed(struct core *core) {
	if (core->membership->change.state == CHANGE_ADOPT) {
		adopted_evaluate(core, false);
	} else if (core->membership->change.state == CHANGE_PREPARE) {
		change_ahead_evaluate(core);
	} else if (core->membership->change.state == CHANGE_WAIT) {
		change_check(core);
	}
}

void change_peer_up(struct core *core) {
	if (core->membership->change.state == CHANGE_WAIT) {
		change_check(core);
	}
}

/* ---- time ---- */

/* Does what is due in the present state. */
static void go_on(struct core *core) {
	struct change *g = &core->membership->change;
	bool due = instant_expired(core->now, g->at);
	switch (g->state) {
	case CHANGE_IDLE: break;
	case CHANGE_WAIT: change_check(core); break;
	case CHANGE_PREPARE:
		if (instant_elapsed_short(core->now, g->progress) >
			span_longer(10 * core->config.request_timeout, CHANGE_WAIT_LEAST)) {
			change_copying_stalled(core);
		} else if (due) {
			change_ask_ahead(core);
			change_ahead_evaluate(core);
		}
		break;
	case CHANGE_PROMISE: case CHANGE_ACCEPT: propose_beat(core); break;
	case CHANGE_PAUSE:
		if (due) {
			propose_again(core);
		}
		break;
	case CHANGE_ADOPT: adopted_evaluate(core, instant_expired(core->now, g->until)); break;
	}
}

/* If a decree was accepted here, and its proposer did not come back with its end, this master
 * finishes it. */
static void finish_for_other(struct core *core) {
	struct change *g = &core->membership->change;
	bool waits = core->durable.decree_config.epoch == core->config.epoch + 1 &&
		core->durable.voted && !core->adopting && core->self < core->masters;
	if (!waits || g->state != CHANGE_IDLE || core->state == CORE_DRAINED ||
		!instant_expired(core->now, core->membership->finish_at)) {
		return;
	}
	g->finishing = true;
	g->target = g->value = core->durable.decree_config;
	propose_start(core);
}

void change_accepted(struct core *core) {
	span_ns t = span_longer(core->config.request_timeout, DECREE_FINISH_LEAST);
	core->membership->finish_at =
		instant_add(core->now, 2 * t + prng_between(&core->prng, 0, 2 * t));
}

/* Tells whether a node that came back with a new identity may take its place. A node that must not
 * be a master does not take a master's place: it waits for an operator, who is told so. */
static bool may_take_its_place(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	bool may = !(p->node.master && p->no_master);
	if (!may && !p->no_master_told) {
		p->no_master_told = true;
		COUNT(core, role_refused);
		out_note(core, NOTE_ROLE_REFUSED, peer, 0, NULL, slice_of(NULL, 0));
	}
	return may;
}

/* With auto_replace, the first voting master gives a node that came back with a new identity its
 * place again. */
static void auto_replace(struct core *core) {
	if (!core_votes(core) || core->membership->change.state != CHANGE_IDLE) {
		return;
	}
	for (uint32_t i = 0; i < core->self; i++) {
		if (peer_votes(core, i)) {
			return;
		}
	}
	for (uint32_t i = 0; i < core->config.node_count; i++) {
		const struct peer *p = &core->peers[i];
		if (p->up && !p->linked && p->epoch_frame && i != core->self &&
			instant_elapsed_short(core->now, p->up_since) >
				2 * core->config.request_timeout &&
			may_take_its_place(core, i)) {
			struct core_change w = { .kind = CHANGE_REPLACE,
				.name = slice_str(p->node.name), .other = slice_str(p->node.name) };
			struct core_request r = { .op = CORE_CHANGE, .change = &w };
			COUNT(core, auto_replaced);
			change_begin(core, &r, false);
			return;
		}
	}
}

void change_beat(struct core *core) {
	if (core->durable.decree_config.epoch > core->config.epoch) {
		finish_for_other(core);
	}
	if (core->membership->auto_replace) {
		auto_replace(core);
	}
	if (core->membership->change.state != CHANGE_IDLE) {
		go_on(core);
	}
}

/* ---- the request ---- */

static bool keep_slice(struct change *g, size_t *at, struct slice from, struct slice *to) {
	if (from.size) {
		memcpy(g->text + *at, from.data, from.size);
	}
	*to = slice_of(g->text + *at, from.size);
	*at += from.size;
	return true;
}

/* Copies what is wanted, as the request's bytes are borrowed. False: there is no memory. */
static bool keep_wanted(struct core *core, const struct core_change *w) {
	struct change *g = &core->membership->change;
	size_t size = 1 + w->name.size + w->other.size + w->address.size, at = 0;
	for (uint32_t i = 0; i < w->node_count; i++) {
		size += w->nodes[i].name.size + w->nodes[i].address.size;
	}
	g->text = alloc_new(&core->alloc, size);
	if (g->text == NULL) {
		return false;
	}
	g->text_size = size;
	g->wanted = *w;
	keep_slice(g, &at, w->name, &g->wanted.name);
	keep_slice(g, &at, w->other, &g->wanted.other);
	keep_slice(g, &at, w->address, &g->wanted.address);
	for (uint32_t i = 0; i < w->node_count; i++) {
		g->wanted_nodes[i] = w->nodes[i];
		keep_slice(g, &at, w->nodes[i].name, &g->wanted_nodes[i].name);
		keep_slice(g, &at, w->nodes[i].address, &g->wanted_nodes[i].address);
	}
	g->wanted.nodes = g->wanted_nodes;
	return true;
}

static bool name_fits(struct slice s, size_t max) {
	return s.size <= max && (s.size == 0 || memchr(s.data, 0, s.size) == NULL);
}

static bool sizes_fit(const struct core_change *w) {
	bool fit = w->node_count <= CONFIG_NODES_MAX && name_fits(w->name, NODE_NAME_MAX) &&
		name_fits(w->other, NODE_NAME_MAX) && name_fits(w->address, ADDRESS_MAX);
	for (uint32_t i = 0; fit && i < w->node_count; i++) {
		fit = name_fits(w->nodes[i].name, NODE_NAME_MAX) &&
			name_fits(w->nodes[i].address, ADDRESS_MAX);
	}
	return fit;
}

static bool same_wanted(const struct core_change *a, const struct core_change *b) {
	bool same = a->kind == b->kind && slice_equal(a->name, b->name) &&
		slice_equal(a->other, b->other) && slice_equal(a->address, b->address) &&
		a->node_count == b->node_count && a->max_lease == b->max_lease &&
		a->request_timeout == b->request_timeout &&
		a->promise_timeout == b->promise_timeout && a->drift_ppm == b->drift_ppm &&
		a->has_drift == b->has_drift && a->anyway == b->anyway;
	for (uint32_t i = 0; same && i < a->node_count; i++) {
		const struct core_change_node *x = &a->nodes[i], *y = &b->nodes[i];
		same = slice_equal(x->name, y->name) && slice_equal(x->address, y->address) &&
			x->master == y->master;
	}
	return same;
}

/* Tells whether the request repeats an earlier one whose answer was lost: a forced start that was
 * made, or a change that goes on although its caller has left. Answers it, or joins it to the
 * change. */
static bool repeated(struct core *core, const struct core_request *r) {
	struct change *g = &core->membership->change;
	if (r->change->kind == CHANGE_FORCE && force_done(core)) {
		COUNT(core, change_nothing);
		answer(core, r->id, r->client, PAWL_OK, NULL, slice_of(NULL, 0));
		return true;
	}
	if (g->state == CHANGE_IDLE || g->has_caller || g->finishing || g->forcing ||
		!same_wanted(&g->wanted, r->change)) {
		return false;
	}
	g->has_caller = true;
	g->id = r->id;
	g->client = r->client;
	out_caller_added(core);
	return true;
}

/* Returns a master that votes, as far as this node sees, or else the first master. */
static uint32_t a_master(const struct core *core) {
	uint32_t at = 0;
	while (at < core->masters && !peer_votes(core, at)) {
		at++;
	}
	return at < core->masters ? at : 0;
}

void change_begin(struct core *core, const struct core_request *r, bool has_caller) {
	const struct core_change *w = r->change;
	struct slice nobody = slice_of(NULL, 0), who = nobody;
	bool inside = core_born(core) && core->peers[core->self].standing == PEER_MEMBER &&
		core->state != CORE_DRAINED;
	int error = PAWL_OK;
	const char *why = NULL;
	if (!sizes_fit(w)) {
		error = PAWL_EBADREQUEST;
		why = "a name has at most 63 bytes, an address 255, a configuration 48 nodes";
	} else if (!inside && !(w->kind == CHANGE_FORCE && force_possible(core))) {
		error = PAWL_ERECOVERING;
		why = engine_absence(core);
		why = why ? why : "this node belongs to no cluster: ask one that does";
	} else if (core->self >= core->masters && w->kind != CHANGE_FORCE) {
		error = PAWL_ERECOVERING;
		why = "ask this node, which is a master: only masters can propose a change";
		who = slice_str(core->config.nodes[a_master(core)].name);
	} else if (has_caller && repeated(core, r)) {
		return;
	} else if (w->kind == CHANGE_FORCE) {
		error = force_begin(core, w, &why);
		/* That change waited for a majority which is lost. */
		if (error == PAWL_OK && core->membership->change.state != CHANGE_IDLE) {
			change_finish(core, PAWL_EMISMATCH,
				"the cluster was started over meanwhile", nobody);
		}
	} else if (core->membership->change.state != CHANGE_IDLE) {
		error = PAWL_EBUSY;
		why = "another change is under way at this node: see 'pawl status'";
	} else if (!keep_wanted(core, w)) {
		error = PAWL_EBUSY;
		why = "out of memory";
	}
	if (error != PAWL_OK) {
		COUNT(core, change_refused);
		if (has_caller) {
			answer(core, r->id, r->client, error, why, who);
		}
		return;
	}
	struct change *g = &core->membership->change;
	g->has_caller = has_caller;
	g->id = r->id;
	g->client = r->client;
	g->anyway = w->anyway;
	if (has_caller) {
		out_caller_added(core);
	}
	/* A forced start is answered when it is on disk. */
	if (w->kind == CHANGE_FORCE) {
		g->forcing = true;
		g->value = core->durable.config;
		change_step(core, CHANGE_ADOPT, "force");
		g->until = INSTANT_FOREVER;
	} else {
		change_check(core);
	}
}

void change_client_gone(struct core *core, uint64_t client) {
	struct change *g = &core->membership->change;
	if (g->state != CHANGE_IDLE && g->has_caller && g->client == client) {
		/* The change goes on. */
		g->has_caller = false;
		out_caller_removed(core);
	}
}

void change_free(struct core *core) {
	alloc_free(&core->alloc, core->membership->change.text, core->membership->change.text_size);
}
