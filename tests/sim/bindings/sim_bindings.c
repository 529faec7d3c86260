/* sim_bindings.c: locks that end with their node (docs/protocol.md, section 2, Release on
 * disconnect), under faults.
 *
 *   sim-bindings [--start FIRST] [--seeds COUNT | --only-seed SEED]
 *
 * For each seed it runs a cluster whose nodes hold such locks. With even seeds the masters are
 * exchanged all the time, and a process that starts again knows its lock_id. At no instant may two
 * nodes trust in the same lock. A node trusts in it while its process lives, its lease lasts, and
 * core_binding_end is not past, by its own clocks.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "masters_change.h"
#include "cluster_sim.h"
#include "pawl/error.h"
#include "refine.h"

/* Three masters and two replicas. */
#define NODES 5
#define KEYS 1
#define LEASE (3 * SPAN_S)
#define RUN (30 * SPAN_S)

/* There is one holder in each node's process. */
struct holder {
	struct world *world;
	uint32_t node;
	struct sim_actor actor;
	struct sim_session *session;
	uint64_t incarnation;
	uint32_t key;
	struct id128 lock;
	/* Requests under way; 0: none. */
	uint64_t acquire, binding, extend, revive;
	struct instant sent, extend_sent;
	struct instant deadline;
	/* The lock_id of its previous life, which it tries now and then. */
	struct id128 known;
	/* Whether there is such a lock_id. */
	bool again;
	bool held;
	/* The node has heard of the session binding. */
	bool bound;
};

struct world {
	uint64_t seed;
	struct sim *sim;
	/* `late` is for what came later, so that the rest of a seed stays what it is. */
	struct prng prng, late;
	bool changes;
	struct masters_change change;
	uint64_t revived;
	struct holder holders[NODES];
	uint32_t locks;
	uint64_t taken, lost;
	uint64_t bad;
};

static const char *key_name(uint32_t key) {
	return key == 0 ? "k0" : "k1";
}

/* ---- trust ---- */

static bool alive(const struct holder *h) {
	return sim_node_running(h->world->sim, h->node) &&
		sim_node_incarnation(h->world->sim, h->node) == h->incarnation;
}

static bool trusts(const struct holder *h) {
	struct sim *sim = h->world->sim;
	if (!h->held || !alive(h)) {
		return false;
	}
	struct instant now = sim_node_clock(sim, h->node);
	if (instant_distrusted(now, h->deadline)) {
		return false;
	}
	return !h->bound || !instant_distrusted(now, core_binding_end(sim_node_core(sim, h->node),
		slice_str(key_name(h->key)), h->lock));
}

static void look(struct world *w) {
	for (uint32_t a = 0; a < NODES; a++) {
		for (uint32_t b = a + 1; b < NODES; b++) {
			const struct holder *x = &w->holders[a], *y = &w->holders[b];
			if (x->held && y->held && x->key == y->key && trusts(x) && trusts(y)) {
				printf("at %" PRId64 " ms: n%u and n%u both trust in %s\n",
					sim_now(w->sim) / SPAN_MS, a + 1, b + 1, key_name(x->key));
				w->bad++;
			}
		}
	}
}

/* ---- what a holder does ---- */

static void forget(struct holder *h) {
	h->again = h->again || (h->world->changes && h->held);
	h->known = h->held ? h->lock : h->known;
	h->held = h->bound = false;
	h->acquire = h->binding = h->extend = h->revive = 0;
}

static void on_reply(void *ctx, const struct sim_reply *reply);
static void on_closed(void *ctx);

static bool ready(struct holder *h) {
	struct sim *sim = h->world->sim;
	if (!sim_node_running(sim, h->node)) {
		forget(h);
		return false;
	}
	if (!h->session || !sim_session_open(h->session) || !alive(h)) {
		forget(h);
		h->incarnation = sim_node_incarnation(sim, h->node);
		h->session = sim_connect(sim, &h->actor, h->node,
			(struct sim_handler){ on_reply, on_closed, h });
	}
	return true;
}

static uint64_t ask(struct holder *h, struct core_request r) {
	r.key = slice_str(key_name(h->key));
	r.lock_id = h->lock;
	r.admin = true;
	return sim_send(h->session, &r);
}

static void acquire(struct holder *h) {
	struct world *w = h->world;
	h->key = (uint32_t)prng_below(&w->prng, KEYS);
	h->lock = sim_name_lock(++w->locks, prng_next(&w->prng));
	h->sent = sim_node_clock(w->sim, h->node);
	h->acquire = ask(h, (struct core_request){ .op = CORE_ACQUIRE, .lease = LEASE,
		.wait = (span_ns)prng_below(&w->prng, 2) * SPAN_S });
}

static void release(struct holder *h) {
	ask(h, (struct core_request){ .op = CORE_RELEASE });
	forget(h);
	h->again = false;
}

/* It has started again with its lock_id. It keeps no deadline, and is answered as held only if
 * nobody else had the lock since. */
static void extend_again(struct holder *h) {
	struct world *w = h->world;
	h->again = prng_chance(&w->late, 3, 4);
	h->lock = h->known;
	h->extend_sent = sim_node_clock(w->sim, h->node);
	h->revive = ask(h, (struct core_request){ .op = CORE_EXTEND, .lease = LEASE });
}

static void act(void *ctx, uint64_t arg) {
	struct holder *h = ctx;
	struct world *w = h->world;
	(void)arg;
	sim_at(w->sim, sim_now(w->sim) + prng_between(&w->prng, SPAN_MS, 300 * SPAN_MS), act, h, 0);
	if (!ready(h) || h->acquire || h->revive) {
		return;
	}
	if (!h->held && h->again && prng_chance(&w->late, 1, 2)) {
		extend_again(h);
	} else if (!h->held) {
		acquire(h);
	} else if (!trusts(h) || prng_chance(&w->prng, 1, 12)) {
		release(h);
	} else if (!h->extend) {
		h->extend_sent = sim_node_clock(w->sim, h->node);
		h->extend = ask(h, (struct core_request){ .op = CORE_EXTEND, .lease = LEASE,
			.deadline_kept = true });
	}
}

static void bind_it(struct holder *h) {
	span_ns grace = prng_between(&h->world->prng, 20 * SPAN_MS, 600 * SPAN_MS);
	h->binding = ask(h, (struct core_request){ .op = CORE_BINDING, .wait = grace });
}

static void on_acquired(struct holder *h, const struct core_reply *r) {
	h->acquire = 0;
	struct instant deadline = instant_add(h->sent, r->valid);
	if (r->error || instant_distrusted(sim_node_clock(h->world->sim, h->node), deadline)) {
		if (r->error != PAWL_EHELD && r->error != PAWL_ETIMEOUT) {
			release(h);
		}
		return;
	}
	h->world->taken++;
	h->held = true;
	h->bound = false;
	h->deadline = deadline;
	bind_it(h);
}

static void on_revived(struct holder *h, const struct core_reply *r) {
	struct instant deadline = instant_add(h->extend_sent, r->valid);
	h->revive = 0;
	if (r->error || instant_distrusted(sim_node_clock(h->world->sim, h->node), deadline)) {
		return;
	}
	h->world->revived++;
	h->held = true;
	h->bound = false;
	h->deadline = deadline;
	bind_it(h);
}

static void on_extended(struct holder *h, const struct core_reply *r) {
	struct instant now = sim_node_clock(h->world->sim, h->node),
		deadline = instant_add(h->extend_sent, r->valid);
	h->extend = 0;
	if (!h->held || r->error || instant_distrusted(now, h->deadline)) {
		return;
	}
	h->deadline = instant_left_short(now, deadline) > instant_left_short(now, h->deadline)
		? deadline : h->deadline;
}

static void on_reply(void *ctx, const struct sim_reply *reply) {
	struct holder *h = ctx;
	const struct core_reply *r = &reply->r;
	if (r->id == h->acquire) {
		on_acquired(h, r);
	} else if (r->id == h->extend) {
		on_extended(h, r);
	} else if (r->id == h->revive) {
		on_revived(h, r);
	} else if (r->id == h->binding) {
		h->world->lost += r->error == PAWL_ELOST;
		forget(h);
		/* The node has released what was left. */
		h->again = false;
	}
}

static void on_closed(void *ctx) {
	forget(ctx);
}

/* From the moment at which the node knows of the binding, the end of the binding counts. */
static void on_asked(void *ctx, uint32_t node, const struct core_request *request) {
	struct holder *h = &((struct world *)ctx)->holders[node];
	h->bound = h->bound || (request->op == CORE_BINDING && request->id == h->binding);
}

/* ---- faults ---- */

static void restart(void *ctx, uint64_t arg) {
	struct world *w = ctx;
	if (!sim_node_running(w->sim, (uint32_t)arg)) {
		sim_node_start(w->sim, (uint32_t)arg);
	}
}

static void heal(void *ctx, uint64_t arg) {
	struct world *w = ctx;
	sim_cut(w->sim, (uint32_t)(arg >> 32), (uint32_t)arg, false);
}

static void cut(struct world *w, uint32_t from, uint32_t to) {
	sim_cut(w->sim, from, to, true);
	sim_at(w->sim, sim_now(w->sim) + prng_between(&w->prng, 10 * SPAN_MS, 2 * SPAN_S), heal, w,
		(uint64_t)from << 32 | to);
}

static void fault(void *ctx, uint64_t arg) {
	struct world *w = ctx;
	uint32_t a = (uint32_t)prng_below(&w->prng, NODES),
		b = (uint32_t)prng_below(&w->prng, NODES);
	(void)arg;
	sim_at(w->sim, sim_now(w->sim) + prng_between(&w->prng, 20 * SPAN_MS, 900 * SPAN_MS), fault,
		w, 0);
	switch (prng_below(&w->prng, 9)) {
	case 0:
		if (sim_node_running(w->sim, a)) {
			sim_node_kill(w->sim, a, prng_chance(&w->prng, 1, 4));
			sim_at(w->sim, sim_now(w->sim) + prng_between(&w->prng, 10 * SPAN_MS,
				1500 * SPAN_MS), restart, w, a);
		}
		break;
	case 1:
		if (sim_node_running(w->sim, a)) {
			sim_node_pause(w->sim, a,
				prng_between(&w->prng, 10 * SPAN_MS, 500 * SPAN_MS));
		}
		break;
	case 2:
		cut(w, a, b);
		break;
	case 3:
		cut(w, a, b);
		cut(w, b, a);
		break;
	case 4:
		for (uint32_t i = 0; i < NODES; i++) {
			cut(w, a, i);
			cut(w, i, a);
		}
		break;
	case 5:
	case 6:
		/* The node gets no answers from some others, gives those links up, and they hear of
		 * that at once. */
		for (uint32_t i = 0; i < NODES; i++) {
			if (prng_chance(&w->prng, 1, 2)) {
				cut(w, i, a);
			}
		}
		break;
	case 7:
	case 8:
		if (a != b) {
			sim_link_close(w->sim, a, b, false);
		}
		break;
	}
}

/* ---- one run ---- */

static bool all_vote(void *ctx) {
	struct world *w = ctx;
	for (uint32_t i = 0; i < 3; i++) {
		struct core_status s;
		core_status(sim_node_core(w->sim, i), sim_node_clock(w->sim, i), &s);
		if (s.state != CORE_VOTING) {
			return false;
		}
	}
	return true;
}

static bool all_follow(void *ctx) {
	struct world *w = ctx;
	for (uint32_t i = 3; i < NODES; i++) {
		struct core_status s;
		core_status(sim_node_core(w->sim, i), sim_node_clock(w->sim, i), &s);
		if (s.state != CORE_FOLLOWING) {
			return false;
		}
	}
	return true;
}

static void ignore_reply(void *ctx, const struct sim_reply *reply) {
	(void)ctx;
	CHECK(reply->r.error == 0);
}

static void ignore_closed(void *ctx) {
	(void)ctx;
}

static void add_replicas(struct world *w) {
	static struct sim_actor actor;
	sim_actor_init(w->sim, &actor, 100);
	struct sim_session *session = sim_connect(w->sim, &actor, 0,
		(struct sim_handler){ ignore_reply, ignore_closed, NULL });
	struct core_change_node nodes[NODES];
	char names[NODES][8], addresses[NODES][16];
	for (uint32_t i = 0; i < NODES; i++) {
		snprintf(names[i], sizeof names[i], "n%u", i + 1);
		snprintf(addresses[i], sizeof addresses[i], "n%u:7700", i + 1);
		nodes[i] = (struct core_change_node){ slice_str(names[i]), slice_str(addresses[i]),
			i < 3 };
	}
	/* Until they are linked. */
	sim_run_for(w->sim, SPAN_S);
	const struct core_change change = { .kind = CHANGE_SET_NODES, .nodes = nodes,
		.node_count = NODES };
	sim_send(session,
		&(struct core_request){ .op = CORE_CHANGE, .change = &change, .admin = true });
	CHECK(sim_run_until(w->sim, all_follow, w, 20 * SPAN_S));
}

/* The abstract machine does not allow a step. */
static void not_refined(void *ctx, uint32_t node, struct slice key, const char *rule,
	const char *what) {
	const struct world *w = ctx;
	printf("VIOLATION of refinement at %.6f s, key %.*s\n  n%u: %s%s%s\n"
		"VIOLATION of refinement, seed %" PRIu64 "\n",
		(double)sim_now(w->sim) / SPAN_S, (int)key.size, (const char *)key.data,
		node + 1, rule, what[0] ? ": " : "", what, w->seed);
	exit(1);
}

/* A build with link-time optimization has inlined what the machine listens to. */
static struct refine *judged(struct world *w) {
	const struct refine_options options = { .sim = w->sim, .wrong = not_refined, .ctx = w,
		.liar = TRACE_NONE };
#ifdef LINKED_AS_A_WHOLE
	(void)options;
	return NULL;
#else
	return refine_new(&options);
#endif
}

static bool run(uint64_t seed, uint64_t totals[COUNT_TOTAL]) {
	struct sim_options o = sim_options_plain();
	struct world w = { .taken = 0 };
	o.seed = seed;
	o.further = NODES - 3;
	o.plain_clocks = false;
	o.delay_max = 5 * SPAN_MS;
	o.session_delay_min = o.session_delay_max = 0;
	o.loop_lag_max = SPAN_MS;
	o.check_every = 50;
	w.seed = seed;
	w.sim = sim_new(&o);
	struct refine *refine = judged(&w);
	prng_init(&w.prng, seed);
	prng_init(&w.late, seed ^ UINT64_C(0x1a7eb0d));
	w.changes = seed % 2 == 0;
	sim_start_all(w.sim);
	CHECK(sim_run_until(w.sim, all_vote, &w, 20 * SPAN_S));
	add_replicas(&w);
	sim_observe(w.sim, (struct sim_observer){ .asked = on_asked, .ctx = &w });
	for (uint32_t i = 0; i < NODES; i++) {
		struct holder *h = &w.holders[i];
		*h = (struct holder){ .world = &w, .node = i };
		sim_actor_init(w.sim, &h->actor, i);
		sim_at(w.sim, sim_now(w.sim) + prng_between(&w.prng, 0, 100 * SPAN_MS), act, h, 0);
	}
	sim_at(w.sim, sim_now(w.sim) + SPAN_S, fault, &w, 0);
	if (w.changes) {
		masters_change_start(&w.change, w.sim, &w.late, NODES);
	}
	for (int64_t end = sim_now(w.sim) + RUN; sim_now(w.sim) < end && w.bad == 0;) {
		CHECK(sim_step(w.sim));
		look(&w);
	}
	for (int i = 0; i < COUNT_TOTAL; i++) {
		totals[i] += sim_counts(w.sim)[i];
	}
	printf("seed %" PRIu64 ": %" PRIu64 " taken, %" PRIu64 " lost by their links, %" PRIu64
		" had again%s\n", seed, w.taken, w.lost, w.revived, w.bad ? ", BAD" : "");
	refine_free(refine);
	sim_free(w.sim);
	return w.bad == 0;
}

int main(int argc, char **argv) {
	static uint64_t totals[COUNT_TOTAL];
	uint64_t first = 1, count = 10;
	bool good = true;
	for (int i = 1; i + 1 < argc; i++) {
		const bool only = strcmp(argv[i], "--only-seed") == 0;
		first = only || strcmp(argv[i], "--start") == 0 ? strtoull(argv[i + 1], NULL, 10)
			: first;
		count = only ? 1 : strcmp(argv[i], "--seeds") == 0
			? strtoull(argv[i + 1], NULL, 10) : count;
	}
	for (uint64_t seed = first; seed < first + count; seed++) {
		good = run(seed, totals) && good;
	}
	printf("seeds=%" PRIu64 " bindings made %" PRIu64 ", ended at masters %" PRIu64
		", lost %" PRIu64 "\n",
		count, totals[COUNT_binding_made], totals[COUNT_binding_ended],
		totals[COUNT_binding_lost]);
	if (count >= 10 && (totals[COUNT_binding_ended] == 0 || totals[COUNT_binding_lost] == 0)) {
		printf("what is to be tested did not happen\n");
		good = false;
	}
	return good ? 0 : 1;
}
