/* orders.c: remembers what operators have asked for. */
#include "orders.h"

static uint16_t orders_copy(uint8_t *to, size_t room, struct slice from) {
	const size_t size = from.size < room ? from.size : room;
	if (size > 0) {
		memcpy(to, from.data, size);
	}
	return (uint16_t)size;
}

uint64_t orders_note(struct orders *o, const char *method, struct slice subject, struct slice who,
	struct instant now) {
	struct order *one = &o->ring[o->count++ % ORDERS_MAX];
	one->answered = false;
	one->at = now.boot;
	one->method = method;
	one->subject_size = orders_copy(one->subject, sizeof one->subject, subject);
	one->who_size = orders_copy(one->who, sizeof one->who, who);
	return o->count;
}

void orders_answer(struct orders *o, uint64_t number, int result) {
	if (number > 0 && o->count - number < ORDERS_MAX) {
		struct order *one = &o->ring[(number - 1) % ORDERS_MAX];
		one->answered = true;
		one->result = result;
	}
}

const struct order *orders_last(const struct orders *o, uint32_t back) {
	return back < o->count && back < ORDERS_MAX
		? &o->ring[(o->count - 1 - back) % ORDERS_MAX] : NULL;
}
