/* trace.c: checks a traceparent. */
#include "trace.h"

static bool trace_digit(uint8_t c) {
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Returns whether not all of the bytes are the digit 0. */
static bool trace_some(struct slice trace, size_t from, size_t size) {
	bool some = false;
	for (size_t i = from; i < from + size; i++) {
		some = some || trace.data[i] != '0';
	}
	return some;
}

bool trace_valid(struct slice trace) {
	if (trace.size != TRACE_BYTES || (trace.data[0] == 'f' && trace.data[1] == 'f')) {
		return false;
	}
	for (size_t i = 0; i < TRACE_BYTES; i++) {
		const bool dash = i == 2 || i == 35 || i == 52;
		if (dash ? trace.data[i] != '-' : !trace_digit(trace.data[i])) {
			return false;
		}
	}
	return trace_some(trace, 3, 32) && trace_some(trace, 36, 16);
}
