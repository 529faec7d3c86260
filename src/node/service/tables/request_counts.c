/* request_counts.c: counts requests from their beginning to their answer. */
#include "request_counts.h"

void request_counts_init(struct request_counts *c) {
	*c = (struct request_counts){ .waits = { .sum = 0 } };
	list_init(&c->waiting);
	list_init(&c->endless);
}

static struct request_group *counts_group(struct request_counts *c, uint32_t group) {
	return group < KEY_GROUPS_MAX ? &c->groups[group] : NULL;
}

void request_counts_begin(struct request_counts *c, struct request_count *one,
	enum client_method method, uint32_t group, span_ns wait, struct instant now) {
	one->begun = now.boot;
	one->method = (uint8_t)method;
	one->group = (uint8_t)group;
	one->open = true;
	if (wait > 0) {
		struct request_group *of = counts_group(c, group);
		list_append(wait < REQUEST_ENDLESS ? &c->waiting : &c->endless, &one->waiting);
		if (of) {
			of->waiters++;
		}
	}
}

void request_counts_forget(struct request_counts *c, struct request_count *one) {
	if (list_linked(&one->waiting)) {
		struct request_group *of = counts_group(c, one->group);
		list_remove(&one->waiting);
		if (of) {
			of->waiters--;
		}
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
	struct request_group *of = counts_group(c, group);
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
	if (of) {
		buckets_add(&of->waits, reply->waited);
		of->grants += locks;
	}
}

span_ns request_counts_oldest(const struct request_counts *c, struct instant now) {
	const struct list *first = list_first(&c->waiting);
	return first ? now.boot - CONTAINER_OF(first, const struct request_count, waiting)->begun
		: 0;
}
