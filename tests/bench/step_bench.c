/* step_bench.c: the longest step of a core while masters with many leases change, restart and start
 * over, while a replica takes a snapshot, and while all leases are extended and end.
 *
 *   step_bench [--leases N] [--masters N] [--only PART,PART]
 *
 * The parts are change, recover, rejoin, replica and end. A change replaces all masters; if there
 * is 1, by its replica, which needs half of the memory. The parts recover and rejoin always have
 * three. Ten million leases take up to 9 GB:
 *
 *   step_bench --leases 10000000 --masters 1 --only change,replica,end
 *   step_bench --leases 10000000 --only rejoin
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
#include "free_lists.h"
#include "stage.h"

#define LONG_MS 1
#include "step_time.h"

/* All nodes of the stage allocate as pawld does. */
static struct free_lists lists;
static struct allocator alloc;
static struct alloc_counter taken;

/* Sends each master a message about each lease, as if from another one, or from the replica if
 * there is only one. */
static void tell_all(struct stage *s, uint64_t leases, struct message m) {
	char name[32];
	for (uint64_t n = 0; n < leases; n++) {
		int size = snprintf(name, sizeof name, "key-%llu", (unsigned long long)n);
		m.key = slice_of((const uint8_t *)name, (size_t)size);
		m.lock_id = lock_of(n);
		m.token = n + 1;
		m.ballot = (struct ballot){ n + 1, 1, 1 };
		for (uint32_t i = 0; i < s->options.masters; i++) {
			stage_inject(s, s->options.masters > 1 ? (i + 1) % s->options.masters : 1,
				i, &m);
		}
		if (n % 1000 == 0) {
			stage_settle(s);
		}
	}
	stage_settle(s);
}

/* All leases end within about a quarter of a second. */
static void fill(struct stage *s, uint64_t leases, span_ns lease) {
	tell_all(s, leases, (struct message){ .kind = MESSAGE_LEARN, .round = 1,
		.lease_us = (uint64_t)(lease / SPAN_US), .owner = slice_str("bench") });
}

static uint64_t held(const struct stage *s, uint32_t node) {
	return stage_status(s, node).held;
}

/* A master that is alone has a replica. */
static struct stage *begin(uint64_t leases, span_ns lease, uint32_t masters, uint32_t outside) {
	struct stage_options o = stage_options_plain();
	o.masters = masters;
	o.replicas = masters == 1;
	o.outside = outside;
	o.core = &alloc;
	o.max_lease = 36000 * SPAN_S;
	o.request_timeout = SPAN_S;
	o.promise_timeout = 2 * SPAN_S;
	o.unchecked = true;
	o.limits.memory_bytes = (uint64_t)16 << 30;
	o.limits.keys = leases + 1;
	const size_t before = taken.used;
	struct stage *s = stage_born(&o);
	fill(s, leases, lease);
	CHECK(held(s, 0) == leases && held(s, masters - 1) == leases);
	/* Later parts use the pages of earlier ones. */
	if (before == 0) {
		printf("| %u nodes have %.2f GB; without keys and owners a lease takes %.0f bytes "
			"| | | | | |\n", masters + o.replicas, (double)taken.used / 1e9,
			(double)taken.used / (double)(leases * (masters + o.replicas)) - 16);
	}
	report("filling");
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

static void change_everybody(uint64_t leases, uint32_t masters) {
	char names[3][16], addresses[3][24];
	struct core_change_node nodes[3];
	for (uint32_t i = 0; i < masters; i++) {
		snprintf(names[i], sizeof names[i], "n%u", masters + i + 1);
		snprintf(addresses[i], sizeof addresses[i], "n%u:7118", masters + i + 1);
		nodes[i] = (struct core_change_node){ slice_str(names[i]), slice_str(addresses[i]),
			true };
	}
	struct stage *s = begin(leases, 36000 * SPAN_S, masters, masters > 1 ? masters : 0);
	uint64_t id = ask(s, 0, (struct core_change){ .kind = CHANGE_SET_NODES, .nodes = nodes,
		.node_count = masters });
	await(s, id);
	report("a change of all masters: copying ahead, taking over");
	stage_wait(s, 30 * SPAN_S);
	CHECK(held(s, masters) == leases);
	report("... finishing, emptying");
	stage_free(s);
	memset(&phase, 0, sizeof phase);
}

/* n2 is away: n3 has all that n1 knows, and cannot rejoin. */
static void recover(uint64_t leases) {
	struct stage *s = begin(leases, 36000 * SPAN_S, 3, 0);
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
	struct stage *s = begin(leases, 36000 * SPAN_S, 3, 0);
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

/* A replica that starts takes a snapshot of its master. */
static void replica(uint64_t leases) {
	struct stage *s = begin(leases, 36000 * SPAN_S, 1, 0);
	die(s, 1);
	stage_start(s, 1);
	stage_mend(s);
	while (held(s, 1) < leases) {
		stage_wait(s, 2 * SPAN_MS);
	}
	report("a new replica: a snapshot of its master");
	stage_free(s);
	memset(&phase, 0, sizeof phase);
}

static void end_all(uint64_t leases, uint32_t masters) {
	struct stage *s = begin(leases, 1200 * SPAN_S, masters, 0);
	tell_all(s, leases, (struct message){ .kind = MESSAGE_EXTEND, .round = 2, .name = 1,
		.lease_us = (uint64_t)(1200 * SPAN_S / SPAN_US) });
	report("all leases are extended");
	stage_wait(s, 1180 * SPAN_S);
	report("time passes");
	stage_wait(s, 60 * SPAN_S);
	CHECK(held(s, 0) == 0);
	report("all leases end");
	stage_free(s);
}

static bool wanted(const char *only, const char *part) {
	const char *at = only ? strstr(only, part) : part;
	return at && (at[strlen(part)] == ',' || at[strlen(part)] == '\0');
}

int main(int argc, char **argv) {
	/* As pawld does: docs/decisions/0019-no-fast-bins.md. */
	(void)mallopt(M_MXFAST, 0);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	(void)mallopt(M_TOP_PAD, 16 << 20);
	uint64_t leases = 1000000;
	uint32_t masters = 3;
	const char *only = NULL;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--leases") == 0) {
			leases = strtoull(argv[i + 1], NULL, 10);
		} else if (strcmp(argv[i], "--masters") == 0) {
			masters = strcmp(argv[i + 1], "1") == 0 ? 1 : 3;
		} else if (strcmp(argv[i], "--only") == 0) {
			only = argv[i + 1];
		}
	}
	free_lists_init(&lists, alloc_libc(&taken), FREE_LISTS_KEPT);
	alloc = free_lists_alloc(&lists);
	printf("| with %llu leases | the longest step | steps over 1 ms | steps | all steps "
		"| the machine: longest, over 1 ms |\n|---|---|---|---|---|---|\n",
		(unsigned long long)leases);
	if (wanted(only, "change")) {
		change_everybody(leases, masters);
	}
	if (wanted(only, "recover")) {
		recover(leases);
	}
	if (wanted(only, "rejoin")) {
		rejoin(leases);
	}
	if (wanted(only, "replica")) {
		replica(leases);
	}
	if (wanted(only, "end")) {
		end_all(leases, masters);
	}
	free_lists_done(&lists);
	return 0;
}
