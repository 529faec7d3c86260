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

void request_counts_answer(struct request_counts *c, struct request_count *one, int error,
	struct instant now) {
	const unsigned result = (unsigned)-error;
	if (!one->open) {
		return;
	}
	if (result < REQUEST_RESULTS) {
		c->results[one->method][result]++;
	}
	buckets_add(&c->durations[one->method], now.boot - one->begun);
	request_counts_forget(c, one);
}

void request_counts_at_once(struct request_counts *c, enum client_method method, int error) {
	struct request_count one = { .method = (uint8_t)method, .open = true };
	request_counts_answer(c, &one, error, (struct instant){ 0, 0 });
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
