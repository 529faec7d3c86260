/* world.c: a few cores, their clients and operators, and what may happen to them next. */
#include <stdio.h>

#include "check.h"
#include "explore.h"

#define LEASE (200 * SPAN_MS)
/* Four of these spans end between the end of the belief with the drift and without it. */
#define PASS (LEASE / 4 - SPAN_MS / 4)

/* ---- what may happen ---- */

static void add(struct choice out[CHOICES_MAX], uint32_t *n, enum choice_kind kind, uint32_t a,
	uint32_t b) {
	CHECK(*n < CHOICES_MAX);
	out[(*n)++] = (struct choice){ kind, (uint8_t)a, (uint8_t)b };
}

static void client_choices(const struct world *w, uint32_t i, struct choice out[CHOICES_MAX],
	uint32_t *n) {
	const struct contender *c = &w->clients[i];
	bool believes = c->state == CLIENT_HOLDS && w->stage->now < c->believed_until;
	bool soon = !(c->left.later && w->left.restarts);
	if ((c->state == CLIENT_IDLE && c->left.acquires && soon) ||
		(c->state == CLIENT_BROKEN && c->left.repeats)) {
		add(out, n, CHOICE_ASK, i, 0);
	}
	if (c->state == CLIENT_HOLDS && !c->extending && c->left.extends &&
		(believes || !c->left.keeps_deadline)) {
		add(out, n, CHOICE_EXTEND, i, 0);
	}
	if (c->left.updates && !c->updating && w->clients[0].state == CLIENT_HOLDS) {
		add(out, n, CHOICE_UPDATE, i, 0);
	}
	if (c->state == CLIENT_HOLDS && c->left.releases) {
		add(out, n, CHOICE_RELEASE, i, 0);
	}
	if (c->state == CLIENT_HOLDS && c->left.closes) {
		add(out, n, CHOICE_CLOSE, i, 0);
	}
	if (c->state == CLIENT_HOLDS && c->left.downgrades) {
		add(out, n, CHOICE_DOWNGRADE, i, 0);
	}
	if (c->state == CLIENT_HOLDS && c->left.transfers) {
		add(out, n, CHOICE_TRANSFER, i, 0);
	}
}

uint32_t world_choices(const struct world *w, struct choice out[CHOICES_MAX]) {
	uint32_t n = 0;
	for (uint32_t from = 0; from < w->stage->count; from++) {
		for (uint32_t to = 0; to < w->stage->count; to++) {
			if (w->stage->links[from][to].head) {
				add(out, &n, CHOICE_DELIVER, from, to);
			}
		}
	}
	bool may_pass = w->left.passes && n <= w->left.slow;
	for (uint32_t i = 0; i < CLIENTS; i++) {
		client_choices(w, i, out, &n);
	}
	if (may_pass) {
		add(out, &n, CHOICE_PASS, 0, 0);
	}
	for (uint32_t i = 0; i < AIMS; i++) {
		if (w->left.aims[i] != AIM_NONE) {
			add(out, &n, CHOICE_CHANGE, i, 0);
		}
	}
	for (uint32_t i = 0; i < w->stage->count; i++) {
		if (w->left.lies && i + 1 < w->stage->count) {
			add(out, &n, CHOICE_LIE, w->stage->count - 1, i);
		}
		if (w->left.restarts && (!w->left.restarted || w->left.restarted == i + 1)) {
			add(out, &n, CHOICE_RESTART, i, 0);
		}
		if (w->left.breaks && w->stage->links[i][(i + 1) % w->stage->count].count +
			w->stage->links[(i + 1) % w->stage->count][i].count) {
			add(out, &n, CHOICE_BREAK, i, (i + 1) % w->stage->count);
		}
	}
	return n;
}

/* ---- clients ---- */

static const char *const owners[CLIENTS] = { "a", "b", "c" };

static void client_ask(struct world *w, uint32_t i) {
	struct contender *c = &w->clients[i];
	if (c->state == CLIENT_IDLE) {
		c->left.acquires--;
		c->lock = ++w->locks;
		c->asked_event = w->events;
	} else {
		/* The connection broke: it asks for the same lock_id at another node. */
		c->left.repeats--;
	}
	c->state = CLIENT_ASKED;
	c->asked_at = w->stage->now;
	c->asked = w->stage->requests + 1;
	struct core_request r = stage_acquire("k", stage_lock(c->lock), LEASE,
		c->left.waits ? SPAN_S : 0);
	r.client = i + 1;
	r.owner = slice_str(owners[i]);
	r.terms.of = c->left.of;
	r.terms.count = terms_semaphore(&r.terms);
	r.terms.priority = c->left.priority;
	r.terms.binding = c->left.closes ? 1 : 0;
	c->terms = r.terms;
	stage_ask(w->stage, c->node, r);
}

static void client_extend(struct world *w, uint32_t i) {
	struct contender *c = &w->clients[i];
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(c->lock));
	r.client = i + 1;
	r.lease = LEASE;
	r.token = c->token;
	r.deadline_kept = c->left.keeps_deadline;
	r.terms.set = c->left.keeps_deadline ? c->terms.set : r.terms.set;
	r.binding = c->closed ? c->closed + 1u : 0;
	c->left.extends--;
	c->extend_at = w->stage->now;
	c->extending = w->stage->requests + 1;
	stage_ask(w->stage, c->node, r);
}

static void client_release(struct world *w, uint32_t i) {
	struct contender *c = &w->clients[i];
	struct core_request r = stage_request(CORE_RELEASE, "k", stage_lock(c->lock));
	/* It first stops trusting the lock. */
	judge_ended(w, i);
	r.client = i + 1;
	c->left.releases--;
	c->state = CLIENT_IDLE;
	c->believed_until = 0;
	c->extending = 0;
	stage_ask(w->stage, c->node, r);
}

/* The client's process ends, and with it the connection. It is started again, believes nothing, and
 * knows its lock_id. */
static void client_close(struct world *w, uint32_t i) {
	struct contender *c = &w->clients[i];
	struct core_request r = stage_request(CORE_RELEASE, "k", stage_lock(c->lock));
	judge_ended(w, i);
	r.binding = ++c->closed;
	c->left.closes = false;
	c->believed_until = 0;
	c->extending = 0;
	stage_ask(w->stage, c->node, r);
}

/* From now on it trusts only to share the lock, whatever becomes of the downgrade. A repeat would
 * ask for a shared lock. */
static void client_downgrade(struct world *w, uint32_t i) {
	struct contender *c = &w->clients[i];
	struct core_request r = stage_request(CORE_DOWNGRADE, "k", stage_lock(c->lock));
	r.client = i + 1;
	judge_downgraded(w, i);
	c->left.downgrades--;
	c->left.of = MODE_SHARED;
	stage_ask(w->stage, c->node, r);
}

/* What it believes until the answer comes ends with the request, because somebody else may have the
 * lock before that. */
static void client_transfer(struct world *w, uint32_t i) {
	struct contender *c = &w->clients[i];
	struct core_request r = stage_request(CORE_TRANSFER, "k", stage_lock(c->lock));
	r.client = i + 1;
	r.to = slice_str(owners[(i + 1) % CLIENTS]);
	judge_ended(w, i);
	c->left.transfers--;
	c->state = CLIENT_IDLE;
	c->believed_until = 0;
	c->extending = 0;
	stage_ask(w->stage, c->node, r);
}

static void client_update(struct world *w, uint32_t i) {
	struct contender *c = &w->clients[i];
	const char value[] = { (char)('1' + i), 0 };
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(w->clients[0].lock));
	r.client = i + 1;
	r.value = slice_str(value);
	r.expect_value = true;
	c->left.updates--;
	c->updating = w->stage->requests + 1;
	stage_ask(w->stage, c->node, r);
}

/* ---- operators ---- */

static void set_masters(struct core_change *c, struct core_change_node nodes[STAGE_NODES],
	uint32_t count) {
	static char names[STAGE_NODES][4], addresses[STAGE_NODES][8];
	c->kind = CHANGE_SET_NODES;
	c->nodes = nodes;
	for (uint32_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "n%u", (i + 1) % 10);
		snprintf(addresses[i], sizeof addresses[i], "n%u:7118", (i + 1) % 10);
		nodes[c->node_count++] = (struct core_change_node){ .name = slice_str(names[i]),
			.address = slice_str(addresses[i]), .master = true };
	}
}

static void operator_asks(struct world *w, uint32_t i) {
	struct core_change_node nodes[STAGE_NODES];
	struct core_change c = { .kind = CHANGE_SET_TIMING };
	const uint32_t masters = w->stage->options.masters;
	switch (w->left.aims[i]) {
	case AIM_NONE: CHECK(false); break;
	case AIM_REPLACE:
		set_masters(&c, nodes, masters + 1);
		nodes[masters - 1] = nodes[masters];
		c.node_count = masters;
		break;
	case AIM_GROW: set_masters(&c, nodes, w->stage->count); break;
	case AIM_SHRINK: set_masters(&c, nodes, masters - 1); break;
	case AIM_TIMING: c.max_lease = LEASE - SPAN_MS; break;
	}
	w->left.aims[i] = AIM_NONE;
	stage_ask(w->stage, i % masters, (struct core_request){ .op = CORE_CHANGE, .change = &c,
		.admin = true, .client = CLIENTS + 1 + i });
}

/* The last node tells another one that it is the only master of the epoch after the one that this
 * node is in. */
static void lie(struct world *w, uint32_t from, uint32_t to) {
	static uint8_t bytes[CONFIG_BYTES_MAX];
	struct config c = *core_config(w->stage->nodes[to].core);
	struct message m = { .kind = MESSAGE_CONFIG };
	w->left.lies--;
	if (stage_peer(w->stage, to, from) == STAGE_NOBODY || !w->stage->up[from][to]) {
		return;
	}
	c.previous_master_count = config_masters(&c);
	memcpy(c.previous_masters, c.nodes, c.previous_master_count * sizeof *c.previous_masters);
	c.epoch++;
	c.node_count = 1;
	c.nodes[0] = (struct config_node){ .address = WORLD_LIE,
		.id = w->stage->nodes[from].disk.node_id, .master = true };
	snprintf(c.nodes[0].name, sizeof c.nodes[0].name, "n%u", from + 1);
	m.blob = slice_of(bytes, config_encode(&c, bytes));
	stage_inject(w->stage, from, to, &m);
}

static void hear(struct world *w, const struct stage_reply *reply) {
	const struct core_reply *r = &reply->r;
	for (uint32_t i = 0; i < CLIENTS; i++) {
		struct contender *c = &w->clients[i];
		if (c->updating && r->id == c->updating) {
			c->updating = 0;
			judge_updated(w, i, reply);
		}
		if (c->state == CLIENT_ASKED && r->id == c->asked) {
			c->state = r->error == PAWL_OK ? CLIENT_HOLDS : CLIENT_IDLE;
			if (r->error == PAWL_OK) {
				c->terms = r->terms;
				judge_acquired(w, i, r->token, c->asked_at + r->valid);
			}
		} else if (c->extending && r->id == c->extending) {
			bool late = c->left.keeps_deadline && w->stage->now >= c->believed_until;
			c->extending = 0;
			if (r->error == PAWL_OK && !late) {
				/* From now on it has these permits, and no others. */
				c->terms.set = r->terms.set;
				/* It believes again, as if it were a new acquisition. */
				if (w->stage->now >= c->believed_until) {
					judge_ended(w, i);
					c->asked_event = w->events;
					judge_acquired(w, i, r->token, c->extend_at + r->valid);
				}
				c->believed_until = c->extend_at + r->valid > c->believed_until
					? c->extend_at + r->valid : c->believed_until;
				c->token = r->token;
			}
		}
	}
}

static void hear_all(struct world *w) {
	for (; w->replies_seen < w->stage->reply_count; w->replies_seen++) {
		hear(w, &w->stage->replies[w->replies_seen % w->stage->options.replies]);
	}
}

/* Messages that only keep a link alive, or only compare tables, are delivered at once: they would
 * multiply the orders and decide nothing. (What comparing leads to, SYNC_RECORD, is a message like
 * others.) */
static void quiet(struct world *w) {
	const message_set idle = MESSAGE_BIT(MESSAGE_PING) | MESSAGE_BIT(MESSAGE_PONG) |
		MESSAGE_BIT(MESSAGE_PLEDGE) | MESSAGE_BIT(MESSAGE_SYNC_ROOT) |
		MESSAGE_BIT(MESSAGE_SYNC_GROUPS) | MESSAGE_BIT(MESSAGE_SYNC_ASK) |
		MESSAGE_BIT(MESSAGE_SYNC_LEAVES) | MESSAGE_BIT(MESSAGE_SYNC_KEYS) |
		MESSAGE_BIT(MESSAGE_SYNC_FETCH);
	hear_all(w);
	stage_mend(w->stage);
	for (bool any = true; any;) {
		any = false;
		for (uint32_t from = 0; from < w->stage->count; from++) {
			for (uint32_t to = 0; to < w->stage->count; to++) {
				const struct stage_frame *f = w->stage->links[from][to].head;
				if (f && (f->kinds & ~idle) == 0) {
					any = stage_deliver(w->stage, from, to);
					hear_all(w);
				}
			}
		}
	}
}

struct world *world_new(const struct scope *scope, const struct allocator *memory) {
	struct stage_options o = stage_options_plain();
	o.own = o.core = memory;
	o.masters = scope->masters ? scope->masters : 3;
	o.outside = scope->outside;
	o.max_lease = LEASE;
	o.limits.released = 4;
	o.limits.lacked = 2;
	o.replies = 4;
	/* The check runs once after each event, below. */
	o.unchecked = true;
	struct world *w = alloc_new(memory, sizeof *w);
	CHECK(w != NULL);
	w->stage = stage_new(&o);
	/* The clocks of the masters are as fast as they may be. */
	for (uint32_t i = 0; i < w->stage->count; i++) {
		w->stage->nodes[i].rate_ppb = i == 0 ? 0 : 9000000;
		CHECK(stage_start(w->stage, i));
	}
	for (uint32_t i = 0; i < o.masters; i++) {
		CHECK(stage_until_voting(w->stage, i, SPAN_S));
	}
	stage_wait(w->stage, LEASE);
	w->left = *scope;
	for (uint32_t i = 0; i < CLIENTS; i++) {
		w->clients[i].left = scope->clients[i];
		w->clients[i].node = scope->clients[i].node;
	}
	if (scope->granted) {
		client_ask(w, 0);
		stage_settle(w->stage);
		hear_all(w);
		CHECK(w->clients[0].state == CLIENT_HOLDS);
	}
	return w;
}

/* ---- moving ---- */

static void restart(struct world *w, uint32_t node) {
	w->left.restarts--;
	stage_kill(w->stage, node);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		struct contender *c = &w->clients[i];
		if (c->node == node) {
			c->node = (uint8_t)((node + 1) % w->stage->options.masters);
			c->extending = c->updating = 0;
			c->state = c->state == CLIENT_ASKED ? CLIENT_BROKEN : c->state;
		}
	}
	CHECK(stage_start(w->stage, node));
}

void world_apply(struct world *w, struct choice choice) {
	w->events++;
	switch (choice.kind) {
	case CHOICE_DELIVER: stage_deliver(w->stage, choice.a, choice.b); break;
	case CHOICE_ASK: client_ask(w, choice.a); break;
	case CHOICE_EXTEND: client_extend(w, choice.a); break;
	case CHOICE_RELEASE: client_release(w, choice.a); break;
	case CHOICE_DOWNGRADE: client_downgrade(w, choice.a); break;
	case CHOICE_TRANSFER: client_transfer(w, choice.a); break;
	case CHOICE_UPDATE: client_update(w, choice.a); break;
	case CHOICE_CLOSE: client_close(w, choice.a); break;
	case CHOICE_PASS:
		w->left.passes--;
		stage_jump(w->stage, PASS);
		stage_tick(w->stage);
		break;
	case CHOICE_RESTART: restart(w, choice.a); break;
	case CHOICE_CHANGE: operator_asks(w, choice.a); break;
	case CHOICE_LIE: lie(w, choice.a, choice.b); break;
	case CHOICE_BREAK:
		w->left.breaks--;
		stage_break(w->stage, choice.a, choice.b);
		break;
	}
	quiet(w);
	for (uint32_t i = 0; i < w->stage->count; i++) {
		core_check(w->stage->nodes[i].core);
	}
	judge_now(w);
}

void world_describe(const struct world *w, struct choice choice, char *out, size_t size) {
	static const char *const names[] = { "deliver", "ask", "extend", "release", "downgrade",
		"transfer", "update", "close", "time passes", "restart", "break", "change", "lie" };
	message_set kinds = choice.kind == CHOICE_DELIVER
		? w->stage->links[choice.a][choice.b].head->kinds : 0;
	int n = snprintf(out, size, "%s %u", names[choice.kind], choice.a + 1u);
	if (choice.kind == CHOICE_DELIVER || choice.kind == CHOICE_BREAK ||
		choice.kind == CHOICE_LIE) {
		n += snprintf(out + n, size - (size_t)n, " -> %u", choice.b + 1u);
	}
	for (int kind = 1; kind <= MESSAGE_KIND_MAX && (size_t)n < size; kind++) {
		if (kinds >> kind & 1) {
			n += snprintf(out + n, size - (size_t)n, " %s",
				message_name((enum message_kind)kind));
		}
	}
}
