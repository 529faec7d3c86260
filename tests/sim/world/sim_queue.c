/* sim_queue.c: a heap of events, in the order of time. */
#include "sim_queue.h"

#include <stdlib.h>

#include "check.h"

void sim_queue_done(struct sim_queue *q) {
	free(q->heap);
	*q = (struct sim_queue){ 0 };
}

static bool before(const struct sim_event *a, const struct sim_event *b) {
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void sim_queue_put(struct sim_queue *q, int64_t at, sim_event_fn *fn, void *ctx, uint64_t arg) {
	if (q->count == q->capacity) {
		q->capacity = q->capacity ? 2 * q->capacity : 256;
		q->heap = realloc(q->heap, q->capacity * sizeof *q->heap);
		CHECK(q->heap != NULL);
	}
	struct sim_event e = { at, q->seq++, fn, ctx, arg };
	size_t i = q->count++;
	while (i > 0 && before(&e, &q->heap[(i - 1) / 2])) {
		q->heap[i] = q->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	q->heap[i] = e;
}

bool sim_queue_take(struct sim_queue *q, struct sim_event *out) {
	if (q->count == 0) {
		return false;
	}
	*out = q->heap[0];
	struct sim_event last = q->heap[--q->count];
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= q->count) {
			break;
		}
		if (child + 1 < q->count && before(&q->heap[child + 1], &q->heap[child])) {
			child++;
		}
		if (!before(&q->heap[child], &last)) {
			break;
		}
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return true;
}

int64_t sim_queue_next(const struct sim_queue *q) {
	return q->count ? q->heap[0].at : INT64_MAX;
}
