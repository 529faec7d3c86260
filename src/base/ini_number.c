/* ini_number.c: reading numbers and sizes, without locale, sign or overflow. */
#include "ini_number.h"

#include <string.h>

bool ini_digits(const char **text, uint64_t *out) {
	const char *s = *text;
	uint64_t n = 0;
	if (*s < '0' || *s > '9') {
		return false;
	}
	for (; *s >= '0' && *s <= '9'; s++) {
		if (__builtin_mul_overflow(n, 10u, &n) ||
			__builtin_add_overflow(n, (uint64_t)(*s - '0'), &n)) {
			return false;
		}
	}
	*text = s;
	*out = n;
	return true;
}

const char *ini_size(const char *text, uint64_t *out) {
	static const char wanted[] =
		"not a size: write a number of bytes, or one with a unit, such as 64k, 1m or 2g";
	uint64_t n;
	if (!ini_digits(&text, &n)) {
		return wanted;
	}
	unsigned shift = 0;
	if (*text != '\0') {
		const char *unit = strchr("kmg", *text | 0x20);
		if (!unit || *unit == '\0' || text[1] != '\0') {
			return wanted;
		}
		shift = 10 * (unsigned)(*unit == 'k' ? 1 : *unit == 'm' ? 2 : 3);
	}
	if (n > UINT64_MAX >> shift) {
		return wanted;
	}
	*out = n << shift;
	return NULL;
}

const char *ini_count(const char *text, uint64_t *out) {
	uint64_t n;
	if (!ini_digits(&text, &n) || *text != '\0') {
		return "not a number: write a whole number, such as 1000";
	}
	*out = n;
	return NULL;
}
