/* hot_bench.c: what one hot key costs in messages, and how many locks on it are granted in a round
 * trip. It runs three real cores on a stage, which moves all messages at once, so that the
 * figures do not depend on the machine.
 *
 *   hot_bench [--cycles N] [--outstanding N] [--from MODE] [--counts]
 *
 * For each mode and each place of the key's home, OUTSTANDING requests of one node acquire and
 * release the key again and again, N times in all; then as many that are spread over all nodes.
 * --from leaves out the first modes. --counts prints each kind of message, and each counter of the
 * cores.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "prng.h"
#include "stage.h"

#define NODES 3
#define LEASE (10 * SPAN_S)
#define WAIT (60 * SPAN_S)
/* The time that a message takes. */
#define HOP (50 * SPAN_US)
/* When a mode makes no progress, its row says how far it came. */
#define ROUNDS_MOST 2000000

struct slot {
	uint32_t node;
	uint8_t number;
	bool holds;
	uint64_t id, taken;
	struct id128 lock_id;
};

struct mode {
	const char *name;
	bool own_keys;
	uint16_t of;
};

static const struct mode modes[] = {
	{ "exclusive, keys of their own", true, MODE_EXCLUSIVE },
	{ "shared", false, MODE_SHARED },
	{ "permit of 64", false, 64 },
	{ "permit of 16", false, 16 },
	{ "exclusive", false, MODE_EXCLUSIVE },
};

struct load {
	struct stage *stage;
	const struct mode *mode;
	char key[24];
	struct slot *slots;
	uint32_t count;
	uint64_t done, rounds;
	struct prng prng;
};

static void ask(struct load *l, struct slot *s, enum core_op op) {
	char own[24];
	snprintf(own, sizeof own, "own-%u", s->number);
	struct core_request r = { .op = op, .lease = LEASE, .wait = WAIT, .deadline_kept = true,
		.key = slice_str(l->mode->own_keys ? own : l->key) };
	r.terms.of = l->mode->of;
	r.terms.count = terms_of_numbers(l->mode->of);
	if (op == CORE_ACQUIRE) {
		s->taken++;
		memcpy(s->lock_id.b, &s->taken, sizeof s->taken);
		s->lock_id.b[14] = s->number;
		s->lock_id.b[15] = 1;
	}
	r.lock_id = s->lock_id;
	s->id = stage_ask(l->stage, s->node, r);
}

/* What is on its way now arrives, but for one link in three, on which it takes longer. Then every
 * client reacts to its answer. */
static void one_round(struct load *l) {
	uint32_t there[NODES][NODES];
	for (uint32_t i = 0; i < NODES * NODES; i++) {
		there[i / NODES][i % NODES] = l->stage->links[i / NODES][i % NODES].count;
	}
	stage_jump(l->stage, HOP);
	stage_tick(l->stage);
	for (uint32_t i = 0; i < NODES * NODES; i++) {
		const bool late = prng_chance(&l->prng, 1, 3);
		for (uint32_t n = 0; !late && n < there[i / NODES][i % NODES]; n++) {
			(void)stage_deliver(l->stage, i / NODES, i % NODES);
		}
	}
	for (uint32_t i = 0; i < l->count; i++) {
		struct slot *s = &l->slots[i];
		const struct stage_reply *reply = stage_answer(l->stage, s->id);
		if (reply) {
			CHECK(reply->r.error == PAWL_OK);
			l->done += s->holds;
			s->holds = !s->holds;
			ask(l, s, s->holds ? CORE_RELEASE : CORE_ACQUIRE);
		}
	}
	l->rounds++;
}

/* Finds a key of which this node is the home. */
static void key_of(struct load *l, uint32_t home) {
	for (uint32_t i = 0;; i++) {
		snprintf(l->key, sizeof l->key, "hot-%u", i);
		(void)stage_do(l->stage, 0, stage_request(CORE_EXPLAIN, l->key, stage_lock(1)));
		const struct stage_reply *reply = stage_last(l->stage);
		if (reply->reports[stage_peer(l->stage, 0, home)].home) {
			return;
		}
	}
}

static void print_counts(const struct stage *s, const uint64_t *sent, const uint64_t *counts,
	double cycles) {
	for (int kind = 0; kind <= MESSAGE_KIND_MAX; kind++) {
		uint64_t n = stage_sent(s, (enum message_kind)kind) - sent[kind];
		if ((double)n > cycles / 50) {
			printf("    %s %.2f\n", message_name((enum message_kind)kind),
				(double)n / cycles);
		}
	}
	for (int i = 0; i < COUNT_TOTAL; i++) {
		uint64_t n = stage_count(s, (enum core_count)i) - counts[i];
		if ((double)n > cycles / 50) {
			printf("    count %s %.2f\n", core_count_name((enum core_count)i),
				(double)n / cycles);
		}
	}
}

static void measure(const struct mode *mode, uint32_t home, bool spread, uint32_t outstanding,
	uint64_t cycles, bool counts) {
	struct alloc_counter memory = { 0, 0 };
	struct allocator alloc = alloc_libc(&memory);
	struct stage_options o = stage_options_plain();
	o.own = o.core = &alloc;
	o.unchecked = true;
	o.replies = 4 * outstanding;
	struct load l = { .stage = stage_born(&o), .mode = mode, .count = outstanding };
	prng_init(&l.prng, 1);
	l.slots = calloc(outstanding, sizeof *l.slots);
	CHECK(l.slots != NULL);
	key_of(&l, home);
	uint64_t sent[MESSAGE_KIND_MAX + 1], all = 0, before[COUNT_TOTAL];
	for (uint32_t i = 0; i < outstanding; i++) {
		l.slots[i] = (struct slot){ .node = spread ? i % NODES : 0, .number = (uint8_t)i };
		ask(&l, &l.slots[i], CORE_ACQUIRE);
	}
	while (l.done < cycles / 10 && l.rounds < ROUNDS_MOST) {
		one_round(&l);
	}
	const uint64_t first = l.done, first_rounds = l.rounds;
	for (int kind = 0; kind <= MESSAGE_KIND_MAX; kind++) {
		sent[kind] = stage_sent(l.stage, (enum message_kind)kind);
	}
	for (int i = 0; i < COUNT_TOTAL; i++) {
		before[i] = stage_count(l.stage, (enum core_count)i);
	}
	while (l.done < cycles && l.rounds < ROUNDS_MOST) {
		one_round(&l);
	}
	for (int kind = 0; kind <= MESSAGE_KIND_MAX; kind++) {
		all += stage_sent(l.stage, (enum message_kind)kind) - sent[kind];
	}
	const double done = (double)(l.done - first);
	printf("| %s | %s | %s | %.2f | %.2f |\n", mode->name, spread ? "all nodes" : "one node",
		mode->own_keys ? "" : home == 0 ? "the node itself" : "another node",
		2 * done / (double)(l.rounds - first_rounds), (double)all / done);
	if (counts) {
		print_counts(l.stage, sent, before, done);
	}
	free(l.slots);
	stage_free(l.stage);
}

static uint64_t number(int argc, char **argv, const char *name, uint64_t standard) {
	for (int i = 1; i + 1 < argc; i++) {
		standard = strcmp(argv[i], name) == 0 ? strtoul(argv[i + 1], NULL, 10) : standard;
	}
	return standard;
}

int main(int argc, char **argv) {
	const uint64_t cycles = number(argc, argv, "--cycles", 20000);
	const uint32_t outstanding = (uint32_t)number(argc, argv, "--outstanding", 64);
	const bool counts = argc > 1 && strcmp(argv[argc - 1], "--counts") == 0;
	CHECK(cycles > 0 && outstanding > 0 && outstanding <= 255);
	printf("| mode | asked at | home | grants a round trip | messages a cycle |\n"
		"|---|---|---|---|---|\n");
	const size_t from = (size_t)number(argc, argv, "--from", 0);
	for (size_t i = from; i < sizeof modes / sizeof *modes; i++) {
		for (uint32_t home = 0; home < (modes[i].own_keys ? 1 : NODES); home++) {
			measure(&modes[i], home, false, outstanding, cycles, counts);
		}
		measure(&modes[i], 0, true, outstanding, cycles, counts);
	}
	return 0;
}
