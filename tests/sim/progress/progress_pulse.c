/* progress_pulse.c: a change does not stop the service (docs/protocol.md, section 6). While it is
 * made, with nothing wrong, a client at a member that stays goes on getting a free key, and waits
 * only for the moment in which the new masters begin to vote. */
#include <inttypes.h>

#include "check.h"
#include "pawl/error.h"
#include "progress.h"

static void ask(struct pulse *p);

static void closed(void *ctx) {
	struct pulse *p = ctx;
	checker_violation(p->run->checker, "progress", p->key,
		"a connection broke although nothing was wrong any more");
}

static void release(struct pulse *p) {
	char key[16];
	struct core_request r = { .op = CORE_RELEASE, .key = sim_name_key(key, p->key),
		.lock_id = checker_lock_id(p->run->checker, p->lock) };
	checker_lock_end(p->run->checker, p->lock);
	checker_invoked(p->run->checker, sim_send(p->session, &r), &(struct checker_op){
		.op = CORE_RELEASE, .client = p->actor.number, .key = p->key, .lock = p->lock });
}

static void replied(void *ctx, const struct sim_reply *reply) {
	struct pulse *p = ctx;
	struct run *run = p->run;
	checker_returned(run->checker, reply->r.id, reply, CHECKER_NO_VALUE);
	p->under_way = false;
	if (reply->r.op == CORE_ACQUIRE) {
		span_ns took = sim_now(run->sim) - p->asked;
		if (reply->r.error) {
			checker_violation(run->checker, "changes do not stop the service", p->key,
				"n%" PRIu32 " refuses a free key: %s", p->node + 1,
				pawl_error_code(reply->r.error));
		}
		p->worst = took > p->worst ? took : p->worst;
		p->under_way = true;
		release(p);
	} else if (!p->over) {
		ask(p);
	}
}

/* It takes another key every time, because a release needs its time to reach everybody. */
static void ask(struct pulse *p) {
	struct run *run = p->run;
	char key[16];
	uint32_t value = ++run->values;
	p->key++;
	p->lock = checker_lock_new(run->checker, p->key, value);
	struct core_request r = { .op = CORE_ACQUIRE, .key = sim_name_key(key, p->key),
		.lock_id = checker_lock_id(run->checker, p->lock),
		.lease = run->profile.sim.max_lease, .owner = slice_str("pulse") };
	p->asked = sim_now(run->sim);
	p->under_way = true;
	checker_invoked(run->checker, sim_send(p->session, &r),
		&(struct checker_op){ .op = CORE_ACQUIRE, .client = p->actor.number, .key = p->key,
		.lock = p->lock, .lease = r.lease, .expect = CHECKER_NO_VALUE, .value = value });
}

void pulse_start(struct pulse *p, struct run *run, uint32_t node) {
	*p = (struct pulse){ .run = run, .node = node, .key = 1000 };
	sim_actor_init(run->sim, &p->actor, 500);
	p->session = sim_connect(run->sim, &p->actor, node,
		(struct sim_handler){ replied, closed, p });
	ask(p);
}

static bool idle(void *ctx) {
	return !((struct pulse *)ctx)->under_way;
}

void pulse_end(struct pulse *p, span_ns most) {
	struct run *run = p->run;
	p->over = true;
	if (!sim_run_until(run->sim, idle, p, 10 * run->profile.sim.request_timeout)) {
		checker_violation(run->checker, "progress (every request is answered)", p->key,
			"n%" PRIu32 " does not answer", p->node + 1);
	}
	sim_session_close(p->session);
	if (p->worst > most) {
		checker_violation(run->checker, "changes do not stop the service", TRACE_NONE,
			"a free key was had at n%" PRIu32 " after %.3f ms, at most %.3f are"
			" allowed", p->node + 1, (double)p->worst / 1e6, (double)most / 1e6);
	}
}
