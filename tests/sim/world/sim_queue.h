/* sim_queue.h: the events to come, in true time. Events of one instant happen in the order in which
 * they were put in. */
#ifndef PAWL_SIM_QUEUE_H
#define PAWL_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void sim_event_fn(void *ctx, uint64_t arg);

struct sim_event {
	int64_t at;
	uint64_t seq;
	sim_event_fn *fn;
	void *ctx;
	uint64_t arg;
};

struct sim_queue {
	struct sim_event *heap;
	size_t count, capacity;
	uint64_t seq;
};

void sim_queue_done(struct sim_queue *q);
void sim_queue_put(struct sim_queue *q, int64_t at, sim_event_fn *fn, void *ctx, uint64_t arg);
/* False: it is empty. */
bool sim_queue_take(struct sim_queue *q, struct sim_event *out);
/* INT64_MAX: it is empty. */
int64_t sim_queue_next(const struct sim_queue *q);

#endif
