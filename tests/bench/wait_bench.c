/* wait_bench.c: the longest step of a core while many wait: they come, are served, leave, and lose
 * their node; and the longest step for lists of waiters and of keys.
 *
 *   wait_bench [--waits N] [--keys N] [--only PART]
 *
 * PART is queue (N waits on 16 keys), waiters (lists of 40,000 waiters), or list (of N keys). Every
 * core_step is timed by the processor time that it takes, as in step_bench. This counts the
 * instructions of all steps of a part:
 *
 *   valgrind --tool=callgrind --toggle-collect=core_step wait_bench --only queue --waits 8000
 */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "stage.h"

#define LONG_MS 5
#include "step_time.h"

#define KEYS 16
#define LISTED 40000
/* How many requests come together. */
#define BATCH 64
#define LEASE (36000 * SPAN_S)

static const char *name_of(uint64_t n) {
	static char name[32];
	snprintf(name, sizeof name, "key-%llu", (unsigned long long)n);
	return name;
}

static struct stage *begin(void) {
	struct stage_options o = stage_options_plain();
	o.max_lease = LEASE;
	o.request_timeout = SPAN_S;
	o.promise_timeout = 2 * SPAN_S;
	o.unchecked = true;
	o.limits = (struct core_limits){ .memory_bytes = (uint64_t)16 << 30, .waiters = 1000000,
		.waiters_per_key = 1000000, .waiters_per_client = 1000000, .rounds = 1000000 };
	return stage_born(&o);
}

static uint64_t waiting(const struct stage *s) {
	return stage_status(s, 0).waiters + stage_status(s, 1).waiters + stage_status(s, 2).waiters;
}

static void take(struct stage *s, uint64_t key) {
	CHECK(stage_do(s, 0, stage_acquire(name_of(key), lock_of(key), LEASE, 0)) == PAWL_OK);
}

/* Waiter n waits for key n % keys, under the lock_id `keys` + n. All come through one connection of
 * n2. */
static void enter(struct stage *s, uint64_t waits, uint64_t keys) {
	for (uint64_t n = 0; n < waits; n++) {
		struct core_request r = stage_acquire(name_of(n % keys), lock_of(keys + n), LEASE,
			3600 * SPAN_S);
		r.terms.priority = (int32_t)(n % 7);
		(void)stage_ask(s, 1, r);
		if (n % BATCH == BATCH - 1) {
			stage_settle(s);
		}
	}
	stage_wait(s, 10 * SPAN_MS);
	CHECK(waiting(s) == waits);
}

static struct stage *crowd(uint64_t waits, uint64_t keys) {
	struct stage *s = begin();
	for (uint64_t key = 0; key < keys; key++) {
		take(s, key);
	}
	memset(&phase, 0, sizeof phase);
	enter(s, waits, keys);
	return s;
}

static void until(struct stage *s, uint64_t waits) {
	while (waiting(s) != waits) {
		stage_wait(s, SPAN_MS);
	}
}

/* The holder releases, and the next waiter has the key, as long as there is a waiter with the
 * greatest priority. */
static void serve(struct stage *s, uint64_t waits) {
	uint64_t served = 0;
	for (uint64_t key = 0; key < KEYS; key++) {
		struct id128 holder = lock_of(key);
		for (uint64_t n = key, rounds = 0; n < waits && rounds < 100; n += KEYS) {
			if (n % 7 == 6) {
				CHECK(stage_do(s, 1,
					stage_request(CORE_RELEASE, name_of(key), holder)) ==
					PAWL_OK);
				stage_settle(s);
				holder = lock_of(KEYS + n);
				served++;
				rounds++;
			}
		}
	}
	until(s, waits - served);
}

static void queue_part(uint64_t waits) {
	struct stage *s = crowd(waits, KEYS);
	report("they come, to 16 keys");
	serve(s, waits);
	report("1,600 of them are served");
	stage_client_gone(s, 1, 2);
	until(s, 0);
	report("their client goes");
	stage_free(s);
	s = crowd(waits, KEYS);
	memset(&phase, 0, sizeof phase);
	stage_isolate(s, 1, true);
	stage_wait(s, 500 * SPAN_MS);
	/* They wait at home again, at n2 itself. */
	until(s, waits);
	report("the links to their node are lost");
	stage_isolate(s, 1, false);
	stage_mend(s);
	stage_wait(s, 500 * SPAN_MS);
	until(s, waits);
	report("... and are there again");
	stage_free(s);
}

static void ask_lists(struct stage *s, struct core_request r, uint32_t count) {
	uint64_t last = 0;
	memset(&phase, 0, sizeof phase);
	for (uint32_t i = 0; i < count; i++) {
		last = stage_ask(s, 0, r);
	}
	do {
		stage_wait(s, SPAN_MS);
	} while (stage_answer(s, last) == NULL);
	CHECK(stage_answer(s, last)->r.error == PAWL_OK);
}

static void waiters_part(void) {
	static const uint64_t keys[] = { KEYS, LISTED };
	static const char *const names[2][3] = { { "`waiters` of all keys, 40,000 on 16 keys",
		"... 64 times at once", "`waiters` of one key" },
		{ "`waiters` of all keys, 40,000 on 40,000 keys", "... 64 times at once", "" } };
	for (int i = 0; i < 2; i++) {
		struct stage *s = crowd(LISTED, keys[i]);
		struct core_request r = { .op = CORE_WAITERS, .prefix = true, .limit = 1000,
			.admin = true };
		ask_lists(s, r, 1);
		report(names[i][0]);
		ask_lists(s, r, 64);
		report(names[i][1]);
		if (i == 0) {
			ask_lists(s, stage_request(CORE_WAITERS, name_of(0), lock_of(0)), 1);
			report(names[i][2]);
		}
		stage_free(s);
	}
}

static void list_part(uint64_t keys) {
	struct stage *s = begin();
	for (uint64_t n = 0; n < keys; n++) {
		const char *name = name_of(n);
		struct message m = { .kind = MESSAGE_LEARN, .round = 1, .key = slice_str(name),
			.lock_id = lock_of(n), .token = n + 1,
			.lease_us = (uint64_t)(LEASE / SPAN_US), .owner = slice_str("bench"),
			.ballot = { n + 1, 1, 1 } };
		stage_inject(s, 1, 0, &m);
		if (n % 1000 == 0) {
			stage_settle(s);
		}
	}
	stage_settle(s);
	CHECK(stage_status(s, 0).held == keys);
	struct core_request r = { .op = CORE_LIST, .limit = 1000, .admin = true };
	ask_lists(s, r, 1);
	report("`list` of all keys, a page of 1,000");
	ask_lists(s, r, 64);
	report("... 64 times at once");
	stage_free(s);
}

static uint64_t number(const char *text) {
	char *end;
	const uint64_t n = strtoull(text, &end, 10);
	CHECK(*end == 0);
	return n;
}

int main(int argc, char **argv) {
	/* As pawld does: docs/decisions/0019-no-fast-bins.md. */
	(void)mallopt(M_MXFAST, 0);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	(void)mallopt(M_TOP_PAD, 16 << 20);
	uint64_t waits = 64000, keys = 400000;
	const char *only = "";
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--waits") == 0) {
			waits = number(argv[i + 1]);
		} else if (strcmp(argv[i], "--keys") == 0) {
			keys = number(argv[i + 1]);
		} else if (strcmp(argv[i], "--only") == 0) {
			only = argv[i + 1];
		}
	}
	printf("| %llu waits, %llu keys | the longest step | steps over 5 ms | steps | all steps "
		"|\n|---|---|---|---|---|\n", (unsigned long long)waits, (unsigned long long)keys);
	if (strcmp(only, "") == 0 || strcmp(only, "queue") == 0) {
		queue_part(waits);
	}
	if (strcmp(only, "") == 0 || strcmp(only, "waiters") == 0) {
		waiters_part();
	}
	if (strcmp(only, "") == 0 || strcmp(only, "list") == 0) {
		list_part(keys);
	}
	return 0;
}
