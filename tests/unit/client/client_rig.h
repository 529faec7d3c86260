/* client_rig.h: a client with clocks that the test moves, two fake nodes or three, and one loop for
 * all of them. */
#ifndef PAWL_TESTS_CLIENT_RIG_H
#define PAWL_TESTS_CLIENT_RIG_H

#include "fake_node.h"
#include "top.h"

/* The number of endpoints that rig_open gives the client. */
#define RIG_ENDPOINTS 2
#define RIG_NODES (RIG_ENDPOINTS + 1)

struct rig {
	struct allocator alloc;
	struct alloc_counter counter;
	struct allocator counted;
	/* How many allocations were asked for so far. */
	uint64_t allocations;
	/* `fail_count` allocations are refused, from number `fail_from` on; the first one has
	 * number 1. */
	uint64_t fail_from, fail_count;
	uint64_t failed;
	struct env env;
	struct instant now;
	struct event_base *base;
	struct fake_node nodes[RIG_NODES];
	struct pawl *client;
};

/* Opens the client, which begins with the first node. `options` may be NULL; the endpoints and the
 * base are set here. If `options` has any endpoints, the first node is the only one. */
void rig_open(struct rig *r, const struct pawl_options *options);
/* Opens a client that has all the nodes as its endpoints. */
void rig_open_all(struct rig *r);
/* Does the same as rig_open, but refuses allocations, so that there may be no client. Returns 0 or
 * PAWL_ENOMEM. */
int rig_open_short(struct rig *r, uint64_t fail_from, uint64_t fail_count);
/* Closes everything, and checks that no memory is left. */
void rig_close(struct rig *r);

/* Runs until nothing moves any more, for at most a second of real time. */
void rig_settle(struct rig *r);
/* Moves both clocks on, in small steps, and lets everything happen that follows. */
void rig_pass(struct rig *r, span_ns time);
/* The same in steps of a millisecond: no alarm rings late. */
void rig_creep(struct rig *r, span_ns time);
/* Moves the clocks at once, as after a pause. Nothing has run yet when it returns. */
void rig_jump(struct rig *r, span_ns boot, span_ns raw);

/* A callback for pawl_start, which keeps the result in a struct pawl_result *. */
void rig_done(struct pawl_result *take_result, void *arg);
/* Makes a request and returns its answer once nothing goes on any more; NULL where there is none
 * yet. The caller frees it. */
struct pawl_result *rig_ask(struct rig *r, const struct pawl_request *request);

#endif
