/* birth.c: the beginning of a cluster (section 6, Birth). Each initial master pledges the whole
 * configuration of epoch 1, with the identities that it heard, once and for ever. It writes epoch
 * 1, already marked `voted`, once all have pledged the same, or once one of them tells that it has
 * written an epoch 1 that equals this node's own pledge. Pledges that differ stop the birth, except
 * for a node that joins a birth which is done. Nothing is granted before epoch 1 is written.
 *
 *   not pledged --identities of all heard--> pledged --on disk, all equal--> writing
 *   writing --on disk--> VOTING
 */
#include "membership.h"

static bool same_config(const struct config *a, const struct config *b) {
	uint8_t x[CONFIG_BYTES_MAX], y[CONFIG_BYTES_MAX];
	size_t n = config_encode(a, x);
	return n == config_encode(b, y) && memcmp(x, y, n) == 0;
}

/* Tells this peer the pledge, or the configuration of epoch 1 when this node is born. */
static void tell(struct core *core, uint32_t peer) {
	uint8_t bytes[CONFIG_BYTES_MAX];
	bool born = core_born(core);
	if (!born && !(core->durable.pledged && persist_has_pledged(core))) {
		return;
	}
	struct message m = { .kind = MESSAGE_PLEDGE, .flags = born ? FLAG_BORN : 0 };
	m.blob = slice_of(bytes, config_encode(born ? &core->config : &core->durable.config,
		bytes));
	out_send(core, peer, &m);
}

/* Pledges if all identities have been heard. */
static void pledge(struct core *core) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (id128_zero(core->peers[i].link_id)) {
			/* An identity has not been heard yet. */
			return;
		}
	}
	struct config *c = &core->durable.config;
	*c = core->config;
	c->epoch = 1;
	for (uint32_t i = 0; i < c->node_count; i++) {
		c->nodes[i].id = core->peers[i].link_id;
	}
	if (config_problem(c) != NULL) {
		core->membership->birth_stopped = true;
		COUNT(core, birth_refused);
		out_note(core, NOTE_BIRTH_DIFFERS, core->self, 0, config_problem(c),
			slice_of(NULL, 0));
		c->epoch = 0;
		return;
	}
	uint64_t name[2] = { config_hash(c), 0 };
	c->cluster_id = (struct id128){ { 1 } };
	name[1] = config_hash(c);
	memcpy(c->cluster_id.b, name, sizeof name);
	core->config = *c;
	core->durable.pledged = true;
	persist_changed(core);
}

/* Writes epoch 1, marked `voted`. A birth that had stopped at another's pledge goes on with it. */
static void write_epoch(struct core *core) {
	core->membership->birth_stopped = false;
	core->membership->birth_differs[0] = '\0';
	core->durable.pledged = false;
	core->durable.voted = true;
	core->durable.max_lease_seen = core->config.max_lease;
	core->durable.request_timeout_seen = core->config.request_timeout;
	core->durable.ceiling = core->clock + CEILING_BLOCK;
	persist_changed(core);
}

/* Tells whether all other initial masters have pledged the same. */
static bool all_equal(const struct core *core) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (i != core->self && !core->peers[i].pledge_equal) {
			return false;
		}
	}
	return true;
}

void birth_go_on(struct core *core) {
	if (core->state != CORE_UNBORN || core->adopting) {
		return;
	}
	if (core->durable.voted) {
		/* Epoch 1 is being written. */
		return;
	}
	if (!core->durable.pledged) {
		if (!core->membership->birth_stopped) {
			pledge(core);
		}
	} else if (persist_has_pledged(core) && all_equal(core)) {
		write_epoch(core);
	} else {
		for (uint32_t i = 0; i < core->peer_count; i++) {
			if (core->peers[i].up) {
				tell(core, i);
			}
		}
	}
}

void birth_persisted(struct core *core) {
	if (core->state == CORE_UNBORN && persist_has_voted(core)) {
		COUNT(core, birth);
		core->state = CORE_RECOVERING;
		core->config_hash = config_hash(&core->config);
		core->adopted_at = core->now;
		for (uint32_t i = 0; i < core->peer_count; i++) {
			struct peer *p = &core->peers[i];
			/* Non-members that came before stay what they are. */
			if (i < core->config.node_count) {
				p->node = core->config.nodes[i];
				p->linked = p->up && id128_equal(p->link_id, p->node.id);
			}
			if (p->up) {
				tell(core, i);
			}
		}
		out_note(core, NOTE_BORN, core->self, 1, NULL, slice_of(NULL, 0));
		recovery_vote(core, "birth");
	} else {
		birth_go_on(core);
	}
}

void birth_peer_up(struct core *core, uint32_t peer) {
	if (core->state == CORE_UNBORN) {
		birth_go_on(core);
	}
	tell(core, peer);
}

/* ---- differences ---- */

/* A status says "waits for" before the text. */
static const char differs_prefix[] = "the initial masters to agree: ";
enum { BIRTH_DIFFERS_PREFIX = sizeof differs_prefix - 1 };

/* A text that is cut off where the room ends. */
struct difference {
	char *text;
	size_t size, room;
};

static void put(struct difference *d, const char *text) {
	const size_t left = d->room - d->size, size = strlen(text);
	(void)slice_put((uint8_t *)d->text + d->size, slice_of(text, size < left ? size : left));
	d->size += size < left ? size : left;
}

static void put_number(struct difference *d, uint64_t number, const char *unit) {
	char digits[24];
	size_t at = sizeof digits - 1;
	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	put(d, digits + at);
	put(d, unit);
}

static void put_what(struct difference *d, const char *what, const char *of) {
	put(d, d->size > BIRTH_DIFFERS_PREFIX ? "; " : "");
	put(d, what);
	put(d, of);
	put(d, " is ");
}

static void put_where(struct difference *d, const char *peer) {
	put(d, " at ");
	put(d, peer);
	put(d, ", and ");
}

static void differ_text(struct difference *d, const char *peer, const char *what, const char *of,
	const char *theirs, const char *ours) {
	if (strcmp(theirs, ours) != 0) {
		put_what(d, what, of);
		put(d, theirs);
		put_where(d, peer);
		put(d, ours);
		put(d, " here");
	}
}

static void differ_number(struct difference *d, const char *peer, const char *what,
	uint64_t theirs, uint64_t ours, const char *unit) {
	if (theirs != ours) {
		put_what(d, what, "");
		put_number(d, theirs, unit);
		put_where(d, peer);
		put_number(d, ours, unit);
		put(d, " here");
	}
}

static void put_names(struct difference *d, const struct config *c) {
	for (uint32_t i = 0; i < c->node_count; i++) {
		put(d, i ? " " : "");
		put(d, c->nodes[i].name);
	}
}

static bool same_names(const struct config *a, const struct config *b) {
	bool same = a->node_count == b->node_count;
	for (uint32_t i = 0; same && i < a->node_count; i++) {
		same = strcmp(a->nodes[i].name, b->nodes[i].name) == 0;
	}
	return same;
}

static void differ_nodes(struct difference *d, const char *peer, const struct config *theirs,
	const struct config *ours) {
	if (!same_names(theirs, ours)) {
		put_what(d, "the list of masters", "");
		put_names(d, theirs);
		put_where(d, peer);
		put_names(d, ours);
		put(d, " here");
		return;
	}
	for (uint32_t i = 0; i < ours->node_count; i++) {
		const struct config_node *a = &theirs->nodes[i], *b = &ours->nodes[i];
		differ_text(d, peer, "the address of ", b->name, a->address, b->address);
		if (!id128_zero(a->id) && !id128_zero(b->id) && !id128_equal(a->id, b->id)) {
			put(d, d->size > BIRTH_DIFFERS_PREFIX ? "; " : "");
			put(d, peer);
			put(d, " has heard of another identity of ");
			put(d, b->name);
			put(d, " than this node: that state directory is not the one that it was");
		}
	}
}

/* Writes which values of the two configurations differ. Returns whether any do. */
static bool differences(const char *peer, const struct config *theirs, const struct config *ours,
	char text[BIRTH_DIFFERS_BYTES]) {
	struct difference d = { .text = text, .room = BIRTH_DIFFERS_BYTES - 1 };
	put(&d, differs_prefix);
	differ_text(&d, peer, "the name of the cluster", "", theirs->cluster, ours->cluster);
	differ_number(&d, peer, "max_lease", (uint64_t)(theirs->max_lease / SPAN_MS),
		(uint64_t)(ours->max_lease / SPAN_MS), "ms");
	differ_number(&d, peer, "request_timeout", (uint64_t)(theirs->request_timeout / SPAN_MS),
		(uint64_t)(ours->request_timeout / SPAN_MS), "ms");
	differ_number(&d, peer, "promise_timeout", (uint64_t)(theirs->promise_timeout / SPAN_MS),
		(uint64_t)(ours->promise_timeout / SPAN_MS), "ms");
	differ_number(&d, peer, "clock_drift", theirs->drift_ppm, ours->drift_ppm, "ppm");
	differ_nodes(&d, peer, theirs, ours);
	text[d.size] = '\0';
	return d.size > BIRTH_DIFFERS_PREFIX;
}

/* Tells a peer that has pledged something else what this node's file says, so that the other side
 * can name the differences as well. It is no pledge: it cannot equal the peer's, which is for
 * ever. */
static void tell_file(struct core *core, uint32_t peer) {
	uint8_t bytes[CONFIG_BYTES_MAX];
	struct config c = core->config;
	c.epoch = 1;
	struct message m = { .kind = MESSAGE_PLEDGE };
	m.blob = slice_of(bytes, config_encode(&c, bytes));
	out_send(core, peer, &m);
}

/* Tells the operator once which values of a peer differ from this node's. Returns whether any
 * do. */
static bool report(struct core *core, uint32_t from, bool born, const struct config *theirs,
	const struct config *ours) {
	char text[BIRTH_DIFFERS_BYTES] = "";
	if (!differences(core->peers[from].node.name, theirs, ours, text)) {
		return false;
	}
	if (!core->membership->birth_differs[0]) {
		memcpy(core->membership->birth_differs, text, sizeof text);
		core->membership->birth_differs_from = from;
		COUNT(core, birth_refused);
		out_note(core, NOTE_BIRTH_DIFFERS, from, born,
			core->membership->birth_differs + BIRTH_DIFFERS_PREFIX, slice_of(NULL, 0));
	}
	return true;
}

/* The values of the peer are this node's by now. */
static void agrees(struct core *core, uint32_t from) {
	if (core->membership->birth_differs_from == from) {
		core->membership->birth_differs[0] = '\0';
		core->membership->birth_stopped = false;
	}
}

void birth_pledge(struct core *core, uint32_t from, const struct message *m) {
	struct config theirs;
	bool born = (m->flags & FLAG_BORN) != 0;
	if (core_born(core) && !born) {
		tell(core, from);
	}
	if (core->state != CORE_UNBORN || core->durable.voted || (born && !core->durable.pledged)) {
		/* Either this node is born, or its birth is being written, or the other one belongs
		 * to a cluster that was born without this node's identity (epoch.c). */
		return;
	}
	if (from >= core->masters || config_decode(m->blob, &theirs) != 0) {
		return;
	}
	if (!core->durable.pledged) {
		/* This node has not heard all identities yet, and will be told the other pledge
		 * again. If its own pledge would differ, it may never hear them. */
		if (report(core, from, born, &theirs, &core->config)) {
			tell_file(core, from);
		}
		return;
	}
	if (born && !same_config(&theirs, &core->durable.config)) {
		/* The others were born without this node's identity, and will tell their
		 * configuration (epoch.c). */
		return;
	}
	if (!same_config(&theirs, &core->durable.config)) {
		core->membership->birth_stopped = true;
		(void)report(core, from, born, &theirs, &core->durable.config);
		return;
	}
	core->peers[from].pledge_equal = true;
	agrees(core, from);
	if (persist_has_pledged(core) && !core->durable.voted && (born || all_equal(core))) {
		write_epoch(core);
	}
}
