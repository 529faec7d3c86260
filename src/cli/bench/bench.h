/* bench.h: pawl bench, and what its modes share. There is one thread with one loop, and everything
 * that is under way is a slot. */
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

	/* From the command line; 0 means the mode's default. */
	uint64_t outstanding, connections, count, batch, leases;
	uint32_t lease_ms, duration_ms, hold_ms;
	const char *prefix, *value;

	struct event_base *base;
	struct pawl **clients;

	/* Goes off when the time is over. */
	struct event *over;
	bool stopping;

	/* How many slots have not ended. */
	uint64_t running;

	/* `latency` is that of the operation that is measured; `cycle` is that of acquire and
	 * release together. */
	struct histogram latency, cycle;
	uint64_t done, errors;

	/* How often a connection has gone on to another node. */
	uint64_t moves;
	char first_error[512];
	int64_t begin_ns, end_ns;
	int64_t last_grant_ns, longest_gap_ns, gap_at_ns;

	/* For handoff: when the last holder let go. */
	int64_t released_ns;

	/* For fill and extend: the lock_ids of the leases that are held; all zeroes where one has
	 * failed. */
	struct pawl_id *ids;
	uint64_t filled, next;
};

struct bench_mode {
	const char *name;

	/* What is counted, in the plural. */
	const char *operation;

	/* What the latency in struct bench measures. */
	const char *latency;

	/* The defaults of the mode, the lease in ms. */
	uint64_t outstanding;
	uint32_t lease_ms;
	bool one_key, gaps;

	/* Starts the slots, which stop once b->stopping is set. */
	void (*start)(struct bench *b);
};

/* Returns the time in ns. */
int64_t bench_now(void);
struct pawl *bench_client(const struct bench *b, uint64_t slot);
/* Counts a failure. The first one is shown. */
void bench_failed(struct bench *b, int error, const char *message);
/* Calls `again` in a moment. This is for use after a failure, so that a cluster in trouble is not
 * flooded. */
void bench_pause(struct bench *b, void (*again)(int, short, void *), void *arg);
/* The measurement begins now, after everything has been prepared. The duration counts from here. */
void bench_begin(struct bench *b);
void bench_slot_ended(struct bench *b);
/* Returns whether the time is over or the count is reached. */
bool bench_enough(const struct bench *b);

void bench_cycle_start(struct bench *b);
void bench_fill_start(struct bench *b);
void bench_extend_start(struct bench *b);

#endif
