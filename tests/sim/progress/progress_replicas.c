/* progress_replicas.c: after the heal (docs/protocol.md, section 8.5) replicas show a write within
 * replication_interval plus one message, and then have what their masters have. */
#include <inttypes.h>

#include "check.h"
#include "pawl/error.h"
#include "progress.h"

struct reader {
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t key, lock;
	/* The true time until which the record lasts at least. */
	int64_t ends;
	struct sim_reply reply;
	bool answered;
};

static void reader_reply(void *ctx, const struct sim_reply *reply) {
	struct reader *r = ctx;
	checker_returned(r->run->checker, reply->r.id, reply, CHECKER_NO_VALUE);
	r->reply = *reply;
	r->answered = true;
}

static void reader_closed(void *ctx) {
	struct reader *r = ctx;
	checker_violation(r->run->checker, "progress", r->key,
		"a connection broke although nothing was wrong any more");
}

static bool reader_answered(void *ctx) {
	return ((struct reader *)ctx)->answered;
}

static void reader_ask(struct reader *r, uint32_t node, struct core_request *request,
	const struct checker_op *op) {
	struct run *run = r->run;
	char key[16];
	request->key = sim_name_key(key, r->key);
	request->lock_id = checker_lock_id(run->checker, r->lock);
	request->admin = true;
	request->owner = slice_str("reader");
	r->answered = false;
	r->session = sim_connect(run->sim, &r->actor, node,
		(struct sim_handler){ reader_reply, reader_closed, r });
	checker_invoked(run->checker, sim_send(r->session, request), op);
	if (!sim_run_until(run->sim, reader_answered, r, 10 * run->profile.sim.request_timeout)) {
		checker_violation(run->checker, "progress (every request is answered)", r->key,
			"n%" PRIu32 " does not answer", node + 1);
	}
	sim_session_close(r->session);
}

/* Counted from the answer at the client. Masters that were not in the quorum have the write one
 * message later, and send it on then. */
static span_ns write_bound(const struct run *run) {
	return span_grow(run->profile.sim.replication_interval, run->profile.sim.drift_ppm) +
		3 * progress_hop(run) + 2 * run->profile.sim.disk_max + 3 * SPAN_MS;
}

/* The end of a lease that has just run out is told with the next tick. A replica tells it when its
 * master has told it, and by the master's clocks the lease may last longer than by the replica's.
 * Then the replica does not show the lock any more, and has not told its end yet (docs/protocol.md,
 * section 7, Events for those who watch at a replica). */
void watch_event_demand(struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	span_ns longest = run->born.max_lease > o->max_lease ? run->born.max_lease : o->max_lease;
	(void)sim_run_until(run->sim, checker_events_of_masters_agree, run->checker, 20 * SPAN_MS);
	checker_events_settled(run->checker, false);
	(void)sim_run_until(run->sim, checker_events_agree, run->checker,
		span_grow(longest, 2 * o->drift_ppm) - longest + write_bound(run));
	checker_events_settled(run->checker, true);
	checker_watched_settled(run->checker, 10 * o->request_timeout);
}

static void demand_shown(struct reader *r, bool held, const char *value) {
	struct run *run = r->run;
	sim_run_for(run->sim, write_bound(run));
	for (uint32_t at = 0, node; members_node(run, at, &node); at++) {
		struct core_request request = { .op = CORE_GET };
		struct checker_op op = { .op = CORE_GET, .client = r->actor.number, .key = r->key,
			.lock = TRACE_NONE, .expect = CHECKER_NO_VALUE };
		reader_ask(r, node, &request, &op);
		if (held && sim_now(run->sim) >= r->ends) {
			/* With short leases and slow connections it runs out before all nodes have
			 * been asked. */
			return;
		}
		const struct sim_reply *reply = &r->reply;
		bool same = reply->r.held == held && (!held || (id128_equal(reply->r.entry.lock_id,
			checker_lock_id(run->checker, r->lock)) && reply->entry_value_size ==
			strlen(value) && memcmp(reply->entry_value, value, strlen(value)) == 0));
		if (reply->r.error || !same) {
			checker_violation(run->checker, "bounded staleness", r->key,
				"n%" PRIu32 " shows %s (%s) %.3f ms after L%" PRIu32 " was %s",
				node + 1, reply->r.held ? "a record" : "nothing",
				pawl_error_code(reply->r.error), (double)write_bound(run) / 1e6,
				r->lock, held ? value : "released");
		}
	}
}

static void write_and_read(struct run *run) {
	struct reader r = { .run = run, .key = run->profile.keys };
	char value[16];
	uint32_t number = ++run->values;
	sim_actor_init(run->sim, &r.actor, 400);
	r.lock = checker_lock_new(run->checker, r.key, number);
	snprintf(value, sizeof value, "v%" PRIu32, number);
	struct core_request acquire = { .op = CORE_ACQUIRE, .lease = run->profile.sim.max_lease,
		.wait = SPAN_S, .value = slice_str(value) };
	struct checker_op op = { .op = CORE_ACQUIRE, .client = r.actor.number, .key = r.key,
		.lock = r.lock, .lease = acquire.lease, .wait = acquire.wait,
		.expect = CHECKER_NO_VALUE, .value = number };
	r.ends = sim_now(run->sim) + span_shrink(acquire.lease, run->profile.sim.drift_ppm);
	reader_ask(&r, members_any(run), &acquire, &op);
	if (r.reply.r.error) {
		checker_violation(run->checker, "progress (a free key is had)", r.key, "%s",
			pawl_error_code(r.reply.r.error));
	}
	demand_shown(&r, true, value);
	struct core_request release = { .op = CORE_RELEASE };
	checker_lock_end(run->checker, r.lock);
	reader_ask(&r, members_any(run), &release, &(struct checker_op){ .op = CORE_RELEASE,
		.client = r.actor.number, .key = r.key, .lock = r.lock });
	demand_shown(&r, false, NULL);
}

struct equality {
	struct run *run;
	uint32_t node, master, lock;
};

static bool all_equal(void *ctx) {
	struct equality *e = ctx;
	const struct config *newest = checker_newest(e->run->checker);
	for (uint32_t at = config_masters(newest); members_node(e->run, at, &e->node); at++) {
		e->master = checker_followed(e->run->checker, e->node);
		e->lock = TRACE_NONE;
		if (e->master == TRACE_NONE ||
			!checker_replica_equals(e->run->checker, e->node, e->master, &e->lock)) {
			return false;
		}
	}
	return true;
}

struct spread {
	struct run *run;
	uint32_t node, lock;
};

static bool masters_equal(void *ctx) {
	struct spread *s = ctx;
	return checker_masters_equal(s->run->checker, &s->node, &s->lock);
}

/* A master that missed what a quorum accepted gets it without anybody's extension. */
void masters_demand(struct run *run) {
	struct spread s = { .run = run };
	if (run->profile.sim.limits.keys && run->profile.keys > run->profile.sim.limits.keys) {
		/* Where the table is full of other keys there is no room for it. */
		return;
	}
	if (!sim_run_until(run->sim, masters_equal, &s, 8 * run->profile.sim.request_timeout)) {
		checker_violation(run->checker, "masters get what they missed",
			checker_lock_key(run->checker, s.lock), "n%" PRIu32 " still lacks L%" PRIu32
			", which a quorum has", s.node + 1, s.lock);
	}
}

void replicas_demand(struct run *run) {
	struct equality e = { .run = run };
	if (checker_newest(run->checker)->node_count ==
		config_masters(checker_newest(run->checker))) {
		return;
	}
	if (!sim_run_until(run->sim, all_equal, &e, 4 * write_bound(run))) {
		checker_violation(run->checker, "replicas equal their masters", TRACE_NONE,
			"n%" PRIu32 " differs from n%" PRIu32 " in L%" PRIu32, e.node + 1,
			e.master + 1, e.lock);
	}
	if (run->profile.sim.max_lease > 2 * write_bound(run)) {
		write_and_read(run);
	}
}
