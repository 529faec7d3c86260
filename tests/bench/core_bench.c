/* core_bench.c: what the protocol alone costs. There are three cores in one process, and no
 * sockets, no codec, and no clock but a counter.
 *
 *   core_bench [--leases N] [--ops N] [--outstanding N]
 *
 * It fills the table with N leases, then times acquire, extend and release of OPS other keys,
 * OUTSTANDING at a time. No more than ROUND of them are held at once, so that the table keeps its
 * size. A figure is the work of all three masters together for one operation. This counts the
 * instructions of one kind of operation:
 *
 *   valgrind --tool=callgrind --toggle-collect=measure_acquire core_bench --leases 1000 --ops 10000
 *
 * The N leases are all granted by the first node. Of it, and of another one, core_bench says how
 * many bytes a lease takes: as the core asks for them, in blocks of which sizes, and as they are
 * taken from the C library by the allocator of pawld, which stands in between.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "check.h"
#include "core.h"
#include "free_lists.h"

#define NODES 3
#define LEASE (SPAN_S * 36000)
#define ROUND 1024
/* The virtual time that a turn of the loop takes. */
#define TURN (10 * SPAN_US)
/* Blocks of at most so many bytes are counted by their size. */
#define SIZES 1024

/* The memory of a node: what the core asks for, and what the C library gives for that. */
struct memory {
	struct free_lists lists;
	struct allocator behind;
	struct alloc_counter taken;
	size_t asked;
	/* How many blocks there are of each size. */
	uint64_t blocks[SIZES + 1];
};

struct world {
	struct core *core[NODES];
	struct core_out *out[NODES];
	/* slot[i][j] is the peer index of j in the table of i. */
	uint32_t slot[NODES][NODES];
	struct memory memory[NODES];
	struct allocator alloc[NODES];
	struct config birth;
	struct durable durable[NODES];
	struct instant now;
	uint64_t replies, refused;
	/* The first node coordinates everything; otherwise all of them do in turn. */
	bool first_alone;
};

static const char *const node_names[NODES] = {"a", "b", "c"};

/* ---- memory ---- */

static void *memory_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct memory *m = ctx;
	void *out = m->behind.resize(m->behind.ctx, p, old_size, new_size);
	if (new_size == 0 || out) {
		m->asked += new_size - old_size;
		m->blocks[old_size <= SIZES ? old_size : 0]--;
		m->blocks[new_size <= SIZES ? new_size : 0]++;
	}
	return out;
}

static struct allocator memory_alloc(struct memory *m) {
	free_lists_init(&m->lists, alloc_libc(&m->taken), FREE_LISTS_KEPT);
	m->behind = free_lists_alloc(&m->lists);
	return (struct allocator){ .resize = memory_resize, .ctx = m };
}

/* Prints what a lease takes, and of which sizes there is at least one block for each ten leases. */
static void memory_print(const struct memory *m, const char *where, uint64_t leases) {
	const double each = (double)leases;
	printf("memory   %10.1f bytes a lease %s, %.1f from the C library\n",
		(double)m->asked / each, where, (double)m->taken.used / each);
	for (size_t size = 1; size <= SIZES; size++) {
		if (m->blocks[size] * 10 >= leases) {
			printf("         %10.2f blocks a lease of %zu bytes\n",
				(double)m->blocks[size] / each, size);
		}
	}
}

/* ---- the world ---- */

static void world_step(struct world *w, uint32_t i, const struct core_event *event) {
	core_step(w->core[i], event, w->now, w->out[i]);
}

static void world_replies(struct world *w, uint32_t i) {
	const struct core_reply *reply;
	while ((reply = core_out_reply(w->out[i])) != NULL) {
		w->replies++;
		if (reply->error != 0) {
			w->refused++;
		}
	}
	while (core_out_note(w->out[i]) != NULL) {
	}
}

/* The disk is done at once. */
static bool world_persist(struct world *w, uint32_t i) {
	uint64_t seq;
	if (!core_out_persist(w->out[i], &w->durable[i], &seq)) {
		return false;
	}
	struct core_event event = {.kind = CORE_PERSISTED, .persist_seq = seq, .persist_ok = true};
	world_step(w, i, &event);
	return true;
}

static bool world_frames(struct world *w, uint32_t from) {
	bool any = false;
	for (uint32_t to = 0; to < NODES; to++) {
		struct frame frame;
		while (to != from && core_out_frame(w->out[from], w->slot[from][to], &frame)) {
			struct core_event event = {.kind = CORE_FRAME, .peer = w->slot[to][from],
				.frame = &frame};
			world_step(w, to, &event);
			core_out_sent(w->out[from], w->slot[from][to]);
			any = true;
		}
	}
	return any;
}

/* The loops take turns until nothing is left to say. */
static void world_pump(struct world *w) {
	bool any = true;
	w->now = instant_add(w->now, TURN);
	for (uint32_t i = 0; i < NODES; i++) {
		if (w->now.boot >= core_deadline(w->core[i])) {
			world_step(w, i, &(struct core_event){.kind = CORE_TICK});
		}
	}
	while (any) {
		any = false;
		for (uint32_t i = 0; i < NODES; i++) {
			any = world_persist(w, i) || any;
			any = world_frames(w, i) || any;
			world_replies(w, i);
			CHECK(core_out_resets(w->out[i]) == 0);
			core_out_clear(w->out[i]);
		}
	}
}

static void world_config(struct config *c) {
	memset(c, 0, sizeof *c);
	snprintf(c->cluster, sizeof c->cluster, "bench");
	c->max_lease = LEASE;
	c->request_timeout = SPAN_S;
	c->promise_timeout = 2 * SPAN_S;
	c->drift_ppm = 10000;
	c->node_count = NODES;
	for (uint32_t i = 0; i < NODES; i++) {
		snprintf(c->nodes[i].name, sizeof c->nodes[i].name, "%s", node_names[i]);
		snprintf(c->nodes[i].address, sizeof c->nodes[i].address, "node-%s:7118",
			node_names[i]);
		c->nodes[i].master = true;
	}
}

static void world_node(struct world *w, uint32_t i, uint64_t leases) {
	w->alloc[i] = memory_alloc(&w->memory[i]);
	memset(w->durable[i].node_id.b, (int)i + 1, sizeof w->durable[i].node_id.b);
	struct core_options options = {
		.alloc = &w->alloc[i],
		.hash_key = {0x1234 + i, 0x5678},
		.seed = i + 1,
		.limits = {.keys = leases + (1 << 20), .memory_bytes = UINT64_C(1) << 34,
			.rounds = 1 << 17, .released = 1 << 16},
		.name = node_names[i],
		.birth = &w->birth,
		.durable = &w->durable[i],
	};
	CHECK(core_new(&options, &w->core[i]) == 0);
	w->out[i] = core_out_new(w->core[i]);
	CHECK(w->out[i] != NULL);
	world_step(w, i, &(struct core_event){.kind = CORE_START});
	CHECK(world_persist(w, i) || w->durable[i].boot == 0);
}

static bool world_votes(struct world *w) {
	uint32_t voting = 0;
	for (uint32_t i = 0; i < NODES; i++) {
		struct core_status *status = calloc(1, sizeof *status);
		CHECK(status != NULL);
		core_status(w->core[i], w->now, status);
		voting += status->state == CORE_VOTING && status->voting_linked == NODES;
		free(status);
	}
	return voting == NODES;
}

static void world_start(struct world *w, uint64_t leases) {
	w->now = (struct instant){SPAN_S, SPAN_S};
	world_config(&w->birth);
	for (uint32_t i = 0; i < NODES; i++) {
		world_node(w, i, leases);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t slot = 0; slot < core_peer_count(w->core[i]); slot++) {
			for (uint32_t j = 0; j < NODES; j++) {
				if (strcmp(core_peer(w->core[i], slot)->name, node_names[j]) == 0) {
					w->slot[i][j] = slot;
				}
			}
		}
	}
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < NODES; j++) {
			if (i != j) {
				world_step(w, i, &(struct core_event){.kind = CORE_PEER_UP,
					.peer = w->slot[i][j], .peer_id = w->durable[j].node_id,
					.peer_boot = w->durable[j].boot});
			}
		}
	}
	for (int turn = 0; turn < 1000000 && !world_votes(w); turn++) {
		world_pump(w);
	}
	CHECK(world_votes(w));
}

/* Makes one operation on key `number`. */
static void world_ask(struct world *w, enum core_op op, uint64_t number) {
	char key[32];
	int size = snprintf(key, sizeof key, "bench/%016llu", (unsigned long long)number);
	struct core_request request = {
		.id = number,
		.client = 1,
		.op = op,
		.key = {(const uint8_t *)key, (size_t)size},
		.owner = {(const uint8_t *)"bench", 5},
		.lease = LEASE,
		.deadline_kept = true,
	};
	number++;
	memcpy(request.lock_id.b, &number, sizeof number);
	request.lock_id.b[15] = 1;
	world_step(w, w->first_alone ? 0 : (uint32_t)(number % NODES),
		&(struct core_event){.kind = CORE_REQUEST, .request = &request});
}

static void run(struct world *w, enum core_op op, uint64_t first, uint64_t ops,
	uint64_t outstanding) {
	uint64_t before = w->replies, refused = w->refused;
	for (uint64_t k = 0; k < ops;) {
		for (uint64_t o = 0; o < outstanding && k < ops; o++) {
			world_ask(w, op, first + k++);
		}
		world_pump(w);
	}
	CHECK(w->replies - before == ops);
	CHECK(w->refused == refused);
}

/* These are functions of their own, so that callgrind can be told to count only one of them. */
__attribute__((noinline)) static void measure_acquire(struct world *w, uint64_t first, uint64_t ops,
	uint64_t outstanding) {
	run(w, CORE_ACQUIRE, first, ops, outstanding);
}

__attribute__((noinline)) static void measure_extend(struct world *w, uint64_t first, uint64_t ops,
	uint64_t outstanding) {
	run(w, CORE_EXTEND, first, ops, outstanding);
}

__attribute__((noinline)) static void measure_release(struct world *w, uint64_t first, uint64_t ops,
	uint64_t outstanding) {
	run(w, CORE_RELEASE, first, ops, outstanding);
}

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct measure {
	const char *name;
	void (*measure)(struct world *w, uint64_t first, uint64_t ops, uint64_t outstanding);
	double seconds;
};

static void measured(struct world *w, uint64_t first, uint64_t ops, uint64_t outstanding) {
	struct measure measures[] = {{"acquire", measure_acquire, 0}, {"extend", measure_extend, 0},
		{"release", measure_release, 0}};
	size_t count = sizeof measures / sizeof *measures;
	for (uint64_t done = 0; done < ops; done += ROUND) {
		for (size_t m = 0; m < count; m++) {
			double start = seconds();
			measures[m].measure(w, first + done,
				ops - done < ROUND ? ops - done : ROUND, outstanding);
			measures[m].seconds += seconds() - start;
		}
	}
	for (size_t m = 0; m < count; m++) {
		printf("%-8s %10.0f ns\n", measures[m].name,
			measures[m].seconds * 1e9 / (double)ops);
	}
}

static uint64_t number_of(const char *text) {
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || n == 0) {
		fprintf(stderr, "core_bench: not a number above 0: %s\n", text);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv) {
	static struct world w;
	uint64_t leases = 1000, ops = 100000, outstanding = 1;
	for (int i = 1; i < argc; i++) {
		uint64_t *option = strcmp(argv[i], "--leases") == 0 ? &leases
			: strcmp(argv[i], "--ops") == 0 ? &ops :
			strcmp(argv[i], "--outstanding") == 0 ? &outstanding : NULL;
		if (option == NULL || i + 1 == argc) {
			fprintf(stderr,
				"usage: core_bench [--leases N] [--ops N] [--outstanding N]\n");
			return 2;
		}
		*option = number_of(argv[++i]);
	}
	world_start(&w, leases + ops);
	w.first_alone = true;
	run(&w, CORE_ACQUIRE, 0, leases, 256);
	w.first_alone = false;
	memory_print(&w.memory[0], "where it was granted", leases);
	memory_print(&w.memory[1], "elsewhere", leases);
	printf("%llu leases, %llu outstanding, three masters together\n",
		(unsigned long long)leases, (unsigned long long)outstanding);
	measured(&w, leases, ops, outstanding);
	for (uint32_t i = 0; i < NODES; i++) {
		core_out_free(w.out[i]);
		core_free(w.core[i]);
		free_lists_done(&w.memory[i].lists);
		CHECK(w.memory[i].asked == 0 && w.memory[i].taken.used == 0);
	}
	return 0;
}
