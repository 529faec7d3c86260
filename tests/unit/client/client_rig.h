/* client_rig.h: a client with clocks that the test moves, two fake nodes, and one loop for all of
 * them. */
#ifndef PAWL_TESTS_CLIENT_RIG_H
#define PAWL_TESTS_CLIENT_RIG_H

#include "fake_node.h"
#include "top.h"

#define RIG_NODES 2

struct rig {
	struct allocator alloc;
	struct alloc_counter counter;
	struct allocator counted;
	/* asked for so far */
	uint64_t allocations;
	/* refused are those with these numbers, from 1 on */
	uint64_t fail_from, fail_count;
	uint64_t failed;
	struct env env;
	struct instant now;
	struct event_base *base;
	struct fake_node nodes[RIG_NODES];
	struct pawl *client;
};

/* endpoints, base are set here; options may be NULL */
void rig_open(struct rig *r, const struct pawl_options *options);
/* As rig_open, but refuses allocations, so that there may be no client: 0 or PAWL_ENOMEM. */
int rig_open_short(struct rig *r, uint64_t fail_from, uint64_t fail_count);
/* checks that no memory is left */
void rig_close(struct rig *r);

/* until nothing moves any more (at most a second of real time) */
void rig_settle(struct rig *r);
/* both clocks move on, in small steps, and everything that follows happens */
void rig_pass(struct rig *r, span_ns time);
/* the clocks move at once, as after a pause; nobody has run yet */
void rig_jump(struct rig *r, span_ns boot, span_ns raw);

/* Callback for pawl_start: keeps the result in a struct pawl_result *. */
void rig_done(struct pawl_result *take_result, void *arg);
/* Its answer, once nothing goes on any more; NULL: none yet. The caller frees it. */
struct pawl_result *rig_ask(struct rig *r, const struct pawl_request *request);

#endif
