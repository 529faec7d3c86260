/* bench.h: pawl bench, and what its modes share. One thread, one loop; everything under way is a slot. */
#ifndef PAWL_CLI_BENCH_H
#define PAWL_CLI_BENCH_H

#include "cli.h"
#include "histogram.h"

#define BENCH_KEY_BYTES 128
#define BENCH_BATCH_MAX 1000

extern const struct cli_command cli_bench;

struct bench {
	const struct cli_command_line *line;
	const struct bench_mode *mode;
	/* from the command line; 0: the mode's default */
	uint64_t outstanding, connections, count, batch, leases;
	uint32_t lease_ms, duration_ms, hold_ms;
	const char *prefix, *value;

	struct event_base *base;
	struct pawl **clients;
	struct event *over; /* the time is over */
	bool stopping;
	uint64_t running; /* slots that have not ended */

	struct histogram latency, cycle; /* of the operation that is measured; of acquire and release together */
	uint64_t done, errors;
	char first_error[160];
	int64_t begin_ns, end_ns;
	int64_t last_grant_ns, longest_gap_ns, gap_at_ns;
	int64_t released_ns; /* handoff: when the last holder let go */

	struct pawl_id *ids; /* fill, extend: of the leases that are held, zero where one failed */
	uint64_t filled, next;
};

struct bench_mode {
	const char *name;
	const char *operation; /* what is counted, plural */
	const char *latency;   /* what b->latency measures */
	uint64_t outstanding;  /* defaults */
	uint32_t lease_ms;
	bool one_key, gaps;
	void (*start)(struct bench *b); /* starts the slots; they stop when b->stopping */
};

int64_t bench_now(void); /* ns */
struct pawl *bench_client(const struct bench *b, uint64_t slot);
/* Counts a failure; the first is shown. */
void bench_failed(struct bench *b, int error, const char *message);
/* Calls `again` in a moment: after a failure, so that a cluster in trouble is not flooded. */
void bench_pause(struct bench *b, void (*again)(int, short, void *), void *arg);
/* The measurement begins now (after what had to be prepared); the duration counts from here. */
void bench_begin(struct bench *b);
void bench_slot_ended(struct bench *b);
bool bench_enough(const struct bench *b); /* the time is over or the count reached */

void bench_cycle_start(struct bench *b);
void bench_fill_start(struct bench *b);
void bench_extend_start(struct bench *b);

#endif
