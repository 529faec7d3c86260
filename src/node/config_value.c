#include "config_value.h"

#include <string.h>

#include "types.h"

/* Digits at the front of *text, which moves behind them; false: none, or more than fits. */
static bool config_value_digits(const char **text, uint64_t *out) {
	const char *s = *text;
	uint64_t n = 0;
	if (*s < '0' || *s > '9') {
		return false;
	}
	for (; *s >= '0' && *s <= '9'; s++) {
		if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n)) {
			return false;
		}
	}
	*text = s;
	*out = n;
	return true;
}

const char *config_value_span(const char *text, span_ns *out) {
	static const char wanted[] = "not a duration: write a whole number and a unit, such as 300ms, 5s or 2m (us, ms, s, m, h)";
	static const struct {
		const char *unit;
		span_ns ns;
	} units[] = { { "us", SPAN_US }, { "ms", SPAN_MS }, { "s", SPAN_S }, { "m", 60 * SPAN_S }, { "h", 3600 * SPAN_S } };
	uint64_t n;
	if (!config_value_digits(&text, &n)) {
		return wanted;
	}
	if (n == 0 && *text == '\0') {
		*out = 0;
		return NULL;
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(text, units[i].unit) == 0) {
			if (n > (uint64_t)(SPAN_MAX / units[i].ns)) {
				return "the duration is too long: at most about 290 years";
			}
			*out = (span_ns)n * units[i].ns;
			return NULL;
		}
	}
	return wanted;
}

const char *config_value_size(const char *text, uint64_t *out) {
	static const char wanted[] = "not a size: write a number of bytes, or one with a unit, such as 64k, 1m or 2g";
	uint64_t n;
	if (!config_value_digits(&text, &n)) {
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

const char *config_value_count(const char *text, uint64_t *out) {
	uint64_t n;
	if (!config_value_digits(&text, &n) || *text != '\0') {
		return "not a number: write a whole number, such as 1000";
	}
	*out = n;
	return NULL;
}

const char *config_value_percent(const char *text, uint32_t *out_ppm) {
	static const char wanted[] = "not a percentage: write one from 0.0001 % to 10 %, such as 1 % or 0.5 %";
	uint64_t whole, ppm = 0;
	if (!config_value_digits(&text, &whole) || whole > 10) {
		return wanted;
	}
	uint64_t unit = 1000; /* ppm of the next digit behind the point */
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9' && unit > 0; text++, unit /= 10) {
			ppm += (uint64_t)(*text - '0') * unit;
		}
	}
	while (*text == ' ') {
		text++;
	}
	ppm += whole * 10000;
	if (strcmp(text, "%") != 0 || ppm == 0 || ppm > 100000) {
		return wanted;
	}
	*out_ppm = (uint32_t)ppm;
	return NULL;
}

const char *config_value_bool(const char *text, bool *out) {
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0) {
		return "write yes or no";
	}
	*out = strcmp(text, "yes") == 0;
	return NULL;
}

const char *config_value_name(const char *text) {
	size_t size = strlen(text);
	if (size == 0 || size > NODE_NAME_MAX) {
		return "a name has 1 to 63 characters";
	}
	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!letter && c != '-' && c != '.' && c != '_') {
			return "a name is made of letters, digits and - . _";
		}
	}
	return NULL;
}
