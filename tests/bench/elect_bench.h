/* elect_bench.h: what the parts of elect-bench share. There is one process with one loop; it prints
 * one line of JSON. */
#ifndef PAWL_BENCH_ELECT_BENCH_H
#define PAWL_BENCH_ELECT_BENCH_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"

/* What is published is a time, as hex digits. */
#define STAMP_BYTES 16
#define WARM_UP_MS 500

struct load {
	struct event_base *base;
	struct event *over;
	struct histogram latency;
	/* `done`: how much was published or granted; `heard`: how much of it arrived. */
	uint64_t done, heard, errors;
	/* In nanoseconds. `begin` is 0 while it warms up. */
	int64_t begin, end;
	bool stopping;
	/* How many are published a second; 0: as fast as answers come. */
	uint32_t rate;
	struct event *pace;
	uint64_t paced;
};

int64_t load_now(void);
void load_stamp(char out_text[STAMP_BYTES + 1]);
/* What was published at `stamp` has arrived. It does not count while the load warms up. */
void load_heard(struct load *l, const void *stamp);
/* Counting begins after a warm-up, and the loop ends `seconds` later. If a rate is set, `pace` is
 * called for each one that is due. */
int load_run(struct load *l, double seconds, void (*pace)(void *arg), void *arg);
void load_print(const struct load *l, const char *done);
/* Ends the program. */
void load_fail(const char *what, int error);

/* elect_hold.c:
 *
 *   elect-bench hold ENDPOINTS HOLDERS CLIENTS LEASE_MS SECONDS
 *   elect-bench cycle ENDPOINTS CLIENTS TERMS KEY OUTSTANDING SECONDS
 */
int hold_main(char **argv);
int cycle_main(char **argv);
/* elect_watch.c: elect-bench watch ENDPOINTS WATCHERS PUBLISHERS RATE SECONDS */
int watch_main(char **argv);
/* elect_redis.c:
 *
 *   elect-bench redis-handoff PORT WAITERS SECONDS
 *   elect-bench redis-publish PORT SUBSCRIBERS PUBLISHERS RATE SECONDS
 */
int redis_handoff_main(char **argv);
int redis_publish_main(char **argv);
/* elect_lock.c: elect-bench redis-cycle ADDRESS,... CYCLES SECONDS */
int redis_cycle_main(char **argv);

#endif
