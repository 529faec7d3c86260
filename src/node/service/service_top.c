/* service_top.c: `top`: what the node has counted, and the keys that stand out. */
#include "client_top.h"
#include "service_impl.h"

/* How many of the oldest requests that wait are looked at. */
#define WAITERS_MAX 1024

static bool top_lists_key(const struct client_top *top, struct slice key) {
	for (uint32_t i = 0; i < top->lists[TOP_WAITERS].count; i++) {
		if (slice_equal(top->lists[TOP_WAITERS].keys[i].key, key)) {
			return true;
		}
	}
	return false;
}

/* Lists the keys of the requests that have waited for longest, each key once. */
static void top_waiters(const struct service *s, struct instant now, struct slice prefix,
	struct client_top *top) {
	const struct list *all = &s->requests.counts.waiting;
	uint32_t seen = 0;
	for (const struct list *at = list_first(all); at && seen < WAITERS_MAX
		&& top->lists[TOP_WAITERS].count < HOT_KEYS_MAX; at = list_after(all, at), seen++) {
		const struct request_count *count = CONTAINER_OF(at, const struct request_count,
			waiting);
		const struct request *request = CONTAINER_OF(count, const struct request, count);
		size_t first = 0;
		struct slice key;
		if (request->wait && requests_wait_key(request->wait, &first, &key)
			&& slice_has_prefix(key, prefix) && !top_lists_key(top, key)) {
			top->lists[TOP_WAITERS].keys[top->lists[TOP_WAITERS].count++] =
				(struct hot_key){ .key = key,
					.number = (uint64_t)(now.boot - count->begun) };
		}
	}
}

static void top_totals(const struct service *s, struct instant now, struct client_top *top) {
	const struct request_counts *counts = &s->requests.counts;
	struct core_figures figures;
	core_figures(s->driver->core, now, &figures);
	for (unsigned i = 0; i < CLIENT_METHODS; i++) {
		for (unsigned k = 0; k < REQUEST_RESULTS; k++) {
			top->requests += counts->results[i][k];
			top->refusals += k ? counts->results[i][k] : 0;
		}
	}
	for (unsigned i = 0; i < FIGURE_MODES; i++) {
		top->grants += counts->grants[i];
	}
	for (unsigned i = 0; i < FIGURE_LOSSES; i++) {
		top->losses += figures.lost[i];
	}
	top->releases = figures.releases;
}

int service_top_encode(struct service *s, struct instant now, struct slice prefix, uint32_t msgid,
	struct buffer *out) {
	static const enum hot_kind kinds[] = { [TOP_QUEUES] = HOT_QUEUES,
		[TOP_HOLDERS] = HOT_HELD, [TOP_GRANTED] = HOT_GRANTED };
	struct core *core = s->driver->core;
	struct core_status status;
	struct client_top top = { .node = s->driver->context.node };
	core_want_figures(core);
	core_status(core, now, &status);
	top.waiting = status.waiters;
	top_totals(s, now, &top);
	for (unsigned i = 0; i < TOP_LISTS; i++) {
		if (i != TOP_WAITERS) {
			top.lists[i].count = core_hot(core, now, kinds[i], prefix,
				top.lists[i].keys);
		}
	}
	top_waiters(s, now, prefix, &top);
	return client_top_encode(msgid, &top, out);
}

void service_top(const struct service_call *call) {
	struct service *s = call->service;
	struct buffer *to = sessions_answer(s->sessions, call->client);
	service_told(s, call->client, to ? service_top_encode(s, call->now,
			call->request->core.key, call->request->msgid, to) : 0);
}
