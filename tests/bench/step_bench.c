/* step_bench.c: the longest step of a core while masters with many leases change, restart and start
 * over, and while all leases end.
 *
 *   step_bench [--leases N]
 *
 * Real cores run on the stage of the tests, and every core_step is timed by the processor time that
 * it takes. Virtual time passes as it likes, and other processes of the machine do not count. A
 * step is what everybody else has to wait for (docs/architecture.md).
 */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "stage.h"

#define LONG_MS 2
#include "step_time.h"

/* Every master learns every lease from another one. All of them end within about a quarter of a
 * second. */
static void fill(struct stage *s, uint64_t leases, span_ns lease) {
	char name[32];
	for (uint64_t n = 0; n < leases; n++) {
		int size = snprintf(name, sizeof name, "key-%llu", (unsigned long long)n);
		struct message m = { .kind = MESSAGE_LEARN, .round = 1,
			.key = slice_of((const uint8_t *)name, (size_t)size), .lock_id = lock_of(n),
			.token = n + 1, .lease_us = (uint64_t)(lease / SPAN_US),
			.owner = slice_str("bench"), .ballot = { n + 1, 1, 1 } };
		for (uint32_t i = 0; i < 3; i++) {
			stage_inject(s, (i + 1) % 3, i, &m);
		}
		if (n % 1000 == 0) {
			stage_settle(s);
		}
	}
	stage_settle(s);
}

static uint64_t held(const struct stage *s, uint32_t node) {
	return stage_status(s, node).held;
}

static struct stage *begin(uint64_t leases, span_ns lease) {
	struct stage_options o = stage_options_plain();
	o.outside = 3;
	o.max_lease = 36000 * SPAN_S;
	o.request_timeout = SPAN_S;
	o.promise_timeout = 2 * SPAN_S;
	o.unchecked = true;
	o.limits.memory_bytes = (uint64_t)16 << 30;
	struct stage *s = stage_born(&o);
	fill(s, leases, lease);
	CHECK(held(s, 0) == leases && held(s, 2) == leases);
	return s;
}

static uint64_t ask(struct stage *s, uint32_t node, struct core_change change) {
	stage_mend(s);
	stage_settle(s);
	return stage_ask(s, node,
		(struct core_request){ .op = CORE_CHANGE, .change = &change, .admin = true });
}

static void await(struct stage *s, uint64_t id) {
	while (stage_answer(s, id) == NULL) {
		stage_wait(s, 2 * SPAN_MS);
	}
	CHECK(stage_answer(s, id)->r.error == PAWL_OK);
}

/* A node that is killed frees its memory in this very process. This makes glibc sort what was
 * freed now, and not within a later step. */
static void die(struct stage *s, uint32_t node) {
	stage_kill(s, node);
	for (int i = 0; i < 1000; i++) {
		void *volatile p = malloc(100000);
		free(p);
	}
	memset(&phase, 0, sizeof phase);
}

/* ---- phases ---- */

static void change_everybody(uint64_t leases) {
	static const struct core_change_node nodes[] =
		{ { { (const uint8_t *)"n4", 2 }, { (const uint8_t *)"n4:7118", 7 }, true },
		{ { (const uint8_t *)"n5", 2 }, { (const uint8_t *)"n5:7118", 7 }, true },
		{ { (const uint8_t *)"n6", 2 }, { (const uint8_t *)"n6:7118", 7 }, true } };
	struct stage *s = begin(leases, 36000 * SPAN_S);
	report("filling");
	uint64_t id = ask(s, 0,
		(struct core_change){ .kind = CHANGE_SET_NODES, .nodes = nodes, .node_count = 3 });
	await(s, id);
	report("a change of all masters: copying ahead, taking over");
	stage_wait(s, 30 * SPAN_S);
	CHECK(held(s, 3) == leases);
	report("... finishing, emptying");
	stage_free(s);
	memset(&phase, 0, sizeof phase);
}

/* n2 is away: n3 has all that n1 knows, and cannot rejoin. */
static void recover(uint64_t leases) {
	struct stage *s = begin(leases, 36000 * SPAN_S);
	die(s, 1);
	die(s, 2);
	stage_start(s, 2);
	stage_mend(s);
	while (held(s, 2) < leases) {
		stage_wait(s, 2 * SPAN_MS);
	}
	stage_wait(s, 2 * SPAN_S);
	report("a restart: a snapshot of one of two sources");
	await(s, ask(s, 0, (struct core_change){ .kind = CHANGE_SET_TIMING,
		.max_lease = 30000 * SPAN_S, .anyway = true }));
	report("... another epoch meanwhile");
	uint64_t id = ask(s, 2, (struct core_change){ .kind = CHANGE_FORCE, .anyway = true });
	await(s, id);
	report("... starting over there");
	stage_start(s, 1);
	stage_free(s);
	memset(&phase, 0, sizeof phase);
}

static void rejoin(uint64_t leases) {
	struct stage *s = begin(leases, 36000 * SPAN_S);
	die(s, 2);
	stage_start(s, 2);
	stage_mend(s);
	CHECK(stage_until_voting(s, 2, 3600 * SPAN_S));
	stage_wait(s, 30 * SPAN_S);
	CHECK(held(s, 2) == leases);
	report("a restart: rejoining");
	stage_free(s);
	memset(&phase, 0, sizeof phase);
}

static void end_all(uint64_t leases) {
	struct stage *s = begin(leases, 600 * SPAN_S);
	memset(&phase, 0, sizeof phase);
	stage_wait(s, 590 * SPAN_S);
	report("time passes");
	stage_wait(s, 30 * SPAN_S);
	CHECK(held(s, 0) == 0);
	report("all leases end");
	stage_free(s);
}

int main(int argc, char **argv) {
	/* As pawld does: docs/decisions/0019-no-fast-bins.md. */
	(void)mallopt(M_MXFAST, 0);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	(void)mallopt(M_TOP_PAD, 16 << 20);
	uint64_t leases = argc == 3 &&
		strcmp(argv[1], "--leases") == 0 ? strtoull(argv[2], NULL, 10) : 1000000;
	printf("| with %llu leases | the longest step | steps over "
		"2 ms | steps | all steps |\n|---|---|---|---|---|\n", (unsigned long long)leases);
	change_everybody(leases);
	recover(leases);
	rejoin(leases);
	end_all(leases);
	return 0;
}
