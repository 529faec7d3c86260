/* request_counts.c: counts requests from their beginning to their answer. */
#include "request_counts.h"

void request_counts_init(struct request_counts *c) {
	*c = (struct request_counts){ .waits = { .sum = 0 } };
	list_init(&c->waiting);
	list_init(&c->endless);
}

void request_counts_begin(struct request_counts *c, struct request_count *one,
	enum client_method method, uint32_t group, span_ns wait, struct instant now) {
	one->begun = now.boot;
	one->method = (uint8_t)method;
	one->group = (uint8_t)group;
	one->open = true;
	if (wait > 0) {
		list_append(wait < REQUEST_ENDLESS ? &c->waiting : &c->endless, &one->waiting);
		c->groups[group].waiters++;
	}
}

void request_counts_forget(struct request_counts *c, struct request_count *one) {
	if (list_linked(&one->waiting)) {
		list_remove(&one->waiting);
		c->groups[one->group].waiters--;
	}
	one->open = false;
}

static void counts_result(struct request_counts *c, unsigned method, int error) {
	unsigned result = (unsigned)-error;
	if (method < CLIENT_METHODS && result < REQUEST_RESULTS) {
		c->results[method][result]++;
	}
}

void request_counts_answer(struct request_counts *c, struct request_count *one, int error,
	struct instant now) {
	if (!one->open) {
		return;
	}
	counts_result(c, one->method, error);
	buckets_add(&c->durations[one->method], now.boot - one->begun);
	request_counts_forget(c, one);
}

void request_counts_at_once(struct request_counts *c, enum client_method method, int error) {
	counts_result(c, method, error);
	buckets_add(&c->durations[method], 0);
}

void request_counts_granted(struct request_counts *c, uint32_t group,
	const struct core_reply *reply) {
	uint64_t locks = 1;
	buckets_add(&c->waits, reply->waited);
	if (reply->op == CORE_ACQUIRE_ALL) {
		locks = reply->count;
		for (size_t i = 0; i < locks; i++) {
			c->grants[figure_mode_of(reply->got[i].terms.of)]++;
		}
	} else {
		c->grants[figure_mode_of(reply->terms.of)]++;
	}
	buckets_add(&c->groups[group].waits, reply->waited);
	c->groups[group].grants += locks;
}

span_ns request_counts_oldest(const struct request_counts *c, struct instant now) {
	const struct list *first = list_first(&c->waiting);
	return first ? now.boot - CONTAINER_OF(first, const struct request_count, waiting)->begun
		: 0;
}
