/* operator.c: operators look at the cluster, ask any node for a change of the set, repeat it when
 * the answer was lost, and know nothing of each other (docs/protocol.md, section 6). */
#include "check.h"
#include "pawl/error.h"
#include "run.h"

#define BIT(node) (1u << (node))

static void operate(void *ctx, uint64_t arg);

/* ---- what to ask for ---- */

/* What `cluster show` says at the node that will be asked. */
struct view {
	/* Bit sets of nodes. `strangers` have lost their files; those in `missing` do not vote. */
	uint32_t masters, replicas, others, strangers, missing;
};

static uint32_t count_bits(uint32_t set) {
	uint32_t count = 0;
	for (; set; set &= set - 1) {
		count++;
	}
	return count;
}

static uint32_t any_of(struct run *run, uint32_t set) {
	uint32_t at = (uint32_t)prng_below(&run->prng, count_bits(set)), node = 0;
	for (;; node++) {
		if ((set & BIT(node)) && at-- == 0) {
			return node;
		}
	}
}

static bool look(struct run *run, uint32_t node, struct view *view) {
	const struct core *core = sim_node_core(run->sim, node);
	const struct config *config = core ? core_config(core) : NULL;
	*view = (struct view){ 0 };
	for (uint32_t i = 0; config && i < config->node_count; i++) {
		uint32_t at = sim_node_named(run->sim, config->nodes[i].name);
		*(config->nodes[i].master ? &view->masters : &view->replicas) |= BIT(at);
		if (!id128_equal(config->nodes[i].id, sim_node_durable(run->sim, at)->node_id)) {
			view->strangers |= BIT(at);
		}
	}
	struct core_status status = { 0 };
	if (core) {
		core_status(core, sim_node_clock(run->sim, node), &status);
	}
	for (uint32_t peer = 0; peer < MASTERS_MAX; peer++) {
		uint32_t at = status.missing >> peer & 1 ? sim_node_at_peer(run->sim, node, peer)
			: TRACE_NONE;
		view->missing |= at == TRACE_NONE ? 0 : BIT(at) & view->masters;
	}
	view->others = (BIT(sim_nodes(run->sim)) - 1) & ~(view->masters | view->replicas);
	return config && config->epoch != 0;
}

static void draw_set(struct run *run, struct wanted_change *w) {
	uint32_t nodes = sim_nodes(run->sim),
		most = run->profile.masters_most < nodes ? run->profile.masters_most : nodes;
	uint32_t least = run->profile.masters_least, free_ones = BIT(nodes) - 1;
	uint32_t masters = least + (uint32_t)prng_below(&run->prng, most - least + 1);
	masters = masters < nodes - run->profile.liars ? masters : nodes - run->profile.liars;
	while (masters-- > 0) {
		uint32_t node = any_of(run, free_ones & ~run_liars(run));
		free_ones &= ~BIT(node);
		w->masters |= BIT(node);
	}
	for (uint32_t node = 0; node < nodes; node++) {
		if ((free_ones & BIT(node)) && prng_chance(&run->prng, 1, 2)) {
			w->replicas |= BIT(node);
		}
	}
}

static span_ns about(struct run *run, span_ns span) {
	return prng_between(&run->prng, span, span + span / 2);
}

/* Draws leases that may be shorter than before. What was granted until then goes on. */
static void draw_timing(struct run *run, struct wanted_change *w) {
	const struct sim_options *born = &run->born;
	span_ns shortest = born->max_lease / 4 > 3 * born->request_timeout ? born->max_lease / 4
		: 3 * born->request_timeout;
	if (prng_chance(&run->prng, 2, 3)) {
		w->max_lease = prng_chance(&run->prng, 1, 2) ||
			shortest > born->max_lease ? about(run, born->max_lease) :
			prng_between(&run->prng, shortest, born->max_lease);
	}
	w->promise_timeout = prng_chance(&run->prng, 1, 2) ||
		!w->max_lease ? about(run, 3 * born->request_timeout) : 0;
	w->request_timeout = prng_chance(&run->prng, 1, 3) ? about(run, born->request_timeout) : 0;
}

static bool draw_replace(struct run *run, const struct view *v, struct wanted_change *w) {
	uint32_t in = (v->replicas | (prng_chance(&run->prng, 1, 3) ? v->others : 0)) &
		~run_liars(run);
	if (v->strangers && prng_chance(&run->prng, 2, 3)) {
		w->name = w->other = any_of(run, v->strangers);
		return true;
	}
	if (!in || !v->masters) {
		return false;
	}
	w->name = any_of(run,
		v->missing && prng_chance(&run->prng, 3, 4) ? v->missing : v->masters);
	w->other = any_of(run, in);
	return true;
}

static bool draw_wanted(struct run *run, const struct view *v, struct wanted_change *w) {
	const struct profile *p = &run->profile;
	uint32_t masters = count_bits(v->masters), named = 0;
	switch (w->kind) {
	case CHANGE_ADD_REPLICA:
		named = v->others;
		break;
	case CHANGE_PROMOTE:
		named = masters < p->masters_most ? v->replicas & ~run_liars(run) : 0;
		break;
	case CHANGE_DEMOTE:
		named = masters > p->masters_least ? v->masters : 0;
		break;
	case CHANGE_REMOVE:
		named = v->replicas | (masters > p->masters_least ? v->masters : 0);
		break;
	case CHANGE_REPLACE:
		return draw_replace(run, v, w);
	case CHANGE_SET_NODES:
		draw_set(run, w);
		return true;
	case CHANGE_SET_TIMING:
		draw_timing(run, w);
		return true;
	case CHANGE_FORCE:
		return false;
	}
	if (named) {
		w->name = any_of(run, named);
	}
	return named != 0;
}

static enum change_kind draw_kind(struct run *run) {
	uint64_t total = 0;
	for (int i = 0; i < CHANGE_FORCE; i++) {
		total += run->profile.change_weight[i];
	}
	uint64_t at = prng_below(&run->prng, total);
	int kind = 0;
	for (; at >= run->profile.change_weight[kind]; kind++) {
		at -= run->profile.change_weight[kind];
	}
	return (enum change_kind)kind;
}

/* ---- asking ---- */

static struct slice name_of(const struct run *run, uint32_t node) {
	return node == TRACE_NONE ? slice_of(NULL, 0) : slice_str(sim_node_name(run->sim, node));
}

static void core_form_of(struct operator *op, struct core_form *s) {
	const struct wanted_change *w = &op->wanted;
	struct run *run = op->run;
	*s = (struct core_form){ .change = { .kind = w->kind, .name = name_of(run, w->name),
		.other = name_of(run, w->other), .max_lease = w->max_lease,
		.request_timeout = w->request_timeout, .promise_timeout = w->promise_timeout,
		.anyway = w->anyway } };
	uint32_t addressed = w->kind == CHANGE_REPLACE ? w->other : w->name;
	if (addressed != TRACE_NONE) {
		snprintf(s->addresses[0], sizeof s->addresses[0], "%s:7700",
			sim_node_name(run->sim, addressed));
		s->change.address = slice_str(s->addresses[0]);
	}
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		if ((w->masters | w->replicas) & BIT(i)) {
			snprintf(s->addresses[i], sizeof s->addresses[i], "%s:7700",
				sim_node_name(run->sim, i));
			s->nodes[s->change.node_count++] = (struct core_change_node){ name_of(run,
				i), slice_str(s->addresses[i]), (w->masters & BIT(i)) != 0 };
		}
	}
	s->change.nodes = s->nodes;
}

static void disconnect(struct operator *op) {
	if (op->session && sim_session_open(op->session)) {
		sim_session_close(op->session);
	}
	op->session = NULL;
	op->pending = 0;
}

static void answered(void *ctx, const struct sim_reply *reply) {
	struct operator *op = ctx;
	struct run *run = op->run;
	if (reply->r.id != op->pending) {
		return;
	}
	struct core_form s;
	core_form_of(op, &s);
	checker_change_answered(run->checker, op->node, op->pending, &s.change, reply);
	sim_trace_fault(run->sim, reply->r.error ? "operator: refused by" : "operator: done at",
		TRACE_NONE, op->node, (uint64_t)-reply->r.error);
	op->pending = 0;
	op->error = reply->r.error;
	op->answered = true;
	run->counts[reply->r.error ? RUN_CHANGE_REFUSED : RUN_CHANGE_DONE]++;
	op->repeats = reply->r.error && prng_chance(&run->prng, 1, 2);
	if (!op->driven) {
		sim_at(run->sim,
			sim_now(run->sim) + run_scale(run, SPAN_MS, run->profile.operate_every),
			operate, op, ++op->turn);
	}
}

static void closed(void *ctx) {
	struct operator *op = ctx;
	struct run *run = op->run;
	op->session = NULL;
	op->pending = 0;
	op->repeats = true;
	run->counts[RUN_CHANGE_CUT_OFF]++;
	if (!op->driven) {
		sim_at(run->sim, sim_now(run->sim) + run_scale(run, SPAN_MS,
			run->profile.sim.request_timeout), operate, op, ++op->turn);
	}
}

void operator_ask(struct operator *op, uint32_t node) {
	struct run *run = op->run;
	struct core_form s;
	disconnect(op);
	op->node = node;
	op->answered = false;
	op->session = sim_connect(run->sim, &op->actor, node,
		(struct sim_handler){ answered, closed, op });
	core_form_of(op, &s);
	static const char *const kinds[] = { "operator: add-replica", "operator: promote",
		"operator: demote", "operator: remove", "operator: replace", "operator: set-nodes",
		"operator: set-timing", "operator: force" };
	sim_trace_fault(run->sim, kinds[op->wanted.kind], op->wanted.name, op->wanted.other,
		op->wanted.masters);
	struct core_request r = { .op = CORE_CHANGE, .admin = true, .change = &s.change };
	op->pending = sim_send(op->session, &r);
}

/* When no answer came, it asks for the same again at another node, or for something else. */
static void operate(void *ctx, uint64_t arg) {
	struct operator *op = ctx;
	struct run *run = op->run;
	if (op->turn != arg || run->healing) {
		return;
	}
	uint32_t node = (uint32_t)prng_below(&run->prng, sim_nodes(run->sim));
	struct view view;
	bool known = look(run, node, &view);
	/* Only masters propose changes. */
	if (known && view.masters && prng_chance(&run->prng, 7, 8)) {
		node = any_of(run, view.masters);
		known = look(run, node, &view);
	}
	if (op->repeats && prng_chance(&run->prng, 2, 3)) {
		run->counts[RUN_CHANGE_REPEATED]++;
		operator_ask(op, node);
	} else if (known) {
		struct wanted_change wanted = { .kind = draw_kind(run), .name = TRACE_NONE,
			.other = TRACE_NONE, .anyway = prng_chance(&run->prng, 1, 4) };
		if (draw_wanted(run, &view, &wanted)) {
			op->wanted = wanted;
			operator_ask(op, node);
		}
	}
	op->repeats = op->pending != 0;
	span_ns patience = op->pending ? run_scale(run, run->profile.sim.request_timeout,
		4 * run->profile.sim.max_lease) : run->profile.operate_every;
	sim_at(run->sim, sim_now(run->sim) + patience, operate, op, ++op->turn);
}

void operator_init(struct operator *op, struct run *run, uint32_t number) {
	*op = (struct operator){ .run = run, .driven = true,
		.wanted = { .name = TRACE_NONE, .other = TRACE_NONE } };
	sim_actor_init(run->sim, &op->actor, number);
}

void operator_start(struct run *run, uint32_t number) {
	struct operator *op = &run->operators[number];
	operator_init(op, run, 200 + number);
	op->driven = false;
	sim_at(run->sim, sim_now(run->sim) + prng_between(&run->prng, 0, SPAN_S), operate, op,
		++op->turn);
}
